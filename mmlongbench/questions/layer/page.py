"""The layer of a page as typed values: words, lines, boxes of the layout, grids of tables; and the cache that keeps
them, one file for the bytes of a document and the version of PyMuPDF.
"""

import gzip
import importlib.metadata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import VERSION, page_layers
from mmlongbench.io.files import write_whole

_BETWEEN = ("text", "section-header", "title", "caption", "list-item")  # the classes of the layout that end a table
_LEAST_HEIGHT = 12.0  # a part of a table is at least so many points high


class Box(NamedTuple):
    """A box in points, from the upper left corner of the page as it is shown."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def x(self) -> float:
        return (self.x0 + self.x1) / 2

    @property
    def y(self) -> float:
        return (self.y0 + self.y1) / 2

    def holds(self, x: float, y: float, margin: float = 0.0) -> bool:
        return self.x0 - margin <= x <= self.x1 + margin and self.y0 - margin <= y <= self.y1 + margin


def around(boxes: Sequence[Box]) -> Box:
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return Box(min(x0s), min(y0s), max(x1s), max(y1s))


class Word(NamedTuple):
    """A word, and whether its box holds ink in the rendered page."""

    box: Box
    text: str
    has_ink: bool

    @property
    def is_text(self) -> bool:
        return any(map(str.isalnum, self.text))


class Line(NamedTuple):
    """A line as PyMuPDF reads it."""

    box: Box
    text: str


class Region(NamedTuple):
    """A box of the layout; `kind` is its class, such as `table`, `caption` or `section-header`."""

    box: Box
    kind: str


class Grid(NamedTuple):
    """The cells of the rows of a table; None where a cell is part of another one."""

    how: str  # how the grid was found: by the `network`, by `lines`, or by `text`
    rows: tuple[tuple[Box | None, ...], ...]


class RawPage(BaseModel):
    """What `documents.page_facts` yields for a page, and what the cache stores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: tuple[float, float]  # the width and height in points
    rotation: int  # the degrees by which the page is turned; such a page has no words here
    word_count: int  # how many words the page has; more than are read if there are too many
    is_crowded: bool = False  # whether the page has too many words or drawings to be looked at
    words: tuple[tuple[float, float, float, float, str, bool], ...]  # x0, y0, x1, y1, text, and whether there is ink
    lines: tuple[tuple[float, float, float, float, str, float, bool], ...]
    """x0, y0, x1, y1, text, size, and whether all is bold."""
    boxes: tuple[tuple[float, float, float, float, str], ...]  # x0, y0, x1, y1, and the class of the layout
    grids: tuple[Grid, ...]
    rules: tuple[tuple[float, float, float], ...]  # x0, x1 and y of horizontal rules


@dataclass(frozen=True)
class Page:
    """The layer of a page; `number` counts from 1."""

    number: int
    raw: RawPage

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return tuple(Word(Box(*word[:4]), word[4], word[5]) for word in self.raw.words if word[4].strip())

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        lines = (Line(Box(*line[:4]), line[4]) for line in self.raw.lines)
        return tuple(sorted(lines, key=lambda line: (line.box.y0, line.box.x0, line.text)))

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        regions = (Region(Box(*box[:4]), box[4]) for box in self.raw.boxes)
        return tuple(sorted(regions, key=lambda region: region.box[1::-1]))

    @cached_property
    def tables(self) -> tuple[Box, ...]:
        """The boxes of tables from top to bottom. A box that holds headings or paragraphs is cut at them, because it
        has several tables.
        """
        parts = []
        for box in (region.box for region in self.regions if region.kind == "table"):
            top = box.y0
            for other, kind in self.regions:
                if kind in _BETWEEN and box.y0 < other.y < box.y1 and box.x0 - 5 <= other.x <= box.x1 + 5:
                    parts.append(Box(box.x0, top, box.x1, other.y0))
                    top = max(top, other.y1)
            parts.append(Box(box.x0, top, box.x1, box.y1))
        return tuple(
            sorted((part for part in parts if part.y1 - part.y0 > _LEAST_HEIGHT), key=lambda part: part[1::-1])
        )

    @cached_property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    def words_in(self, box: Box, margin: float = 1.0) -> list[Word]:
        return [word for word in self.words if box.holds(word.box.x, word.box.y, margin)]

    def text_in(self, box: Box) -> str:
        inside = [line for line in self.lines if box.holds(line.box.x, line.box.y, 1.0)]
        return " ".join(" ".join(line.text.split()) for line in inside)


def pages_of(path: Path, sha256: str, cache: Path, limits: Limits) -> list[Page]:
    """Return the pages of a document, from the cache if they were read before."""
    file = cache / f"{sha256}-{layer_version()}.jsonl.gz"
    try:
        raw = [RawPage.model_validate_json(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    except (OSError, EOFError, ValueError, ValidationError, zlib.error):  # not there, or damaged
        raw = [RawPage.model_validate(page) for page in page_layers(path, limits)]
        lines = (page.model_dump_json().encode() + b"\n" for page in raw)
        write_whole(file, [gzip.compress(b"".join(lines), mtime=0)])
    return [Page(number, page) for number, page in enumerate(raw, 1)]


def layer_version() -> str:
    """Return the versions of the programs that read the layer of a page; with other ones, it is read again."""
    return f"pymupdf-{importlib.metadata.version('pymupdf')}-{VERSION}"
