"""The layer of a page as typed values: words, lines, boxes of the layout, grids of tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

_BETWEEN = ("text", "section-header", "title", "caption", "list-item")
"""The classes of the layout that end a table."""
_LEAST_HEIGHT = 12.0
"""A part of a table is at least so many points high."""


class Box(NamedTuple):
    """A box in points, from the upper left corner of the page as it is shown."""

    x0: float
    """The left edge."""
    y0: float
    """The upper edge."""
    x1: float
    """The right edge."""
    y1: float
    """The lower edge."""

    @property
    def x(self) -> float:
        """The middle, from left to right."""
        return (self.x0 + self.x1) / 2

    @property
    def y(self) -> float:
        """The middle, from top to bottom."""
        return (self.y0 + self.y1) / 2

    def holds(self, x: float, y: float, margin: float = 0.0) -> bool:
        """Return whether a point is inside the box, or at most `margin` outside."""
        return self.x0 - margin <= x <= self.x1 + margin and self.y0 - margin <= y <= self.y1 + margin


def around(boxes: Sequence[Box]) -> Box:
    """Return the smallest box around all of them."""
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return Box(min(x0s), min(y0s), max(x1s), max(y1s))


class Word(NamedTuple):
    """A word."""

    box: Box
    """Where it is."""
    text: str
    """Its characters."""
    has_ink: bool
    """Whether its box holds ink in the rendered page."""


class Line(NamedTuple):
    """A line as PyMuPDF reads it."""

    box: Box
    """Where it is."""
    text: str
    """Its characters."""
    size: float
    """The size of its largest font in points."""
    is_bold: bool
    """Whether all of it is bold."""


class Region(NamedTuple):
    """A box of the layout."""

    box: Box
    """Where it is."""
    kind: str
    """Its class, such as `table`, `caption` or `section-header`."""


class Grid(NamedTuple):
    """The grid of a table."""

    how: str
    """How it was found: by the `network`, by `lines`, or by `text`."""
    rows: tuple[tuple[Box | None, ...], ...]
    """The cells of each row; None where a cell is part of another one."""


class RawGrid(BaseModel):
    """A grid as it is stored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    how: str
    """See `Grid.how`."""
    rows: tuple[tuple[tuple[float, float, float, float] | None, ...], ...]
    """See `Grid.rows`."""


class RawPage(BaseModel):
    """What `documents.page_facts` yields for a page, and what the cache stores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: tuple[float, float]
    """The width and height in points."""
    rotation: int
    """The degrees by which the page is turned; such a page has no words here."""
    word_count: int
    """How many words the page has; more than are read if there are too many."""
    is_crowded: bool = False
    """Whether the page has too many words or drawings to be looked at."""
    words: tuple[tuple[float, float, float, float, str, bool], ...]
    """x0, y0, x1, y1, text, and whether there is ink."""
    lines: tuple[tuple[float, float, float, float, str, float, bool], ...]
    """x0, y0, x1, y1, text, size, and whether all is bold."""
    boxes: tuple[tuple[float, float, float, float, str], ...]
    """x0, y0, x1, y1, and the class of the layout."""
    grids: tuple[RawGrid, ...]
    """The grids of tables."""
    rules: tuple[tuple[float, float, float], ...]
    """x0, x1 and y of horizontal rules."""


@dataclass(frozen=True)
class Page:
    """The layer of a page."""

    number: int
    """The number of the page, from 1."""
    raw: RawPage
    """The stored values."""

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words that are not blank."""
        return tuple(Word(Box(*word[:4]), word[4], word[5]) for word in self.raw.words if word[4].strip())

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines from top to bottom."""
        found = [Line(Box(*line[:4]), line[4], line[5], line[6]) for line in self.raw.lines]
        return tuple(sorted(found, key=lambda line: (line.box.y0, line.box.x0, line.text)))

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """The boxes of the layout from top to bottom."""
        return tuple(
            sorted((Region(Box(*box[:4]), box[4]) for box in self.raw.boxes), key=lambda each: each.box[1::-1])
        )

    @cached_property
    def tables(self) -> tuple[Region, ...]:
        """The boxes of tables from top to bottom. A box that holds headings or paragraphs is cut at them, because it
        has several tables.
        """
        found = (part for region in self.regions if region.kind == "table" for part in self._cut(region.box))
        return tuple(sorted(found, key=lambda each: (each.box.y0, each.box.x0)))

    def _cut(self, box: Box) -> list[Region]:
        inside = [
            region.box
            for region in self.regions
            if region.kind in _BETWEEN and box.y0 < region.box.y < box.y1 and box.x0 - 5 <= region.box.x <= box.x1 + 5
        ]
        parts, top = [], box.y0
        for each in sorted(inside, key=lambda each: each.y0):
            parts.append(Box(box.x0, top, box.x1, each.y0))
            top = max(top, each.y1)
        parts.append(Box(box.x0, top, box.x1, box.y1))
        return [Region(part, "table") for part in parts if part.y1 - part.y0 > _LEAST_HEIGHT]

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of tables."""
        return tuple(
            Grid(grid.how, tuple(tuple(Box(*cell) if cell else None for cell in row) for row in grid.rows))
            for grid in self.raw.grids
        )

    @cached_property
    def text(self) -> str:
        """All words with blanks between them, in the order of the file."""
        return " ".join(word.text for word in self.words)

    def words_in(self, box: Box, margin: float = 1.0) -> list[Word]:
        """Return the words whose middle is in a box."""
        return [word for word in self.words if box.holds(word.box.x, word.box.y, margin)]

    def text_in(self, box: Box) -> str:
        """Return the text of the lines in a box, from top to bottom."""
        inside = [line for line in self.lines if box.holds(line.box.x, line.box.y, 1.0)]
        return " ".join(" ".join(line.text.split()) for line in inside)
