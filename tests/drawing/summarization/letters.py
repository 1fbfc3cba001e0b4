"""Draws letter-size pages of plain text: paragraphs in one or two columns, headings in several styles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import pymupdf

WIDTH, HEIGHT = 612, 792
MARGIN, LEADING = 64.0, 1.3
Manner = Literal["plain", "capitals", "small capitals", "broken", "none"]


@dataclass(frozen=True, slots=True)
class Block:
    """A heading with its paragraphs."""

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """The layout of a page."""

    columns: int = 1
    manner: Manner = "plain"
    hyphens: bool = False
    """Whether words are split at the end of a line."""
    size: float = 10.0


class Sheet:
    """A document that is being drawn, page after page; its bytes are the same every time."""

    def __init__(self) -> None:
        """Start without a page."""
        self._document = pymupdf.open()
        self._shape: Any = None

    def begin(self, footer: str) -> None:
        """Start a new page."""
        self._end()
        self._shape = self._document.new_page(width=WIDTH, height=HEIGHT).new_shape()
        self._write(MARGIN, HEIGHT - 36, footer, 8)

    def column(self, blocks: Sequence[Block], left: float, top: float, width: float, look: Look) -> float:
        """Write headings and paragraphs below each other, and return the y where the last one ends. Text that would be
        below the page is left out.
        """
        y = top
        for block in blocks:
            y = self._heading(block.heading, left, y, look) if block.heading else y
            for paragraph in block.paragraphs:
                for line in wrap(paragraph, width, look.size, hyphens=look.hyphens):
                    if y > HEIGHT - 60:
                        return y
                    self._write(left, y, line, look.size)
                    y += look.size * LEADING
                y += look.size * 0.6
        return y

    def _heading(self, heading: str, left: float, y: float, look: Look) -> float:
        if look.manner == "none":
            return y
        size = look.size * 1.3
        words = heading.split()
        lines = [" ".join(words[:2]), " ".join(words[2:])] if look.manner == "broken" else [heading]
        for line in lines:
            if look.manner == "small capitals":
                x = left
                for word in line.split():
                    self._write(x, y, word[0].upper(), size, "hebo")
                    # PDF readers see this gap as a space
                    x += pymupdf.get_text_length(word[0].upper(), "hebo", size) + 2.2
                    self._write(x, y, word[1:].upper(), size * 0.78, "hebo")
                    x += pymupdf.get_text_length(word[1:].upper(), "hebo", size * 0.78) + size * 0.4
            else:
                self._write(left, y, line.upper() if look.manner == "capitals" else line, size, "hebo")
            y += size * LEADING
        return y

    def _end(self) -> None:
        if self._shape is not None:
            self._shape.commit()

    def _write(self, x: float, y: float, text: str, size: float, font: str = "helv") -> None:
        self._shape.insert_text((x, y), text, fontsize=size, fontname=font)

    def data(self) -> bytes:
        """Return the document as PDF bytes, without dates and without a random id."""
        self._end()
        return bytes(self._document.tobytes(garbage=3, deflate=True, no_new_id=True))


def wrap(text: str, width: float, size: float, *, hyphens: bool = False) -> Iterator[str]:
    """Yield lines that are at most `width` wide; with `hyphens`, a long word is split at the end of its line."""
    space, line, used = _width(" ", size), "", 0.0
    for word in text.split():
        cost = _width(word, size)
        if used + space + cost <= width or not line:
            line, used = (f"{line} {word}", used + space + cost) if line else (word, cost)
        elif hyphens and len(word) > 7 and word.isalpha() and used + space + _width(f"{word[:4]}-", size) <= width:
            yield f"{line} {word[:4]}-"
            line, used = word[4:], _width(word[4:], size)
        else:
            yield line
            line, used = word, cost
    if line:
        yield line


@cache
def _width(text: str, size: float) -> float:
    return float(pymupdf.get_text_length(text, "helv", size))
