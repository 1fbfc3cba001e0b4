"""The readers of questions about a few photographs among many: Visual Haystacks, and your own photographs."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

import mmlongbench.task as mt
from builders.common import mistyped, not_text, not_unicode, picture_below
from builders.visual_haystacks.coco import Objects, read_objects


class PhotographQuestion(mt.Row):
    """One question about a few photographs among many."""

    question: str
    """The question, without markers of images."""
    answer: Literal["Yes", "No"]
    """The answer."""
    needles: tuple[str, ...]
    """The photographs that the question is about, by their names in the source."""
    negatives: tuple[str, ...] = ()
    """The photographs without the anchor object that the source lists for this question. As distractors, they are taken
    before the photographs of the pool (see `Reader.shows`)."""
    anchor: str = ""
    """The object that identifies a needle. No distractor from the pool shows this object. If this text is empty,
    nothing is taken from the pool."""


class _PhotographReader(mt.readers.Reader[PhotographQuestion]):
    """Reads the annotations, if there are any, and checks questions against them."""

    row_type: ClassVar[type[mt.Row]] = PhotographQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("annotations",)
    image_folder: ClassVar[str] = "vh"

    def __init__(self) -> None:
        self._objects: dict[tuple[Path | None, Path], Objects | None] = {}

    @abstractmethod
    def _question(self, raw: mt.readers.RawRow, objects: Objects | None) -> PhotographQuestion:
        """Return one question cleaned; raises Rejected."""

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> PhotographQuestion:
        """Return one question cleaned, with its anchor in the annotations' spelling, and without negatives that show
        the anchor; raises Rejected.

        If the annotations do not know the anchor, the anchor becomes empty, so no picture is taken from the pool.
        """
        objects = self._annotated(sources)
        row = self._question(raw, objects)
        if objects is None:
            return row
        anchor = objects.spelling.get(row.anchor.casefold(), "")
        if not anchor:
            return row.model_copy(update={"anchor": "", "repairs": (*row.repairs, "anchor-unknown-pool-unused")})
        lacking = next((name for name in row.needles if anchor not in objects.shown.get(name, (anchor,))), None)
        if lacking is not None:
            expected, todo = f"a picture that shows {anchor!r}", "name other needles, or another anchor"
            raise mt.Rejected(mt.Fault("needle-without-anchor", expected, lacking, field="needles", todo=todo))
        shown = {name for name in row.negatives if anchor in objects.shown.get(name, ())}.difference(row.needles)
        kept = tuple(name for name in row.negatives if name not in shown)
        repairs = (*row.repairs, "negative-shows-anchor") if shown else row.repairs
        return row.model_copy(update={"anchor": anchor, "negatives": kept, "repairs": repairs})

    def _annotated(self, sources: mt.readers.SourcePaths, *, again: bool = False) -> Objects | None:
        """Return the objects of the annotations; they are read once, or again for the rows of a build."""
        path, images = sources.get("annotations"), sources["images"]
        if again or (path, images) not in self._objects:
            self._objects[path, images] = read_objects(path, images) if path else None
        return self._objects[path, images]


class VisualHaystacks(_PhotographReader):
    """Visual Haystacks (Wu et al. 2024, arXiv:2407.13766): questions about photographs of COCO, each with one needle or
    several.
    """

    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "A JSON array such as `visual_haystack_*.json`, or a folder of such files, also in subfolders; an item has "
            "pos_image, neg_image and conversations. A question that is in several files is asked once, with the "
            "negatives of the file with the largest number in its name."
        ),
        "images": "The root of COCO, with `train2017/` in it, or the folder `train2017` itself.",
        "annotations": (
            "COCO's instance annotations such as `instances_train2017.json`, with images, annotations and "
            "categories. With them, distractors also come from all annotated pictures without the anchor "
            "object."
        ),
    }

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each question; its id is `vh_single-<index>` or, with several needles, `vh_multi-<index>`; the index
        counts the questions of a file from 0. If there are several files, the path of the file stands before the index.
        """
        self._annotated(sources, again=True)
        files = _question_files(sources["questions"])
        asked: dict[object, str] = {}  # where each question of the files before is
        for name, file in files.items():
            items = mt.readers.load_json(file, "a JSON array of questions")
            if not isinstance(items, list):
                expected, todo = "a JSON array of questions", "give a file of questions of Visual Haystacks"
                fault = mt.Fault("invalid-source", expected, type(items).__name__, file.name, todo=todo)
                raise mt.readers.SourceError(fault)
            label = f"{name.removesuffix('.json').replace('/', '.')}-" if len(files) > 1 else ""
            here: dict[object, str] = {}
            for index, raw in enumerate(items):
                needles = raw.get("pos_image") if isinstance(raw, dict) else None
                kind = "multi" if isinstance(needles, list) and len(needles) > 1 else "single"
                key, place, fields = _key(raw), f"item {index}", raw
                if not isinstance(raw, dict):
                    todo = "correct the row in the source or with errata, or take it out"
                    fields = mt.Fault("not-a-row", "an object", type(raw).__name__, todo=todo)
                elif key and key in asked:
                    expected, found = "a question that no file before has", f"the question of {asked[key]}"
                    todo = "nothing: each question is asked once"
                    fields = mt.Fault("repeated-question", expected, found, todo=todo, is_expected=True)
                elif key:
                    here.setdefault(key, f"{name}, {place}")
                yield mt.readers.raw_row(f"vh_{kind}-{label}{index}", fields, name, place)
            asked |= here

    def _question(self, raw: mt.readers.RawRow, objects: Objects | None) -> PhotographQuestion:
        fields = raw.fields
        if "image" in fields and "pos_image" not in fields:
            expected, found = "pos_image and neg_image", "one list `image`"
            todo = "give the files of the hub, which tell needles from other pictures"
            raise mt.Rejected(mt.Fault("joint-picture-list", expected, found, field="image", todo=todo))
        turns = fields.get("conversations")
        if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, dict) for turn in turns):
            expected = "a question and an answer, each an object with `value`"
            raise mt.Rejected(mistyped({"conversations": turns}, "conversations", expected, _SHOWN))
        first, second = (f"conversations[{number}].value" for number in range(2))
        asked, said = _text({first: turns[0].get("value")}, first), _text({second: turns[1].get("value")}, second)
        question = _cleaned(asked, first)
        return PhotographQuestion(
            id=raw.id,
            question=question,
            answer=_yes_or_no(said, second),
            needles=_names(fields, "pos_image", least=1, prefix=PREFIX),
            negatives=_names(fields, "neg_image", prefix=PREFIX),
            anchor=asked_objects(question)[0],
        )

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        return picture_below(sources["images"], name)

    def shows(self, sources: mt.readers.SourcePaths) -> Mapping[str, frozenset[str]]:
        objects = self._annotated(sources)
        return objects.shown if objects else {}


