"""A task in one class: a builder, and the reader of its rows. It can stand in one file that a manifest names.

Rows come from a table, by the fields of the row model. Further sources are a folder of PDFs and a folder of pictures.
What a task says once, its instruction, its question and how a unit is shown, makes the draft, the record and the
prompt.
"""

import hashlib
import json
import re
import sys
from abc import ABCMeta
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from inspect import get_annotations, ismethod
from pathlib import Path
from posixpath import normpath
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import AfterValidator, GetCoreSchemaHandler, ValidationError, ValidationInfo
from pydantic.fields import FieldInfo

from mmlongbench.documents.pages import Pages
from mmlongbench.documents.pixels import PICTURE_ENDINGS, PictureFile
from mmlongbench.draft import NEEDLES, SEPARATOR, ContextDraft, Draft, Question, Unit, Wording
from mmlongbench.errors import DraftError, Fault, Rejected, SourceError
from mmlongbench.io.files import file_inside, pdfs_by_name, visible_files
from mmlongbench.io.tables import Columns, columns_of, id_in, table_rows
from mmlongbench.packing.pack import PackedExample
from mmlongbench.packing.place import Depth
from mmlongbench.prompt import Image, Needle, Part, Prompt, Shown, Turn, escape_markers, turns_of
from mmlongbench.task.builder import Builder
from mmlongbench.task.file_formats import FilePattern
from mmlongbench.task.metric import Metric, ScoreFunction, metric_of_function
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import RawRow, Record, Row, RowFault, SourcePaths, raw_row
from mmlongbench.task.sources import Sources
from mmlongbench.task.spec import Options, Placements, TaskSpec

RowT = TypeVar("RowT", bound=Row)
_ASKED = "\n\nQuestion: {question}\nAnswer:"
_ENGINE_FIELDS = frozenset(("id", "repairs", "file", "place"))
"""The fields that every row has; those of a table are the others, and `id` if the table has it."""
_RECORD_FIELDS = frozenset(("instruction", "units"))
"""What a record says of its context; no column of a row and no field of a draft has these names."""
_ADDED_FIELDS = frozenset(
    ("length", "tokens", "canary", "depth", "permutation", "depth_achieved", "depth_requested", "needle_start")
)
"""What the engine adds to a record."""
_ENGLISH = {
    "^(Input should be|Value error,|Assertion failed,) ": "",
    "^Field required$": "a value",
    "^Extra inputs are not permitted$": "no such field",
    "^String should match pattern ": "a text of the form ",
    r"^\w+ should have (at \w+ \d+ \w+).*": r"\1",
    r"^a valid dictionary or instance of (\w+)$": r"an object with the fields of \1",
}
"""What pydantic says of a value, as a word after `expected`."""
_UNNAMED = re.compile(r"<lambda>|<locals>| at 0x\w+|\{(?!\}|[^{}:]+:)")
"""What the name of a metric has if functions may share it, or if it may differ between processes, as texts of sets do;
those of dicts do not."""


class SourceForm:
    """The form of a source of a `Task`: the kind of file or folder that a manifest must name."""

    form: ClassVar[str]
    """The form in words, for `mmlongbench list`."""
    expected: ClassVar[str]
    """What a manifest must name, in a few words."""


class Table(SourceForm):
    """The rows of the task: CSV, TSV, a spreadsheet, JSON Lines, a JSON array or Parquet, with the fields of the row
    model.
    """

    form: ClassVar[str] = "a table of rows (.csv, .tsv, .xlsx, .jsonl, .json or .parquet) with the fields of the row"
    expected: ClassVar[str] = "a file: a table of rows"


class Pdfs(SourceForm):
    """A folder of PDFs; `sources.documents` has each by its file name without `.pdf`."""

    form: ClassVar[str] = "a folder of PDFs; the id of a document is its file name without `.pdf`"
    expected: ClassVar[str] = "a folder of PDFs"


