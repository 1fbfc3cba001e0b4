"""Computes the values of metrics beside the score: means of numeric details, and figures that are not means."""

import math
from collections.abc import Mapping

from mmlongbench.scoring.report.columns import SKIPPED, Scores, grouped
from mmlongbench.scoring.report.estimates import Counts, Estimate, estimates
from mmlongbench.scoring.report.grids import MEAN, Grid, Row, length_name
from mmlongbench.scoring.report.totals import Totals
from mmlongbench.scoring.samples import mean_figures

_CELL = ["dataset", "metric", "profile", "model", "length"]


def detail_grid(scores: Scores) -> Grid:
    """Return a grid with the mean of every detail that is a number or a flag (0 or 1), over the lines that have it.

    If a model was not given some examples of a dataset at a length, the details of this file are N/A, like the score.
    """
    found = scores.details.join(scores.lines[_CELL], on="line", how="inner")
    values = found["value"].to_numpy()
    skipped = scores.lines[scores.lines["status"] == SKIPPED].groupby(_CELL, observed=True).size().to_dict()
    cells: dict[tuple[str, Row, int], Estimate] = {}
    for (name, *of, model, length), at in grouped(found, ["name", *_CELL]).items():
        counts = Counts(len(at), skipped=skipped.get((*of, model, length), 0))
        cells[model, Row(name, *of), length] = _estimate(math.fsum(values[at]) / len(at), counts)
    return _grid("Details", scores, cells)


def total_grid(scores: Scores, totals: Mapping[str, Totals]) -> Grid:
    """Return a grid with the totals of files: figures that are not means of examples, for metrics that have totals.

    If examples have several samples, a figure is the mean over the samples (see `mean_figures`).
    """
    lines = scores.lines[scores.lines["metric"].isin(totals)]
    plain = estimates(lines, _CELL)
    cells: dict[tuple[str, Row, int], Estimate] = {}
    scored = lines[lines["score"].notna()]
    for (*of, model, length), at in grouped(scored, _CELL).items():
        found = mean_figures(totals[of[1]], [scores.kept[line] for line in scored.index[at]])
        for name, value in found.items():
            counts = plain[*of, model, length].counts
            cells[model, Row(name, *of), length] = _estimate(value, counts)
    return _grid("Totals", scores, cells)


def _estimate(value: float, counts: Counts) -> Estimate:
    """Return a figure; if examples were skipped, it is N/A, and the figure of the other examples is in `others`."""
    return Estimate(None, counts=counts, others=value) if counts.skipped else Estimate(value, counts=counts)


def _grid(title: str, scores: Scores, cells: Mapping[tuple[str, Row, int], Estimate]) -> Grid:
    """Return a grid with a column for each length; if there are several, the last column is the mean over them.

    If a model's figure at one of the lengths is missing, there is no mean. If one of the figures is N/A, the mean is
    N/A, too.
    """
    rows = sorted({row for _, row, _ in cells}, key=lambda row: (row.of, row.metric, row.profile, row.name))
    lengths = sorted({length for _, _, length in cells})
    shown = {(model, row, length_name(length)): found for (model, row, length), found in cells.items()}
    for row in rows:
        wanted = [length for length in lengths if any((model, row, length) in cells for model in scores.models)]
        for model in scores.models:
            parts = [cells.get((model, row, length)) for length in wanted]
            means = [part.mean for part in parts if part is not None and part.mean is not None]
            there = [part for part in parts if part is not None]
            if len(there) == len(wanted) > 1:
                mean = sum(means) / len(means) if len(means) == len(wanted) else None
                shown[model, row, MEAN] = Estimate(mean, counts=sum((part.counts for part in there), Counts()))
    names = [length_name(length) for length in lengths]
    return Grid(title, tuple(rows), (*names, MEAN) if len(names) > 1 else tuple(names), shown)
