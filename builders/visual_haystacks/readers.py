"""The readers of questions about a few photographs among many: Visual Haystacks, and your own photographs."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

import mmlongbench.task as mt
from builders.common import is_unicode, mistyped, not_text, not_unicode, picture_below, refused, source_error


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


# --- the objects that pictures show -----------------------------------------------------------------------------------

_FORM = "COCO's instance annotations such as `instances_train2017.json`, with images, annotations and categories."
_PREFIX = "coco/"
"""The prefix that names of pictures have in older files."""
_ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
_NOT_READ = (".heic", ".heif", ".avif", ".tif", ".tiff", ".bmp", ".gif")
"""The endings of other pictures, which are named and not used."""
_KEPT = ("images", "annotations", "categories", "id", "file_name", "name")


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that annotations list; a picture without annotations may show anything."""

    spelling: Mapping[str, str]
    """The annotated spelling of each category, by its name in lower case."""
    shown: Mapping[str, frozenset[str]]
    """The categories that each picture shows, by the path of the picture below the root."""


def read_objects(annotations: Path, images: Path) -> Objects:
    """Return the objects of a file of COCO's instance annotations; `images` is the root of its pictures.

    The pictures of `instances_train2017.json` are in `train2017/`, which may be the root itself. If there is no such
    folder, the folder with a picture is searched for below the root.
    """
    split = annotations.stem.removeprefix("instances_")
    is_known = split != annotations.stem and ((images / split).is_dir() or images.name == split)
    below = images.iterdir() if images.is_dir() and not is_known else ()
    folders = [split] if is_known else sorted(path.name for path in below if path.is_dir())

    def place(file: str) -> str:
        if "/" in file:
            return file
        found = (name for name in folders if is_known or mt.readers.file_inside(images, f"{name}/{file}"))
        folder = next(found, "")
        return f"{folder}/{file}" if folder else file

    def broken(place: str, expected: str, found: object) -> mt.readers.SourceError:
        shown, todo = ascii(found)[:200], "correct the annotations, or download them again"
        fault = mt.Fault("invalid-annotations", expected, shown, annotations.name, place, todo=todo)
        return mt.readers.SourceError(fault)

    def items(key: str) -> list[object]:
        value = data.get(key) if isinstance(data, dict) else None
        if not isinstance(value, list):
            raise broken("", f"COCO's form: an object with a list `{key}`", type(value).__name__)
        return value

    def texts(key: str, field: str) -> Iterator[tuple[int | str, str]]:
        for index, item in enumerate(items(key)):
            id, text = (item.get("id"), item.get(field)) if isinstance(item, dict) else (None, None)
            if not isinstance(id, int | str) or not isinstance(text, str) or not is_unicode(text):
                raise broken(f"{key}, item {index}", f"an object with `id` and `{field}`", item)
            yield id, text

    data = mt.readers.load_json(annotations, "instance annotations of COCO", _slim)
    names = dict(texts("categories", "name"))
    pictures = {id: place(name) for id, name in texts("images", "file_name")}
    shown: dict[str, set[str]] = {name: set() for name in pictures.values()}
    for index, instance in enumerate(items("annotations")):
        image, category = instance if isinstance(instance, tuple) else (None, None)
        if not isinstance(image, int | str) or not isinstance(category, int | str) or category not in names:
            expected = "an object with `image_id` and `category_id`, one of the categories"
            raise broken(f"annotations, item {index}", expected, instance)
        if image in pictures:
            shown[pictures[image]].add(names[category])
    spelling = {name.casefold(): name for name in names.values()}
    return Objects(spelling, {name: frozenset(objects) for name, objects in shown.items()})


def _slim(fields: dict[str, object]) -> object:
    """Return the needed parts of a JSON object; polygons, the largest part of a file, are dropped at once."""
    if "image_id" in fields:
        return fields["image_id"], fields.get("category_id")
    return {key: fields[key] for key in _KEPT if key in fields}


# --- the readers ------------------------------------------------------------------------------------------------------