class Folder(SourceForm):
    """A folder of pictures; `sources.images` has each by its path in the folder, and lists all in `names`.

    `photo: Annotated[str, mt.Folder]` in a row model is such a path, also in a list: if it leads nowhere, the row is
    rejected when it is read, so that it is in no haystack of other rows.
    """

    form: ClassVar[str] = "a folder of pictures; the name of a picture is its path in the folder, such as `cats/1.jpg`"
    expected: ClassVar[str] = "a folder of pictures"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:  # noqa: ANN401  (pydantic's)
        return AfterValidator(_pictures_are_there).__get_pydantic_core_schema__(source, handler)


class Task(Builder[RowT]):
    """A whole task in one class. Subclasses define `metric`, `instruction` and `draft`, and name the class of their
    rows: `class Fables(mt.Task[Fable])`.

    Without a column `id`, the id of a row is a hash of its fields, so ids do not move when a row is added. Two equal
    rows have the same id, and the second is rejected.
    """

    metric: ClassVar[str | type[Metric] | ScoreFunction]
    """The name of a metric, which `mmlongbench list` shows; or a metric of the task itself: a function of a model's
    output and the record, which returns a score from 0 to 1, or a subclass of `Metric`."""
    instruction: ClassVar[str] = ""
    """The text before the units; it ends with a newline."""
    separator: ClassVar[str] = SEPARATOR
    """The text between two units."""
    question_form: ClassVar[str] = ""
    r"""The text around the question, which stands after the units. Empty: `\n\nQuestion: {question}\nAnswer:`, and the
    question alone in a conversation."""
    in_turns: ClassVar[bool] = False
    """Whether contexts are conversations: units are made of turns, and one without turns is said by the user."""
    sources: ClassVar[Mapping[str, type[SourceForm]]] = {"rows": Table}
    """The form of each source, by the name that a manifest uses: one `Table`, and at most one `Pdfs` and one
    `Folder`."""
    placements: ClassVar[Placements | None] = None
    """The placements of needles; None if the task has no needles."""
    files: ClassVar[str] = ""
    """The path of the public files below `mmlb_data/` (`FilePattern`); by default `tasks/{name}_K{k}.jsonl`, with
    `_dep{placements}` or `_perm{placements}` if there are placements."""
    reserve: ClassVar[int] = 256
    """Tokens kept free for the answer and a chat template, which has about 5 tokens for each turn of a conversation."""
    variant_reserve: ClassVar[int] = 0
    """Tokens kept free for what `variants` add to the prompt."""
    page_texts: ClassVar[bool] = False
    """Whether the task needs the text of pages (`sources.documents.page_texts`)."""
    repeats_pictures: ClassVar[bool] = False
    """Whether several units of a context may show the same picture: frames of a film in which nothing moves."""
    longest_side: ClassVar[int | None] = None
    """The maximum side of a picture in pixels; a larger picture is shrunk."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Take the class of the rows from `mt.Task[…]`, unless the subclass sets `row_type`."""
        super().__init_subclass__(**kwargs)
        if "may_reject_everywhere" not in vars(cls) and not (cls.record is Task.record and cls.answer is Task.answer):
            cls.may_reject_everywhere = True
        given = [get_args(base)[0] for base in vars(cls).get("__orig_bases__", ()) if get_origin(base) is Task]
        if given and isinstance(given[0], type) and "row_type" not in vars(cls):
            cls.row_type = given[0]

    def question(self, row: RowT) -> str | Sequence[Part] | Wording:
        """Return the question alone; by default the field `question` of the row."""
        asked: str = _field(row, "question", "or define `question(row)`")
        return asked

    def answer(self, example: PackedExample) -> object:
        """Return the answer; by default `Draft.answer`, or the field `answer` of the row.

        A task that overrides this method computes the answer from the packed context, so it may differ between lengths
        and placements.

        Raises:
            Rejected: the question has no valid answer about this context.

        """
        given: object = example.question.data["answer"]
        return _field(example.row, "answer", "or give the draft one") if given is None else given

    def completed(self, draft: Draft | ContextDraft, row: RowT) -> ContextDraft:
        """Return a draft with the instruction, the separator and the question of the task; a `ContextDraft` has its
        own, and is returned as it is.

        Raises:
            DraftError: the draft has an instruction without its last newline.

        """
        if isinstance(draft, ContextDraft):
            return draft
        words = Prompt.of(draft.instruction or (self.instruction,)).text
        # the first words of a prompt cost other tokens than later ones, so a unit cannot be the first
        if not words.endswith("\n") and (words or not self.in_turns):
            named = "Draft.instruction" if draft.instruction else "`instruction` of the task"
            raise DraftError(f"{named} does not end with a newline: {words[-40:]!r}")
        asked = self.question(row) if draft.question is None else draft.question
        before, after = self._around_question()
        data = {"row": row, "answer": draft.answer, "fields": draft.fields, "instruction": draft.instruction}
        if isinstance(asked, Wording):
            around = Wording(asked.texts, asked.choose, lambda text: (before, *asked.parts(text), after))
            question = Question(row.id, around.parts(asked.texts[0]), data, wording=around)
        else:
            parts = (asked,) if isinstance(asked, str) else tuple(asked)
            question = Question(row.id, (before, *parts, after), data)
        return ContextDraft(
            draft.required,
            draft.take_order,
            row.id,
            draft.instruction or (self.instruction,),
            (question,),
            self.separator,
            draft.one_of,
            draft.closing,
            draft.noted,
            in_turns=self.in_turns,
        )

    def shared(self, id: str, draft: Draft, rows: Sequence[RowT]) -> ContextDraft:
        """Return a draft as the context `id`, about which several rows are asked (`SharedContextBuilder`)."""
        questions = tuple(question for row in rows for question in self.completed(draft, row).questions)
        return replace(self.completed(draft, rows[0]), id=id, questions=questions)

    def record(self, example: PackedExample) -> Record:
        """Return the public record: the id, the question, the answer, the fields of the row and of the draft, and
        `units`: what the prompt shows, in its order.

        Raises:
            DraftError: the draft has a field that the record has already.

        """
        asked, row = example.question, example.row
        known = {"id", "question", "answer", *_RECORD_FIELDS, *(type(row).model_fields.keys() - _ENGINE_FIELDS)}
        # another record may rename these
        added: Set[str] = _ADDED_FIELDS if type(self).record is Task.record else frozenset()
        for names, said in ((known, "the record has already"), (added, "the engine adds")):
            if clash := sorted(names & asked.data["fields"].keys()):
                raise DraftError(f"Draft.fields holds {clash[0]!r}, which {said}; give it another name")
        parts = asked.parts[1:-1]  # without the texts around the question
        given = asked.data["instruction"]
        return {
            "id": example.id,
            "question": parts[0] if len(parts) == 1 and isinstance(parts[0], str) else _written(parts),
            "answer": self.answer(example),
            **row.model_dump(mode="json", exclude={*_ENGINE_FIELDS, "question", "answer"}),
            **asked.data["fields"],
            **({"instruction": _written(given)} if given else {}),
            "units": [_written_unit(unit, in_turns=self.in_turns) for unit in example.units],
        }

    def prompt(self, record: Record) -> Prompt:
        """Rebuild the prompt from the record."""
        question = record["question"]
        before, after = self._around_question()
        return Prompt.of_units(
            _read(record.get("instruction", [self.instruction])),
            [_read_unit(unit) for unit in record["units"]],
            self.separator,
            [before, *_read([question] if isinstance(question, str) else question), after],
        )

    def _around_question(self) -> tuple[str, str]:
        before, _, after = (self.question_form or ("{question}" if self.in_turns else _ASKED)).partition("{question}")
        return before, after

    def needles(self, record: Record) -> Sequence[Needle] | None:
        """Return the gold units, each with all its parts and turns, and needle sentences; None if the task has no
        placements.
        """
        if not self.placements:
            return None
        alone: list[Needle] = []
        for unit in record["units"]:
            if unit["role"] in NEEDLES:
                parts = Prompt.of_units([], [_read_unit(unit)], self.separator, []).parts
                alone.append(parts[0] if len(parts) == 1 else parts)
        return [*alone, *(text for unit in record["units"] for text in unit.get("sentences", ()))]

    def labels(self, record: Record) -> Sequence[str]:
        """Return the labels of the units, as far as the record has them."""
        units = record.get("units", ())
        return [str(unit.get("label", "")) if isinstance(unit, Mapping) else "" for unit in units]

    def question_of(self, record: Record) -> str:
        """Return the question alone, without its images."""
        parts = record.get("question", "")
        return parts if isinstance(parts, str) else "".join(part for part in parts if isinstance(part, str))

    @property
    def spec(self) -> TaskSpec:
        """Return the declaration of the task, made of the class attributes."""
        files = "tasks/{name}_K{k}.jsonl"
        if isinstance(self.placements, Placements):
            slot = "dep" if self.placements.kind is Depth else "perm"
            files = f"tasks/{{name}}_K{{k}}_{slot}{{placements}}.jsonl"
        return TaskSpec(
            files=FilePattern(self.files or files),
            metric=_metric_name(type(self)),
            placements=self.placements,
            reserve=self.reserve,
            variant_reserve=self.variant_reserve,
            page_texts=self.page_texts,
            longest_side=self.longest_side,
            repeats_pictures=self.repeats_pictures,
            is_answer_of_context=type(self).answer is not Task.answer,
        )

    def own_metrics(self) -> Mapping[str, type[Metric]]:
        """Return the metric of the task by its name, if it is not one that is installed."""
        metric, name = type(self).metric, _metric_name(type(self))
        if isinstance(metric, str):
            return {}
        if isinstance(metric, type):
            return {name: type(metric.__name__, (metric,), {"name": name, "__module__": metric.__module__})}
        return {name: metric_of_function(metric, name)}

    def rows(self, sources: Sources) -> Sequence[RowT]:
        """Return all readable rows of the table, in its order, before any is sampled. They stay on disk
        (`Sources.rows`).
        """
        return sources.rows  # type: ignore[return-value]  # the reader of this task gives rows of no other type

    def others(self, row: RowT, sources: Sources) -> list[RowT]:
        """Return all readable rows of the table but `row`, in its order."""
        return [other for other in self.rows(sources) if other.id != row.id]

    @classmethod
    def reader_type(cls) -> type[Reader[Row]]:
        """Return the class of the reader that reads the sources of this task."""
        forms = {form: name for name, form in cls.sources.items()}
        more = [base for form, base in ((Pdfs, _WithDocuments), (Folder, _WithPictures)) if form in forms]
        hyphened = "".join(f"-{char.lower()}" if char.isupper() else char for char in cls.__name__).strip("-_")
        members = {
            "__doc__": cls.__doc__,
            "__module__": cls.__module__,
            "row_type": cls.row_type,
            "sources": tuple(cls.sources),
            "image_folder": hyphened,
            "names": forms,
            "source_forms": {name: form.form for name, form in cls.sources.items()},
        }
        made: Any = ABCMeta(f"{cls.__name__}Reader", (*more, _TableReader), members)
        kind: type[Reader[Row]] = made
        return kind


