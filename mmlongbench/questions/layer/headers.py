"""Reads the headers of columns from the lines above the rows: leaf headers, and headers that span several columns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from mmlongbench.questions.layer.page import Box, Word
from mmlongbench.questions.layer.pieces import Piece, TextLine

_DATA = re.compile(r"\$\s?\d|\d\.\d|\d\s?%|^\(?\d{1,3}(,\d{3})+\)?$")
MAX_WORDS = 12
"""A longer header is not quoted."""
_YEAR = re.compile(r"(19|20)\d\d")
_NEAR = 4.0
"""Edges or middles that differ by at most so many points are aligned."""
_TOUCHING = 1.0
"""Rules with a gap of at most so many points are one rule."""
_UNDER = 14.0
"""A rule belongs to the header line above it if it is at most so many points below."""


@dataclass(frozen=True)
class Part:
    """A piece over a column."""

    piece: Piece
    """The piece."""
    columns: tuple[int, ...]
    """The numbers of the columns that it is over."""
    is_sure: bool
    """Whether it is certain that it is over these columns and no others."""


@dataclass(frozen=True)
class Header:
    """The header of one column."""

    parts: tuple[Part, ...]
    """The pieces over the column from top to bottom; the first ones may span several columns."""

    @property
    def leaf(self) -> str:
        """The text over this column alone; empty if there is none."""
        return " ".join(part.piece.text for part in self._own)

    @property
    def text(self) -> str:
        """The text over the column, without pieces whose columns are not certain."""
        return " ".join(part.piece.text for part in self.parts if part.is_sure)

    @property
    def own_lines(self) -> tuple[str, ...]:
        """The texts over this column alone, line by line from top to bottom."""
        return tuple(part.piece.text for part in self._own)

    @property
    def above(self) -> str:
        """The text that this column shares with others; empty if nothing spans it."""
        return " ".join(part.piece.text for part in self.parts if len(part.columns) > 1 and part.is_sure)

    @property
    def leaf_words(self) -> tuple[Word, ...]:
        """The words over this column alone."""
        return tuple(word for part in self._own for word in part.piece.words)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of `text`."""
        return tuple(word for part in self.parts if part.is_sure for word in part.piece.words)

    @property
    def is_whole(self) -> bool:
        """Whether all pieces over the column are certain."""
        return all(part.is_sure for part in self.parts)

    @property
    def fault(self) -> str:
        """Why the header cannot be asked about; empty if it can."""
        own = self._own
        if not own or len(self.parts[-1].columns) > 1:
            return "no-header-of-its-own"
        if len(self.leaf.split()) > MAX_WORDS:
            return "header-too-long"
        if not self.is_whole:
            return "header-beside-its-column"
        words = [word for word in self.leaf.split() if any(map(str.isalnum, word))]
        if _DATA.search(self.leaf) or all(word.isdigit() and not _YEAR.fullmatch(word) for word in words):
            return "data-in-the-header"  # also `72 ▶`, the number of a line of a form
        if any(len(line.split()) > 1 and all(word[0].isdigit() for word in line.split()) for line in self.own_lines):
            return "header-of-two-columns"  # `64k 32k`
        return ""

    @property
    def _own(self) -> list[Part]:
        return [part for part in self.parts if len(part.columns) == 1 and part.is_sure]


Span: TypeAlias = tuple[float, float]
"""The left and the right edge of a column, in points."""


def read_headers(
    block: Sequence[TextLine], columns: Sequence[Span], first: float, rules: Sequence[tuple[float, float, float]]
) -> tuple[Header, ...]:
    """Return the header of each column, from the header lines over it.

    The lines are read from the rows upwards: a piece belongs to the columns whose values or lower pieces it is over.
    """
    if sum(line.pieces[0].box.x1 < first - 5 and len(line.pieces) > 1 for line in block) > 1:
        block = ()  # these are rows: several of them have a label
    taken: list[list[Part]] = [[] for _ in columns]
    extents = list(columns)
    for line in reversed(block):
        over = [piece for piece in line.pieces if piece.box.x > first - 20]
        pieces = [part for piece in over for part in _split(piece, columns)]
        parts = [_part(piece, pieces, columns, extents, rules) for piece in pieces]
        for part in parts:
            for number in part.columns:
                taken[number].insert(0, part)
            if len(part.columns) == 1 and part.is_sure:
                left, right = extents[part.columns[0]]
                extents[part.columns[0]] = min(left, part.piece.box.x0), max(right, part.piece.box.x1)
    return tuple(Header(tuple(parts)) for parts in taken)


