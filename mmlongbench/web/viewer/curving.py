"""Computes the curves of the score report, in a process of its own: this takes memory that a server should not keep."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from mmlongbench.scoring.report.breakdowns import EVERY, MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.grids import ALL, MEAN, Estimate, Grid, Row
from mmlongbench.scoring.report.report import Report, report
from mmlongbench.scoring.scores import UNKNOWN
from mmlongbench.web.charts import Chart, Curve, length_charts, look_of
from mmlongbench.web.numbers import points
from mmlongbench.web.viewer.curves import CURVES, MAX_FIGURES, Curves, DrawnLook, Figure, Line, Point


def curves_of(files: Sequence[Path]) -> bytes:
    """Return the curves of files of scores, as JSON.

    Raises:
        ReleaseError: the scores cannot be read, or contradict each other.

    """
    with tempfile.TemporaryDirectory() as folder:
        for number, file in enumerate(files):
            (Path(folder) / f"{number:05}-{file.name}"[-200:]).symlink_to(file.absolute())
        found = report(Path(folder))
    figures = [*_by_dataset(found), *_by_depth(found), *_by_facet(found)]
    looks = [(model, _look(number)) for number, model in enumerate(found.models)]
    shown, size = figures[:MAX_FIGURES], (Chart.WIDTH, Chart.HEIGHT)
    right = Chart.WIDTH - Chart.RIGHT
    curves = Curves(looks, shown, len(figures) - len(shown), found.notes, size, Chart.LEFT, right)
    return CURVES.dump_json(curves)


def _look(number: int) -> DrawnLook:
    return DrawnLook(**asdict(look_of(number)))


def _by_dataset(found: Report) -> Iterator[Figure]:
    """Yield a figure for each dataset and metric, over lengths."""
    for row in found.scores.rows:
        label = f"{row.metric} ({row.profile})" if row.profile not in ("", UNKNOWN) else row.metric
        yield from _figures(found, replace(found.scores, rows=(row,)), "datasets", "", label, row.name)


def _by_depth(found: Report) -> Iterator[Figure]:
    """Yield a figure for each dataset, metric and length, over depths."""
    for grid in found.depths:
        if grid.metric not in found.own_metrics:
            continue
        depths = tuple(row.name for row in grid.rows if row != MIDDLE_LESS_ENDS)
        cells = {
            (model, Row(column), row.name): one
            for (model, row, column), one in grid.cells.items()
            if row.name in depths
        }
        for column in grid.columns:
            turned = replace(grid, rows=(Row(column),), columns=depths, cells=cells)
            length = "" if column == ALL else column
            for each in _figures(found, turned, "depth", grid.title, grid.label, grid.title):
                yield replace(each, name=f"at {length}" if length else "all lengths", value=length)


def _by_facet(found: Report) -> Iterator[Figure]:
    """Yield a figure for each group of each facet and dataset, over lengths."""
    for grid in found.facets:
        for row in grid.rows if grid.metric in found.own_metrics else ():
            if row.of != EVERY:
                one = replace(grid, rows=(row,))
                for each in _figures(found, one, "facets", f"{row.of}: {grid.title}", grid.label, row.of):
                    yield replace(each, facet=grid.title, value=row.name)


def _figures(found: Report, grid: Grid, part: str, heading: str, label: str, dataset: str) -> Iterator[Figure]:
    row = grid.rows[0]
    columns = [name for name in grid.columns if name not in (ALL, MEAN)]
    for chart in length_charts(grid, found.models, columns):
        lines = [
            _line(grid, row, model, curve)
            for model, curve in zip(found.models, chart.curves, strict=True)
            if curve.marks
        ]
        if lines:
            yield Figure(part, heading, chart.name, label, dataset, "", "", chart.lengths, chart.ticks, lines)


def _line(grid: Grid, row: Row, model: str, curve: Curve) -> Line:
    marks = [Point(mark.x, mark.y, mark.column, _about(grid.cells[model, row, mark.column])) for mark in curve.marks]
    return Line(model, DrawnLook(**asdict(curve.look)), curve.lines, curve.whiskers, marks)


def _about(found: Estimate) -> str:
    """Return a score in words."""
    mean = "" if found.mean is None else points(found.mean)
    interval = "" if found.low is None or found.high is None else f", {points(found.low)} to {points(found.high)}"
    counts = found.counts
    missing = f", {counts.absent:,} absent" if counts.absent else ""
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    return f"{mean}{interval}, {counts.examples:,} example{'' if counts.examples == 1 else 's'}{missing}{failed}"
