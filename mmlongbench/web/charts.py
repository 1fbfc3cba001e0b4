"""Charts as numbers: the positions of the lines, marks and bars that `charts.html` draws as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from mmlongbench.scoring.report.grids import Estimate, Grid
from mmlongbench.web.kit import html, points, whole_points

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


class Look(NamedTuple):
    """The look of a model's line."""

    colour: int
    shape: str
    is_dashed: bool


class Mark(NamedTuple):
    """A score in a chart."""

    x: str
    y: str
    title: str
    column: str
    """The length, or whatever else the horizontal axis has."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The scores of a model over the lengths; lines are lists of points in the form of SVG."""

    model: str
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
    """Return a chart for each row of a grid. Lengths are evenly spaced, because each is usually twice the one before;
    the line of a model has a gap at each length without a score.
    """
    room = Chart.WIDTH - Chart.LEFT - Chart.RIGHT
    places = [Chart.LEFT + room * (place + 0.5) / len(lengths) for place in range(len(lengths))]
    names = [(f"{x:.1f}", name) for x, name in zip(places, lengths, strict=True)]
    ticks = [(f"{_y(at):.1f}", f"{_y(at) + 3:.1f}", f"{100 * at:.0f}") for at in (0, 0.25, 0.5, 0.75, 1)]
    charts = []
    for row in grid.rows:
        curves = []
        for number, model in enumerate(models):
            shift = (number - (len(models) - 1) / 2) * min(_DODGE, 24 / len(models))
            runs: list[list[tuple[float, float]]] = [[]]
            whiskers, marks = [], []
            for place, column in zip(places, lengths, strict=True):
                found: Estimate | None = grid.cells.get((model, row, column))
                if found is None or found.mean is None:
                    runs.append([])
                    continue
                x, y = place + shift, _y(found.mean)
                runs[-1].append((x, y))
                marks.append(Mark(f"{x:.1f}", f"{y:.1f}", points(found.mean), column))
                if found.low is not None and found.high is not None:
                    whiskers.append(_path([(x, _y(found.low)), (x, _y(found.high))]))
            lines = [_path(run) for run in runs if len(run) > 1]
            curves.append(Curve(model, look_of(number), lines, whiskers, marks))
        charts.append(Chart(row.name, names, ticks, curves))
    return charts


def _path(through: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in through)


def _y(score: float) -> float:
    return Chart.TOP + (Chart.HEIGHT - Chart.TOP - Chart.BOTTOM) * (1 - score)


# Small charts in the cells of tables.


def histogram(counts: Sequence[int]) -> str:
    """Return a histogram with a column for each bin, 6 pixels wide; the largest count is 18 pixels high."""
    top = max(counts, default=0) or 1
    heights = [18 * count / top for count in counts]
    bars = [(6 * at, f"{18 - h:.1f}", f"{h:.1f}", at == len(counts) - 1) for at, h in enumerate(heights) if h]
    return html("histogram", 6 * len(counts), 18, bars)


IntervalLook: TypeAlias = Literal["sure", "open", "dashed"]
"""A filled mark with a thick line, an open mark, or an open mark with a dashed line; they differ without colours."""


def interval_bar(low: float, high: float, at: float, look: IntervalLook) -> str:
    """Return an interval of a difference of shares, with a mark at the estimate, on a scale from −0.5 to 1 that is the
    same for all; ends beyond it are cut.
    """
    title = f"{whole_points(at)} points, from {whole_points(low)} to {whole_points(high)}"
    ends = (f"{52 + 100 * min(1.0, max(-0.5, share)):.1f}" for share in (low, high, at))
    return html("interval_bar", *ends, look, title)
