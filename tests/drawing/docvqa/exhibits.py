"""Draws the sample's reports with a pen, and their exhibits: tables, charts, diagrams, lists, boxes.

The pen uses only vector shapes and base-14 fonts, so nothing is read from disk. Coordinates are in points, and y grows
downwards. Each `draw_…` function of an exhibit begins at the top of the box and returns the y where the exhibit ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import NamedTuple

import pymupdf

from tests.drawing.docvqa.prose import Colour, Fact

INK: Colour = (0.13, 0.13, 0.15)
GREY: Colour = (0.45, 0.46, 0.48)
RULE: Colour = (0.72, 0.74, 0.76)
WHITE: Colour = (1, 1, 1)
LEADING = 1.36


class Box(NamedTuple):
    """A rectangle."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """The distance from left to right."""
        return self.x1 - self.x0


@cache
def word_width(word: str, font: str) -> float:
    """Return the width of a word at a size of one point; base-14 fonts have no kerning, so widths add up."""
    return float(pymupdf.get_text_length(word, fontname=font, fontsize=1))


def line_width(text: str, font: str, size: float) -> float:
    """Return the width of a line of words."""
    words = text.split(" ")
    return size * (sum(word_width(word, font) for word in words) + word_width(" ", font) * (len(words) - 1))


def wrap(text: str, font: str, size: float, width: float) -> list[str]:
    """Split a text into lines of whole words, each at most `width` wide unless a single word is wider."""
    lines, used, space = [""], 0.0, word_width(" ", font) * size
    for word in text.split(" "):
        wide = word_width(word, font) * size
        if lines[-1] and used + space + wide > width:
            lines.append(word)
            used = wide
        else:
            used += wide + (space if lines[-1] else 0)
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws on one page with the report's font and colour."""

    shape: pymupdf.Shape
    regular: str
    bold: str
    accent: Colour
    size: float

    @property
    def pale(self) -> Colour:
        """The accent colour, lightened for backgrounds."""
        red, green, blue = (0.88 + 0.12 * part for part in self.accent)
        return red, green, blue

    def wrap(self, text: str, width: float, size: float | None = None, bold: bool = False) -> list[str]:
        """Return the text in lines of this pen's font."""
        return wrap(text, self.bold if bold else self.regular, size or self.size, width)

    def write(
        self,
        x: float,
        y: float,
        text: str | list[str],
        size: float | None = None,
        bold: bool = False,
        colour: Colour = INK,
        align: float = 0,
    ) -> float:
        """Write lines below y, and return the y where the last one ends. `align` says what x is: 0 is the start of each
        line, 0.5 its centre, 1 its end.
        """
        font, size = self.bold if bold else self.regular, size or self.size
        for line in [text] if isinstance(text, str) else text:
            wide = line_width(line, font, size)
            self.shape.insert_text((x - align * wide, y + size), line, fontname=font, fontsize=size, color=colour)
            y += size * LEADING
        return y

    def rectangle(self, box: Box, fill: Colour | None, line: Colour | None = None) -> None:
        """Draw a filled or outlined rectangle."""
        self.shape.draw_rect(pymupdf.Rect(*box))
        self.shape.finish(color=line, fill=fill, width=0.7 if line else 0)

    def line(self, *points: tuple[float, float], colour: Colour = RULE, width: float = 0.6) -> None:
        """Draw a line through the points."""
        self.shape.draw_polyline([pymupdf.Point(*point) for point in points])
        self.shape.finish(color=colour, width=width, closePath=False)


def draw_table(pen: Pen, fact: Fact, box: Box) -> float:
    """Draw a table with lines: names on the left, numbers aligned right, every second row shaded."""
    step = pen.size * 1.8
    wide = [box.width * 0.46] + [box.width * 0.54 / (len(fact.columns) - 1)] * (len(fact.columns) - 1)
    edges = [box.x0 + sum(wide[:index]) for index in range(len(wide) + 1)]
    for index, row in enumerate((fact.columns, *fact.rows)):
        top = box.y0 + index * step
        fill = pen.accent if index == 0 else pen.pale if index % 2 == 0 else WHITE
        pen.rectangle(Box(box.x0, top, box.x1, top + step), fill)
        for column, text in enumerate(row):
            x = edges[column] + 6 if column == 0 else edges[column + 1] - 6
            colour = INK if index else WHITE
            pen.write(x, top + pen.size * 0.33, text, pen.size * 0.94, index == 0, colour, align=min(column, 1))
    bottom = box.y0 + (len(fact.rows) + 1) * step
    for index in range(len(fact.rows) + 2):
        pen.line((box.x0, box.y0 + index * step), (box.x1, box.y0 + index * step))
    for x in edges:
        pen.line((x, box.y0), (x, bottom))
    return bottom