class _PhotographReader(mt.readers.Reader[PhotographQuestion]):
    """Reads the annotations, if there are any, and checks questions against them."""

    row_type: ClassVar[type[mt.Row]] = PhotographQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("annotations",)
    image_folder: ClassVar[str] = "vh"

    def __init__(self) -> None:
        self._objects: dict[tuple[Path | None, Path], Objects | None] = {}

    @abstractmethod
    def _question(self, raw: mt.readers.RawRow, objects: Objects | None) -> PhotographQuestion: ...

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> PhotographQuestion:
        """Return a question with the annotations' spelling of its anchor, without negatives that show the anchor."""
        objects = self._annotated(sources)
        row = self._question(raw, objects)
        if objects is None:
            return row
        anchor = objects.spelling.get(row.anchor.casefold(), "")
        if not anchor:  # then no picture is taken from the pool
            return row.model_copy(update={"anchor": "", "repairs": ("anchor-unknown-pool-unused",)})
        lacking = next((name for name in row.needles if anchor not in objects.shown.get(name, (anchor,))), None)
        if lacking is not None:
            expected, todo = f"a picture that shows {anchor!r}", "name other needles, or another anchor"
            raise refused("needle-without-anchor", expected, lacking, "needles", todo)
        # a needle among the negatives stays there: the builder refuses it
        shown = {name for name in row.negatives if anchor in objects.shown.get(name, ())}.difference(row.needles)
        kept = tuple(name for name in row.negatives if name not in shown)
        repairs = ("negative-shows-anchor",) if shown else ()
        return row.model_copy(update={"anchor": anchor, "negatives": kept, "repairs": repairs})

    def _annotated(self, sources: mt.readers.SourcePaths, *, again: bool = False) -> Objects | None:
        """Return the objects of the annotations, which are read once, or `again` for the rows of a build."""
        path, images = sources.get("annotations"), sources["images"]
        if again or (path, images) not in self._objects:
            self._objects[path, images] = read_objects(path, images) if path else None
        return self._objects[path, images]


class VisualHaystacks(_PhotographReader):
    """Visual Haystacks (Wu et al. 2024, arXiv:2407.13766): questions about photographs of COCO, each with one needle or
    several.
    """

    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": "A JSON array such as `visual_haystack_*.json`, or a folder of such files, also in subfolders; an "
        "item has pos_image, neg_image and conversations. A question that is in several files is asked once, with the "
        "negatives of the file with the largest number in its name.",
        "images": "The root of COCO, with `train2017/` in it, or the folder `train2017` itself.",
        "annotations": f"{_FORM} With them, distractors also come from all annotated pictures without the anchor "
        "object.",
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
                raise source_error("invalid-source", expected, type(items).__name__, file.name, todo)
            label = f"{name.removesuffix('.json').replace('/', '.')}-" if len(files) > 1 else ""
            here: dict[object, str] = {}
            for index, fields in enumerate(items):
                place, kind = f"item {index}", "single"
                if not isinstance(fields, dict):
                    todo = "correct the row in the source or with errata, or take it out"
                    fields = mt.Fault("not-a-row", "an object", type(fields).__name__, todo=todo)
                else:
                    needles, key = fields.get("pos_image"), _key(fields)
                    kind = "multi" if isinstance(needles, list) and len(needles) > 1 else "single"
                    if key in asked:
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
            todo = "give the files of the hub, which tell needles from other pictures"
            raise refused("joint-picture-list", "pos_image and neg_image", "one list `image`", "image", todo)
        turns = fields.get("conversations")
        if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, dict) for turn in turns):
            expected = "a question and an answer, each an object with `value`"
            raise mt.Rejected(mistyped({"conversations": turns}, "conversations", expected, _SHOWN))
        asked, said = "conversations[0].value", "conversations[1].value"
        texts = {asked: turns[0].get("value"), said: turns[1].get("value")}
        question, answer = _text(texts, asked), _text(texts, said)
        question = _cleaned(question, asked)
        return PhotographQuestion(
            id=raw.id,
            question=question,
            answer=_yes_or_no(answer, said),
            needles=_names(fields, "pos_image", least=1, prefix=_PREFIX),
            negatives=_names(fields, "neg_image", prefix=_PREFIX),
            anchor=asked_objects(question)[0],
        )

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        return picture_below(sources["images"], name)

    def shows(self, sources: mt.readers.SourcePaths) -> Mapping[str, frozenset[str]]:
        objects = self._annotated(sources)
        return objects.shown if objects else {}


def _question_files(source: Path) -> dict[str, Path]:
    """Return the files of questions by their path below the source, those with the largest number in their name first:
    in a folder, all `visual_haystack_*.json` or, without such files, all that end in `.json`.
    """
    if not source.is_dir():
        return {source.name: source}
    found = [file for file in mt.readers.visible_files(source) if file.suffix == ".json"]
    files = [file for file in found if re.fullmatch(r"visual_haystack_\w+\.json", file.name)] or found
    if not files:
        todo = "give a file of questions of Visual Haystacks, or the folder that holds it"
        raise source_error("missing-questions", "files visual_haystack_*.json", "none", source.name, todo)

    def rank(name: str) -> tuple[int, str]:
        size = re.search(r"(\d{1,9})\.json", name)
        return -int(size[1]) if size else 0, name  # the files `oracle` have no number

    named = {file.relative_to(source).as_posix(): file for file in files}
    return {name: named[name] for name in sorted(named, key=rank)}


