"""Computes the curves of the score report, in a process of its own: what it imports takes 100 MB, which a server should
not keep. Only `pages.py` calls it, and keeps what it returns.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mmlongbench.scoring.report.breakdowns import EVERY, MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.grids import ALL, MEAN, Estimate, Grid, Row
from mmlongbench.scoring.report.report import Report, report
from mmlongbench.scoring.scores import UNKNOWN
from mmlongbench.web.charts import Chart, length_charts, look_of
from mmlongbench.web.kit import points

_MAX_FIGURES = 600
"""The most figures of a page."""


def curves_of(files: Sequence[Path]) -> str:
    """Return the curves of files of scores as JSON, as `view_report.html` reads it."""
    with tempfile.TemporaryDirectory() as folder:
        for number, file in enumerate(files):
            (Path(folder) / f"{number:05}-{file.name}"[-200:]).symlink_to(file.absolute())
        found = report(Path(folder))
    figures = [*_by_dataset(found), *_by_depth(found), *_by_facet(found)]
    curves = {
        "models": [(model, look_of(number)._asdict()) for number, model in enumerate(found.models)],
        "figures": figures[:_MAX_FIGURES],
        "left_out": max(0, len(figures) - _MAX_FIGURES),
        "notes": found.notes,
        "width": Chart.WIDTH,
        "height": Chart.HEIGHT,
        "left": Chart.LEFT,
        "right": Chart.WIDTH - Chart.RIGHT,
    }
    return json.dumps(curves)


def _by_dataset(found: Report) -> Iterator[dict[str, object]]:
    for row in found.scores.rows:
        label = f"{row.metric} ({row.profile})" if row.profile not in ("", UNKNOWN) else row.metric
        yield from _figures(found, replace(found.scores, rows=(row,)), label, part="datasets", dataset=row.name)


def _by_depth(found: Report) -> Iterator[dict[str, object]]:
    for grid in (grid for grid in found.depths if grid.metric in found.own_metrics):
        depths = tuple(row.name for row in grid.rows if row != MIDDLE_LESS_ENDS)
        cells = {
            (model, Row(column), row.name): estimate
            for (model, row, column), estimate in grid.cells.items()
            if row.name in depths
        }
        for column in grid.columns:
            turned = replace(grid, rows=(Row(column),), columns=depths, cells=cells)
            about = {"part": "depth", "heading": grid.title, "dataset": grid.title}
            value = "" if column == ALL else column
            name = f"at {column}" if value else "all lengths"
            yield from _figures(found, turned, grid.label, **about, name=name, value=value)


def _by_facet(found: Report) -> Iterator[dict[str, object]]:
    for grid in (grid for grid in found.facets if grid.metric in found.own_metrics):
        for row in (row for row in grid.rows if row.of != EVERY):
            about = {"part": "facets", "heading": f"{row.of}: {grid.title}", "dataset": row.of}
            one = replace(grid, rows=(row,))
            yield from _figures(found, one, grid.label, **about, facet=grid.title, value=row.name)


def _figures(found: Report, grid: Grid, label: str, **about: str) -> Iterator[dict[str, object]]:
    """Yield the figures of a grid with one row, whose metric and profile are the label. `about` has `part` (`datasets`,
    `depth` or `facets`), `heading` (of figures that belong together), `dataset`, `name`, `facet`, and `value` (the
    group of the facet, or the length of a figure over depths).
    """
    (row,) = grid.rows
    columns = [name for name in grid.columns if name not in (ALL, MEAN)]
    for chart in length_charts(grid, found.models, columns):
        curves = [
            {
                "model": curve.model,
                "look": curve.look._asdict(),
                "lines": curve.lines,
                "whiskers": curve.whiskers,
                "points": [
                    {"x": m.x, "y": m.y, "column": m.column, "about": _about(grid.cells[curve.model, row, m.column])}
                    for m in curve.marks
                ],
            }
            for curve in chart.curves
            if curve.marks
        ]
        if curves:
            yield {
                "heading": "",
                "name": chart.name,
                "facet": "",
                "value": "",
                **about,
                "label": label,
                "axis": chart.lengths,
                "ticks": chart.ticks,
                "curves": curves,
            }


def _about(found: Estimate) -> str:
    """Return a score with its interval and the number of examples, in words."""
    counts = found.counts
    mean = "" if found.mean is None else points(found.mean)
    interval = "" if found.low is None or found.high is None else f", {points(found.low)} to {points(found.high)}"
    missing = f", {counts.absent:,} absent" if counts.absent else ""
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    return f"{mean}{interval}, {counts.examples:,} example{'' if counts.examples == 1 else 's'}{missing}{failed}"