def tick_step(top: float) -> int:
    """Return the smallest round step that goes at most five times into `top`."""
    steps = (factor * int(10**power) for power in range(6) for factor in (1, 2, 5))
    return next(step for step in steps if top / step <= 5)


def draw_scale(pen: Pen, plot: Box, top: float) -> float:
    """Draw a scale from zero to a round number of at least `top` at the left of the plot; return that number."""
    step, small = tick_step(top), pen.size * 0.82
    ticks = ceil(top / step)
    for index in range(ticks + 1):
        y = plot.y1 - (plot.y1 - plot.y0) * index / ticks
        colour, width = (RULE, 0.4) if index else (INK, 0.8)
        pen.line((plot.x0, y), (plot.x1, y), colour=colour, width=width)
        pen.write(plot.x0 - 5, y - small * 0.65, str(index * step), small, colour=GREY, align=1)
    return float(ticks * step)


def is_valley(values: list[float], index: int) -> bool:
    """Return whether the value at `index` is a lowest point of the line: neither neighbour is lower."""
    return min(values[max(index - 1, 0) : index + 2]) == values[index]


def draw_chart(pen: Pen, fact: Fact, box: Box) -> float:
    """Draw bars or a line over a scale from zero, with each value above its mark; at the lowest points of a line, the
    value is below its mark.
    """
    values, line = [float(row[1]) for row in fact.rows], fact.form == "line"
    height = min(max((box.y1 - box.y0) * 0.8, 120.0), 165.0)
    plot = Box(box.x0 + 34, box.y0, box.x1, box.y0 + height)
    scale = height / draw_scale(pen, plot, max(values) * 1.05)
    slot, small, bottom = plot.width / len(values), pen.size * 0.82, plot.y1
    marks = [(plot.x0 + slot * (i + 0.5), plot.y1 - value * scale) for i, value in enumerate(values)]
    if line:
        pen.line(*marks, colour=pen.accent, width=1.8)
    for index, ((x, y), (name, value, *_)) in enumerate(zip(marks, fact.rows, strict=True)):
        point, bar = Box(x - 2.5, y - 2.5, x + 2.5, y + 2.5), Box(x - slot * 0.28, y, x + slot * 0.28, plot.y1)
        pen.rectangle(point if line else bar, pen.accent)
        pen.write(x, y + 3 if line and is_valley(values, index) else y - small * 1.7, value, small, True, align=0.5)
        bottom = max(bottom, pen.write(x, plot.y1 + 4, pen.wrap(name, slot - 6, small), small, align=0.5))
    return bottom


def draw_flow(pen: Pen, fact: Fact, box: Box) -> float:
    """Draw boxes from left to right, joined by arrows."""
    gap, height, small = 20.0, pen.size * 4.4, pen.size * 0.9
    wide = (box.width - gap * (len(fact.rows) - 1)) / len(fact.rows)
    middle = box.y0 + height / 2
    for index, (name, *_) in enumerate(fact.rows):
        left = box.x0 + index * (wide + gap)
        pen.rectangle(Box(left, box.y0, left + wide, box.y0 + height), pen.pale, pen.accent)
        lines = pen.wrap(name, wide - 8, small, True)
        pen.write(left + wide / 2, middle - small * LEADING * len(lines) / 2 - 1, lines, small, True, align=0.5)
        if index:
            pen.line((left - gap + 2, middle), (left - 3, middle), colour=pen.accent, width=1.4)
            pen.line((left - 8, middle - 4), (left - 3, middle), (left - 8, middle + 4), colour=pen.accent, width=1.4)
    return box.y0 + height


def draw_list(pen: Pen, fact: Fact, box: Box) -> float:
    """Draw numbered items, one a line."""
    y = box.y0
    for number, (item, *_) in enumerate(fact.rows, start=1):
        pen.write(box.x0 + 16, y, f"{number}.", bold=True, colour=pen.accent, align=1)
        y = pen.write(box.x0 + 24, y, pen.wrap(item, box.width - 24)) + 3
    return y


def draw_box(pen: Pen, fact: Fact, box: Box) -> float:
    """Draw a shaded box with a title and a few words."""
    lines = pen.wrap(fact.text, box.width - 32)
    bottom = box.y0 + 26 + pen.size * LEADING * (len(lines) + 1.1)
    pen.rectangle(Box(box.x0, box.y0, box.x1, bottom), pen.pale)
    pen.rectangle(Box(box.x0, box.y0, box.x0 + 4, bottom), pen.accent)
    y = pen.write(box.x0 + 18, box.y0 + 9, fact.rows[0][0], pen.size * 1.1, True, pen.accent)
    pen.write(box.x0 + 18, y + 3, lines)
    return bottom


EXHIBITS: dict[str, Callable[[Pen, Fact, Box], float]] = {
    "table": draw_table,
    "bars": draw_chart,
    "line": draw_chart,
    "flow": draw_flow,
    "list": draw_list,
    "box": draw_box,
}
