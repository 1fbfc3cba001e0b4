"""What metrics say beside the score: means of their details that are numbers, and figures that are no mean."""

import math
from collections.abc import Mapping

import numpy as np

from mmlongbench.scoring.report.columns import ABSENT, Column, Scores, by_value
from mmlongbench.scoring.report.estimates import Counts, Estimate, plain_mean
from mmlongbench.scoring.report.grids import MEAN, Grid, Row, length_name
from mmlongbench.scoring.report.totals import Totals


def detail_grid(scores: Scores) -> Grid:
    """The mean of every detail that is a number or a flag (as 0 and 1), over the lines that have it."""
    lines = scores.details[:, 0]
    columns = (scores.dataset, scores.metric, scores.profile, scores.model, scores.length)
    keyed = by_value(
        np.arange(len(lines)), Column(scores.numbers, scores.details[:, 1]), *(c.at(lines) for c in columns)
    )
    cells = {
        (model, Row(name, dataset, metric, profile), length): Estimate(
            math.fsum(scores.values[at]) / len(at), counts=Counts(len(at))
        )
        for (name, dataset, metric, profile, model, length), at in keyed.items()
    }
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
                shown = (
                    Estimate(None, counts=counts, others=value) if counts.skipped else Estimate(value, counts=counts)
                )
                cells[model, Row(name, dataset, metric, profile), length] = shown
    return _grid("Totals", scores, cells)


def _grid(title: str, scores: Scores, cells: Mapping[tuple[str, Row, int], Estimate]) -> Grid:
    """By length, with the mean over the lengths that a row has; none where a length is missing."""
    rows = sorted({row for _, row, _ in cells}, key=lambda row: (row.of, row.metric, row.name))
    lengths = sorted({length for _, _, length in cells})
    shown = {(model, row, length_name(length)): found for (model, row, length), found in cells.items()}
    for row in rows:
        wanted = [length for length in lengths if any((model, row, length) in cells for model in scores.models)]
        for model in scores.models:
            parts = [cells.get((model, row, length)) for length in wanted]
            means = [part.mean for part in parts if part is not None and part.mean is not None]
            if len(means) == len(wanted) > 1:
                counts = sum((part.counts for part in parts if part), Counts())
                shown[model, row, MEAN] = Estimate(sum(means) / len(means), counts=counts)
    names = [length_name(length) for length in lengths]
    return Grid(title, tuple(rows), (*names, MEAN) if len(names) > 1 else tuple(names), shown)
