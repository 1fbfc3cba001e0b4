"""The numbers of a report: estimates of mean scores, and grids of them with named rows and columns.

A grid has a layer for each model.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mmlongbench.lengths import K, format_length
from mmlongbench.scoring.report.reading import ABSENT, FAILED, SKIPPED, grouped
from mmlongbench.scoring.scores import UNKNOWN, profile_order
from mmlongbench.statistics import MIN_CLUSTERS, Floats, interval, resampled_means

MEAN = "mean"
"""The name of the column with the mean over lengths; each length has the same weight."""
ALL = "all"
"""The name of the column with the mean over the examples of all lengths together."""
DIGITS = 12
"""The decimal places to which a mean is rounded before models are ranked, so that rounding errors change no rank."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of examples behind a mean."""

    examples: int = 0
    absent: int = 0
    """The examples without a prediction; they count as 0 in the mean."""
    failed: int = 0
    """The examples without a score; they are left out of the mean."""
    skipped: int = 0
    """The examples that the model cannot be given. If there are any, there is no mean: it is N/A, as in the paper."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(sum(both) for both in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of a report."""

    mean: float | None
    """The mean; None if no example has a score, or if any example was skipped."""
    low: float | None = None
    high: float | None = None
    """The upper end of the interval (`low` is the lower end). Both are None if there is no mean, if there are fewer
    than `MIN_CLUSTERS` clusters, or if nothing is resampled."""
    counts: Counts = Counts()
    clusters: int = 0
    """The number of clusters that are resampled; for an average, the largest number among its parts. 0 if nothing is
    resampled."""
    others: float | None = None
    """The mean of the examples that were not skipped, if some were skipped; otherwise None. It is always None for an
    average."""
    fewest: int = 0
    """As `clusters`, but for an average the smallest number among its parts. An interval needs `MIN_CLUSTERS`."""
    draws: Floats | None = field(default=None, repr=False, compare=False)
    """The mean in each resample. Grids do without it, because it takes memory."""

    @property
    def is_inapplicable(self) -> bool:
        """Whether there is no mean because the model cannot be given all examples; reports then show N/A."""
        return self.mean is None and self.counts.skipped > 0

    @property
    def has_few_clusters(self) -> bool:
        """Whether the interval is missing only because there are too few clusters."""
        return self.mean is not None and self.low is None and self.clusters > 0

    def without_draws(self) -> "Estimate":
        """Return the same number without its resamples."""
        return replace(self, draws=None)

    def summary(self) -> dict[str, Any]:
        """Return the number as JSON values."""
        return {
            "mean": self.mean,
            "interval": None if self.low is None else [self.low, self.high],
            "clusters": self.clusters,
            **asdict(self.counts),
            **({"mean_of_others": self.others} if self.counts.skipped else {}),
        }


def estimates(lines: pd.DataFrame, by: Sequence[str], clusters: Sequence[tuple[str, str]] = ()) -> dict[Any, Estimate]:
    """Group lines by the columns `by`; return the mean of each group, by the group's values in these columns.

    With `clusters` (see `Scores`), means have resamples and an interval.
    """
    groups = grouped(lines, by)
    status, score = lines["status"].to_numpy(), lines["score"].to_numpy()
    cluster = lines["cluster"].to_numpy()
    draws = resampled_means(lines, by, clusters).T if clusters and len(lines) else [None] * len(groups)
    found = {}
    for (key, at), of_group in zip(groups.items(), draws, strict=True):
        has_score = status[at] <= ABSENT
        scores = score[at][has_score]
        counts = Counts(len(at), *(int((status[at] == state).sum()) for state in (ABSENT, FAILED, SKIPPED)))
        mean = math.fsum(scores) / len(scores) if len(scores) else None
        if of_group is None:
            found[key] = Estimate(None, counts=counts, others=mean) if counts.skipped else Estimate(mean, counts=counts)
        else:
            number = len(np.unique(cluster[at][has_score]))
            found[key] = _resampled(None if counts.skipped else mean, of_group, counts, number, number, mean)
    return found


def _resampled(
    mean: float | None, draws: Floats, counts: Counts, clusters: int, fewest: int, others: float | None = None
) -> Estimate:
    low, high = interval(draws) if mean is not None and fewest >= MIN_CLUSTERS else (None, None)
    return Estimate(mean, low, high, counts, clusters, others if counts.skipped else None, fewest, draws)


