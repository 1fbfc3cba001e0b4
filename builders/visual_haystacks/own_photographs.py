"""Questions about your own photographs: JSON Lines and a folder.

A line is `{"question", "answer", "needles": [file, …]}`; `id`, `negatives` and `anchor` are optional. Distractors are
the line's negatives, then the pool. With `annotations` (COCO's form) the pool is all annotated pictures without the
anchor object. Without annotations it is every picture of the folder that is not a needle of any question, and any of
these may stand beside any needle. So the folder must not hold other pictures that would answer a question.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from builders.visual_haystacks.coco import Annotations, Objects
from builders.visual_haystacks.rows import (
    PhotographQuestion,
    against,
    answer_of,
    asked_objects,
    pictures_in,
    question_of,
    text_in,
)
from mmlongbench.task import (
    Fault,
    RawRow,
    Reader,
    Rejected,
    Row,
    RowFault,
    SourcePaths,
    file_inside,
    json_lines,
    raw_row,
    visible_files,
)

_ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
_NOT_READ = (".heic", ".heif", ".avif", ".tif", ".tiff", ".bmp", ".gif")
"""The endings of other pictures, which are named and not used."""


class Photographs(Reader[PhotographQuestion]):
    """Reads your own photographs and questions about them."""

    row_type: ClassVar[type[Row]] = PhotographQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("annotations",)
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
    image_folder: ClassVar[str] = "vh"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", "needles")

    def __init__(self) -> None:
        """Start without annotations."""
        self._annotations = Annotations()

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question, with its `id` or, without one, `vh-<line>`; then what cannot be in the pool."""
        self._annotations.read(sources)
        for number, _, raw in json_lines(sources["questions"]):
            id, fields = f"vh-{number}", raw
            try:
                id = id if isinstance(raw, Fault) else _id(raw, id)
            except Rejected as refused:
                fields = refused.fault
            yield raw_row(id, fields, sources["questions"].name, f"line {number}")
        yield from _not_read(sources["images"])

    def row(self, raw: RawRow, sources: SourcePaths) -> PhotographQuestion:
        """Return one question cleaned, and checked against the annotations; raises Rejected."""
        return _row(raw.id, raw.fields, self._annotations.of(sources))

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return a photograph; None for a name that leads out of the folder."""
        return file_inside(sources["images"], name)

    def shows(self, sources: SourcePaths) -> Mapping[str, frozenset[str]]:
        """Return the annotated pictures with their objects. Without annotations, return all pictures except needles,
        with no objects.
        """
        if objects := self._annotations.of(sources):
            return objects.shown
        needles = set(_needles(sources["questions"]))
        return {name: frozenset() for name in _pictures(sources["images"]) if name not in needles}


def _id(raw: Mapping[str, object], otherwise: str) -> str:
    given = raw.get("id")
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    return otherwise if given is None else text_in(raw, "id")


def _row(id: str, raw: Mapping[str, object], objects: Objects | None) -> PhotographQuestion:
    question = question_of(text_in(raw, "question"), "question")
    return against(
        objects,
        PhotographQuestion(
            id=id,
            question=question,
            answer=answer_of(text_in(raw, "answer"), "answer"),
            needles=pictures_in(raw, "needles", least=1),
            negatives=pictures_in(raw, "negatives"),
            anchor=_anchor(id, raw, question, objects),
        ),
    )


def _anchor(id: str, raw: Mapping[str, object], question: str, objects: Objects | None) -> str:
    """Return the anchor object that the row names or, with annotations, that its question names. If the row names none
    and there are no annotations, return the id, because any text that is not empty allows the use of the pool.
    """
    if raw.get("anchor") is None:
        return asked_objects(question)[0] if objects else id
    anchor = text_in(raw, "anchor")
    if objects and anchor.casefold() not in objects.spelling:
        raise Rejected(
            Fault(
                "unknown-anchor",
                "a category of the annotations",
                repr(anchor),
                field="anchor",
                todo="name a category that the annotations have",
            )
        )
    return anchor


def _needles(path: Path) -> Iterator[str]:
    """Yield the needles of all questions whose needles can be read."""
    for _, _, raw in json_lines(path):
        try:
            yield from () if isinstance(raw, Fault) else pictures_in(raw, "needles")
        except Rejected:  # the row is rejected when it is read
            continue


def _pictures(folder: Path, endings: tuple[str, ...] = _ENDINGS) -> Iterator[str]:
    """Yield the pictures below a folder, except hidden ones, by their names relative to it."""
    for path in visible_files(folder) if folder.is_dir() else ():
        if path.suffix.lower() in endings:
            yield path.relative_to(folder).as_posix()


def _not_read(folder: Path) -> Iterator[RowFault]:
    """Yield a fault for each picture of the folder in a format that is not read; the pool lacks none silently."""
    for name in _pictures(folder, _NOT_READ):
        expected, todo = f"a picture that ends in {', '.join(_ENDINGS)}", "convert it to JPEG or PNG"
        fault = Fault("picture-not-read", expected, Path(name).suffix, name, todo=todo, is_expected=True)
        yield RowFault(f"images/{name}", fault)