PREFIX = "coco/"
"""The prefix that names of pictures have in older files."""


def _question_files(source: Path) -> dict[str, Path]:
    """Return the files of questions by their path below the source, those with the largest number in their name first.

    In a folder, also in its subfolders, they are the files `visual_haystack_*.json` or, without such files, all that
    end in `.json`.
    """
    if not source.is_dir():
        return {source.name: source}
    found = [file for file in mt.readers.visible_files(source) if file.suffix == ".json"]
    files = [file for file in found if re.fullmatch(r"visual_haystack_\w+\.json", file.name)] or found
    if not files:
        todo = "give a file of questions of Visual Haystacks, or the folder that holds it"
        fault = mt.Fault("missing-questions", "files visual_haystack_*.json", "none", source.name, todo=todo)
        raise mt.readers.SourceError(fault)
    named = {file.relative_to(source).as_posix(): file for file in files}
    # the files `oracle` have no number
    sizes = {name: int(size[1]) if (size := re.search(r"(\d{1,9})\.json", name)) else 0 for name in named}
    return {name: named[name] for name in sorted(named, key=lambda name: (-sizes[name], name))}


def _key(raw: object) -> tuple[str, tuple[str, ...]] | None:
    """Return what makes a question the same in two files: its text, and its needles in alphabetical order; None if the
    row cannot be read.
    """
    if not isinstance(raw, dict):
        return None
    needles, turns = raw.get("pos_image"), raw.get("conversations")
    first = turns[0] if isinstance(turns, list) and turns else None
    question = first.get("value") if isinstance(first, dict) else None
    if not isinstance(needles, list) or not isinstance(question, str):
        return None
    names = sorted(name.removeprefix(PREFIX) for name in needles if isinstance(name, str))
    return (" ".join(question.split()), tuple(names)) if names else None


