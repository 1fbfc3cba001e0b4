"""Charts as numbers: the positions of the lines, marks and bars that `charts.html` draws as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mmlongbench.scoring.report.grids import Estimate, Grid, Row
from mmlongbench.web.numbers import points

COLOURS = 7
"""The number of colours for models in the stylesheet (`--m0` and on); further models reuse these with dashed lines."""
_SHAPES = (
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "M-2.7-2.7h5.4v5.4h-5.4z",
    "M0-3.6l3.4 6h-6.8z",
    "M0-3.8l3.6 3.8l-3.6 3.8l-3.6-3.8z",
)
"""Marks around the origin: circle, square, triangle, diamond. They distinguish models without colours."""
_DODGE = 3.0
"""The maximum horizontal distance between the intervals of neighbouring models at one length."""


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a model's line."""

    colour: int
    shape: str
    is_dashed: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A score in a chart."""

    x: str
    y: str
    title: str
    column: str = ""
    """The length, or whatever else the horizontal axis has."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The scores of a model over the lengths; lines are lists of points in the form of SVG."""

    look: Look
    lines: Sequence[str]
    """The lines; there are several if a length in between has no score."""
    whiskers: Sequence[str]
    """The intervals of the scores, as vertical lines."""
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over lengths, on the scale from 0 to 100."""

    WIDTH: ClassVar = 250
    HEIGHT: ClassVar = 150
    LEFT: ClassVar = 26
    RIGHT: ClassVar = 8
    TOP: ClassVar = 8
    BOTTOM: ClassVar = 18

    name: str
    lengths: Sequence[tuple[str, str]]
    """(x, name) of each length."""
    ticks: Sequence[tuple[str, str, str]]
    """(y, y of the text, text) of each horizontal line."""
    curves: Sequence[Curve]


def look_of(number: int) -> Look:
    """Return the look of a model's line; `number` is the model's place in the report, from 0."""
    return Look(number % COLOURS, _SHAPES[number % len(_SHAPES)], number >= COLOURS)


def length_charts(grid: Grid, models: Sequence[str], lengths: Sequence[str]) -> list[Chart]:
    """Return a chart for each row of a grid."""
    names = [(f"{_x(at, len(lengths)):.1f}", name) for at, name in enumerate(lengths)]
    ticks = [(f"{_y(at):.1f}", f"{_y(at) + 3:.1f}", f"{100 * at:.0f}") for at in (0, 0.25, 0.5, 0.75, 1)]
    return [Chart(row.name, names, ticks, _curves(grid, row, models, lengths)) for row in grid.rows]


def _curves(grid: Grid, row: Row, models: Sequence[str], lengths: Sequence[str]) -> list[Curve]:
    of_each = [[grid.cells.get((model, row, length)) for length in lengths] for model in models]
    return [_curve(number, found, len(models), lengths) for number, found in enumerate(of_each)]


def _curve(number: int, found: Sequence[Estimate | None], models: int, columns: Sequence[str]) -> Curve:
    """Return the curve of a model through its scores; the line has a gap at each length without a score."""
    shift = (number - (models - 1) / 2) * min(_DODGE, 24 / models)
    runs: list[list[tuple[float, float]]] = [[]]
    whiskers, marks = [], []
    for place, one in enumerate(found):
        if one is None or one.mean is None:
            runs.append([])
            continue
        x, y = _x(place, len(found)) + shift, _y(one.mean)
        runs[-1].append((x, y))
        marks.append(Mark(f"{x:.1f}", f"{y:.1f}", points(one.mean), columns[place]))
        if one.low is not None and one.high is not None:
            whiskers.append(_path([(x, _y(one.low)), (x, _y(one.high))]))
    return Curve(look_of(number), [_path(run) for run in runs if len(run) > 1], whiskers, marks)


def _path(through: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in through)


def _x(place: int, lengths: int) -> float:
    """Return the horizontal position; lengths are evenly spaced, because each is usually twice the one before."""
    room = Chart.WIDTH - Chart.LEFT - Chart.RIGHT
    return Chart.LEFT + room * (place + 0.5) / lengths


def _y(score: float) -> float:
    return Chart.TOP + (Chart.HEIGHT - Chart.TOP - Chart.BOTTOM) * (1 - score)


@dataclass(frozen=True, slots=True)
class Strip:
    """A histogram with a column for each bin. The height of a column is its count, divided by the largest count."""

    HEIGHT: ClassVar = 18
    STEP: ClassVar = 6

    width: int
    bars: Sequence[tuple[int, str, str, bool]]
    """(x, y, height, whether it is the last bin) of each bin that is not empty."""


def strip(counts: Sequence[int]) -> Strip:
    """Return the histogram of some counts."""
    top = max(counts, default=0) or 1
    heights = [Strip.HEIGHT * count / top for count in counts]
    bars = [
        (Strip.STEP * place, f"{Strip.HEIGHT - height:.1f}", f"{height:.1f}", place == len(counts) - 1)
        for place, height in enumerate(heights)
        if height
    ]
    return Strip(Strip.STEP * len(counts), bars)