def _metric_name(task: type[Task[Any]]) -> str:
    """Return the name of a metric; of one in the task's own file, the name of the file, its own, and its parameters."""
    metric = task.metric
    if isinstance(metric, str):
        return metric
    file = getattr(sys.modules.get(task.__module__), "__file__", None) or task.__module__
    if not isinstance(metric, partial):
        return f"{Path(file).name}:{_name_in_code(metric)}"
    given = "; ".join(f"{key}={_name_in_code(value)}" for key, value in sorted(metric.keywords.items()))
    given = given.replace(",", ";")  # a comma separates the names of metrics (`--metrics`)
    return f"{Path(file).name}:{_name_in_code(metric.func)}({given})"


def _name_in_code(value: Any) -> str:  # noqa: ANN401  (a metric, or a parameter of one)
    """Return what tells a value from others in its file: the name of a function or class, and Python's own text."""
    if ismethod(value):
        return f"{_name_in_code(value.__self__)}.{value.__name__}"
    return getattr(value, "__qualname__", None) or repr(value)


def _field(row: Row, name: str, todo: str) -> Any:  # noqa: ANN401  (as its row declares it)
    if name not in type(row).model_fields:
        raise DraftError(f"the row has no field {name!r}: name a field of it so, {todo}")
    return getattr(row, name)