def joined(rules: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return horizontal rules; those that touch at one height are one rule.

    >>> joined([(10, 20, 5), (20.5, 30, 5), (34, 40, 5), (30, 34, 9)])
    [(10, 30, 5), (34, 40, 5), (30, 34, 9)]
    """
    found: list[tuple[float, float, float]] = []
    for x0, x1, y in sorted(rules, key=lambda rule: (round(rule[2]), rule[0])):
        if found and round(found[-1][2]) == round(y) and x0 - found[-1][1] <= _TOUCHING:
            found[-1] = (found[-1][0], max(found[-1][1], x1), found[-1][2])
        else:
            found.append((x0, x1, y))
    return found


def _split(piece: Piece, columns: Sequence[Span]) -> list[Piece]:
    """Split a piece between columns where a gap between its words is clearly wider than the others.

    Headers of narrow columns may be nearer to each other than cells usually are.
    """
    words = piece.words
    gaps = [after.box.x0 - before.box.x1 for before, after in pairwise(words)]
    middles = [(left[1] + right[0]) / 2 for left, right in pairwise(columns)]
    usual = min(gaps, default=0.0)
    cuts = [
        number + 1
        for number, gap in enumerate(gaps)
        if gap >= max(1.5 * usual, 4.0)
        and any(words[number].box.x1 - 12 <= middle <= words[number + 1].box.x0 + 12 for middle in middles)
    ]
    return [Piece(words[start:end]) for start, end in pairwise([0, *cuts, len(words)])]


def _part(
    piece: Piece,
    line: Sequence[Piece],
    columns: Sequence[Span],
    extents: Sequence[Span],
    rules: Sequence[tuple[float, float, float]],
) -> Part:
    """Return a piece with the columns that it is over: by the rule below it, by its place, or the nearest one."""
    left, right = columns[0][0], columns[-1][1]
    box = piece.box
    under = {(x0, x1) for x0, x1, y in rules if 0 <= y - box.y1 <= _UNDER and x0 - 3 <= box.x <= x1 + 3}
    for x0, x1 in under if len(under) == 1 else ():
        by_rule = tuple(number for number, column in enumerate(columns) if column[0] < x1 - 1 and column[1] > x0 + 1)
        is_alone = sum(x0 - 3 <= other.box.x <= x1 + 3 for other in line) == 1
        if by_rule and is_alone and (len(line) == 1 or x1 - x0 < 0.9 * (right - left + 40)):
            return Part(piece, by_rule, is_sure=True)
    touched = tuple(number for number, span in enumerate(extents) if _overlap(box, span) > 0.25)
    is_wide = all(box.x1 - box.x0 > 1.2 * (extents[number][1] - extents[number][0]) for number in touched)
    is_middle = len(line) == 1 and len(columns) > 1 and abs(box.x - (left + right) / 2) <= 0.12 * (right - left)
    if is_middle and (is_wide or not touched):
        return Part(piece, tuple(range(len(columns))), is_sure=True)
    if len(line) >= len(columns) and touched:
        return Part(piece, (max(touched, key=lambda number: _overlap(box, extents[number])),), is_sure=True)
    if touched:
        return Part(piece, touched, is_sure=True)
    number = min(range(len(columns)), key=lambda at: abs(sum(extents[at]) / 2 - box.x))
    x0, x1 = extents[number]
    is_aligned = min(abs(x1 - box.x1), abs(x0 - box.x0), abs((x0 + x1) / 2 - box.x)) <= _NEAR
    return Part(piece, (number,), is_sure=is_aligned or len(line) >= len(columns))


def _overlap(box: Box, span: Span) -> float:
    """Return how much of the narrower one of a box and a column is under or over the other one."""
    shared = min(box.x1, span[1]) - max(box.x0, span[0])
    return shared / max(min(box.x1 - box.x0, span[1] - span[0]), 1.0)