def _key(fields: Mapping[str, object]) -> tuple[str, tuple[str, ...]] | None:
    """Return what makes a question the same in two files: its text, and its needles in alphabetical order; None if the
    row cannot be read.
    """
    needles, turns = fields.get("pos_image"), fields.get("conversations")
    first = turns[0] if isinstance(turns, list) and turns else None
    question = first.get("value") if isinstance(first, dict) else None
    if not isinstance(needles, list) or not isinstance(question, str):
        return None
    names = sorted(name.removeprefix(_PREFIX) for name in needles if isinstance(name, str))
    return (" ".join(question.split()), tuple(names)) if names else None


class Photographs(_PhotographReader):
    """Reads your own photographs and questions about them.

    Without annotations the pool is every picture of the folder that is not a needle of any question, and any of these
    may stand beside any needle. So the folder must not hold other pictures that would answer a question.
    """

    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": "JSON Lines; a line has question, answer (Yes or No) and needles (names of pictures), and may "
        "have id, negatives and anchor.",
        "images": "A folder of pictures (`.jpg`, `.jpeg`, `.png`, `.webp`), also in subfolders.",
        "annotations": f"{_FORM} Without them, every picture that is no needle may be a distractor.",
    }
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", "needles")

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each question, with its `id` or, without one, `vh-<line>`; then a fault for each picture of the folder
        in a format that is not read, so that the pool lacks none silently.
        """
        self._annotated(sources, again=True)
        for number, _, fields in mt.readers.json_lines(sources["questions"]):
            id = f"vh-{number}"
            if not isinstance(fields, mt.Fault) and (given := fields.get("id")) is not None:
                try:
                    id = str(given) if type(given) is int else _text(fields, "id")
                except mt.Rejected as error:
                    fields = error.fault
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
                raise refused("unknown-anchor", expected, repr(anchor), "anchor", todo)
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
        for _, _, fields in mt.readers.json_lines(sources["questions"]):
            try:
                needles.update(() if isinstance(fields, mt.Fault) else _names(fields, "needles"))
            except mt.Rejected:  # the row is rejected when it is read
                continue
        return {name: frozenset() for name in _pictures(sources["images"], _ENDINGS) if name not in needles}


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


def _text(fields: Mapping[str, object], name: str) -> str:
    text = fields.get(name)
    if fault := not_text(fields, name, _SHOWN) or not_unicode(str(text), name):
        raise mt.Rejected(fault)
    return str(text).strip()


def _names(fields: Mapping[str, object], field: str, *, least: int = 0, prefix: str = "") -> tuple[str, ...]:
    """Return the names of pictures in a field, relative to the root and without `prefix`. A field that is missing or
    null has no names.
    """
    given = [] if fields.get(field) is None else fields[field]
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given) or len(given) < least:
        expected = "a list of names of pictures" + (f", at least {least}" if least else "")
        raise mt.Rejected(mistyped(fields, field, expected, _SHOWN))
    if fault := not_unicode("".join(given), field):
        raise mt.Rejected(fault)
    names = [name.removeprefix(prefix) for name in given]
    for name in names:
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
            todo = "put the picture into this folder, and name it by its path there"
            raise refused("path-outside-source", "a picture below the folder of images", repr(name), field, todo)
    return tuple(str(PurePosixPath(name)) for name in names)


def _yes_or_no(text: str, field: str) -> Literal["Yes", "No"]:
    word = text.rstrip(".").casefold()
    if word not in ("yes", "no"):
        todo = "correct the answer in the source or with errata"
        raise refused("neither-yes-nor-no", "Yes or No", repr(text)[:200], field, todo)
    return "Yes" if word == "yes" else "No"


def _cleaned(text: str, field: str) -> str:
    r"""Return the question without LLaVA's `<image>` markers at its beginning; in other markers, blanks are added.

    >>> _cleaned("<image>\nIs there an <image>?", "question")
    'Is there an < image >?'
    """
    question = mt.escape_markers(_LEADING_MARKERS.sub("", text, count=1).strip())
    if not question:
        raise refused("empty-question", "a question", "nothing", field, "write the question, or take the row out")
    return question


def asked_objects(question: str) -> tuple[str, str]:
    """Return (anchor, target): the object that identifies the needles, and the object that is asked about. Both are
    empty if the question has another form.

    >>> asked_objects("For the image with a truck, is there a dog?")
    ('truck', 'dog')
    """
    # questions of Visual Haystacks have about a hundred characters
    found = _ASKED.search(" ".join(question.split())) if len(question) <= 1_000 else None
    return (found[1], found[2]) if found else ("", "")
