"""ViQuAE (Lerner et al. 2022): questions of TriviaQA in which a picture replaces the entity.

`questions` is `{train,validation,test}.jsonl`; `images` is the folder of Commons pictures. The field `output` of a row
is a dict, whose `provenance` is a list of dicts with lists as values. Paragraphs are numbered as in KILT's knowledge
source (0 is the title); -1 means that a span names no paragraph.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import ClassVar

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
    raw_row,
)

_MAX_PAIRS = 100_000
"""The maximum product of the numbers of words of two compared questions; the time of a comparison grows with this
product."""


class ViQuAE(Reader[EntityQuestion]):
    """Reads ViQuAE: knowledge questions about people, places and things in pictures."""

    row_type: ClassVar[type[Row]] = EntityQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines such as `test.jsonl`; a line has image, input, original_question and output (an object "
            "with original_answer, answer and provenance), and may have wikidata_id."
        ),
        "images": (
            "The folder of the Commons pictures, without subfolders; a picture has the name that the field "
            "image gives it."
        ),
    }
    image_folder: ClassVar[str] = "viquae"

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question; its id is `viquae-<row>`, from 0, because the source's own ids are not numbers."""
        path = sources["questions"]
        for number, (line, _, raw) in enumerate(json_lines(path)):
            yield raw_row(f"viquae-{number}", raw, path.name, f"line {line}")

    def row(self, raw: RawRow, sources: SourcePaths) -> EntityQuestion | Fault:
        """Return one question cleaned."""
        return _row(raw.id, raw.fields)

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return the picture of a question; None for a name that leads out of the folder."""
        return None if "/" in name else file_inside(sources["images"], name)


def _row(id: str, raw: Mapping[str, object]) -> EntityQuestion | Fault:
    texts = texts_of(raw, ("image", "input", "original_question"))
    if isinstance(texts, Fault):
        return texts
    found = raw.get("output")
    if not isinstance(found, dict):
        return Fault(
            "missing-or-mistyped-field",
            "one object",
            type(found).__name__,
            field="output",
            todo="correct the field in the source or with errata",
        )
    output: Mapping[str, object] = found
    given = [output.get("original_answer"), *_listed(output.get("answer"))]
    answers = dict.fromkeys(escape_markers(text.strip()) for text in given if isinstance(text, str) and text.strip())
    if not answers:
        return Fault(
            "no-answer",
            "an answer",
            json.dumps(given, default=repr)[:200],
            field="output.answer",
            todo="correct the field in the source or with errata",
        )
    given_spans = tuple(_spans(output.get("provenance")))
    spans = tuple(span for span in given_spans if min(span[1:]) >= 0)  # the source writes -1 for a missing number
    if not spans:
        return _no_span(is_given=bool(given_spans))
    asked, original = escape_markers(texts["input"].strip()), escape_markers(texts["original_question"].strip())
    titles = tuple(dict.fromkeys(map(escape_markers, _titles(output.get("provenance"))))) or ("",)
    apart = named_apart(original, asked)
    name = next((title for title in titles if title.casefold() in original.casefold()), apart or titles[0])
    return EntityQuestion(
        id=id,
        question=asked,
        original_question=original,
        image=texts["image"],
        answer=tuple(answers),
        entity=name,
        names=tuple(filter(None, dict.fromkeys((*titles, apart)))),
        entity_id=str(raw.get("wikidata_id", "")),
        spans=spans,
    )


def _no_span(*, is_given: bool) -> Fault:
    """Return the fault of a row without a usable span; `is_given` says whether it has spans that name no paragraph."""
    if is_given:
        expected, found = "a span with the numbers of its paragraphs", "-1, which stands for a missing number"
        todo = "name the paragraphs of the answer, or take the row out"
        return Fault("no-paragraph-named", expected, found, field="output.provenance", todo=todo)
    todo = "name a span of a page, or take the row out"
    return Fault("no-provenance", "a span of a page", "nothing", field="output.provenance", todo=todo)


def _spans(provenance: object) -> Iterator[tuple[str, int, int]]:
    """Yield (document, first paragraph, last paragraph) of every complete span, in order."""
    for entry in _listed(provenance):
        if isinstance(entry, dict):
            documents = _listed(entry.get("wikipedia_id"))
            starts, ends = (_listed(entry.get(f"{end}_paragraph_id")) for end in ("start", "end"))
            for document, start, end in zip(documents, starts, ends, strict=False):
                if isinstance(start, int) and isinstance(end, int):
                    yield str(document), min(start, end), max(start, end)


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


def _titles(provenance: object) -> Iterator[str]:
    for entry in _listed(provenance):
        if isinstance(entry, dict):
            yield from (title for title in _listed(entry.get("title")) if isinstance(title, str))


def _listed(value: object) -> list[object]:
    """Return a value as a list, because the source writes a single value without a list; None gives an empty list."""
    return value if isinstance(value, list) else [] if value is None else [value]
