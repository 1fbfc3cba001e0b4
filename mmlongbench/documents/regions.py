"""Finds the figures of a page among the things that are painted on it, and makes boxes of tables and figures whole.

It knows boxes, lines of text and the pixels of a small rendering, and reads no document. All boxes are in points, from
the top left corner of the page as it is shown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Pixels: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.uint8]]

Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1."""

_CELL = 3.0
"""The side of a cell of the grid on which painted things are joined, in points."""
_REACH = 2
"""Things that are at most so many cells apart belong together."""
LEAST_SIDE = 30.0
"""A figure with a shorter side is a bullet, a rule, an icon or a logo."""
LEAST_SHARE = 0.008
"""The least area of a figure, as a share of the page."""
LEAST_TABLE = 14.0
"""A table with a shorter side is a line of text."""
_EDGE = 0.12
"""So much of the height of a page, above and below, may hold logos."""
_LOGO = 0.03
"""The most area of a logo, as a share of the page."""
_ROW_GAP = 14.0
"""Figures beside each other with a smaller gap are panels of one figure."""
BACKGROUND = 0.8
"""A thing that covers this share of a page is its background; a region that does is no part of the page, but all of
it."""
_LABEL_GAP = 9.0
"""A label is at most so many points from what it names."""
_LABEL_ROUNDS = 4
"""Labels are added so many times: the names of bars, then the name of the axis."""
_PROSE_WORDS = 9
"""A block of text with at least so many words a line is prose."""
_LONG_LINE = 5
"""A line of at least so many words is seldom a label."""
_FREE = 0.35
"""Of a box around text and a figure, the figure is kept if it has this share of the height."""
_LISTED = 5
"""The least number of lines that end in rising numbers of pages in a table of contents."""
_INK = 250
"""A darker pixel of a rendering is ink."""
MARGIN = 2.0
"""The blank around the ink of a region, in points."""
CAPTION = re.compile(r"(figure|fig\.|table|chart|exhibit|map|graph|diagram|box|plate)\s*[\dIVX]+\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    box: Box
    text: str
    block: int
    """The number of its block, in the order of the page's content."""
    kind: str = ""
    """What the block that it is in is for, such as `text` or `caption`; empty if that is not known."""


def area(box: Box) -> float:
    """Return the area of a box; 0 if its corners are in a wrong order."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def cut(box: Box, other: Box) -> Box:
    """Return the part of a box that is in another one; it may be empty (`area`)."""
    return max(box[0], other[0]), max(box[1], other[1]), min(box[2], other[2]), min(box[3], other[3])


def around(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around some boxes."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def share_in(box: Box, other: Box) -> float:
    """Return which share of a box is in another one; a rule counts as if it had a width."""
    if area(box) < 1e-6:
        box = box[0] - 0.01, box[1] - 0.01, box[2] + 0.01, box[3] + 0.01
    return area(cut(box, other)) / area(box)


def is_in(box: Box, other: Box) -> bool:
    """Return whether the middle of a box is in another one."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return other[0] <= x <= other[2] and other[1] <= y <= other[3]


def joined(painted: Sequence[Box], page: Box) -> list[Box]:
    """Return the boxes around things that touch or nearly touch, from the top.

    The things are entered in a grid, so the time does not depend on how many pairs of them there are.
    """
    columns, rows = int(page[2] / _CELL) + 2, int(page[3] / _CELL) + 2
    grid = [bytearray(columns) for _ in range(rows)]
    for box in painted:
        x0, x1 = int(box[0] / _CELL), min(int(box[2] / _CELL) + 1, columns)
        for row in range(int(box[1] / _CELL), min(int(box[3] / _CELL) + 1, rows)):
            grid[row][x0:x1] = b"\1" * (x1 - x0)
    found = []
    for row in range(rows):
        column = grid[row].find(1)
        while column >= 0:
            found.append(_emptied(grid, row, column))
            column = grid[row].find(1)
    return [cut(box, page) for box in found]


def _emptied(grid: list[bytearray], row: int, column: int) -> Box:
    """Return the box around a connected part of a grid, and take this part out."""
    rows, columns = len(grid), len(grid[0])
    grid[row][column] = 0
    ahead, top, bottom, left, right = [(row, column)], row, row, column, column
    while ahead:
        y, x = ahead.pop()
        top, bottom, left, right = min(top, y), max(bottom, y), min(left, x), max(right, x)
        first, last = max(0, x - _REACH), min(columns, x + _REACH + 1)
        for near in range(max(0, y - _REACH), min(rows, y + _REACH + 1)):
            at = grid[near].find(1, first, last)
            while at >= 0:
                grid[near][at] = 0
                ahead.append((near, at))
                at = grid[near].find(1, at + 1, last)
    return left * _CELL, top * _CELL, (right + 1) * _CELL, (bottom + 1) * _CELL


def is_large(box: Box, page: Box, least: float = LEAST_SIDE) -> bool:
    """Return whether a box is large enough for a figure or, with `LEAST_TABLE`, for a table."""
    sides = box[2] - box[0], box[3] - box[1]
    return min(sides) >= least and area(box) >= LEAST_SHARE * area(page) * least / LEAST_SIDE


def is_rule(box: Box) -> bool:
    """Return whether a painted thing is a line, or as thin as one."""
    return min(box[2] - box[0], box[3] - box[1]) <= 2.5


def prose_blocks(lines: Sequence[Line]) -> frozenset[int]:
    """Return the numbers of the blocks that are running text, captions or headings, and so no labels of a figure."""
    blocks: dict[int, list[Line]] = {}
    for line in lines:
        blocks.setdefault(line.block, []).append(line)
    return frozenset(number for number, block in blocks.items() if _is_prose(block))


def _is_prose(block: Sequence[Line]) -> bool:
    words = [len(line.text.split()) for line in block]
    if CAPTION.match(block[0].text) or any(line.kind in _KEPT for line in block):
        return True
    return max(words) >= _PROSE_WORDS or (len(block) >= 3 and sum(words) / len(block) >= 5)


_KEPT = ("section-header", "title", "page-header", "page-footer", "footnote")
"""The kinds of text that belong to no figure or table. The network calls labels below a chart captions, too, so a
caption is known by its words."""


def with_labels(box: Box, lines: Sequence[Line], prose: frozenset[int], limit: Sequence[Box]) -> Box:
    """Return the box of a figure with the labels around it; it does not grow into the boxes of `limit`."""
    labels = [line for line in lines if line.block not in prose]
    for _ in range(_LABEL_ROUNDS):
        near = [line.box for line in labels if _is_near(line.box, box) and share_in(line.box, box) < 1]
        grown = around([box, *near])
        if grown == box or any(area(cut(grown, other)) > area(cut(box, other)) + 1 for other in limit):
            return box
        box = grown
    return box


def _is_near(label: Box, box: Box) -> bool:
    x, y = max(label[0] - box[2], box[0] - label[2]), max(label[1] - box[3], box[1] - label[3])
    return max(x, y) <= _LABEL_GAP and min(x, y) < 0


def without_text(box: Box, lines: Sequence[Line], prose: frozenset[int], most: float) -> Box | None:
    """Return a box, or the part of it above, below or between running text, if such text covers more than `most` of it;
    None if no large part is free of text.
    """
    running = [line for line in lines if line.block in prose or len(line.text.split()) >= _LONG_LINE]
    inside = sorted((line.box for line in running if is_in(line.box, box)), key=lambda each: each[1])
    if sum(map(area, inside)) <= most * area(box):
        return box
    free, top = [], box[1]
    for line in inside:
        free.append((line[1] - top, top, line[1]))
        top = max(top, line[3])
    free.append((box[3] - top, top, box[3]))
    height, first, last = max(free)
    return (box[0], first, box[2], last) if height >= _FREE * (box[3] - box[1]) else None


def is_logo(box: Box, page: Box) -> bool:
    """Return whether a figure is as small as a logo and stands where logos stand."""
    height = page[3] - page[1]
    is_at_edge = box[3] <= page[1] + _EDGE * height or box[1] >= page[3] - _EDGE * height
    return is_at_edge and area(box) <= _LOGO * area(page)


def panels_joined(boxes: Sequence[Box]) -> list[Box]:
    """Return figures with those joined that stand side by side, at the same height and close together."""
    found: list[Box] = []
    for box in sorted(boxes):
        other = next((each for each in found if _are_panels(each, box)), None)
        if other:
            found.remove(other)
        found.append(around([box, other]) if other else box)
    return found


def _are_panels(left: Box, right: Box) -> bool:
    shared = min(left[3], right[3]) - max(left[1], right[1])
    heights = left[3] - left[1], right[3] - right[1]
    return right[0] - left[2] <= _ROW_GAP and shared >= 0.8 * max(heights)


def is_contents(box: Box, lines: Sequence[Line]) -> bool:
    """Return whether a table is a table of contents: its rows end in whole numbers that do not fall, and have no other
    numbers to speak of.
    """
    rows: dict[int, list[Line]] = {}
    for line in lines:
        if is_in(line.box, box):
            rows.setdefault(round((line.box[1] + line.box[3]) / 8), []).append(line)
    texts = [" ".join(line.text for line in sorted(row, key=lambda each: each.box)) for _, row in sorted(rows.items())]
    ends = [found for text in texts if (found := _LISTING.search(text))]
    numbers = [int(found[1]) for found in ends]
    return len(ends) >= max(_LISTED, len(texts) // 3) and numbers == sorted(numbers) and numbers[-1] > numbers[0]


_LISTING = re.compile(r"[^\W\d_]{3}[^\d$%]*\(?p?\.?\s?(\d{1,3})\)?\s*$")
"""Matches a line of a table of contents: words, and then a number that nothing but blanks or dots is between."""


def to_last_rule(table: Box, things: Sequence[Box], lines: Sequence[Line]) -> Box:
    """Return a table with what stands between it and the last rule of its width below, if that is more of its columns:
    its lines do not begin at the left edge of the table.
    """
    width = table[2] - table[0]
    rules = [each for each in things if is_rule(each) and each[1] > table[3] and each[2] - each[0] >= 0.8 * width]
    for rule in sorted(rules, key=lambda each: -each[3]):
        if abs(rule[0] - table[0]) > 0.1 * width:
            continue
        between = [line for line in lines if table[3] <= (line.box[1] + line.box[3]) / 2 <= rule[3]]
        if between and all(
            line.box[0] >= table[0] + 0.08 * width and line.kind not in (*_KEPT, "caption") for line in between
        ):
            return around([table, rule])
    return table


def apart(boxes: Iterable[Box]) -> list[Box]:
    """Return boxes that do not overlap: those that do are joined to one, the largest first."""
    found: list[Box] = []
    for box in sorted(boxes, key=lambda each: (-area(each), each)):
        while other := next((each for each in found if area(cut(box, each)) > 0.1 * min(area(box), area(each))), None):
            found.remove(other)
            box = around([box, other])
        found.append(box)
    return sorted(found, key=lambda each: (each[1], each[0]))


def trimmed(box: Box, pixels: "Pixels", zoom: float) -> Box | None:
    """Return the part of a box that holds ink, with a margin; None if it holds none.

    Args:
        box: the box, in points.
        pixels: the page in grey.
        zoom: the pixels of `pixels` per point.

    """
    import numpy as np

    x, y = int(box[0] * zoom), int(box[1] * zoom)
    inside = pixels[y : int(box[3] * zoom) + 1, x : int(box[2] * zoom) + 1] < _INK
    rows, columns = (np.flatnonzero(inside.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return None
    found = (x + int(columns[0]), y + int(rows[0]), x + int(columns[-1]) + 1, y + int(rows[-1]) + 1)
    x0, y0, x1, y1 = (side / zoom for side in found)
    return max(0.0, x0 - MARGIN), max(0.0, y0 - MARGIN), x1 + MARGIN, y1 + MARGIN


def in_order(crops: Sequence[Box], lines: Sequence[Line]) -> Iterator[int]:
    """Yield the place of each crop among the lines: it stands before the line with this number.

    A crop takes the place of the lines inside it. If there are none, it stands beside the nearest line that is above or
    below it, which is the caption of most figures.
    """
    for box in crops:
        inside = [at for at, line in enumerate(lines) if is_in(line.box, box)]
        yield inside[-1] + 1 if inside else _beside(box, lines)


def _beside(box: Box, lines: Sequence[Line]) -> int:
    best, place = float("inf"), len(lines)
    for at, line in enumerate(lines):
        over, under = box[1] - line.box[3], line.box[1] - box[3]
        away = max(0.0, line.box[0] - box[2], box[0] - line.box[2])
        gap = max(over, under, 0.0) + 2 * away
        if gap < best:
            best, place = gap, at if under >= over else at + 1
    return place
