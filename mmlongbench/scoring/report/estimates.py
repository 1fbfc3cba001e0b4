"""A mean score with what it rests on: the interval it may lie in, and what is absent or failed. Shows nothing."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mmlongbench.scoring.report.columns import ABSENT, FAILED, Floats, Ints, Scores
from mmlongbench.scoring.report.resampling import drawn_means, interval

H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of a report."""

    mean: float | None
    """None where nothing has a score."""
    low: float | None = None
    high: float | None = None
    """The ends of the interval; None where one question alone was asked, or no interval is made."""
    examples: int = 0
    """All there are."""
    absent: int = 0
    """Without a prediction: they are in the mean, as 0."""
    failed: int = 0
    """Without a score: they are not in the mean."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A mean, and the same of every resample."""

    mean: float
    """NaN where nothing has a score."""
    draws: Floats
    questions: int
    """Of the set with the most."""
    examples: int
    absent: int
    failed: int

    def estimate(self) -> Estimate:
        """With an interval, where there is more than one question to draw from."""
        counts = (self.examples, self.absent, self.failed)
        if np.isnan(self.mean):
            return Estimate(None, None, None, *counts)
        low, high = interval(self.draws) if self.questions > 1 else (None, None)
        return Estimate(self.mean, low, high, *counts)


def samples(scores: Scores, targets: Mapping[H, Ints]) -> dict[H, Sample]:
    """A sample for each target (lines)."""
    draws = drawn_means(scores, list(targets.values()))
    return {key: _sample(scores, lines, draws[:, at]) for at, (key, lines) in enumerate(targets.items())}


def _sample(scores: Scores, lines: Ints, draws: Floats) -> Sample:
    plain = plain_mean(scores, lines)
    scored = lines[scores.status[lines] != FAILED]
    questions = len(np.unique(scores.question[scored]))
    return Sample(
        math.nan if plain.mean is None else plain.mean, draws, questions, plain.examples, plain.absent, plain.failed
    )


def plain_mean(scores: Scores, lines: Ints) -> Estimate:
    """The mean of some lines, without an interval."""
    status = scores.status[lines]
    found = scores.score[lines[status != FAILED]]
    absent, failed = (int(np.count_nonzero(status == state)) for state in (ABSENT, FAILED))
    return Estimate(math.fsum(found) / len(found) if len(found) else None, None, None, len(lines), absent, failed)


def averaged(parts: Sequence[Sample | None]) -> Sample | None:
    """The mean of means, each counted once; None where one is missing, since the mean of the others is another one."""
    there = [part for part in parts if part is not None and not np.isnan(part.mean)]
    if not there or len(there) < len(parts):
        return None
    return Sample(
        sum(part.mean for part in there) / len(there),
        sum((part.draws for part in there[1:]), there[0].draws) / len(there),
        max(part.questions for part in there),
        sum(part.examples for part in there),
        sum(part.absent for part in there),
        sum(part.failed for part in there),
    )


def difference(parts: Sequence[Sample | None], others: Sequence[Sample | None]) -> Sample | None:
    """The mean of some samples less that of others, on the same draws."""
    one, two = averaged(parts), averaged(others)
    if one is None or two is None:
        return None
    counts = (one.examples + two.examples, one.absent + two.absent, one.failed + two.failed)
    return Sample(one.mean - two.mean, one.draws - two.draws, one.questions, *counts)
