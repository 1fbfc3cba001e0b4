"""The second reader of tables: confirms cells with the grids that PyMuPDF finds. The words of a grid's cell are those
whose middle is in it.
"""

from collections.abc import Sequence

from mmlongbench.questions.layer.page import Box, Grid, Page, Word

_CLOSING = frozenset("%)") | {")%", "%)"}
_SIGNS = _CLOSING | frozenset("$€£¥(") | {"US$", "C$"}


def confirms(page: Page, label: Sequence[Word], header: Sequence[Word], value: Sequence[Word], first: float) -> bool:
    """Return whether a grid has in one row and one column the label, the header over this column alone, and the value
    that the reader of words has; `first` is the left edge of the first column of values.
    """
    for grid in page.raw.grids:
        row, box = _place(grid, value[-1].box)
        if box is None:
            continue
        in_cell = {word.box for word in page.words_in(box, 0.0) if word.text not in _SIGNS and word.is_text}
        in_row = [word for cell in grid.rows[row] if cell for word in page.words_in(cell, 0.0)]
        left = {word.box for word in in_row if word.box.x1 <= first + 0.5 and word.is_text}
        is_value = in_cell == {word.box for word in value if word.text not in _SIGNS}
        if is_value and left == {word.box for word in label if word.is_text}:
            wide = _with_empty_cells(page, grid.rows[row], box)
            if all(_is_over(grid, row, wide, word.box) for word in header):
                return True
    return False


def _place(grid: Grid, value: Box) -> tuple[int, Box | None]:
    for number, row in enumerate(grid.rows):
        for box in row:
            if box and box.holds(value.x, value.y):
                return number, box
    return 0, None


def _with_empty_cells(page: Page, row: Sequence[Box | None], box: Box) -> Box:
    """Return a cell with the cells beside it that are empty; a cell left of it may have a currency sign."""
    cells = sorted((cell for cell in row if cell), key=lambda cell: cell.x0)
    at, left, right = cells.index(box), box.x0, box.x1
    for cell in reversed(cells[:at]):
        if any(word.is_text for word in page.words_in(cell, 0.0)):
            break
        left = cell.x0
    for cell in cells[at + 1 :]:
        if any(word.text not in _CLOSING for word in page.words_in(cell, 0.0)):
            break
        right = cell.x1
    return Box(left, box.y0, right, box.y1)


def _is_over(grid: Grid, row: int, box: Box, word: Box) -> bool:
    """Return whether a word of a header is in a cell above that shares a part of the column, or above the grid."""
    if word.y < min(cell.y0 for cells in grid.rows for cell in cells if cell):
        return box.x0 - 2 <= word.x <= box.x1 + 2
    above = (cell for cells in grid.rows[:row] for cell in cells if cell)
    return any(cell.holds(word.x, word.y) and cell.x0 < box.x1 - 1 and cell.x1 > box.x0 + 1 for cell in above)
