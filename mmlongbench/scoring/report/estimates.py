"""A mean score with what it rests on: the interval it may lie in, what is absent, failed, skipped. Shows nothing."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TypeVar

import numpy as np

from mmlongbench.scoring.report.columns import ABSENT, FAILED, SKIPPED, Floats, Ints, Scores
from mmlongbench.scoring.report.resampling import drawn_means, interval

H = TypeVar("H", bound=Hashable)
MIN_CLUSTERS = 5
"""Clusters that an interval needs. Resamples of fewer are too much alike for their percentiles to cover 95 %."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts the examples that a mean rests on."""

    examples: int = 0
    """The number of all examples."""
    absent: int = 0
    """The examples without a prediction; they are in the mean, as 0."""
    failed: int = 0
    """The examples without a score; they are not in the mean."""
    skipped: int = 0
    """The examples that the model cannot be asked. Where there are any there is no mean: it is N/A, as in the paper."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(sum(both) for both in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of a report."""

    mean: float | None
    """The mean; None where nothing has a score, or something was skipped."""
    low: float | None = None
    high: float | None = None
    """The ends of the interval; None where there are fewer than `MIN_CLUSTERS`, or no interval is made."""
    counts: Counts = field(default_factory=Counts)
    clusters: int = 0
    """The clusters that are resampled for the interval; of an average, those of the part with the most. 0 where no
    interval is made."""
    others: float | None = None
    """The mean of what was not skipped, where something was."""

    @property
    def is_inapplicable(self) -> bool:
        """Whether there is no mean since the model cannot be asked all of it: N/A."""
        return self.mean is None and self.counts.skipped > 0

    @property
    def has_few_clusters(self) -> bool:
        """Whether there would be an interval, were there more clusters."""
        return self.mean is not None and self.low is None and self.clusters > 0


@dataclass(frozen=True, slots=True)
class Sample:
    """A mean, with the mean of every resample."""

    mean: float
    """The mean; NaN where nothing has a score, or something was skipped."""
    draws: Floats
    clusters: int
    """See `Estimate`."""
    fewest: int
    """The clusters of the part of an average that has the fewest; they decide whether there is an interval."""
    counts: Counts
    others: float | None = None
    """See `Estimate`."""

    def estimate(self) -> Estimate:
        """Return the mean, with an interval where every part has enough clusters to draw from."""
        if np.isnan(self.mean):
            return Estimate(None, None, None, self.counts, self.clusters, self.others)
        low, high = interval(self.draws) if self.fewest >= MIN_CLUSTERS else (None, None)
        return Estimate(self.mean, low, high, self.counts, self.clusters)


def samples(scores: Scores, targets: Mapping[H, Ints]) -> dict[H, Sample]:
    """Return a sample for each target, which is a set of lines."""
    draws = drawn_means(scores, list(targets.values()))
    return {key: _sample(scores, lines, draws[:, at]) for at, (key, lines) in enumerate(targets.items())}


def _sample(scores: Scores, lines: Ints, draws: Floats) -> Sample:
    plain = plain_mean(scores, lines)
    scored = lines[scores.status[lines] <= ABSENT]
    clusters = len(np.unique(scores.cluster[scored]))
    mean = math.nan if plain.mean is None else plain.mean
    return Sample(mean, draws, clusters, clusters, plain.counts, plain.others)


def plain_mean(scores: Scores, lines: Ints) -> Estimate:
    """Return the mean of some lines, without an interval."""
    status = scores.status[lines]
    found = scores.score[lines[status <= ABSENT]]
    counts = Counts(len(lines), *(int(np.count_nonzero(status == state)) for state in (ABSENT, FAILED, SKIPPED)))
    mean = math.fsum(found) / len(found) if len(found) else None
    return Estimate(None, counts=counts, others=mean) if counts.skipped else Estimate(mean, counts=counts)


def averaged(parts: Sequence[Sample | None]) -> Sample | None:
    """Return the mean of means, each counted once.

    None where one is missing, since the mean of the others is another one. N/A where one is, as in the paper.
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
    """Return the mean of some samples less that of others, on the same draws."""
    one, two = averaged(parts), averaged(others)
    if one is None or two is None:
        return None
    fewest = min(one.fewest, two.fewest)
    return Sample(one.mean - two.mean, one.draws - two.draws, one.clusters, fewest, one.counts + two.counts)
