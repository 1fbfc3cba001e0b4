"""The first reader of tables: columns, headers, rows with labels and groups, from the places of words alone.

Words become visual lines, and lines become pieces: runs of words without a wide gap, which are the cells of a table
that has no lines between its cells. It knows nothing of the grids that PyMuPDF finds (`facts.confirms`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import median_high
from typing import TypeAlias

from mmlongbench.questions.layer.page import Box, Page, Word, around

MAX_COLUMNS, MAX_ROWS = 15, 150  # larger tables are not read
MAX_HEADER_WORDS = 12  # a longer header is not quoted
Span: TypeAlias = tuple[float, float]  # the left and the right edge of a column, in points
Rule: TypeAlias = tuple[float, float, float]  # x0, x1 and y of a horizontal rule

_WIDE, _SAME_LINE = 0.75, 0.4
"""In heights of a line: a gap that ends a piece, and how far the middles of words of one line may be apart."""
_INDENT, _ALIGNED, _TOUCHING, _UNDER = 2.5, 4.0, 1.0, 14.0
"""In points: the least indent; how far aligned edges may be apart; the gap between two parts of one rule; how far
below a header its rule may be."""
_SIGN = re.compile(r"[$€£¥]|US\$|C\$")
_CLOSING = re.compile(r"[%)]|\)%|%\)|bps")
_NUMBER = re.compile(r"[($€£¥+\-–−]*\s?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?\s?\)?\s?%?\)?")
_NIL = re.compile(r"[$(]*\s?([—–-]+|N/?A|n/?a|n\.a\.|\*+|nm|NM)\s?[)%]*")
YEAR = re.compile(r"(19|20)\d\d")
_DATA = re.compile(r"\$\s?\d|\d\.\d|\d\s?%|^\(?\d{1,3}(,\d{3})+\)?$")
_LEADERS = re.compile(r"[.…·_]+")
_FOOTNOTE = re.compile(r"(?<=[^\s(])\s*\(([a-z]|\d|\d\d|[ivx]+)\)((,\s*)?\(([a-z]|\d)\))*$|\s*[*†‡§]+$")
_OPEN_END = re.compile(
    r"(,|-|–|&|/|\b(and|of|the|to|for|in|or|by|with|from|on|before|after|net|per|at|than|as|a))$", re.I
)


@dataclass(frozen=True)
class Piece:
    """A run of words of one line. Currency signs belong to the number on their right; per cent signs and closing
    brackets to the number on their left.
    """

    words: tuple[Word, ...]

    @cached_property
    def box(self) -> Box:
        return around([word.box for word in self.words])

    @cached_property
    def text(self) -> str:
        """The words with one blank between them; signs stand directly at their number."""
        joined = " ".join(word.text for word in self.words)
        joined = re.sub(r"([$€£¥(]) (?=[\d.(])", r"\1", joined)
        return re.sub(r"(?<=[\d)]) ([%)])", r"\1", joined)

    @property
    def is_number(self) -> bool:
        return any(map(str.isdigit, self.text)) and bool(_NUMBER.fullmatch(self.text))

    @property
    def is_year(self) -> bool:
        return bool(YEAR.fullmatch(self.text))

    @property
    def is_value(self) -> bool:
        """Whether it can stand in a column of values: a number, or a mark for no value, such as a dash."""
        return self.is_number or bool(_NIL.fullmatch(self.text))


@dataclass(frozen=True)
class TextLine:
    """The pieces of one visual line, from left to right."""

    pieces: tuple[Piece, ...]

    @cached_property
    def box(self) -> Box:
        return around([piece.box for piece in self.pieces])

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces)


def lines_of(words: Iterable[Word]) -> list[TextLine]:
    ordered = sorted(words, key=lambda word: (word.box.y, word.box.x0, word.text))
    if not ordered:
        return []
    height = median_high(word.box.y1 - word.box.y0 for word in ordered)
    lines: list[list[Word]] = []
    for word in ordered:
        if lines and abs(word.box.y - median_high(other.box.y for other in lines[-1])) <= _SAME_LINE * height:
            lines[-1].append(word)
        else:
            lines.append([word])
    return [TextLine(tuple(_pieces(line, height))) for line in lines]


def _pieces(line: Sequence[Word], height: float) -> list[Piece]:
    pieces: list[list[Word]] = []
    for word in sorted(line, key=lambda word: (word.box.x0, word.box.x1, word.text)):
        if not pieces:
            pieces.append([word])
            continue
        before = pieces[-1]
        gap, last = word.box.x0 - before[-1].box.x1, before[-1].text
        # a currency sign or a number after a number begins a cell although the gap is not wide
        starts_number = bool(_SIGN.match(word.text)) or bool(_NUMBER.fullmatch(word.text) and word.text[:1].isdigit())
        is_own_cell = gap > 0.35 * height and (last[-1:].isdigit() or last[-1:] in ")%") and len(before) <= 2
        is_joined = (
            (gap <= _WIDE * height and not (is_own_cell and starts_number))
            or (_CLOSING.fullmatch(word.text) and gap <= 3 * height)
            or (_SIGN.fullmatch(last) and word.text[:1] in "0123456789(.—–-")
        )
        if is_joined:
            before.append(word)
        else:
            pieces.append([word])
    return [Piece(tuple(words)) for words in pieces]


@dataclass(frozen=True)
class Part:
    """A piece of a header over some columns; `is_sure` if it is certain that it is over these and no others."""

    piece: Piece
    columns: tuple[int, ...]
    is_sure: bool


@dataclass(frozen=True)
class Header:
    """The header of one column: pieces from top to bottom; the first ones may span several columns."""

    parts: tuple[Part, ...]

    @property
    def leaf(self) -> str:
        """The text over this column alone; empty if there is none."""
        return " ".join(part.piece.text for part in self.own)

    @property
    def text(self) -> str:
        """The text over the column, without pieces whose columns are not certain."""
        return " ".join(part.piece.text for part in self.parts if part.is_sure)

    @property
    def above(self) -> str:
        """The text that this column shares with others; empty if nothing spans it."""
        return " ".join(part.piece.text for part in self.parts if len(part.columns) > 1 and part.is_sure)

    @property
    def fault(self) -> str:
        """Why the header cannot be asked about; empty if it can."""
        if not self.own or len(self.parts[-1].columns) > 1:
            return "no-header-of-its-own"
        if len(self.leaf.split()) > MAX_HEADER_WORDS:
            return "header-too-long"
        if not all(part.is_sure for part in self.parts):
            return "header-beside-its-column"
        words = [word for word in self.leaf.split() if any(map(str.isalnum, word))]
        if _DATA.search(self.leaf) or all(word.isdigit() and not YEAR.fullmatch(word) for word in words):
            return "data-in-the-header"  # also `72 ▶`, the number of a line of a form
        lines = [part.piece.text.split() for part in self.own]
        if any(len(line) > 1 and all(word[0].isdigit() for word in line) for line in lines):
            return "header-of-two-columns"  # `64k 32k`
        return ""

    @property
    def own(self) -> list[Part]:
        """The parts over this column alone."""
        return [part for part in self.parts if len(part.columns) == 1 and part.is_sure]


def read_headers(
    block: Sequence[TextLine], columns: Sequence[Span], first: float, rules: Sequence[Rule]
) -> tuple[Header, ...]:
    """Return the header of each column, from the header lines over it.

    The lines are read from the rows upwards: a piece belongs to the columns whose values or lower pieces it is over.
    """
    if sum(line.pieces[0].box.x1 < first - 5 and len(line.pieces) > 1 for line in block) > 1:
        block = ()  # these are rows: several of them have a label
    parts: list[list[Part]] = [[] for _ in columns]
    extents = list(columns)
    for line in reversed(block):
        over = (piece for piece in line.pieces if piece.box.x > first - 20)
        pieces = [part for piece in over for part in _split(piece, columns)]
        for part in [_part(piece, pieces, columns, extents, rules) for piece in pieces]:
            for column in part.columns:
                parts[column].insert(0, part)
            if len(part.columns) == 1 and part.is_sure:
                left, right = extents[part.columns[0]]
                extents[part.columns[0]] = min(left, part.piece.box.x0), max(right, part.piece.box.x1)
    return tuple(Header(tuple(over)) for over in parts)


def _joined(rules: Sequence[Rule]) -> list[Rule]:
    joined: list[Rule] = []
    for x0, x1, y in sorted(rules, key=lambda rule: (round(rule[2]), rule[0])):
        if joined and round(joined[-1][2]) == round(y) and x0 - joined[-1][1] <= _TOUCHING:
            joined[-1] = (joined[-1][0], max(joined[-1][1], x1), joined[-1][2])
        else:
            joined.append((x0, x1, y))
    return joined


def _split(piece: Piece, columns: Sequence[Span]) -> list[Piece]:
    # headers of narrow columns may be nearer to each other than cells usually are: the widest gaps count
    words = piece.words
    gaps = [after.box.x0 - before.box.x1 for before, after in pairwise(words)]
    middles = [(left[1] + right[0]) / 2 for left, right in pairwise(columns)]
    cuts = [
        at + 1
        for at, gap in enumerate(gaps)
        if gap >= max(1.5 * min(gaps), 4.0)
        and any(words[at].box.x1 - 12 <= middle <= words[at + 1].box.x0 + 12 for middle in middles)
    ]
    return [Piece(words[start:end]) for start, end in pairwise([0, *cuts, len(words)])]


def _part(
    piece: Piece, line: Sequence[Piece], columns: Sequence[Span], extents: Sequence[Span], rules: Sequence[Rule]
) -> Part:
    """Return a piece with the columns that it is over: by the rule below it, by its place, or the nearest one."""
    left, right = columns[0][0], columns[-1][1]
    box = piece.box
    under = {(x0, x1) for x0, x1, y in rules if 0 <= y - box.y1 <= _UNDER and x0 - 3 <= box.x <= x1 + 3}
    for x0, x1 in under if len(under) == 1 else ():
        by_rule = tuple(at for at, column in enumerate(columns) if column[0] < x1 - 1 and column[1] > x0 + 1)
        is_alone = sum(x0 - 3 <= other.box.x <= x1 + 3 for other in line) == 1
        if by_rule and is_alone and (len(line) == 1 or x1 - x0 < 0.9 * (right - left + 40)):
            return Part(piece, by_rule, is_sure=True)
    # how much of the narrower one of the piece and a column is under or over the other one
    shared = [(min(box.x1, x1) - max(box.x0, x0)) / max(min(box.x1 - box.x0, x1 - x0), 1.0) for x0, x1 in extents]
    touched = tuple(at for at, share in enumerate(shared) if share > 0.25)
    is_wide = all(box.x1 - box.x0 > 1.2 * (extents[at][1] - extents[at][0]) for at in touched)
    is_middle = len(line) == 1 and len(columns) > 1 and abs(box.x - (left + right) / 2) <= 0.12 * (right - left)
    if is_middle and is_wide:
        return Part(piece, tuple(range(len(columns))), is_sure=True)
    if len(line) >= len(columns) and touched:
        return Part(piece, (max(touched, key=shared.__getitem__),), is_sure=True)
    if touched:
        return Part(piece, touched, is_sure=True)
    nearest = min(range(len(columns)), key=lambda at: abs(sum(extents[at]) / 2 - box.x))
    x0, x1 = extents[nearest]
    is_aligned = min(abs(x1 - box.x1), abs(x0 - box.x0), abs((x0 + x1) / 2 - box.x)) <= _ALIGNED
    return Part(piece, (nearest,), is_sure=is_aligned or len(line) >= len(columns))


@dataclass(frozen=True)
class Row:
    label: str  # the words left of the values, without marks of footnotes
    words: tuple[Word, ...]  # the words of the label
    group: str  # the last line above without values, such as `Current assets:`; empty if there is none
    values: dict[int, Piece]  # the values by the number of their column; a cell that is no number or dash is not here
    section: int  # the number of the block of header lines that the row belongs to
    is_unsure: str = ""  # why the label cannot be trusted; empty if it can


@dataclass
class WordTable:
    """A table, as far as its lines were read from top to bottom."""

    columns: tuple[Span, ...]  # the left and the right edge of each column of values
    rows: list[Row] = field(default_factory=list)
    corner: list[str] = field(default_factory=list)  # the words above the labels of the rows, such as `(In millions)`
    headers: tuple[tuple[Header, ...], ...] = ()  # the header of each column, for each block of header lines
    _blocks: list[list[TextLine]] = field(default_factory=lambda: [[]])
    _pending: list[TextLine] = field(default_factory=list)
    _group: str = ""
    _has_text_rows: bool = False
    _is_after_text: bool = False
    _bad: set[int] = field(default_factory=set)

    def read(self, lines: Sequence[TextLine], rules: Sequence[Rule]) -> str:
        """Read the lines of a table; return why it cannot be read, empty if it can."""
        for line in lines:
            self._take(line)
        if not self.rows:
            return "no-rows-of-values"
        if len(self.columns) == 1 and self._has_text_rows:
            return "names-and-values"
        blocks = [() if at in self._bad else block for at, block in enumerate(self._blocks)]
        self.headers = tuple(read_headers(block, self.columns, self.columns[0][0], _joined(rules)) for block in blocks)
        return ""

    def _take(self, line: TextLine) -> None:
        first = self.columns[0][0]
        labels = [piece for piece in line.pieces if piece.box.x1 <= first + 0.5 or piece.box.x0 < first - 20]
        others = [piece for piece in line.pieces if piece not in labels]
        if _is_data(line) and labels and any(piece.is_value for piece in others):
            self.rows.append(self._row(labels, others))
            self._is_after_text = False
        elif not others:
            if not self.rows:
                self.corner.append(line.text)
                self._blocks[-1].append(line)
            self._pending.append(line)
            return
        elif all(piece.is_value and not piece.is_year for piece in others):
            pass  # a row without a label, such as a line of sums
        elif self.rows and labels and not labels[0].text.startswith("("):
            # a row of texts; beside header lines it may be a part of them, and then nobody can tell what they are
            self._has_text_rows = self._is_after_text = True
            if self.rows[-1].section < len(self._blocks) - 1:
                self._bad.add(len(self._blocks) - 1)
        else:
            if self.rows and self.rows[-1].section == len(self._blocks) - 1:
                self._blocks.append([])
                self._bad.update((len(self._blocks) - 1,) if self._is_after_text else ())
            self._blocks[-1].append(line)
            if not self.rows and labels:
                self.corner.append(" ".join(piece.text for piece in labels))
        self._pending.clear()

    def _row(self, labels: Sequence[Piece], others: Sequence[Piece]) -> Row:
        """Return the row of a line; lines with a label alone above it are its beginning, or the name of its group."""
        words = [word for piece in labels for word in piece.words]
        unsure = "" if len(labels) == 1 else "label-in-pieces"
        left, text = labels[0].box.x0, " ".join(piece.text for piece in labels)
        above = [line for line in self._pending if not line.text.startswith("(")]
        if above and (text[:1].islower() or _OPEN_END.search(above[-1].text)):
            if len(above) > 1 and _OPEN_END.search(above[-2].text):
                unsure = "label-of-many-lines"
            before = above.pop()
            words, text = [*before.pieces[0].words, *words], f"{before.text} {text}"
            left = min(left, before.box.x0)
        if above:
            last = above[-1]
            self._group = last.text
            if not (last.text.endswith(":") or left > last.box.x0 + _INDENT or last.text.isupper()):
                unsure = "line-above-without-values"
        values: dict[int, Piece] = {}
        for column, (x0, x1) in enumerate(self.columns):
            inside = [piece for piece in others if piece.is_value and piece.box.x0 < x1 and piece.box.x1 > x0]
            if len(inside) == 1:
                values[column] = inside[0]
            elif inside:
                unsure = "two-values-in-a-cell"
        return Row(clean_label(text), tuple(words), self._group, values, len(self._blocks) - 1, unsure)


def read_table(page: Page, box: Box) -> WordTable | str:
    lines = lines_of(word for word in page.words_in(box, 2.0) if not _LEADERS.fullmatch(word.text))
    data = [line for line in lines if _is_data(line)]
    if len(data) < 2:
        return "no-rows-of-values"
    columns = _columns(data)
    if not columns:
        return "no-columns-of-values"
    if len(columns) > MAX_COLUMNS or len(data) > MAX_ROWS:
        return "table-too-large"
    table = WordTable(columns)
    return table.read(lines, [rule for rule in page.raw.rules if box.y0 - 5 <= rule[2] <= box.y1 + 5]) or table


def _is_data(line: TextLine) -> bool:
    first, *rest = line.pieces
    has_label = first.is_year or (not first.is_value and any(map(str.isalnum, first.text)))
    values = sum(piece.is_value for piece in rest)
    return has_label and 2 * values >= len(rest) and any(piece.is_value and not piece.is_year for piece in rest)


def _columns(data: Sequence[TextLine]) -> tuple[Span, ...]:
    """Return the edges of columns, in which values overlap. Of more than two columns, each has at least two rows."""
    values = [[piece.box for piece in line.pieces[1:] if piece.is_value] for line in data]
    columns: list[Span] = []
    for x0, x1 in sorted((box.x0, box.x1) for boxes in values for box in boxes):
        if columns and x0 < columns[-1][1] - 0.5:
            columns[-1] = (columns[-1][0], max(columns[-1][1], x1))
        else:
            columns.append((x0, x1))
    counts = [sum(any(box.x0 < x1 and box.x1 > x0 for box in boxes) for boxes in values) for x0, x1 in columns]
    return tuple(column for column, count in zip(columns, counts, strict=True) if count >= 2 or len(columns) <= 2)


def clean_label(text: str) -> str:
    """Return a label without marks of footnotes and blanks at its ends.

    >>> clean_label("Gross profit (1)"), clean_label("Cash (used) by:"), clean_label("Total *")
    ('Gross profit', 'Cash (used) by', 'Total')
    """
    return _FOOTNOTE.sub("", " ".join(text.split()).rstrip(":").strip()).strip(" .,;:•·").removeprefix("- ")
