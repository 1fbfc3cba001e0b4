"""Pages of which a test says where each word stands, and documents made of them."""

from collections.abc import Sequence
from itertools import pairwise

from mmlongbench.questions.layer.document import Document, document_of
from mmlongbench.questions.layer.page import Page, RawGrid, RawPage

HEIGHT = 10.0
PITCH = 14.0
LETTER = 5.0
Cells = Sequence[tuple[float, str]]
"""The cells of a line: the left edge and the text of each."""


def words(x: float, y: float, text: str, has_ink: bool = True) -> list[tuple[float, float, float, float, str, bool]]:
    """The words of a text that begins at x; each letter is 5 points wide, a blank too."""
    found = []
    for word in text.split(" "):
        found.append((x, y, x + LETTER * len(word), y + HEIGHT, word, has_ink))
        x += LETTER * (len(word) + 1)
    return found


def right(edge: float, text: str) -> tuple[float, str]:
    """A cell whose right edge is given."""
    return edge - LETTER * len(text), text


def table(lines: Sequence[Cells], top: float = 100.0) -> list[tuple[float, float, str]]:
    """x, y and text of each cell of a table."""
    return [(x, top + PITCH * number, text) for number, line in enumerate(lines) for x, text in line]


def page(
    number: int,
    texts: Sequence[tuple[float, float, str]],
    tables: Sequence[tuple[float, float, float, float]] = (),
    regions: Sequence[tuple[float, float, float, float, str]] = (),
    edges: Sequence[float] = (),
    rules: Sequence[tuple[float, float, float]] = (),
    unseen: Sequence[str] = (),
) -> Page:
    """A page with texts at their places, boxes of tables, and other boxes of the layout.

    `edges` are the vertical lines of a grid over every table, with a row for every line of text in the table; without
    them there is no grid. Words in `unseen` are not rendered.
    """
    found = [word for x, y, text in texts for word in words(x, y, text)]
    found = [(*word[:5], word[4] not in unseen) for word in found]
    lines = [(x, y, x + LETTER * len(text), y + HEIGHT, text, 10.0, False) for x, y, text in texts]
    grids = [RawGrid(how="network", rows=_rows(texts, box, edges)) for box in tables] if edges else []
    boxes = [*((*box, "table") for box in tables), *regions]
    raw = RawPage(
        size=(600.0, 800.0),
        rotation=0,
        word_count=len(found),
        words=tuple(found),
        lines=tuple(lines),
        boxes=tuple(boxes),
        grids=tuple(grids),
        rules=tuple(rules),
    )
    return Page(number, raw)


def _rows(
    texts: Sequence[tuple[float, float, str]], box: tuple[float, float, float, float], edges: Sequence[float]
) -> tuple[tuple[tuple[float, float, float, float] | None, ...], ...]:
    tops = sorted({y for _, y, _ in texts if box[1] <= y <= box[3]})
    return tuple(tuple((x0, y - 2, x1, y + HEIGHT + 2) for x0, x1 in pairwise(edges)) for y in tops)


BALANCE: Sequence[Cells] = (
    ((50, "(in millions)"), right(330, "2021"), right(430, "2020")),
    ((50, "Cash and equivalents"), right(330, "9,889"), right(430, "8,348")),
    ((50, "Inventories"), right(330, "6,854"), right(430, "7,367")),
    ((50, "Goodwill"), right(330, "242"), right(430, "223")),
    ((50, "Deferred taxes"), right(330, "(380)"), right(430, "(56)")),
    ((50, "Prepaid rent"), right(330, "1,498"), right(430, "1,653")),
)
EDGES = (40.0, 280.0, 380.0, 450.0)
BOX = (45.0, 95.0, 440.0, 190.0)
TITLE = (50.0, 70.0, 250.0, 82.0, "section-header")


def balance(number: int = 1, title: str = "Consolidated Balance Sheets", lines: Sequence[Cells] = BALANCE) -> Page:
    """A page with a heading and a table of five rows and two years, whose grid agrees with its words."""
    texts = [(50.0, 71.0, title), *table(lines)]
    return page(number, texts, [BOX], [TITLE], EDGES)


def document(*pages: Page, name: str = "report") -> Document:
    """A document of pages."""
    return document_of(name, "ab" * 32, pages)
