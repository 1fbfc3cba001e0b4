"""Computes mean scores, with their intervals and the numbers of absent, failed and skipped examples."""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mmlongbench.scoring.report.columns import ABSENT, FAILED, SKIPPED, grouped
from mmlongbench.statistics import MIN_CLUSTERS, Floats, Ints, interval, resampled_means


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of examples behind a mean."""

    examples: int = 0
    """The number of all examples."""
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
    counts: Counts = field(default_factory=Counts)
    clusters: int = 0
    """The number of clusters that are resampled; for an average, the largest number among its parts. 0 if nothing is
    resampled."""
    others: float | None = None
    """The mean of the examples that were not skipped, if some were skipped; otherwise None. It is always None for an
    average."""

    @property
    def is_inapplicable(self) -> bool:
        """Whether there is no mean because the model cannot be given all examples; reports then show N/A."""
        return self.mean is None and self.counts.skipped > 0

    @property
    def has_few_clusters(self) -> bool:
        """Whether the interval is missing only because there are too few clusters."""
        return self.mean is not None and self.low is None and self.clusters > 0


@dataclass(frozen=True, slots=True)
class Sample:
    """A mean, with its values in all resamples."""

    mean: float
    """The mean; NaN if no example has a score, or if any example was skipped."""
    draws: Floats
    clusters: int
    """See `Estimate`."""
    fewest: int
    """The number of clusters; for an average, the smallest number among its parts. An interval needs at least
    `MIN_CLUSTERS`."""
    counts: Counts
    others: float | None = None
    """See `Estimate`."""

    def estimate(self) -> Estimate:
        """Return the mean, with an interval if `fewest` clusters are enough."""
        if np.isnan(self.mean):
            return Estimate(None, None, None, self.counts, self.clusters, self.others)
        low, high = interval(self.draws) if self.fewest >= MIN_CLUSTERS else (None, None)
        return Estimate(self.mean, low, high, self.counts, self.clusters)


def samples(lines: pd.DataFrame, by: Sequence[str], clusters: Sequence[tuple[str, str]]) -> dict[Any, Sample]:
    """Group lines by the columns `by`; return a sample of each group, by the group's values in these columns."""
    found, draws = estimates(lines, by), resampled_means(lines, by, clusters)
    scored = lines.assign(cluster=lines["cluster"].where(lines["score"].notna()))
    numbers = scored.groupby(list(by), observed=True)["cluster"].nunique().tolist()
    every = zip(found.items(), draws.T, numbers, strict=True)
    return {
        key: Sample(math.nan if plain.mean is None else plain.mean, of_each, n, n, plain.counts, plain.others)
        for (key, plain), of_each, n in every
    }


def estimates(lines: pd.DataFrame, by: Sequence[str]) -> dict[Any, Estimate]:
    """Group lines by the columns `by`; return the mean of each group, without an interval, by the group's values."""
    status, score = lines["status"].to_numpy(), lines["score"].to_numpy()
    return {key: plain_mean(status[at], score[at]) for key, at in grouped(lines, by).items()}


def plain_mean(status: Ints, score: Floats) -> Estimate:
    """Return the mean of some lines, without an interval."""
    found = score[status <= ABSENT]
    counts = Counts(len(status), *(int(np.count_nonzero(status == state)) for state in (ABSENT, FAILED, SKIPPED)))
    mean = math.fsum(found) / len(found) if len(found) else None
    return Estimate(None, counts=counts, others=mean) if counts.skipped else Estimate(mean, counts=counts)


def averaged(parts: Sequence[Sample | None]) -> Sample | None:
    """Return the mean of the means of samples, with equal weights.

    It is None if a sample is missing or has no score, because the mean of the others would not be comparable. If a
    sample is N/A because examples were skipped, the mean is N/A, too, as in the paper.
    """
    if not parts or any(part is None or (np.isnan(part.mean) and not part.counts.skipped) for part in parts):
        return None
    there = [part for part in parts if part is not None]
    return Sample(
        sum(part.mean for part in there) / len(there),
        sum((part.draws for part in there[1:]), there[0].draws) / len(there),
        max(part.clusters for part in there),
        min(part.fewest for part in there),
        sum((part.counts for part in there), Counts()),
    )


def difference(parts: Sequence[Sample | None], others: Sequence[Sample | None]) -> Sample | None:
    """Return the mean of some samples minus the mean of others, on the same resamples; None if a mean is missing."""
    one, two = averaged(parts), averaged(others)
    if one is None or two is None:
        return None
    fewest = min(one.fewest, two.fewest)
    return Sample(one.mean - two.mean, one.draws - two.draws, one.clusters, fewest, one.counts + two.counts)
