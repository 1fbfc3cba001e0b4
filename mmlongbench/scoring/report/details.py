"""What metrics say beside the score: means of their details that are numbers, and figures that are no mean."""

import math
from collections.abc import Mapping

import numpy as np

from mmlongbench.scoring.report.columns import ABSENT, SKIPPED, Column, Scores, by_value
from mmlongbench.scoring.report.estimates import Counts, Estimate, plain_mean
from mmlongbench.scoring.report.grids import MEAN, Grid, Row, length_name
from mmlongbench.scoring.report.totals import Totals


def detail_grid(scores: Scores) -> Grid:
    """The mean of every detail that is a number or a flag (as 0 and 1), over the lines that have it.

    Where examples of a cell were skipped its details are N/A, as its score is.
    """
    lines = scores.details[:, 0]
    columns = (scores.dataset, scores.metric, scores.profile, scores.model, scores.length)
    keyed = by_value(
        np.arange(len(lines)), Column(scores.numbers, scores.details[:, 1]), *(c.at(lines) for c in columns)
    )
    skipped = _skipped(scores)
    cells: dict[tuple[str, Row, int], Estimate] = {}
    for (name, dataset, metric, profile, model, length), at in keyed.items():
        mean = math.fsum(scores.values[at]) / len(at)
        counts = Counts(len(at), skipped=skipped.get((dataset, metric, profile, model, length), 0))
        cells[model, Row(name, dataset, metric, profile), length] = _estimate(mean, counts)
    return _grid("Details", scores, cells)


def total_grid(scores: Scores, totals: Mapping[str, Totals]) -> Grid:
    """The figures of each file that are no mean of its examples, by the metrics that have them."""
    cells: dict[tuple[str, Row, int], Estimate] = {}
    everything = np.arange(len(scores.score))
    for (dataset, metric, profile, model, length), at in by_value(
        everything, scores.dataset, scores.metric, scores.profile, scores.model, scores.length
    ).items():
        has_score = scores.status[at] <= ABSENT
        if metric in totals and has_score.any():
            counts = plain_mean(scores, at).counts
            found = totals[metric]([scores.kept[line] for line in at[has_score].tolist()])
            for name, value in found.items():
                cells[model, Row(name, dataset, metric, profile), length] = _estimate(value, counts)
    return _grid("Totals", scores, cells)


def _skipped(scores: Scores) -> dict[tuple[str, ...], int]:
    """By dataset, metric, profile, model and length: how many examples were skipped."""
    lines = np.flatnonzero(scores.status == SKIPPED)
    columns = (scores.dataset, scores.metric, scores.profile, scores.model, scores.length)
    return {key: len(at) for key, at in by_value(lines, *(column.at(lines) for column in columns)).items()}


def _estimate(value: float, counts: Counts) -> Estimate:
    """Return a figure of a cell; N/A, with the figure of the other examples, where some were skipped."""
    return Estimate(None, counts=counts, others=value) if counts.skipped else Estimate(value, counts=counts)


def _grid(title: str, scores: Scores, cells: Mapping[tuple[str, Row, int], Estimate]) -> Grid:
    """By length, with the mean over the lengths that a row has; none where a length is missing, N/A where one is."""
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
