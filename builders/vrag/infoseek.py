"""InfoSeek (Chen et al. 2023, arXiv:2302.11713): questions joined with the entities of their pictures.

`questions` is `infoseek_val.jsonl`, `entities` the `…_withkb.jsonl` that names the entity of each question, `images`
the OVEN folder, flat or in folders by the first two of a picture's eight digits.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from builders.vrag.fields import faulty_text
from builders.vrag.rows import EntityQuestion
from mmlongbench import (
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
"""Of the number in an id."""
_MOST = 1e300
"""No number of an answer is as large; neither infinity nor NaN is below it."""

Entities: TypeAlias = Mapping[str, tuple[str, str, str]]
"""data_id → (Wikidata id, name, summary)."""


class InfoSeek(Reader[EntityQuestion]):
    """InfoSeek: questions about the entity in a picture, of Wikidata and Wikipedia."""

    row_type: ClassVar[type[Row]] = EntityQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "entities", "images")
    image_folder: ClassVar[str] = "infoseek"

    def __init__(self) -> None:
        """Know no entities yet; while rows are read, those of a file are kept."""
        self._entities: dict[Path, Entities] = {}

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Each question; its id is `infoseek-<n>`, n being the number in its data_id."""
        path, entities = sources["questions"], sources["entities"]
        self._entities[entities] = _entities(entities)
        try:
            for number, _, raw in json_lines(path):
                place = f"line {number}"
                yield raw_row(_id(raw, place), raw, path.name, place)
        finally:
            self._entities.pop(entities, None)

    def row(self, raw: RawRow, sources: SourcePaths) -> EntityQuestion | Fault:
        """One question cleaned, with its entity."""
        path = sources["entities"]
        if path not in self._entities:
            self._entities[path] = _entities(path)
        return _row(raw.id, raw.fields, self._entities[path])

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """The picture of a question, whatever its ending; a name that leads out of the folder has none."""
        if "/" in name:
            return None
        folders = (sources["images"] / name[-8:-6], sources["images"])
        paths = (folder / f"{name}{ending}" for folder in folders for ending in _ENDINGS)
        return next((path for path in paths if file_inside(sources["images"], path)), None)


def _id(raw: Mapping[str, Any] | Fault, place: str) -> str:
    data_id = "" if isinstance(raw, Fault) else str(raw.get("data_id", ""))
    digits = data_id.rpartition("_")[2]
    is_number = digits.isdecimal() and len(digits) <= _MAX_DIGITS
    return f"infoseek-{int(digits) if is_number else place.replace(' ', '-')}"


def _entities(path: Path) -> Entities:
    """The entities of a file; the first of duplicates."""
    found: dict[str, tuple[str, str, str]] = {}
    for _, _, raw in json_lines(path):
        if not isinstance(raw, Fault) and all(isinstance(raw.get(key), str) for key in ("data_id", "entity_text")):
            summary = raw.get("wikipedia_summary")
            known = (str(raw.get("entity_id", "")), raw["entity_text"], summary if isinstance(summary, str) else "")
            found.setdefault(raw["data_id"], known)
    return found


def _row(id: str, raw: Mapping[str, Any], entities: Entities) -> EntityQuestion | Fault:
    if fault := faulty_text(raw, ("data_id", "image_id", "question")):
        return fault
    digits, shown = raw["data_id"].rpartition("_")[2], raw["data_id"][:80]
    if not digits.isdecimal() or len(digits) > _MAX_DIGITS:
        return Fault("id-without-number", "an id that ends in _<number>", shown, field="data_id")
    if raw["data_id"] not in entities:
        return Fault("no-entity", "a line of the entities file with this data_id", shown, field="data_id")
    answers = _answers(raw)
    if isinstance(answers, Fault):
        return answers
    entity_id, entity, summary = entities[raw["data_id"]]
    question = escape_markers(raw["question"].strip())
    return EntityQuestion(
        id=id,
        question=question,
        original_question=f"{escape_markers(entity)}: {question}",
        image=raw["image_id"],
        answer=answers[0],
        answer_range=answers[1],
        entity=escape_markers(entity),
        entity_id=entity_id,
        summary=escape_markers(summary),
    )


def _answers(raw: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[float, float] | None] | Fault:
    """(released answers, range); a number is released in its usual spellings."""
    given = raw.get("answer_eval", raw.get("answer"))
    values = given if isinstance(given, list) else [given]
    numbers = [value for value in values if isinstance(value, dict)]
    if numbers:
        return _number(numbers[0])
    named = [raw["answer"]] if isinstance(raw.get("answer"), str) else raw.get("answer")
    if not isinstance(named, list) or not named or not all(isinstance(text, str) for text in (*named, *values)):
        shown = json.dumps(named, default=repr)[:200]
        return Fault("no-answer", "a list of strings, or a number with a range", shown, field="answer")
    answers = dict.fromkeys(escape_markers(text.strip()) for text in (*named, *values) if text.strip())
    if not answers:
        return Fault("no-answer", "an answer", "nothing", field="answer")
    return tuple(answers), None


def _number(value: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[float, float]] | Fault:
    bounds = value.get("range")
    exact = value.get("wikidata")
    is_pair = isinstance(bounds, list) and len(bounds) == 2
    if not is_pair or not all(_is_number(n) for n in (exact, *(bounds or ()))):
        shown = json.dumps(value, default=repr)[:200]
        return Fault("numerical-answer", "a number `wikidata` and a pair `range`", shown, field="answer_eval")
    low, high = sorted(float(bound) for bound in bounds or ())
    return tuple(number_spellings(float(exact or 0))), (low, high)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
