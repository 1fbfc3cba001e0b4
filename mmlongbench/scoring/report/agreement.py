"""Whether metrics agree on which model is better, and how far a model moves when the metric is exchanged.

This is the one place where metrics under different profiles are compared; each is named with its profile.

Kendall's τ-b of two rankings of the models. The shift of a model (a figure of this project) is how far it moves between
metrics, or between values of a metric's parameter: the mean, over the pairs of them, of |score − score′| and of
|rank − rank′|, each pair over the examples that both scored for every model. What the authors of SMuDGE call volatility
is another figure (see `volatility`): it moves between subsets of the questions, under one metric.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mmlongbench.scoring.report.columns import Floats, Ints, Scores
from mmlongbench.scoring.report.grids import DIGITS
from mmlongbench.scoring.report.variants import Scored, vectors

FEWEST = 3
"""Models that a ranking needs to say anything: two are in one order or in the other."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two metrics over the same examples and models."""

    metrics: tuple[str, str]
    examples: int
    scores: Mapping[str, tuple[float, float]]
    """By model, under either metric: the mean over the files of the mean over their examples."""
    tau: float | None
    reason: str = ""
    """Why there is no τ."""

    def ranks(self) -> dict[str, tuple[float, float]]:
        """By model: its place under either metric, 1 is the best; equals share the mean of their places."""
        one, two = (ranks_of([both[side] for both in self.scores.values()]) for side in (0, 1))
        return dict(zip(self.scores, zip(one, two, strict=True), strict=True))


@dataclass(frozen=True, slots=True)
class Shift:
    """How far one model moves between metrics."""

    score: float
    rank: float
    pairs: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of all metrics that share examples."""

    pairs: tuple[Pair, ...] = ()
    shifts: Mapping[str, Shift] | None = None
    reason: str = ""
    """Why there is nothing."""


def agreement(scores: Scores) -> Agreement:
    """Compare every two metrics, or values of a metric's parameter, that scored examples in common."""
    found = vectors(scores)
    metrics = sorted(found.by_metric)
    if len(metrics) < 2:
        return Agreement(reason=f"n/a: one metric ({', '.join(metrics)}); there is nothing to compare it with")
    if len(scores.models) < FEWEST:
        return Agreement(
            reason=f"n/a: {len(scores.models)} of the {FEWEST} models that a ranking needs to say anything"
        )
    pairs = [pair for both in combinations(metrics, 2) if (pair := _pair(found, both))]
    if not pairs:
        return Agreement(reason=f"n/a: no two metrics scored the same examples for {FEWEST} models")
    return Agreement(tuple(pairs), _shifts(pairs))


def _pair(found: Scored, metrics: tuple[str, str]) -> Pair | None:
    """Compare two metrics over the examples that both scored for each model, or return None where there are too few.

    A model of which one of the metrics scored nothing, since all was skipped or failed, is left out of the pair.
    """
    one, two = (found.by_metric[metric] for metric in metrics)
    models = [model for model in one if model in two and not np.isnan(one[model] + two[model]).all()]
    if len(models) < FEWEST:
        return None
    shared = np.flatnonzero(~np.isnan(sum(one[model] + two[model] for model in models)))
    if not len(shared):
        return None
    scores = {
        model: (mean_of_files(one[model], found.file, shared), mean_of_files(two[model], found.file, shared))
        for model in models
    }
    tau, reason = kendall([first for first, _ in scores.values()], [second for _, second in scores.values()])
    return Pair(metrics, len(shared), scores, tau, reason)


def mean_of_files(values: Floats, file: Ints, at: Ints) -> float:
    """Return the mean of some examples, each file once, so that none counts more for its placements.

    It is rounded, so that models with the same scores in another order are equal.
    """
    counts = np.bincount(file[at])
    means = np.bincount(file[at], values[at])[counts > 0] / counts[counts > 0]
    return round(math.fsum(means) / len(means), DIGITS)


def kendall(one: Sequence[float], two: Sequence[float]) -> tuple[float | None, str]:
    """Kendall's τ-b of two lists of scores, or why there is none."""
    try:
        from scipy.stats import kendalltau
    except ImportError:
        return None, 'n/a: Kendall\'s τ needs scipy: pip install "mmlongbench[scoring]"'
    if len(set(one)) == 1 or len(set(two)) == 1:
        return None, "n/a: under one of them all models are equal"
    return float(kendalltau(one, two).statistic), ""


def ranks_of(scores: Sequence[float]) -> list[float]:
    """Return the rank of each score: 1 is the best, and equal scores share the mean of their ranks."""
    better = [sum(other > score for other in scores) for score in scores]
    equal = [sum(other == score for other in scores) for score in scores]
    return [more + (same + 1) / 2 for more, same in zip(better, equal, strict=True)]


def _shifts(pairs: Sequence[Pair]) -> dict[str, Shift]:
    moves: dict[str, list[tuple[float, float]]] = {}
    for pair in pairs:
        for model, (one, two) in pair.ranks().items():
            score, other = pair.scores[model]
            moves.setdefault(model, []).append((abs(score - other), abs(one - two)))
    return {
        model: Shift(sum(s for s, _ in found) / len(found), sum(r for _, r in found) / len(found), len(found))
        for model, found in sorted(moves.items())
    }
