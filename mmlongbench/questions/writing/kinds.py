"""Decides what is on a page and whether it is worth asking about, from the layer of the PDF alone.

Tables are found well in this way (17 of 18 pages with table answers of the public MMLongBench-Doc subset, against 30 %
of all pages), figures poorly, scans not at all. So a model confirms figures and scans before anything is asked about
them (see `confirming`).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mmlongbench.documents.page_facts import PageFacts, is_number

VERSION = 1
"""The version of these rules, which is part of fingerprints."""
MIN_LETTERS = 40
"""A page with fewer letters has no text of its own."""
MIN_TEXT = 600
"""The letters of a page that is asked about as text."""
RICH_TEXT = 1_500
"""The letters of a page of text that is worth more."""
MIN_RASTER = 0.05
"""The share of a page under pictures from which it may have a figure."""
SCAN_RASTER = 0.5
MIN_DRAWINGS = 100
_UNREADABLE = 0.3
"""The share of characters without a meaning from which the text layer is of no use."""
_CAPTION = re.compile(
    r"^\s*(table|tab\.|figure|fig\.|chart|map|exhibit|diagram)\s+[\dIVX]+", re.IGNORECASE | re.MULTILINE
)
_CONTENTS_LINE = re.compile(r"(?:\.\s?){3,}\s*(\d{1,4})\s*$|\S\s{2,}(\d{1,4})\s*$")
_REFERENCE_LINE = re.compile(r"^\s*(\[\d+\]|\d+\.\s|[A-Z][\w'-]+,\s+[A-Z])|\((19|20)\d\d[a-z]?\)|\b(19|20)\d\d[a-z]?\.")
_ITEM = re.compile(r"^\s*([•▪■‣–-]|\(?[a-z0-9]{1,2}[.)])\s+\S", re.MULTILINE)
_NAMES_AND_NUMBERS = re.compile(r"\b\d[\d.,]*\b|(?<=[a-z,] )[A-Z][a-z]{2,}")


@dataclass(frozen=True, slots=True)
class PageKind:
    """What is on a page."""

    kinds: tuple[str, ...]
    """Of text, table, figure, layout, scan, contents, references, blank, damaged."""
    worth: float
    why: tuple[str, ...]


def kind_of(facts: PageFacts, number: int, boilerplate: Collection[str] = ()) -> PageKind:
    """Return what is on a page, whether it is worth asking, and why.

    Args:
        facts: what the layer tells.
        number: the number of the page, from 1.
        boilerplate: the keys of pages that stand in several documents.

    """
    if facts.lost:
        return PageKind(("damaged",), 0.0, (facts.lost,))
    letters, has_pictures = _letters(facts.text), f"pictures cover {facts.raster:.0%}"
    if letters < MIN_LETTERS:
        kind = "scan" if facts.raster >= SCAN_RASTER else "figure" if facts.raster > MIN_RASTER else "blank"
        return PageKind((kind,), {"scan": 0.5, "figure": 0.7, "blank": 0.0}[kind], (f"{letters} letters", has_pictures))
    if _unreadable(facts.text) > _UNREADABLE:
        return PageKind(("scan",), 0.5, ("the letters of its fonts have no meaning",))
    found = [each for each in (_contents(facts.text), _references(facts.text)) if each]
    if found:
        return PageKind((found[0][0],), 0.0, (found[0][1],))
    kinds = dict(_content(facts, letters))
    if facts.key in boilerplate:
        return PageKind(tuple(kinds) or ("text",), 0.0, ("the same page is in another document",))
    if number == 1:
        return PageKind(tuple(kinds) or ("text",), 0.0, ("the first page",))
    worth = max((_WORTH[kind] for kind in kinds), default=0.2)
    if set(kinds) == {"text"} and (letters < RICH_TEXT or _distinct(facts.text) < 3):
        worth = 0.5
    return PageKind(tuple(kinds), worth, tuple(kinds.values()) or (f"{letters} letters, less than {MIN_TEXT}",))


_WORTH = {"table": 1.0, "figure": 0.9, "text": 0.7, "layout": 0.5}


def _content(facts: PageFacts, letters: int) -> list[tuple[str, str]]:
    """Return the kinds of content of a page with text, each with the reason."""
    captions = {found[1].casefold()[:3] for found in _CAPTION.finditer(facts.text)}
    found = []
    grid = grid_rows(facts.rows)
    if grid >= 3 or "tab" in captions:
        found.append(("table", f"{grid} rows of cells in a run" if grid >= 3 else "a caption of a table"))
    if captions - {"tab"} or facts.raster > MIN_RASTER or (facts.drawings >= MIN_DRAWINGS and not found):
        why = "a caption of a figure" if captions - {"tab"} else f"pictures cover {facts.raster:.0%}"
        shown = why if captions - {"tab"} or facts.raster > MIN_RASTER else f"{facts.drawings} drawings"
        found.append(("figure", shown))
    if letters >= MIN_TEXT:
        found.append(("text", f"{letters} letters"))
    if (items := len(_ITEM.findall(facts.text))) >= 3:
        found.append(("layout", f"{items} items of lists"))
    return found


def grid_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return the length of the longest run of rows that look like those of a table: three cells or more, of which two
    are numbers (one, in a run of at least four). Up to two other lines may stand between them.

    >>> grid_rows([["Year", "2019", "2020"], ["Costs", "12", "14"], ["Total"], ["Sales", "20", "31"]])
    3
    """
    strong, weak = _run(rows, 2), _run(rows, 1)
    return max(strong, weak if weak >= 4 else 0)


def _run(rows: Sequence[Sequence[str]], numbers: int) -> int:
    best = run = between = 0
    for row in rows:
        if len(row) >= 3 and sum(map(is_number, row)) >= numbers:
            run, between = run + 1, 0
            best = max(best, run)
        else:
            between += 1
            run = run if between <= 2 else 0
    return best


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _unreadable(text: str) -> float:
    """Return the share of characters that stand for nothing, because the fonts do not say what their glyphs mean."""
    shown = [letter for letter in text if not letter.isspace()]
    bad = sum(letter == "\ufffd" or "\ue000" <= letter <= "\uf8ff" for letter in shown)
    return bad / max(1, len(shown))


def _contents(text: str) -> tuple[str, str] | None:
    lines = [line for line in text.splitlines() if line.strip()]
    head = " ".join(lines[:2]).strip().casefold()
    numbers = [int(next(filter(None, found.groups()))) for line in lines if (found := _CONTENTS_LINE.search(line))]
    rising = sum(one <= other for one, other in pairwise(numbers))
    if len(numbers) >= 5 and rising >= 0.8 * (len(numbers) - 1):
        return "contents", f"{len(numbers)} lines end with rising page numbers"
    if head.startswith(("contents", "table of contents", "index")) and len(lines) >= 5:
        return "contents", "its heading"
    return None


def _references(text: str) -> tuple[str, str] | None:
    lines = [line for line in text.splitlines() if line.strip()]
    is_headed = any(line.strip().casefold() in ("references", "bibliography", "works cited") for line in lines[:3])
    entries = sum(bool(_REFERENCE_LINE.search(line)) for line in lines)
    is_list = is_headed and len(lines) >= 5 and entries >= 0.5 * (len(lines) - 1)
    return ("references", f"{entries} of {len(lines)} lines are entries") if is_list else None


def _distinct(text: str) -> int:
    return len(set(_NAMES_AND_NUMBERS.findall(text)))