class Photographs(_PhotographReader):
    """Reads your own photographs and questions about them.

    Distractors are the negatives of a line, then the pool. With annotations the pool is all annotated pictures without
    the anchor object. Without annotations it is every picture of the folder that is not a needle of any question, and
    any of these may stand beside any needle. So the folder must not hold other pictures that would answer a question.
    """

    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines; a line has question, answer (Yes or No) and needles (names of pictures), and may have "
            "id, negatives and anchor."
        ),
        "images": "A folder of pictures (`.jpg`, `.jpeg`, `.png`, `.webp`), also in subfolders.",
        "annotations": (
            "COCO's instance annotations such as `instances_train2017.json`, with images, annotations and "
            "categories. Without them, every picture that is no needle may be a distractor."
        ),
    }
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", "needles")

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each question, with its `id` or, without one, `vh-<line>`; then a fault for each picture of the folder
        in a format that is not read, so that the pool lacks none silently.
        """
        self._annotated(sources, again=True)
        for number, _, raw in mt.readers.json_lines(sources["questions"]):
            id, fields = f"vh-{number}", raw
            if not isinstance(raw, mt.Fault) and (given := raw.get("id")) is not None:
                try:
                    is_number = isinstance(given, int) and not isinstance(given, bool)
                    id = str(given) if is_number else _text(raw, "id")
                except mt.Rejected as refused:
                    fields = refused.fault
            yield mt.readers.raw_row(id, fields, sources["questions"].name, f"line {number}")
        for name in _pictures(sources["images"], _NOT_READ):
            expected, todo = f"a picture that ends in {', '.join(_ENDINGS)}", "convert it to JPEG or PNG"
            fault = mt.Fault("picture-not-read", expected, Path(name).suffix, name, todo=todo, is_expected=True)
            yield mt.readers.RowFault(f"images/{name}", fault)

    def _question(self, raw: mt.readers.RawRow, objects: Objects | None) -> PhotographQuestion:
        fields = raw.fields
        question = _cleaned(_text(fields, "question"), "question")
        answer = _yes_or_no(_text(fields, "answer"), "answer")
        needles, negatives = _names(fields, "needles", least=1), _names(fields, "negatives")
        # without annotations any text allows the use of the pool
        anchor = asked_objects(question)[0] if objects else raw.id
        if fields.get("anchor") is not None:
            anchor = _text(fields, "anchor")
            if objects and anchor.casefold() not in objects.spelling:
                expected, todo = "a category of the annotations", "name a category that the annotations have"
                raise mt.Rejected(mt.Fault("unknown-anchor", expected, repr(anchor), field="anchor", todo=todo))
        return PhotographQuestion(
            id=raw.id, question=question, answer=answer, needles=needles, negatives=negatives, anchor=anchor
        )

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        return mt.readers.file_inside(sources["images"], name)

    def shows(self, sources: mt.readers.SourcePaths) -> Mapping[str, frozenset[str]]:
        """Return the annotated pictures with their objects. Without annotations, return all pictures except needles,
        with no objects.
        """
        if objects := self._annotated(sources):
            return objects.shown
        needles: set[str] = set()
        for _, _, raw in mt.readers.json_lines(sources["questions"]):
            try:
                needles.update(() if isinstance(raw, mt.Fault) else _names(raw, "needles"))
            except mt.Rejected:  # the row is rejected when it is read
                continue
        return {name: frozenset() for name in _pictures(sources["images"], _ENDINGS) if name not in needles}


_ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
_NOT_READ = (".heic", ".heif", ".avif", ".tif", ".tiff", ".bmp", ".gif")
"""The endings of other pictures, which are named and not used."""


def _pictures(folder: Path, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the pictures below a folder, except hidden ones, by their names relative to it."""
    for path in mt.readers.visible_files(folder) if folder.is_dir() else ():
        if path.suffix.lower() in endings:
            yield path.relative_to(folder).as_posix()


