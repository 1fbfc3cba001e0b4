"""Reads a table from the places of its words alone: columns of values, rows with labels, groups of rows.

It knows nothing of the grids that PyMuPDF finds, so it is a second, independent reader of every cell.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mmlongbench.questions.layer.headers import Header, joined, read_headers
from mmlongbench.questions.layer.page import Box, Page, Word, around
from mmlongbench.questions.layer.pieces import Piece, TextLine, lines_of

MAX_COLUMNS = 15
"""Tables with more columns are not read."""
MAX_ROWS = 150
"""Tables with more rows of values are not read."""
_LEADERS = re.compile(r"[.…·_]+")
_FOOTNOTE = re.compile(r"(?<=[^\s(])\s*\(([a-z]|\d|\d\d|[ivx]+)\)((,\s*)?\(([a-z]|\d)\))*$|\s*[*†‡§]+$")
_OPEN_END = re.compile(
    r"(,|-|–|&|/|\b(and|of|the|to|for|in|or|by|with|from|on|before|after|net|per|at|than|as|a))$", re.I
)
_INDENT = 2.5
"""The least difference of left edges, in points, that is an indent."""


@dataclass(frozen=True)
class Row:
    """A row of values."""

    label: str
    """The words left of the values, without marks of footnotes."""
    words: tuple[Word, ...]
    """The words of the label."""
    group: str
    """The line above that the row belongs to, such as `Current assets:`; empty if there is none."""
    values: dict[int, Piece]
    """The values by the number of their column; a cell that is no number or dash is not here."""
    section: int
    """The number of the block of header lines that the row belongs to."""
    is_unsure: str = ""
    """Why the label cannot be trusted; empty if it can."""


@dataclass(frozen=True)
class WordTable:
    """A table."""

    page: int
    """The number of the page, from 1."""
    box: Box
    """Where it is."""
    columns: tuple[tuple[float, float], ...]
    """The left and the right edge of each column of values."""
    headers: tuple[tuple[Header, ...], ...]
    """The header of each column, for each block of header lines."""
    rows: tuple[Row, ...]
    """The rows from top to bottom."""
    corner: str
    """The words above the labels of the rows, such as `(In millions)`."""
    over: tuple[tuple[Piece, ...], ...]
    """All pieces of lines of the table that are over or in each column, whether their lines are rows or not."""


@dataclass
class _Reading:
    """The state while lines are read from top to bottom."""

    rows: list[Row] = field(default_factory=list)
    blocks: list[list[TextLine]] = field(default_factory=lambda: [[]])
    pending: list[TextLine] = field(default_factory=list)
    groups: list[tuple[float, str]] = field(default_factory=list)
    corner: list[str] = field(default_factory=list)
    text_rows: int = 0
    is_after_text: bool = False
    bad: set[int] = field(default_factory=set)


def read_table(page: Page, box: Box) -> WordTable | str:
    """Return the table in a box of a page, or why there is none that can be read."""
    words = [word for word in page.words_in(box, 2.0) if not _LEADERS.fullmatch(word.text)]
    lines = lines_of(words)
    data = [line for line in lines if _is_data(line)]
    if len(data) < 2:
        return "no-rows-of-values"
    columns = _columns(data)
    if not columns:
        return "no-columns-of-values"
    if len(columns) > MAX_COLUMNS or len(data) > MAX_ROWS:
        return "table-too-large"
    reading, first = _Reading(), columns[0][0]
    for line in lines:
        _take(reading, line, columns, first)
    if not reading.rows:
        return "no-rows-of-values"
    if len(columns) == 1 and reading.text_rows:
        return "names-and-values"
    rules = joined([rule for rule in page.raw.rules if box.y0 - 5 <= rule[2] <= box.y1 + 5])
    blocks = [() if number in reading.bad else block for number, block in enumerate(reading.blocks)]
    headers = tuple(read_headers(block, columns, first, rules) for block in blocks)
    over = tuple(
        tuple(p for line in lines for p in line.pieces if p.box.x0 < x1 and p.box.x1 > x0) for x0, x1 in columns
    )
    return WordTable(page.number, box, columns, headers, tuple(reading.rows), " ".join(reading.corner), over)


def _is_data(line: TextLine) -> bool:
    """Return whether a line is a row: a label, then at least one value that is no year."""
    first, *rest = line.pieces
    has_label = first.is_year or (not first.is_value and any(map(str.isalnum, first.text)))
    values = sum(piece.is_value for piece in rest)
    return has_label and 2 * values >= len(rest) and any(piece.is_value and not piece.is_year for piece in rest)


def _columns(data: Sequence[TextLine]) -> tuple[tuple[float, float], ...]:
    """Return the left and right edges of columns: values whose ranges overlap are in one column."""
    spans = sorted((piece.box.x0, piece.box.x1) for line in data for piece in line.pieces[1:] if piece.is_value)
    columns: list[tuple[float, float]] = []
    for x0, x1 in spans:
        if columns and x0 < columns[-1][1] - 0.5:
            columns[-1] = (columns[-1][0], max(columns[-1][1], x1))
        else:
            columns.append((x0, x1))
    counts = [sum(any(_in_column(piece, column) for piece in line.pieces[1:]) for line in data) for column in columns]
    return tuple(column for column, count in zip(columns, counts, strict=True) if count >= 2 or len(columns) <= 2)


def _in_column(piece: Piece, column: tuple[float, float]) -> bool:
    return piece.is_value and piece.box.x0 < column[1] and piece.box.x1 > column[0]


def _take(reading: _Reading, line: TextLine, columns: Sequence[tuple[float, float]], first: float) -> None:
    """Read one line, in the state that the lines above it left."""
    labels = [piece for piece in line.pieces if piece.box.x1 <= first + 0.5 or piece.box.x0 < first - 20]
    others = [piece for piece in line.pieces if piece not in labels]
    if _is_data(line) and labels and any(piece.is_value for piece in others):
        reading.rows.append(_row(reading, line, labels, others, columns))
        reading.pending.clear()
        reading.is_after_text = False
    elif not others:
        if not reading.rows:
            reading.corner.append(line.text)
            reading.blocks[-1].append(line)
        reading.pending.append(line)
    elif all(piece.is_value and not piece.is_year for piece in others):
        reading.pending.clear()  # a row without a label, such as a line of sums
    else:
        if reading.rows and labels and not labels[0].text.startswith("("):
            _take_text(reading)
            return
        if reading.rows and reading.rows[-1].section == len(reading.blocks) - 1:
            reading.blocks.append([])
            reading.bad.update((len(reading.blocks) - 1,) if reading.is_after_text else ())
        reading.blocks[-1].append(line)
        if not reading.rows and labels:
            reading.corner.append(" ".join(piece.text for piece in labels))
        reading.pending.clear()


def _take_text(reading: _Reading) -> None:
    """Read a row of texts. Beside header lines it may be a part of them, and then nobody can tell what they are."""
    reading.text_rows += 1
    reading.pending.clear()
    reading.is_after_text = True
    if reading.rows[-1].section < len(reading.blocks) - 1:
        reading.bad.add(len(reading.blocks) - 1)


def _row(
    reading: _Reading,
    line: TextLine,
    labels: Sequence[Piece],
    others: Sequence[Piece],
    columns: Sequence[tuple[float, float]],
) -> Row:
    """Return the row of a line; lines with a label alone above it are its beginning, or the name of its group."""
    words = [word for piece in labels for word in piece.words]
    unsure = "" if len(labels) == 1 else "label-in-pieces"
    left, text = labels[0].box.x0, " ".join(piece.text for piece in labels)
    above = [each for each in reading.pending if not each.text.startswith("(")]
    if above and (text[:1].islower() or _OPEN_END.search(above[-1].text)):
        if len(above) > 1 and _OPEN_END.search(above[-2].text):
            unsure = "label-of-many-lines"
        before = above.pop()
        words, text = [*before.pieces[0].words, *words], f"{before.text} {text}"
        left = min(left, before.box.x0)
    for each in above:
        reading.groups = [(x, name) for x, name in reading.groups if x < each.box.x0 - _INDENT]
        reading.groups.append((each.box.x0, each.text))
        is_clear = each.text.endswith(":") or left > each.box.x0 + _INDENT or each.text.isupper()
        if each is above[-1] and not is_clear:
            unsure = "line-above-without-values"
    closed = [(x, name) for x, name in reading.groups if x < left - _INDENT or (name.endswith(":") and x <= left + 1)]
    reading.groups = closed
    values: dict[int, Piece] = {}
    for number, column in enumerate(columns):
        found = [piece for piece in others if piece.is_value and piece.box.x0 < column[1] and piece.box.x1 > column[0]]
        if len(found) == 1:
            values[number] = found[0]
        elif found:
            unsure = "two-values-in-a-cell"
    group = closed[-1][1].rstrip(":").strip() if closed else ""
    return Row(clean_label(text), tuple(words), group, values, len(reading.blocks) - 1, unsure)


def clean_label(text: str) -> str:
    """Return a label without marks of footnotes and blanks at its ends.

    >>> clean_label("Gross profit (1)"), clean_label("Cash (used) by:"), clean_label("Total *")
    ('Gross profit', 'Cash (used) by', 'Total')
    """
    return _FOOTNOTE.sub("", " ".join(text.split()).rstrip(":").strip()).strip(" .,;:•·").removeprefix("- ")


def box_of(words: Sequence[Word]) -> Box:
    """Return the box around words."""
    return around([word.box for word in words])
