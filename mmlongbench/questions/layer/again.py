"""The second path to an answer: the lines of the page instead of its words, and fractions instead of decimals.

It knows the places of the words that a candidate rests on and how the answer follows from them, and nothing of tables.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from mmlongbench.questions.layer.candidate import Candidate, Mark
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.page import Box
from mmlongbench.questions.layer.titles import CAPTION
from mmlongbench.questions.numbers import answer_of, written

_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
_SUBSECTIONS_OF = re.compile(r"does section ([\d.]+) of the document have")
_CAPTIONS_ON = re.compile(r"How many (\w+?)s with a numbered caption are there on pages (\d+) to (\d+)")


def answer_again(document: Document, candidate: Candidate) -> str | tuple[str, ...] | None:
    """Return the answer by the second path; None if the lines have other words than the marks say."""
    texts = [_read(document, mark) for mark in candidate.marks]
    if not all(_has(text, mark.text) for text, mark in zip(texts, candidate.marks, strict=True)):
        return None
    operands = [mark.text for mark in candidate.marks if mark.role == "operand"]
    if candidate.derived == "count":
        return _count(document, candidate)
    if candidate.derived:
        rows = [mark.text for mark in candidate.marks if mark.role == "row"]
        return _computed(candidate.derived, [_fraction(text) for text in operands], rows, operands)
    return _printed(document, candidate)


def _printed(document: Document, candidate: Candidate) -> str | tuple[str, ...] | None:
    """Return an answer that stands on a page, as the lines have it."""
    if candidate.kind in ("caption-page", "heading-page"):
        pages = sorted({mark.page for mark in candidate.marks if _on_line(document, mark)})
        return str(pages[0]) if len(pages) == 1 else None
    if candidate.kind == "table-row":
        return next((mark.text for mark in candidate.marks if mark.role == "row"), None)
    answers = [mark for mark in candidate.marks if mark.role == "answer"]
    if candidate.kind.startswith(("caption", "heading")):
        return _of_layout(document, candidate, answers[0])
    if candidate.facts and candidate.facts[0].is_text:
        return answers[0].text
    found = tuple(answer_of(mark.text)[0] for mark in answers)
    return found[0] if isinstance(candidate.answer, str) else found


def _of_layout(document: Document, candidate: Candidate, mark: Mark) -> str | None:
    """Return the number of a caption or heading, or the title of a heading, from the lines in its box."""
    text = _lines_in(document, mark.page, mark.box)
    if candidate.kind == "caption-number":
        found = CAPTION.match(text)
        return f"{'Figure' if found['kind'] == 'Fig.' else found['kind']} {found['number']}" if found else None
    number, _, title = text.partition(" ")
    title = title.strip(" .")
    return title if candidate.kind == "heading-title" else number.rstrip(".")


def _on_line(document: Document, mark: Mark) -> bool:
    return _has(_lines_in(document, mark.page, mark.box), mark.text)


def _read(document: Document, mark: Mark) -> str:
    return _lines_in(document, mark.page, mark.box)


def _lines_in(document: Document, page: int, box: Box) -> str:
    """Return the text of the lines that touch a box, from top to bottom."""
    touching = [
        line
        for line in document.pages[page - 1].lines
        if line.box.x0 < box.x1 and line.box.x1 > box.x0 and line.box.y0 < box.y1 - 1 and line.box.y1 > box.y0 + 1
    ]
    return " ".join(" ".join(line.text.split()) for line in touching)


def _has(text: str, words: str) -> bool:
    """Return whether all words are in a text, each as often as it must be; labels of several lines may be apart."""
    letters = "".join(filter(str.isalnum, text.casefold()))
    wanted = ["".join(filter(str.isalnum, word.casefold())) for word in words.split()]
    return all(word in letters for word in wanted)


def _fraction(printed: str) -> Fraction | None:
    found = _DIGITS.findall(printed)
    if len(found) != 1:
        return None
    value = Fraction(found[0].replace(",", ""))
    is_negative = "(" in printed or bool(re.match(r"\s*[$€£]?\s*[-−–]", printed))
    return -value if is_negative else value


def _computed(how: str, numbers: Sequence[Fraction | None], rows: Sequence[str], printed: Sequence[str]) -> str | None:
    values = [number for number in numbers if number is not None]
    if len(values) < len(numbers):
        return None
    if how == "sum":
        return _written(sum(values, Fraction(0)), printed)
    if how == "absolute difference":
        sign = "%" if "%" in printed[0] else ""
        return _written(abs(values[0] - values[1]), printed) + sign
    if how in ("row of the largest", "row of the smallest") and len(rows) == len(values):
        best = max(values) if how.endswith("largest") else min(values)
        return rows[values.index(best)] if values.count(best) == 1 else None
    if how == "count of those above the first":
        return str(sum(value > values[0] for value in values[1:]))
    return None


def _written(value: Fraction, printed: Sequence[str]) -> str:
    """Return a fraction with as many decimals as the most precise operand has."""
    decimals = max(len((_DIGITS.findall(text) or [""])[0].partition(".")[2]) for text in printed)
    scaled = value * 10**decimals
    return written(Decimal(scaled.numerator // scaled.denominator).scaleb(-decimals))


def _count(document: Document, candidate: Candidate) -> str | None:
    """Return how many captions, or subsections of a section, the lines of the pages have."""
    found = _CAPTIONS_ON.search(candidate.question)
    if not found:
        return _count_subsections(document, candidate)
    kind, first, last = found[1], int(found[2]), int(found[3])
    seen = set()
    for page in document.pages[first - 1 : last]:
        for line in page.lines:
            match = CAPTION.match(line.text)
            if match and match["kind"].replace("Fig.", "Figure").lower() == kind:
                seen.add(match["number"])
    return str(len(seen))


def _count_subsections(document: Document, candidate: Candidate) -> str | None:
    """Return how many different numbers of subsections begin lines, on any page: 3.1, 3.2 … for section 3. They must be
    1, 2, … n; a number in a table of contents counts, too.
    """
    found = _SUBSECTIONS_OF.search(candidate.question)
    if not found:
        return None
    begins = re.compile(rf"\W*(?:section\s+)?{re.escape(found[1])}\.(\d{{1,2}})\.?(?:\s|$)", re.IGNORECASE)
    lines = (line.text for page in document.pages for line in page.lines)
    numbers = {int(match[1]) for line in lines if (match := begins.match(line))}
    return str(len(numbers)) if numbers == set(range(1, len(numbers) + 1)) else None
