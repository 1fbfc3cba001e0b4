"""Computes bootstrap intervals: how much a mean would change if the questions were about other documents or entities.

Clusters are drawn with replacement; a cluster is all questions about one subject, at all placements. Answers about one
document are right or wrong together more often than others, so drawing single questions would make intervals too
narrow. What is drawn depends only on the name of the dataset and on the names of the clusters that it has at any
length. So all models, metrics and lengths of a dataset use the same draws, and the same scores give the same bytes. If
a length has no question of a cluster, the draws of that cluster change nothing at this length.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mmlongbench.draws import digest
from mmlongbench.scoring.report.columns import Floats, grouped, values_of

RESAMPLES = 1000
"""How often the clusters are drawn."""
LEVEL = 0.95
"""The share of the resampled means that an interval contains."""
_ONE = 1 << 32
"""The number of units in a score of 1. Scores are rounded to whole units. Sums of whole units below 2⁵³ are exact in
any order, so every library gives the same bits."""
_ROOM = 1 << 21
"""The maximum number of weights in memory at once; if a single resample has more, only that resample is in memory."""


def drawn_means(lines: pd.DataFrame, by: Sequence[str]) -> Floats:
    """Return mean scores: a row for each resample, and a column for each combination of values of `by`.

    The columns are in the order of `grouped`. A mean is NaN if none of the drawn lines has a score.
    """
    groups = lines.groupby(list(by), observed=True)
    sums, counts = np.zeros((2, RESAMPLES, groups.ngroups))
    has_score = lines["score"].notna().to_numpy()
    owner, score = groups.ngroup().to_numpy()[has_score], lines["score"].to_numpy()[has_score]
    cluster, clusters = lines["cluster"].cat.codes.to_numpy()[has_score], values_of(lines["cluster"])
    for dataset, at in grouped(lines.loc[has_score, ["dataset"]], ["dataset"]).items():
        own = [place for place, each in enumerate(clusters) if each.dataset == dataset]
        columns, column = np.unique(owner[at], return_inverse=True)
        shape = len(own), len(columns)
        cell = (cluster[at].astype(np.int64) - own[0]) * len(columns) + column
        summed = np.bincount(cell, np.rint(score[at] * _ONE), shape[0] * shape[1]).reshape(shape)
        counted = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        for first, weights in _weights(dataset, [clusters[place].name for place in own]):
            block = np.ix_(np.arange(first, first + len(weights)), columns)
            sums[block] += weights @ summed
            counts[block] += weights @ counted
    with np.errstate(invalid="ignore"):
        found: Floats = sums / counts / _ONE
    return found


def _weights(dataset: str, clusters: Sequence[str]) -> Iterator[tuple[int, Floats]]:
    """Yield (number of the first resample, weights) for each block of resamples. The weights say how often each
    resample has each cluster.
    """
    n = len(clusters)
    key = digest("bootstrap", dataset, *clusters)
    rows = max(1, min(RESAMPLES, _ROOM // n))
    for first in range(0, RESAMPLES, rows):
        here = range(first, min(RESAMPLES, first + rows))
        drawn = b"".join(hashlib.shake_128(key + number.to_bytes(4, "big")).digest(4 * n) for number in here)
        cluster = np.frombuffer(drawn, "<u4").astype(np.uint64) * n >> np.uint64(32)
        row = np.repeat(np.arange(len(here)), n) * n
        weights = np.bincount(row + cluster.astype(np.int64), minlength=n * len(here))
        yield first, weights.reshape(len(here), n).astype(np.float64)


def interval(draws: Floats) -> tuple[float, float]:
    """Return the lower and the upper end of the interval of resampled means, by percentiles; NaN means are left out."""
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = np.quantile(draws[~np.isnan(draws)], ends)
    return float(low), float(high)