def _written(parts: Iterable[Part]) -> list[object]:
    """Return parts as JSON: texts, and images as `{"image": path}`; neighbouring texts are one text."""
    return [{"image": part.path} if isinstance(part, Image) else part for part in Prompt.of(parts).parts]


def _written_unit(unit: Unit, *, in_turns: bool) -> dict[str, object]:
    written: dict[str, object] = {"role": unit.role}
    if in_turns:
        written["turns"] = [{"role": turn.role, "shown": _written(turn.parts)} for turn in turns_of(unit.shown)]
    else:
        written["shown"] = _written(unit.parts)
    if unit.label:
        written["label"] = unit.label
    if unit.data:
        written["data"] = dict(unit.data)
    if unit.needles:
        written["sentences"] = [needle.body for needle in unit.needles]
    return written


def _read(parts: Iterable[Any]) -> list[Part]:
    return [Image(part["image"]) if isinstance(part, dict) else part for part in parts]


def _read_unit(unit: Mapping[str, Any]) -> Shown:
    if "turns" in unit:
        return [Turn(turn["role"], tuple(_read(turn["shown"]))) for turn in unit["turns"]]
    return _read(unit["shown"])


def task_fault(task: type[Task[Any]]) -> str:
    """Return why the class attributes of a task cannot be used; empty if they can."""
    forms = list(task.sources.values()) if isinstance(task.sources, Mapping) else []
    if not forms or not all(isinstance(form, type) and issubclass(form, SourceForm) for form in forms):
        return f"'sources' is {task.sources!r}, expected the forms of the sources by name, such as {{'rows': mt.Table}}"
    if forms.count(Table) != 1 or len({*forms}) < len(forms):
        return "'sources' needs exactly one mt.Table, and at most one mt.Pdfs and one mt.Folder"
    if not isinstance(task.placements, Placements | None):
        return f"'placements' is {task.placements!r}, expected mt.Placements(mt.Depth, mt.DEPTHS) or the like"
    if not (isinstance(task.metric, str) or callable(task.metric)):
        said = "the name of a metric, a function (prediction, record), or a class"
        return f"'metric' is {task.metric!r}, expected {said}"
    if isinstance(task.metric, type) and not issubclass(task.metric, Metric):
        return f"'metric' is {task.metric!r}, expected a subclass of mt.metrics.Metric"
    if not isinstance(task.metric, str) and (hidden := _UNNAMED.search(_metric_name(task))):
        todo = "define it at the top of the file, and give it parameters by functools.partial, as texts or numbers"
        return f"'metric' has no name that tells it from others ({hidden[0]}); {todo}"
    texts = {
        "files": "a path with {name} and {k}",
        "instruction": "a text",
        "separator": "a text",
        "question_form": "a text with {question}",
    }
    for name, said in texts.items():
        if not isinstance(found := getattr(task, name), str):
            return f"{name!r} is {found!r}, expected {said}"
    if task.instruction and not task.instruction.endswith("\n"):
        return f"'instruction' is {task.instruction[-80:]!r}, expected a text that ends with a newline"
    if task.in_turns and not (task.separator[:1] == task.separator[-1:] == "\n"):
        return f"'separator' is {task.separator!r}, expected one with a newline at both ends, as `in_turns` needs it"
    if task.question_form and task.question_form.count("{question}") != 1:
        return f"'question_form' is {task.question_form!r}, expected a text with {{question}} once"
    if task.files and (fault := FilePattern(task.files).fault):
        return f"'files' {fault}"
    rows = [base for base in task.row_type.__mro__ if issubclass(base, Row) and base is not Row]
    own = {name for base in rows for name in get_annotations(base)}
    taken = (_ENGINE_FIELDS - {"id"}) | (_RECORD_FIELDS | _ADDED_FIELDS if task.record is Task.record else set())
    if clash := sorted(own & taken):
        said = f"has the field {clash[0]!r}, which belongs to the engine; give it another name"
        return f"'row_type' is {task.row_type.__name__}, which {said}"
    if not task.row_type.model_fields.keys() - _ENGINE_FIELDS:
        return f"'row_type' is {task.row_type.__name__}, expected a subclass of mt.Row with the fields of a row"
    return _misspelt(task)


