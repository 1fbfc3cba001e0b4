"""The bootstrap: how far a mean may be off, were other documents, entities or pictures asked about.

Clusters are drawn with replacement: what questions are about, with all its questions and their placements. Questions
about one document are right or wrong together more often than others, so that to draw single questions would make
intervals too narrow. A draw is a hash of the dataset and all its clusters, those of every length together. A length
that lacks some of them takes the weights of those that it has. So all models, metrics and lengths of a dataset are
measured on the same draws, also where lengths do not hold the same questions, and the same scores give the same bytes.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from mmlongbench.draws import digest
from mmlongbench.scoring.report.columns import ABSENT, Floats, Ints, Scores, grouped

RESAMPLES = 1000
"""How often the clusters are drawn anew."""
LEVEL = 0.95
"""The share of the draws that an interval holds."""
_ONE = 1 << 32
"""Scores are whole numbers of 2⁻³²: sums below 2⁵³ are exact in any order, so no library changes a bit of them."""
_ROOM = 1 << 21
"""The number of weights that are held at once."""


def drawn_means(scores: Scores, targets: Sequence[Ints]) -> Floats:
    """Return the mean score of each target (lines) in each resample, as resamples × targets.

    It is NaN where no line has a score.
    """
    sums, counts = np.zeros((2, RESAMPLES, len(targets)))
    owner = np.repeat(np.arange(len(targets)), [len(lines) for lines in targets])
    lines = np.concatenate([np.empty(0, np.int64), *targets])
    has_score = scores.status[lines] <= ABSENT
    owner, lines = owner[has_score], lines[has_score]
    firsts = _first_places(scores)
    datasets = scores.dataset
    for (number,), at in grouped(np.arange(len(lines)), datasets.codes[lines]).items():
        dataset = datasets.values[number]
        names = [cluster.name for cluster in scores.clusters if cluster.dataset == dataset]
        columns, column = np.unique(owner[at], return_inverse=True)
        shape = len(names), len(columns)
        cell = (scores.cluster[lines[at]] - firsts[dataset]) * len(columns) + column
        fixed = np.rint(scores.score[lines[at]] * _ONE)
        summed = np.bincount(cell, fixed, shape[0] * shape[1]).reshape(shape)
        counted = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        for first, weights in _weights(dataset, names):
            block = np.ix_(np.arange(first, first + len(weights)), columns)
            sums[block] += weights @ summed
            counts[block] += weights @ counted
    with np.errstate(invalid="ignore"):
        found: Floats = sums / counts / _ONE
    return found


def _first_places(scores: Scores) -> dict[str, int]:
    """Return by dataset the place of its first cluster."""
    firsts: dict[str, int] = {}
    for place, cluster in enumerate(scores.clusters):
        firsts.setdefault(cluster.dataset, place)
    return firsts


def _weights(dataset: str, clusters: Sequence[str]) -> Iterator[tuple[int, Floats]]:
    """Yield how often each cluster of a dataset is in each resample, by blocks: the first resample of one, its rows."""
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
    """Return the ends of the interval of one target's draws, by percentiles; draws without a score are left out."""
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = np.quantile(draws[~np.isnan(draws)], ends)
    return float(low), float(high)
