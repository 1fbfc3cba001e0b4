"""Curves over lengths as SVG: a small chart a row, a line a model, whiskers for the intervals; no script, no font."""

from collections.abc import Sequence
from html import escape

from mmlongbench.scoring.report.estimates import Estimate
from mmlongbench.scoring.report.grids import Grid, Row
from mmlongbench.scoring.report.html_tables import points
from mmlongbench.scoring.report.style import SERIES

_WIDTH, _HEIGHT = 250, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 26, 8, 8, 18
_DODGE = 3.0
"""Between the whiskers of two models at one length."""
_MARKS = ("circle", "square", "triangle", "diamond")


def curves(grid: Grid, models: Sequence[str], lengths: Sequence[str]) -> str:
    """A chart for each row of a grid, all on the scale from 0 to 100, and what the lines are."""
    charts = "".join(
        f"<figure><figcaption>{escape(row.name)}</figcaption>{_chart(grid, row, models, lengths)}</figure>"
        for row in grid.rows
    )
    return f'{legend(models)}<div class="many">{charts}</div>'


def legend(models: Sequence[str]) -> str:
    """Which line is whose."""
    keys = "".join(
        f'<span><svg width="26" height="10" aria-hidden="true">{_line([(1, 5), (25, 5)], at)}{_mark(13, 5, at)}</svg>'
        f"{escape(model)}</span>"
        for at, model in enumerate(models)
    )
    return f'<div class="key">{keys}</div>'


def _chart(grid: Grid, row: Row, models: Sequence[str], lengths: Sequence[str]) -> str:
    marks = "".join(
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(at):.1f}" y2="{_y(at):.1f}"/>'
        f'<text x="{_LEFT - 4}" y="{_y(at) + 3:.1f}" text-anchor="end">{100 * at:.0f}</text>'
        for at in (0, 0.25, 0.5, 0.75, 1)
    )
    names = "".join(
        f'<text x="{_x(at, len(lengths)):.1f}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(name)}</text>'
        for at, name in enumerate(lengths)
    )
    lines = "".join(
        _model(at, [grid.cells.get((model, row, length)) for length in lengths], len(models))
        for at, model in enumerate(models)
    )
    label = escape(f"{row.name} by length", quote=True)
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">{marks}{names}{lines}</svg>'


def _model(at: int, found: Sequence[Estimate | None], models: int) -> str:
    """A line through the lengths that have a score, broken where one has none."""
    shift = (at - (models - 1) / 2) * min(_DODGE, 24 / models)
    runs: list[list[tuple[float, float]]] = [[]]
    drawn = ""
    for place, one in enumerate(found):
        if one is None or one.mean is None:
            runs.append([])
            continue
        x, y = _x(place, len(found)) + shift, _y(one.mean)
        runs[-1].append((x, y))
        if one.low is not None and one.high is not None:
            drawn += _line([(x, _y(one.low)), (x, _y(one.high))], at, is_whisker=True)
        drawn += f"<g>{_mark(x, y, at)}<title>{points(one.mean)}</title></g>"
    return "".join(_line(run, at) for run in runs if len(run) > 1) + drawn


def _line(through: Sequence[tuple[float, float]], at: int, *, is_whisker: bool = False) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in through)
    dash = "" if is_whisker or at < SERIES else ' stroke-dasharray="4 2"'
    look = 'stroke-width="1" opacity=".65"' if is_whisker else 'stroke-width="1.8"'
    return f'<polyline points="{path}" fill="none" stroke="var(--m{at % SERIES})" {look}{dash}/>'


def _mark(x: float, y: float, at: int) -> str:
    """A mark whose shape tells models apart where colours do not."""
    fill = f'fill="var(--m{at % SERIES})"'
    match _MARKS[at % len(_MARKS)]:
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" {fill}/>'
        case "square":
            return f'<rect x="{x - 2.7:.1f}" y="{y - 2.7:.1f}" width="5.4" height="5.4" {fill}/>'
        case "triangle":
            return f'<path d="M{x:.1f} {y - 3.6:.1f}l3.4 6h-6.8z" {fill}/>'
        case _:
            return f'<path d="M{x:.1f} {y - 3.8:.1f}l3.6 3.8l-3.6 3.8l-3.6-3.8z" {fill}/>'


def _x(place: int, lengths: int) -> float:
    """Lengths stand evenly: each is twice the last."""
    room = _WIDTH - _LEFT - _RIGHT
    return _LEFT + room * (place + 0.5) / lengths


def _y(score: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - score)
