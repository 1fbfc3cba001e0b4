"""InfoSeek (Chen et al. 2023, arXiv:2302.11713): questions joined with the entities of their pictures.

`questions` is `infoseek_val.jsonl`. `entities` is the file `…_withkb.jsonl`, which gives the entity of each question.
`images` is the OVEN folder: all pictures are in it, or in folders below it that are named after the first two of the
eight digits of a picture's name.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar, TypeAlias, TypeGuard

from builders.vrag.rows import EntityQuestion, texts_of
from mmlongbench.task import (
    Fault,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourcePaths,
    escape_markers,
    file_inside,
    json_lines,
    number_spellings,
    raw_row,
)

_ENDINGS = (".jpg", ".JPEG", ".jpeg", ".JPG", ".png", ".PNG")
_MAX_DIGITS = 18
"""The maximum digits of the number in an id."""
_MOST = 1e300
"""A number of an answer must be smaller than this, whatever its sign; infinity and NaN are also refused."""

Entities: TypeAlias = Mapping[str, tuple[str, str, str]]
"""A map from `data_id` to the (Wikidata id, name, summary) of the entity."""


class InfoSeek(Reader[EntityQuestion]):
    """Reads InfoSeek: questions about the entity in a picture, from Wikidata and Wikipedia."""

    row_type: ClassVar[type[Row]] = EntityQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "entities", "images")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines such as `infoseek_val.jsonl`; a line has data_id, image_id, question and answer, and "
            "may have answer_eval."
        ),
        "entities": (
            "JSON Lines such as `infoseek_val_withkb.jsonl`; a line has data_id, entity_id and entity_text, "
            "and may have wikipedia_summary."
        ),
        "images": (
            "The OVEN folder of pictures, `<image_id>.jpg` or `.png`: all in it, or in folders below it that "
            "are named after the first two of the eight digits of image_id."
        ),
    }
    image_folder: ClassVar[str] = "infoseek"

    def __init__(self) -> None:
        """Start without entities; while rows are read, the entities of a file are kept."""
        self._entities: dict[Path, Entities] = {}

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question; its id is `infoseek-<n>`, where n is the number in its data_id."""
        path, entities = sources["questions"], sources["entities"]
        self._entities[entities] = _entities(entities)
        try:
            for number, _, raw in json_lines(path):
                place = f"line {number}"
                yield raw_row(_id(raw, place), raw, path.name, place)
        finally:
            self._entities.pop(entities, None)

    def row(self, raw: RawRow, sources: SourcePaths) -> EntityQuestion | Fault:
        """Return one question cleaned, with its entity."""
        path = sources["entities"]
        if path not in self._entities:
            self._entities[path] = _entities(path)
        return _row(raw.id, raw.fields, self._entities[path])

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return the picture of a question, with any ending; None for a name that leads out of the folder."""
        if "/" in name:
            return None
        names = (PurePosixPath(folder, f"{name}{ending}") for folder in (name[-8:-6], "") for ending in _ENDINGS)
        return next(filter(None, (file_inside(sources["images"], each) for each in names)), None)


def _id(raw: Mapping[str, object] | Fault, place: str) -> str:
    data_id = "" if isinstance(raw, Fault) else str(raw.get("data_id", ""))
    digits = data_id.rpartition("_")[2]
    is_number = digits.isdecimal() and len(digits) <= _MAX_DIGITS
    return f"infoseek-{int(digits) if is_number else place.replace(' ', '-')}"


def _entities(path: Path) -> Entities:
    """Return the entities of a file; if a `data_id` occurs twice, the first line counts."""
    found: dict[str, tuple[str, str, str]] = {}
    for _, _, raw in json_lines(path):
        if isinstance(raw, Fault):
            continue
        data_id, entity, summary = (raw.get(key) for key in ("data_id", "entity_text", "wikipedia_summary"))
        if isinstance(data_id, str) and isinstance(entity, str):
            known = (str(raw.get("entity_id", "")), entity, summary if isinstance(summary, str) else "")
            found.setdefault(data_id, known)
    return found


def _row(id: str, raw: Mapping[str, object], entities: Entities) -> EntityQuestion | Fault:
    texts = texts_of(raw, ("data_id", "image_id", "question"))
    if isinstance(texts, Fault):
        return texts
    digits, shown = texts["data_id"].rpartition("_")[2], texts["data_id"][:80]
    if not digits.isdecimal() or len(digits) > _MAX_DIGITS:
        return Fault(
            "id-without-number",
            "an id that ends in _<number>",
            shown,
            field="data_id",
            todo="correct the id, or take the row out",
        )
    if texts["data_id"] not in entities:
        return Fault(
            "no-entity",
            "a line of the entities file with this data_id",
            shown,
            field="data_id",
            todo="add the line to the entities file, or take the row out",
        )
    answers = _answers(raw)
    if isinstance(answers, Fault):
        return answers
    entity_id, entity, summary = entities[texts["data_id"]]
    question = escape_markers(texts["question"].strip())
    return EntityQuestion(
        id=id,
        question=question,
        original_question=f"{escape_markers(entity)}: {question}",
        image=texts["image_id"],
        answer=answers[0],
        answer_range=answers[1],
        entity=escape_markers(entity),
        entity_id=entity_id,
        summary=escape_markers(summary),
    )


def _answers(raw: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[float, float] | None] | Fault:
    """Return (released answers, range), or what is wrong with the answers. A number is released in its usual spellings.
    The range is None if the answer is not a number.
    """
    given = raw.get("answer_eval", raw.get("answer"))
    values: list[object] = given if isinstance(given, list) else [given]
    numbers = [value for value in values if isinstance(value, dict)]
    if numbers:
        return _number(numbers[0])
    answer = raw.get("answer")
    named = [answer] if isinstance(answer, str) else answer
    listed: list[object] = [*named, *values] if isinstance(named, list) and named else []
    texts = [text for text in listed if isinstance(text, str)]
    if not texts or len(texts) < len(listed):
        shown = json.dumps(named, default=repr)[:200]
        return Fault(
            "no-answer",
            "a list of strings, or a number with a range",
            shown,
            field="answer",
            todo="correct the field in the source or with errata",
        )
    answers = dict.fromkeys(escape_markers(text.strip()) for text in texts if text.strip())
    if not answers:
        return Fault(
            "no-answer", "an answer", "nothing", field="answer", todo="correct the field in the source or with errata"
        )
    return tuple(answers), None


def _number(value: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[float, float]] | Fault:
    bounds = value.get("range")
    given: list[object] = [value.get("wikidata"), *(bounds if isinstance(bounds, list) else ())]
    numbers = [float(number) for number in given if _is_number(number)]
    if not len(numbers) == len(given) == 3:
        shown = json.dumps(value, default=repr)[:200]
        return Fault(
            "numerical-answer",
            "a number `wikidata` and a pair `range`",
            shown,
            field="answer_eval",
            todo="correct the field in the source or with errata",
        )
    exact, *pair = numbers
    low, high = sorted(pair)
    return tuple(number_spellings(exact)), (low, high)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
