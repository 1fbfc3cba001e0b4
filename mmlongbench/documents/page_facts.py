"""Says what the layer of a PDF tells about each page: its key, its text, its rows of cells, how much of it is drawn.

Nothing is decided here; `mmlongbench.questions.writing.kinds` has the rules.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import named_page, open_pdf, read_page

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf_types import Page, Word

_GAP = 0.8
"""The smallest blank between two cells of a row, in heights of its words."""
_SAME_LINE = 0.5
"""How far the middles of words of one line may be apart, in heights of the words."""
MAX_ROWS = 200
"""The maximum number of rows of a page that are kept."""
_NUMBER = re.compile(r"[-+(]*[$€£]?[-+(]?[\d.,]*\d[\d.,]*\s?(?:%|[kKmMbB]|bn)?\)?")


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What the layer of a PDF tells about one page."""

    key: str
    """A hash of the content (see `pdf.page_keys`); empty for a blank page."""
    text: str
    width: float
    """In points."""
    height: float
    raster: float
    """The share of the page that pictures cover, from 0 to 1."""
    drawings: int
    """How many lines and shapes are drawn."""
    rows: list[list[str]]
    """The lines of the page with several cells, from the top: the texts of their cells. A line with one cell is there
    if it stands directly before such a line, because it may be a heading of a part of a table."""
    lost: str
    """Why the page is not drawn whole; empty if it is."""


def page_facts(path: Path, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield the facts of each page, as plain values.

    Raises:
        SourceError: the document or a page cannot be read.

    """
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with named_page(path, number):
                page, read = read_page(document, number)
                rows = rows_of(page.get_text("words"))
                size, drawings = _size(page), len(page.get_cdrawings())
                facts = PageFacts(read.key, read.text, *size, _raster(page), drawings, rows, read.lost)
            yield asdict(facts)


def _size(page: "Page") -> tuple[float, float]:
    return round(page.rect.width, 2), round(page.rect.height, 2)


def _raster(page: "Page") -> float:
    """Return the share of a page under pictures; each is clipped to the page, and overlaps count twice, up to 1."""
    whole = page.rect
    area = max(whole.width * whole.height, 1.0)
    covered = 0.0
    for each in page.get_image_info():
        x0, y0, x1, y1 = each["bbox"]
        width = min(x1, whole.x1) - max(x0, whole.x0)
        height = min(y1, whole.y1) - max(y0, whole.y0)
        covered += max(width, 0.0) * max(height, 0.0)
    return round(min(covered / area, 1.0), 4)


def rows_of(words: Sequence["Word"]) -> list[list[str]]:
    """Return the rows of cells among the words of a page."""
    lines = [_cells(line) for line in _lines(words)]
    kept = [line for at, line in enumerate(lines) if len(line) > 1 or (at + 1 < len(lines) and len(lines[at + 1]) > 1)]
    return kept[:MAX_ROWS]


def _lines(words: Sequence["Word"]) -> Iterator[list["Word"]]:
    """Yield the words of each line of a page, from the top and from the left; columns of text are not told apart."""
    line: list[Word] = []
    middle = 0.0
    for word in sorted(words, key=lambda each: (each[1] + each[3], each[0], each[4])):
        own, height = (word[1] + word[3]) / 2, max(word[3] - word[1], 1.0)
        if line and own - middle > _SAME_LINE * height:
            yield sorted(line, key=lambda each: (each[0], each[4]))
            line = []
        middle = own if not line else middle
        line.append(word)
    if line:
        yield sorted(line, key=lambda each: (each[0], each[4]))


def _cells(line: Sequence["Word"]) -> list[str]:
    """Return the texts of a line's cells: a wide blank ends a cell."""
    gap = _GAP * median(word[3] - word[1] for word in line)
    cells: list[list[str]] = []
    end = float("-inf")
    for word in line:
        if not cells or word[0] - end > gap:
            cells.append([])
        cells[-1].append(word[4])
        end = word[2]
    return [" ".join(cell) for cell in cells]


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is a number.

    >>> [is_number(each) for each in ("1,066", "$ 12.5", "(3.1)%", "2019", "12 of 40", "Total")]
    [True, True, True, True, False, False]
    """
    return bool(_NUMBER.fullmatch(cell.replace(" ", "").rstrip("%)")))
