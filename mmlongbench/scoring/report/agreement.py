"""Measures whether metrics agree on which model is better, and how far a model moves under another metric.

Metrics under different profiles are compared only here. If there are several profiles, each metric is shown with its
profile.

The agreement of two metrics is Kendall's τ-b of their rankings of the models. The shift of a model (a measure of this
project) says how far the model moves between metrics, or between values of a metric's parameter. It has two values:
the mean of |score − score′| and the mean of |rank − rank′|, over all pairs of metrics. A pair is compared over the
examples that both metrics scored for every model. Volatility is another measure (see `volatility`): it compares subsets
of the questions under one metric.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mmlongbench.scoring.report.columns import Scores
from mmlongbench.scoring.report.grids import DIGITS, places
from mmlongbench.scoring.report.variants import Scored
from mmlongbench.statistics import Floats, Ints

FEWEST = 3
"""The minimum number of models for a meaningful ranking; two models can be ranked in only two ways."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two metrics over the same examples and models."""

    metrics: tuple[str, str]
    examples: int
    scores: Mapping[str, tuple[float, float]]
    """The scores of each model under the two metrics. A score is the mean of the files' means."""
    tau: float | None
    reason: str = ""
    """Why there is no τ; empty if there is one."""

    def ranks(self) -> dict[str, tuple[float, float]]:
        """Return each model's ranks under the two metrics; 1 is the best, and equal models share the mean of their
        ranks.
        """
        one, two = (places([both[side] for both in self.scores.values()]) for side in (0, 1))
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
    """Why there is no result; empty if there is one."""


def agreement(scores: Scores, found: Scored) -> Agreement:
    """Compare every two metrics that scored common examples; each value of a metric's parameter counts as a metric."""
    metrics = sorted(found.by_metric)
    if len(metrics) < 2:
        return Agreement(reason=f"n/a: one metric ({', '.join(metrics)}); there is nothing to compare it with")
    if len(scores.models) < FEWEST:
        return Agreement(reason=f"n/a: {len(scores.models)} of the {FEWEST} models that a meaningful ranking needs")
    pairs = [pair for both in combinations(metrics, 2) if (pair := _pair(scores.models, found, both))]
    if not pairs:
        return Agreement(reason=f"n/a: no two metrics scored the same examples for {FEWEST} models")
    return Agreement(tuple(pairs), _shifts(pairs))


def _pair(names: Sequence[str], found: Scored, metrics: tuple[str, str]) -> Pair | None:
    """Compare two metrics over the examples that both scored for each model. Return None if too few models or no
    examples remain.

    A model is left out if no example of this model was scored by both metrics.
    """
    one, two = (found.by_metric[metric] for metric in metrics)
    has_score = ~np.isnan(one + two)
    models = np.flatnonzero(has_score.any(axis=0)).tolist()
    shared = has_score[:, models].all(axis=1)
    if len(models) < FEWEST or not shared.any():
        return None
    first, second = (means_of_files(each[shared][:, models], found.file[shared]) for each in (one, two))
    scores = {names[model]: (mean, other) for model, mean, other in zip(models, first, second, strict=True)}
    tau, reason = kendall(first, second)
    return Pair(metrics, int(shared.sum()), scores, tau, reason)


def means_of_files(scores: Floats, file: Ints) -> list[float]:
    """Return the mean score of each model. Each row is an example, each column a model; `file` gives each row's file.

    The mean is taken over the examples of each file first, then over the files, so every file counts the same. Means
    are rounded, so that the order in which scores are added does not make equal means differ.
    """
    counts = np.bincount(file)
    there = counts > 0
    sums = (np.bincount(file, of_model)[there] for of_model in scores.T)
    return [round(math.fsum(each / counts[there]) / np.count_nonzero(there), DIGITS) for each in sums]


def kendall(one: Sequence[float], two: Sequence[float]) -> tuple[float | None, str]:
    """Return Kendall's τ-b of two lists of scores, and an empty text. If there is no τ, return None and the reason."""
    try:
        from scipy.stats import kendalltau
    except ImportError:
        return None, 'n/a: Kendall\'s τ needs scipy: pip install "mmlongbench[scoring]"'
    if len(set(one)) == 1 or len(set(two)) == 1:
        return None, "n/a: all models are equal under one of the metrics"
    return float(kendalltau(one, two).statistic), ""


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