# --- fields of both readers; each function raises Rejected ------------------------------------------------------------

_SHOWN = 200
"""The maximum characters of a wrong value that a reject shows."""
_LEADING_MARKERS = re.compile(r"(?:\s*<image>[ \t]*(?:\n|$))*")
_ASKED = re.compile(
    r"for (?:the image|all images) with (?:an? )?(.+?), "
    r"(?:is there|do (?:all|any) of them contain) (?:an? )?(.+?)\W*$",
    re.IGNORECASE,
)


def _text(raw: Mapping[str, object], field: str) -> str:
    """Return the text of a field without the space around it."""
    text = raw.get(field)
    if fault := not_text(raw, field, _SHOWN) or not_unicode(str(text), field):
        raise mt.Rejected(fault)
    return str(text).strip()


def _names(raw: Mapping[str, object], field: str, *, least: int = 0, prefix: str = "") -> tuple[str, ...]:
    """Return the names of pictures in a field, relative to the root and without `prefix`. A field that is missing or
    null has no names.
    """
    given = [] if raw.get(field) is None else raw[field]
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given) or len(given) < least:
        expected = "a list of names of pictures" + (f", at least {least}" if least else "")
        raise mt.Rejected(mistyped(raw, field, expected, _SHOWN))
    if fault := not_unicode("".join(given), field):
        raise mt.Rejected(fault)
    names = [name.removeprefix(prefix) for name in given]
    for name in names:
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
            expected = "a picture below the folder of images"
            todo = "put the picture into this folder, and name it by its path there"
            raise mt.Rejected(mt.Fault("path-outside-source", expected, repr(name), field=field, todo=todo))
    return tuple(str(PurePosixPath(name)) for name in names)


def _yes_or_no(text: str, field: str) -> Literal["Yes", "No"]:
    """Return the answer of a text that is this word in upper or lower case, with or without a point after it."""
    word = text.rstrip(".").casefold()
    if word not in ("yes", "no"):
        found, todo = repr(text)[:200], "correct the answer in the source or with errata"
        raise mt.Rejected(mt.Fault("neither-yes-nor-no", "Yes or No", found, field=field, todo=todo))
    return "Yes" if word == "yes" else "No"


def _cleaned(text: str, field: str) -> str:
    r"""Return the question without LLaVA's `<image>` markers at its beginning; in other markers, blanks are added.

    >>> _cleaned("<image>\nIs there an <image>?", "question")
    'Is there an < image >?'
    """
    question = mt.escape_markers(_LEADING_MARKERS.sub("", text, count=1).strip())
    if not question:
        todo = "write the question, or take the row out"
        raise mt.Rejected(mt.Fault("empty-question", "a question", "nothing", field=field, todo=todo))
    return question


def asked_objects(question: str) -> tuple[str, str]:
    """Return (anchor, target): the object that identifies the needles, and the object that is asked about. Both are
    empty if the question has another form.

    >>> asked_objects("For the image with a truck, is there a dog?")
    ('truck', 'dog')
    >>> asked_objects("For all images with an apple, do any of them contain a wine glass?")
    ('apple', 'wine glass')
    """
    # questions of Visual Haystacks have about a hundred characters
    found = _ASKED.search(" ".join(question.split())) if len(question) <= 1_000 else None
    return (found[1], found[2]) if found else ("", "")
