"""The readers of InfoSeek and ViQuAE, and the row that both make: a question about the entity in a picture."""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import mmlongbench.task as mt
from builders.common import not_text, refused

MAX_CHARACTERS = 10_000  # of a text field; a question has about a hundred


class EntityQuestion(mt.Row):
    """One question about the entity that a picture shows."""

    question: str
    """The question as it is asked beside the picture."""
    original_question: str
    """The question with the entity's name instead of the picture; it is also the query of the retrieval."""
    image: str
    """The name of the picture in the source."""
    answer: tuple[str, ...]
    """The released answers; a match with any of them counts."""
    answer_range: tuple[float, float] | None = None
    """The range of a numerical answer; no negative may have a number within this range. None for other answers."""
    entity: str
    """The name of the entity."""
    names: tuple[str, ...] = ()
    """Other names of the entity, which no negative may contain."""
    entity_id: str
    """The Wikidata id of the entity; empty if unknown."""
    summary: str = ""
    """The knowledge base's own summary of the entity, from another year than the corpus."""
    spans: tuple[tuple[str, int, int], ...] = ()
    """The provenance: (document, first paragraph, last paragraph); empty if the lead section is gold."""


def _check_texts(raw: Mapping[str, Any], *fields: str) -> None:
    """Refuse a row with a field that holds no text, or too long a text."""
    for field in fields:
        if fault := not_text(raw, field):
            raise mt.Rejected(fault)
        if (length := len(raw[field])) > MAX_CHARACTERS:
            expected, todo = f"at most {MAX_CHARACTERS} characters", "shorten the field, or take the row out"
            raise refused("field-too-long", expected, str(length), field, todo)


# --- InfoSeek ---------------------------------------------------------------------------------------------------------

_ENDINGS = (".jpg", ".JPEG", ".jpeg", ".JPG", ".png", ".PNG")
_MAX_DIGITS = 18  # of the number in an id
_MOST = 1e300  # what a number of an answer must be below, whatever its sign; infinity and NaN are also refused


