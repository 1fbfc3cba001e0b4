"""Statistics that reports, audits and reviews share: resamples of clusters, intervals, effective numbers, agreement.

A resample draws clusters with replacement; a cluster is all questions about one subject, at all placements and lengths.
Answers about one document are right or wrong together more often than others, so drawing single questions would make
intervals too narrow. What is drawn depends only on the name of the dataset and on the names of its clusters. So all
models, metrics and lengths of a dataset use the same draws, and the same scores give the same bytes. If some lines lack
a cluster, the draws of that cluster change nothing there.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmlongbench.draws import digest

if TYPE_CHECKING:
    import pandas as pd

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
RESAMPLES = 1000
"""How often the clusters are drawn."""
LEVEL = 0.95
"""The share of the resampled means that an interval contains."""
MIN_CLUSTERS = 5
"""The minimum number of clusters for an interval. With fewer, resamples are too similar for their percentiles to cover
95 %."""
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_ONE = 1 << 32
"""The number of units in a score of 1. Scores are rounded to whole units. Sums of whole units below 2⁵³ are exact in
any order, so every library gives the same bits."""
_ROOM = 1 << 21
"""The maximum number of weights in memory at once; if a single resample has more, only that resample is in memory."""


def resampled_means(lines: "pd.DataFrame", by: Sequence[str], clusters: Sequence[tuple[str, str]]) -> Floats:
    """Return mean scores: a row for each resample, and a column for each group of `lines.groupby(by, observed=True)`.

    Args:
        lines: a table with the columns `dataset`, `cluster` (a place in `clusters`), `score` (NaN if there is none) and
            those of `by`.
        by: the columns by which lines are grouped.
        clusters: the dataset and the name of every cluster, also of those that `lines` lacks; those of a dataset stand
            together.

    Returns:
        The means; NaN where none of the drawn lines has a score.

    """
    groups = lines.groupby(list(by), observed=True)
    sums, counts = np.zeros((2, RESAMPLES, groups.ngroups))
    has_score = lines["score"].notna().to_numpy()
    group = groups.ngroup().to_numpy()[has_score]
    score, cluster = (lines[name].to_numpy()[has_score] for name in ("score", "cluster"))
    places: dict[str, list[int]] = {}
    for place, (dataset, _) in enumerate(clusters):
        places.setdefault(dataset, []).append(place)
    for name, at in lines.loc[has_score, ["dataset"]].groupby("dataset", observed=True).indices.items():
        dataset = str(name)
        own = places[dataset]
        columns, column = np.unique(group[at], return_inverse=True)
        shape = len(own), len(columns)
        cell = (cluster[at].astype(np.int64) - own[0]) * len(columns) + column
        summed = np.bincount(cell, np.rint(score[at] * _ONE), shape[0] * shape[1]).reshape(shape)
        counted = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        for first, weights in _weights(dataset, [clusters[place][1] for place in own]):
            block = np.ix_(np.arange(first, first + len(weights)), columns)
            sums[block] += weights @ summed
            counts[block] += weights @ counted
    with np.errstate(invalid="ignore"):
        means: Floats = sums / counts / _ONE
    return means


def _weights(dataset: str, clusters: Sequence[str]) -> Iterator[tuple[int, Floats]]:
    """Yield (number of the first resample, weights) for each block of resamples. The weights say how often each
    resample has each cluster.
    """
    n = len(clusters)
    key = digest("bootstrap", dataset, *clusters)
    rows = max(1, min(RESAMPLES, _ROOM // n))
    for first in range(0, RESAMPLES, rows):
        block = range(first, min(RESAMPLES, first + rows))
        cluster = np.concatenate([drawn_places(key + number.to_bytes(4, "big"), n, n) for number in block])
        row = np.repeat(np.arange(len(block)), n) * n
        weights = np.bincount(row + cluster, minlength=n * len(block))
        yield first, weights.reshape(len(block), n).astype(np.float64)


def drawn_places(key: bytes, n: int, count: int) -> Ints:
    """Return `count` places from 0 to n − 1, drawn with replacement; the same for the same key."""
    drawn = np.frombuffer(hashlib.shake_128(key).digest(4 * count), "<u4").astype(np.uint64)
    return (drawn * n >> np.uint64(32)).astype(np.int64)


def interval(draws: Floats) -> tuple[float, float]:
    """Return the lower and the upper end of the interval of resampled means, by percentiles; NaN means are left out."""
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = np.quantile(draws[~np.isnan(draws)], ends)
    return float(low), float(high)


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of n questions.

    >>> [round(end, 3) for end in wilson(0.5, 100)], wilson(0.0, 0)
    ([0.404, 0.596], (0.0, 1.0))
    """
    if not n:
        return 0.0, 1.0
    z2 = _Z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return (max(0.0, centre - half) if share > 0 else 0.0), (min(1.0, centre + half) if share < 1 else 1.0)


def effective_number(scores: Sequence[float] | Floats, clusters: Sequence[str]) -> float:
    """Return of how many independent questions, each right or wrong, the mean would be as exact.

    It is at most the number of questions if each is right or wrong, and at most four times this number if scores lie
    between: such scores spread less.

    >>> effective_number([1, 1, 0, 0], ["a", "a", "b", "b"])
    2.0
    """
    mean = float(np.mean(scores))
    sums = dict.fromkeys(clusters, 0.0)
    for score, cluster in zip(scores, clusters, strict=True):
        sums[cluster] += float(score) - mean
    most = len(clusters) * mean * (1 - mean)
    is_binary = all(score in (0, 1) for score in scores)
    design = sum(total**2 for total in sums.values()) / most if most > 0 else len(clusters) / len(sums)
    return len(clusters) / max(1.0 if is_binary else 0.25, design)


def kappa(matrix: Floats) -> float | None:
    """Return Cohen's kappa of a matrix of counts; None if it is not defined.

    >>> round(kappa(np.array([[40, 5, 2], [6, 20, 4], [1, 3, 19.0]])), 5)
    0.67064
    """
    total = float(matrix.sum())
    expected = float(matrix.sum(axis=0) @ matrix.sum(axis=1)) / total**2 if total else 1.0
    return None if expected > 1 - 1e-12 else (float(np.trace(matrix)) / total - expected) / (1 - expected)


def ac1(matrix: Floats) -> float:
    """Return Gwet's AC1 of a matrix of counts.

    >>> round(ac1(np.array([[95, 2, 0], [3, 0, 0], [0, 0, 0.0]])), 5), ac1(np.diag([10.0, 0, 0]))
    (0.94875, 1.0)
    """
    total, labels = matrix.sum(), len(matrix)
    share = (matrix.sum(axis=0) + matrix.sum(axis=1)) / (2 * total)
    expected = float(share @ (1 - share)) / (labels - 1)
    return (float(np.trace(matrix)) / float(total) - expected) / (1 - expected)
