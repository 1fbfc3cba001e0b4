"""Confirms cells with the grids that PyMuPDF finds: the words of a grid's cell are those whose middle is in it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mmlongbench.questions.layer.page import Box, Grid, Page, Word

_CLOSING = frozenset("%)") | {")%", "%)"}
_SIGNS = frozenset("$€£¥()%") | {"US$", "C$", ")%", "%)"}


class CellWords(NamedTuple):
    """What the reader of words says about a cell of a table."""

    label: Sequence[Word]
    """The words of the row's label."""
    leaf: Sequence[Word]
    """The words of the header over this column alone."""
    value: Sequence[Word]
    """The words of the value."""
    first: float
    """The left edge of the first column of values."""


def confirmed_by(page: Page, cell: CellWords) -> tuple[str, ...]:
    """Return how the grids were found that have the same label, header and value in one row and one column."""
    return tuple(sorted({grid.how for grid in page.grids if _agrees(page, grid, cell)}))


def _agrees(page: Page, grid: Grid, cell: CellWords) -> bool:
    at = _place(grid, cell.value[-1].box)
    if at is None:
        return False
    row, box = at
    own = _own_words(page, box)
    if {word.box for word in own} != {word.box for word in cell.value if word.text not in _SIGNS}:
        return False
    labels = [word for each in grid.rows[row] if each for word in page.words_in(each, 0.0)]
    left = {word.box for word in labels if word.box.x1 <= cell.first + 0.5 and _is_text(word)}
    if left != {word.box for word in cell.label if _is_text(word)}:
        return False
    wide = _with_empty_cells(page, grid.rows[row], box)
    return all(_is_over(grid, row, wide, word.box) for word in cell.leaf)


def _with_empty_cells(page: Page, row: Sequence[Box | None], box: Box) -> Box:
    """Return a cell with the cells beside it that are empty; a cell left of it may have a currency sign."""
    cells = sorted((cell for cell in row if cell), key=lambda cell: cell.x0)
    at, left, right = cells.index(box), box.x0, box.x1
    for cell in reversed(cells[:at]):
        if any(_is_text(word) for word in page.words_in(cell, 0.0)):
            break
        left = cell.x0
    for cell in cells[at + 1 :]:
        if any(word.text not in _CLOSING for word in page.words_in(cell, 0.0)):
            break
        right = cell.x1
    return Box(left, box.y0, right, box.y1)


def _is_text(word: Word) -> bool:
    return any(map(str.isalnum, word.text))


def _own_words(page: Page, box: Box) -> list[Word]:
    return [word for word in page.words_in(box, 0.0) if word.text not in _SIGNS and _is_text(word)]


def _place(grid: Grid, value: Box) -> tuple[int, Box] | None:
    """Return the row and the box of the cell that holds the middle of a value."""
    for number, row in enumerate(grid.rows):
        for box in row:
            if box and box.holds(value.x, value.y):
                return number, box
    return None


def _is_over(grid: Grid, row: int, box: Box, word: Box) -> bool:
    """Return whether a word of a header is in a cell above that shares a part of the column, or above the grid."""
    if word.y < min(cell.y0 for cells in grid.rows for cell in cells if cell):
        return box.x0 - 2 <= word.x <= box.x1 + 2
    above = (cell for cells in grid.rows[:row] for cell in cells if cell)
    return any(cell.holds(word.x, word.y) and cell.x0 < box.x1 - 1 and cell.x1 > box.x0 + 1 for cell in above)


class GridCell(NamedTuple):
    """A cell of a ruled table whose header is its first row and whose labels are its first column."""

    label: str
    """The label of the row."""
    header: str
    """The header of the column."""
    value: str
    """The text of the cell."""
    label_box: Box
    """The cell of the label."""
    header_box: Box
    """The cell of the header."""
    value_box: Box
    """The cell of the value."""


def ruled_cells(page: Page, how: str) -> Iterator[tuple[int, GridCell]]:
    """Yield (number of the grid, cell) of each cell of the grids that were found in one way."""
    for number, grid in enumerate(page.grids):
        if grid.how != how or len(grid.rows) < 2:
            continue
        first = grid.rows[0]
        headers = [_text(page, box) if box else "" for box in first]
        if len(headers) < 2 or not all(headers) or len({each.casefold() for each in headers}) < len(headers):
            continue
        for row in grid.rows[1:]:
            if len(row) == len(first) and row[0]:
                label = _text(page, row[0])
                for header, top, box in zip(headers[1:], first[1:], row[1:], strict=True):
                    if box and top and label and (value := _text(page, box)):
                        yield number, GridCell(label, header, value, row[0], top, box)


def _text(page: Page, box: Box) -> str:
    return " ".join(word.text for word in page.words_in(box, 0.0))
