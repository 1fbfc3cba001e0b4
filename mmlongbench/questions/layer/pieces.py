"""Reads a box of a page as visual lines of pieces, from the places of words alone.

A piece is a run of words without a wide gap: a cell of a table that has no lines between its cells. Currency signs
belong to the number on their right; per cent signs and closing brackets belong to the number on their left.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mmlongbench.questions.layer.page import Box, Word, around

WIDE = 0.75
"""A gap of more than so many line heights ends a piece."""
_SAME_LINE = 0.4
"""Words are on one line if their middles differ by at most so many line heights."""
_SMALL = 0.75
"""A word that is lower than so many line heights may be a superscript."""
_SIGN = re.compile(r"[$€£¥]|US\$|C\$")
_CLOSING = re.compile(r"[%)]|\)%|%\)|bps")
_NUMBER = re.compile(r"[($€£¥+\-–−]*\s?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?\s?\)?\s?%?\)?")
_SPREAD = re.compile(
    r"(?P<main>[-+−–]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?\s?%?)\s?(±\s?\d[\d.]*%?|\(\s?[±+−-]?\s?\d[\d.]*%?\s?\))"
)
"""Matches a number with its deviation, such as `66.4% (0.8%)` or `3.1 ± 0.2`."""
_NIL = re.compile(r"[$(]*\s?([—–-]+|N/?A|n/?a|n\.a\.|\*+|nm|NM)\s?[)%]*")
_YEAR = re.compile(r"(19|20)\d\d")


@dataclass(frozen=True)
class Piece:
    """A run of words of one line."""

    words: tuple[Word, ...]
    """The words from left to right, without superscripts."""

    @cached_property
    def box(self) -> Box:
        """The box around the words."""
        return around([word.box for word in self.words])

    @cached_property
    def text(self) -> str:
        """The words with one blank between them; signs stand directly at their number."""
        joined = " ".join(word.text for word in self.words)
        joined = re.sub(r"([$€£¥(]) (?=[\d.(])", r"\1", joined)
        return re.sub(r"(?<=[\d)]) ([%)])", r"\1", joined)

    @property
    def is_number(self) -> bool:
        """Whether it is a number, perhaps with signs."""
        is_plain = any(map(str.isdigit, self.text)) and bool(_NUMBER.fullmatch(self.text))
        return is_plain or bool(_SPREAD.fullmatch(self.text))

    @property
    def number(self) -> str:
        """The number without its deviation."""
        found = _SPREAD.fullmatch(self.text)
        return found["main"].strip() if found else self.text

    @property
    def number_words(self) -> tuple[Word, ...]:
        """The words of the number without its deviation."""
        wanted, taken = "".join(filter(str.isdigit, self.number)), 0
        for count, word in enumerate(self.words, 1):
            taken += sum(map(str.isdigit, word.text))
            if taken >= len(wanted):
                rest = self.words[count : count + 1]
                return self.words[: count + 1] if rest and rest[0].text in ("%", ")", ")%") else self.words[:count]
        return self.words

    @property
    def is_nil(self) -> bool:
        """Whether it is a mark for no value, such as a dash."""
        return bool(_NIL.fullmatch(self.text))

    @property
    def is_year(self) -> bool:
        """Whether it is a year."""
        return bool(_YEAR.fullmatch(self.text))

    @property
    def is_value(self) -> bool:
        """Whether it can stand in a column of values."""
        return self.is_number or self.is_nil


@dataclass(frozen=True)
class TextLine:
    """The pieces of one visual line, from left to right."""

    pieces: tuple[Piece, ...]
    """The pieces."""

    @cached_property
    def box(self) -> Box:
        """The box around the pieces."""
        return around([piece.box for piece in self.pieces])

    @property
    def text(self) -> str:
        """The pieces with one blank between them."""
        return " ".join(piece.text for piece in self.pieces)


def lines_of(words: Iterable[Word]) -> list[TextLine]:
    """Return the visual lines of words, from top to bottom."""
    ordered = sorted(words, key=lambda word: (word.box.y, word.box.x0, word.text))
    if not ordered:
        return []
    height = _median([word.box.y1 - word.box.y0 for word in ordered])
    lines: list[list[Word]] = []
    for word in ordered:
        if lines and abs(word.box.y - _median([other.box.y for other in lines[-1]])) <= _SAME_LINE * height:
            lines[-1].append(word)
        else:
            lines.append([word])
    return [TextLine(tuple(_pieces(line, height))) for line in lines]


def _pieces(line: Sequence[Word], height: float) -> list[Piece]:
    ordered = sorted(line, key=lambda word: (word.box.x0, word.box.x1, word.text))
    pieces: list[list[Word]] = []
    for word in ordered:
        if not pieces:
            pieces.append([word])
            continue
        gap = word.box.x0 - pieces[-1][-1].box.x1
        is_sign, is_after_sign = bool(_CLOSING.fullmatch(word.text)), bool(_SIGN.fullmatch(pieces[-1][-1].text))
        is_near = gap <= WIDE * height
        if is_near and is_own_cell(pieces[-1], word, gap, height):
            is_near = False
        if is_near or (is_sign and gap <= 3 * height) or (is_after_sign and word.text[:1] in "0123456789(.—–-"):
            pieces[-1].append(word)
        else:
            pieces.append([word])
    return [Piece(tuple(words)) for words in pieces]


def is_own_cell(before: Sequence[Word], word: Word, gap: float, height: float) -> bool:
    """Return whether a word begins a cell although the gap is not wide: a currency sign or a number after a number."""
    is_after_number = before[-1].text[-1:].isdigit() or before[-1].text[-1:] in ")%"
    starts_number = bool(_SIGN.match(word.text)) or bool(_NUMBER.fullmatch(word.text) and word.text[:1].isdigit())
    return gap > 0.35 * height and is_after_number and starts_number and len(before) <= 2


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