def averaged(parts: Sequence[Estimate | None]) -> Estimate | None:
    """Return the mean of estimates with resamples, with equal weights.

    It is None if an estimate is missing or has no score, because the mean of the others would not be comparable. If one
    is N/A because examples were skipped, the mean is N/A, too, as in the paper.
    """
    there = [part for part in parts if part is not None and (part.mean is not None or part.is_inapplicable)]
    if not there or len(there) < len(parts):
        return None
    means = [part.mean for part in there if part.mean is not None]
    draws = [part.draws for part in there if part.draws is not None]
    return _resampled(
        sum(means) / len(means) if len(means) == len(there) else None,
        sum(draws[1:], draws[0]) / len(draws),
        sum((part.counts for part in there), Counts()),
        max(part.clusters for part in there),
        min(part.fewest for part in there),
    )


def difference(parts: Sequence[Estimate | None], others: Sequence[Estimate | None]) -> Estimate | None:
    """Return the mean of some estimates minus the mean of others, on the same resamples; None if a mean is missing."""
    one, two = averaged(parts), averaged(others)
    if one is None or two is None or one.draws is None or two.draws is None:
        return None
    mean = None if one.mean is None or two.mean is None else one.mean - two.mean
    fewest = min(one.fewest, two.fewest)
    return _resampled(mean, one.draws - two.draws, one.counts + two.counts, one.clusters, fewest)


@dataclass(frozen=True, slots=True)
class Row:
    """The head of a row: its name, and what it belongs to."""

    name: str
    of: str = ""
    """What the row belongs to, such as a dataset; for an average, the datasets that it is made of."""
    metric: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """The numbers of several models, by row and column."""

    title: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, Row, str], Estimate]
    """The numbers by model, row and column; a number that is missing here was not computed."""
    metric: str = ""
    profile: str = ""
    """The metric and the profile, if all rows share one."""
    ranks: Mapping[tuple[str, Row, str], float] = field(default_factory=dict)
    """The ranks by model, row and column, if models are ranked; 1 is the best, and equal models share the mean of their
    ranks."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader of the numbers must know."""

    @property
    def label(self) -> str:
        """The metric and its profile, if all rows share one."""
        return f"{self.metric} ({self.profile})" if self.metric and self.profile not in ("", UNKNOWN) else self.metric

    def over_held_lengths(self, model: str, row: Row) -> float | None:
        """Return a model's mean over all examples of the lengths at which no example was skipped.

        None if there is no such length with a mean. Reports show this mean if the mean over all lengths is N/A.
        """
        lengths = (self.cells.get((model, row, column)) for column in self.columns if column not in (ALL, MEAN))
        held = [(found.mean, found.counts) for found in lengths if found is not None and found.mean is not None]
        scored = sum(counts.examples - counts.failed for _, counts in held)
        return math.fsum(mean * (counts.examples - counts.failed) for mean, counts in held) / scored if scored else None

    def by_profile(self) -> Iterator["Grid"]:
        """Yield a grid for each profile, so that no table mixes profiles; notes are left out."""
        there = {self.profile} if self.profile else {row.profile for row in self.rows}
        for profile in sorted(there, key=profile_order) if self.rows else ():
            rows = tuple(row for row in self.rows if self.profile or row.profile == profile)
            yield replace(self, rows=rows, profile=profile, notes=())

    def summary(self) -> dict[str, Any]:
        """Return the title, the notes and a list of the cells, as JSON values."""
        cells = [
            {
                "model": model,
                "metric": row.metric or self.metric,
                "profile": row.profile or self.profile,
                "row": row.name,
                **({"of": row.of} if row.of else {}),
                "column": column,
                **found.summary(),
                **({"rank": self.ranks[model, row, column]} if (model, row, column) in self.ranks else {}),
            }
            for (model, row, column), found in self.cells.items()
        ]
        return {"title": self.title, "notes": list(self.notes), "cells": cells}


def ranks_of(cells: Mapping[tuple[str, Row, str], Estimate]) -> dict[tuple[str, Row, str], float]:
    """Return the ranks by model, row and column, for each row and column with numbers of several models."""
    means: dict[tuple[Row, str], dict[str, float]] = {}
    for (model, row, column), found in cells.items():
        if found.mean is not None:
            means.setdefault((row, column), {})[model] = round(found.mean, DIGITS)
    ranks = {}
    for (row, column), by_model in means.items():
        scores = list(by_model.values())
        for model, score in by_model.items() if len(scores) > 1 else ():
            ranks[model, row, column] = sum(other > score for other in scores) + (scores.count(score) + 1) / 2
    return ranks


def length_name(tokens: int) -> str:
    """Return a length for the head of a column.

    >>> length_name(8192), length_name(1000)
    ('8K', '1,000')
    """
    return format_length(tokens) if tokens >= K and tokens % K == 0 else f"{tokens:,}"