class InfoSeek(mt.readers.Reader[EntityQuestion]):
    """Reads InfoSeek (Chen et al. 2023, arXiv:2302.11713): questions joined with the entities of their pictures."""

    row_type: ClassVar[type[mt.Row]] = EntityQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "entities", "images")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": "JSON Lines such as `infoseek_val.jsonl`; a line has data_id, image_id, question and answer, and "
        "may have answer_eval.",
        "entities": "JSON Lines such as `infoseek_val_withkb.jsonl`; a line has data_id, entity_id and entity_text, "
        "and may have wikipedia_summary.",
        "images": "The OVEN folder of pictures, `<image_id>.jpg` or `.png`: all in it, or in folders below it that "
        "are named after the first two of the eight digits of image_id.",
    }
    image_folder: ClassVar[str] = "infoseek"

    def __init__(self) -> None:
        """Start without entities; those of a file are read once."""
        self._entities: dict[Path, Mapping[str, tuple[str, str, str]]] = {}

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each question, with the number in its data_id, or with its line."""
        path = sources["questions"]
        for line, _, raw in mt.readers.json_lines(path):
            number = None if isinstance(raw, mt.Fault) else _number_in(str(raw.get("data_id", "")))
            id = f"infoseek-line-{line}" if number is None else f"infoseek-{number}"
            yield mt.readers.raw_row(id, raw, path.name, f"line {line}")

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> EntityQuestion:
        """Return one question cleaned, with its entity; raises Rejected."""
        fields = raw.fields
        _check_texts(fields, "data_id", "image_id", "question")
        path, data_id = sources["entities"], fields["data_id"]
        if _number_in(data_id) is None:
            expected, todo = "an id that ends in _<number>", "correct the id, or take the row out"
            raise refused("id-without-number", expected, data_id[:80], "data_id", todo)
        if path not in self._entities:
            self._entities[path] = _entities(path)
        if data_id not in self._entities[path]:
            expected = "a line of the entities file with this data_id"
            todo = "add the line to the entities file, or take the row out"
            raise refused("no-entity", expected, data_id[:80], "data_id", todo)
        answers, answer_range = _answers(fields)
        entity_id, entity, summary = self._entities[path][data_id]
        question = mt.escape_markers(fields["question"].strip())
        return EntityQuestion(
            id=raw.id,
            question=question,
            original_question=f"{mt.escape_markers(entity)}: {question}",
            image=fields["image_id"],
            answer=answers,
            answer_range=answer_range,
            entity=mt.escape_markers(entity),
            entity_id=entity_id,
            summary=mt.escape_markers(summary),
        )

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        """Return a picture in a folder named after two digits or, without it, in the folder itself, with any ending."""
        paths = (PurePosixPath(folder, f"{name}{ending}") for folder in (name[-8:-6], "") for ending in _ENDINGS)
        files = (mt.readers.file_inside(sources["images"], path) for path in paths if "/" not in name)
        return next(filter(None, files), None)


def _number_in(data_id: str) -> int | None:
    digits = data_id.rpartition("_")[2]
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_DIGITS else None


def _entities(path: Path) -> Mapping[str, tuple[str, str, str]]:
    """Return (Wikidata id, name, summary) of each entity by its `data_id`; of two of one id, the first counts."""
    entities: dict[str, tuple[str, str, str]] = {}
    for _, _, raw in mt.readers.json_lines(path):
        if isinstance(raw, mt.Fault):
            continue
        data_id, name, summary = (raw.get(key) for key in ("data_id", "entity_text", "wikipedia_summary"))
        if isinstance(data_id, str) and isinstance(name, str):
            entity = (str(raw.get("entity_id", "")), name, summary if isinstance(summary, str) else "")
            entities.setdefault(data_id, entity)
    return entities


def _answers(raw: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[float, float] | None]:
    """Return (released answers, range). A number is released in its usual spellings; other answers have no range."""
    evaluated, answer = raw.get("answer_eval", raw.get("answer")), raw.get("answer")
    values: list[object] = evaluated if isinstance(evaluated, list) else [evaluated]
    for number in values:
        if isinstance(number, dict):
            bounds = number.get("range")
            given = [number.get("wikidata"), *(bounds if isinstance(bounds, list) else ())]
            numbers = [float(each) for each in given if type(each) in (int, float) and abs(each) < _MOST]
            if not len(numbers) == len(given) == 3:
                expected, found = "a number `wikidata` and a pair `range`", json.dumps(number, default=repr)[:200]
                raise refused("numerical-answer", expected, found, "answer_eval")
            return tuple(mt.advanced.number_spellings(numbers[0])), (min(numbers[1:]), max(numbers[1:]))
    answer = [answer] if isinstance(answer, str) else answer
    listed = [*answer, *values] if isinstance(answer, list) and answer else []
    if not listed or not all(isinstance(text, str) for text in listed):
        expected, found = "a list of strings, or a number with a range", json.dumps(answer, default=repr)[:200]
        raise refused("no-answer", expected, found, "answer")
    answers = dict.fromkeys(mt.escape_markers(text.strip()) for text in listed if text.strip())
    if not answers:
        raise refused("no-answer", "an answer", "nothing", "answer")
    return tuple(answers), None


# --- ViQuAE -----------------------------------------------------------------------------------------------------------

_MAX_PAIRS = 100_000  # of words of two questions that are compared; the time of a comparison grows with them


class ViQuAE(mt.readers.Reader[EntityQuestion]):
    """Reads ViQuAE (Lerner et al. 2022): questions of TriviaQA in which a picture replaces the entity."""

    row_type: ClassVar[type[mt.Row]] = EntityQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": "JSON Lines such as `test.jsonl`; a line has image, input, original_question and output (an "
        "object with original_answer, answer and provenance), and may have wikidata_id.",
        "images": "The folder of the Commons pictures, without subfolders; a picture has the name that the field "
        "image gives it.",
    }
    image_folder: ClassVar[str] = "viquae"

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each question, numbered from 0."""
        path = sources["questions"]
        for number, (line, _, raw) in enumerate(mt.readers.json_lines(path)):
            yield mt.readers.raw_row(f"viquae-{number}", raw, path.name, f"line {line}")

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        """Return the picture of a question; None for a name that leads out of the folder."""
        return None if "/" in name else mt.readers.file_inside(sources["images"], name)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> EntityQuestion:
        """Return one question cleaned; raises Rejected."""
        fields = raw.fields
        _check_texts(fields, "image", "input", "original_question")
        output = fields.get("output")
        if not isinstance(output, dict):
            raise refused("missing-or-mistyped-field", "one object", type(output).__name__, "output")
        given = [output.get("original_answer"), *_listed(output.get("answer"))]
        answers = dict.fromkeys(
            mt.escape_markers(each.strip()) for each in given if isinstance(each, str) and each.strip()
        )
        if not answers:
            raise refused("no-answer", "an answer", json.dumps(given, default=repr)[:200], "output.answer")
        titles, spans = list[str](), list[tuple[str, int, int]]()
        for entry in _listed(output.get("provenance")):
            if isinstance(entry, dict):
                titles += [title for title in _listed(entry.get("title")) if isinstance(title, str)]
                keys = ("wikipedia_id", "start_paragraph_id", "end_paragraph_id")
                for document, start, end in zip(*(_listed(entry.get(key)) for key in keys), strict=False):
                    if isinstance(start, int) and isinstance(end, int):
                        spans.append((str(document), min(start, end), max(start, end)))
        # paragraphs have the numbers of KILT's knowledge source: 0 is the title, and -1 stands for a missing number
        usable = tuple(span for span in spans if min(span[1:]) >= 0)
        if spans and not usable:
            expected, found = "a span with the numbers of its paragraphs", "-1, which stands for a missing number"
            todo = "name the paragraphs of the answer, or take the row out"
            raise refused("no-paragraph-named", expected, found, "output.provenance", todo)
        if not usable:
            todo = "name a span of a page, or take the row out"
            raise refused("no-provenance", "a span of a page", "nothing", "output.provenance", todo)
        asked, original = (
            mt.escape_markers(fields["input"].strip()),
            mt.escape_markers(fields["original_question"].strip()),
        )
        names = tuple(dict.fromkeys(map(mt.escape_markers, titles))) or ("",)
        apart = named_apart(original, asked)
        in_question = (name for name in names if name.casefold() in original.casefold())
        return EntityQuestion(
            id=raw.id,
            question=asked,
            original_question=original,
            image=fields["image"],
            answer=tuple(answers),
            entity=next(in_question, apart or names[0]),
            names=tuple(filter(None, dict.fromkeys((*names, apart)))),
            entity_id=str(fields.get("wikidata_id", "")),
            spans=usable,
        )


def _listed(value: object) -> list[object]:
    """Return a value as a list, because the source writes a single value without a list; None gives an empty list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def named_apart(original: str, asked: str) -> str:
    """Return the entity's name: the longest run of words that only the original question has, from the first word with
    a capital letter on. Punctuation around it, an article before it and `'s` after it are removed. The name is empty if
    no such run has a capital letter.

    >>> named_apart("What did Jackie Wilson's song help to sell?", "what did this singer's song help to sell?")
    'Jackie Wilson'
    """
    words, others = original.split(), [word.casefold() for word in asked.split()]
    if len(words) * len(others) > _MAX_PAIRS:
        return ""
    matcher = SequenceMatcher(None, [word.casefold() for word in words], others, autojunk=False)
    runs = [words[a:b] for tag, a, b, _, _ in matcher.get_opcodes() if tag in ("replace", "delete")]
    named = sorted((run for run in runs if any(word[:1].isupper() for word in run)), key=len)
    longest = named[-1] if named else []
    first = next((at for at, word in enumerate(longest) if word[:1].isupper()), 0)
    run = " ".join(longest[first:]).strip(' ,.;:?!"()')
    return re.sub(r"['’]s$|^(?:[Tt]he|[Aa]n?)\s+", "", run)