def _pictures_are_there(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401  (any value of a table)
    """Return the value of a field that names pictures; the context is their folder, if they must be in it."""
    for picture in value if isinstance(value, list | tuple | set | frozenset) else (value,):
        if not isinstance(picture, str | None):
            raise ValueError("a path in mt.Folder, which is a text")
        if picture and info.context and file_inside(info.context, normpath(picture)) is None:
            expected, todo = f"a picture {picture!r:.120} among the sources", "add it, or correct its name"
            raise Rejected(Fault("missing-image", expected, "none", field=info.field_name or "", todo=todo))
    return value


def _misspelt(task: type[Task[Any]]) -> str:
    known = [name for name in {*dir(Task), *get_annotations(Task)} if not name.startswith("_")]
    for name in vars(task):
        alike = [] if name.startswith("_") or name in known else get_close_matches(name, known, 1, 0.85)
        if alike and alike[0].rstrip("s") != name.rstrip("s"):  # a helper may well be called `needle`
            return f"has {name!r}, which nothing calls; did you mean {alike[0]!r}? If not, give it another name"
    return ""


class _TableReader(Reader[Row]):
    names: ClassVar[Mapping[type[SourceForm], str]]
    """The name of the source of each form."""
    fixed_fields: ClassVar[tuple[str, ...]] = ("id",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        for form, name in self.names.items():
            is_wrong = sources[name].is_dir() if form is Table else not sources[name].is_dir()
            if is_wrong:
                given = "a folder" if sources[name].is_dir() else "a file"
                todo = f"correct source.{name} of the manifest"
                raise SourceError(Fault("wrong-source", form.expected, given, sources[name].name, todo=todo))
        path = sources[self.names[Table]]
        for place, fields in table_rows(path, _columns(self.row_type)):
            id, found = _with_id(fields, self.row_type, place)
            yield raw_row(id, found, path.name, place)

    def row(self, raw: RawRow, sources: SourcePaths) -> Row | Fault:
        return _row(raw.id, raw.fields, self.row_type, sources.get(self.names.get(Folder, "")))

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        path, known = sources[self.names[Table]], _columns(self.row_type)
        unused = [name for name in columns_of(table_rows(path, known)) if name not in known.known]
        return [f"{path.name}: columns not used: {', '.join(unused)[:300]}"] if unused else []


class _WithDocuments(_TableReader):
    """Adds the PDFs of a folder."""

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        return pdfs_by_name(sources[self.names[Pdfs]])


class _WithPictures(_TableReader):
    """Adds the pictures of a folder. A release names them by their bytes, because file names may reveal an answer."""

    names_images_by_content: ClassVar[bool] = True

    def image(self, sources: SourcePaths, name: str) -> PictureFile | None:
        return file_inside(sources[self.names[Folder]], name)

    def shows(self, sources: SourcePaths) -> Mapping[str, frozenset[str]]:
        folder = sources[self.names[Folder]]
        found = (path for path in visible_files(folder) if path.suffix.lower() in PICTURE_ENDINGS)
        return {path.relative_to(folder).as_posix(): frozenset() for path in found}


def _columns(row_type: type[Row]) -> Columns:
    """Return the columns of the fields of a row model; a field with a default may be left out."""
    own = {name: found for name, found in row_type.model_fields.items() if name not in _ENGINE_FIELDS}
    needed = tuple(name for name, found in own.items() if found.is_required())
    return Columns(needed, ("id", *(name for name in own if name not in needed)))


def _with_id(fields: dict[str, object] | Fault, row_type: type[Row], place: str) -> tuple[str, dict[str, Any] | Fault]:
    """Return a row and its id: its `id`, or a hash of its fields; for a row that cannot be read, its place."""
    if isinstance(fields, Fault):
        return place, fields
    id = id_in(fields)
    if isinstance(id, Fault):
        return place, id
    if id:
        return id, fields
    row = _row("", fields, row_type)
    known = row.model_dump(mode="json", exclude=set(_ENGINE_FIELDS)) if isinstance(row, Row) else fields
    text = json.dumps(known, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16], fields


def _row(id: str, fields: Mapping[str, object], row_type: type[Row], folder: Path | None = None) -> Row | Fault:
    """Return the row that the fields of a table make; columns that the row model does not have are not used. Pictures
    must be in the folder, if it is given.
    """
    values: dict[str, object] = {"id": id}
    for name, declared in row_type.model_fields.items():
        if name in _ENGINE_FIELDS:
            continue
        value = fields.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            if declared.is_required():
                found = f"no such column; there are {', '.join(map(str, fields))}"[:200]
                todo = f"fill in {name}, or give the field a default"
                return Fault("missing-field", "a value", "nothing" if name in fields else found, field=name, todo=todo)
            continue
        values[name] = _escaped(_parsed(value, declared))
    try:
        return row_type.model_validate(values, context=folder)
    except Rejected as error:
        return error.fault
    except ValidationError as error:
        first = error.errors()[0]
        expected, found = first["msg"], "nothing" if first["type"] == "missing" else repr(first["input"])[:80]
        for form, said in _ENGLISH.items():
            expected = re.sub(form, said, expected)
        return Fault("wrong-field", expected, found, field=_path(first["loc"], values), todo="correct the row")


def _path(keys: Iterable[str | int], value: Any) -> str:  # noqa: ANN401  (any value of a table)
    """Return where a wrong value is in a row, such as `receipts[0].amount`."""
    path = ""
    for key in keys:
        try:
            value = value[key]
        except TypeError:  # the name of a kind in a union
            continue
        except LookupError:  # what is missing
            value = None
        path += f"[{key}]" if isinstance(key, int) else f".{key}"
    return path.removeprefix(".")


def _parsed(value: object, declared: FieldInfo) -> object:
    """Return the list in a cell of a text table if its field is a list: a JSON list, or texts separated by semicolons.
    Return any other cell unchanged.
    """
    if not isinstance(value, str) or get_origin(declared.annotation) not in (tuple, list):
        return value
    if value.strip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return [part.strip() for part in value.split(";") if part.strip()]


def _escaped(value: object) -> object:
    """Return a value with the image markers in its texts escaped (`escape_markers`)."""
    if isinstance(value, str):
        return escape_markers(value)
    if isinstance(value, list | tuple):
        return [_escaped(each) for each in value]
    return {key: _escaped(each) for key, each in value.items()} if isinstance(value, dict) else value
