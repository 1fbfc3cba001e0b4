"""How much a model's score and rank move between subsets of the questions: volatility and robustness.

Nourbakhsh et al., Findings of NAACL 2025 (arXiv:2503.19120), appendix B.6. Over T subsets, the volatility of a score is
its standard deviation times √T, that of a rank likewise, and robustness is the volatility of the rank over the median
rank: the smaller, the steadier.

What the paper leaves open, or is not known to say, is assumed: the subsets are the groups of every facet of a dataset
(the paper's are the kinds of questions that its leaderboards list, which overlap too), those of `MIN_QUESTIONS` at
least and not of every question; a score is the mean over files of the mean over examples that every model has a score
for; rank 1 is the best, and equal models share the mean of their ranks; the standard deviation is that of a sample.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, stdev

import numpy as np

from mmlongbench.scoring.report.agreement import mean_of_files, ranks_of
from mmlongbench.scoring.report.columns import Floats, Ints, Scores, grouped
from mmlongbench.scoring.report.variants import Scored, vectors

MIN_MODELS = 2
MIN_SUBSETS = 2
MIN_QUESTIONS = 10


@dataclass(frozen=True, slots=True)
class Volatility:
    """How much one model moves between the subsets of a dataset, scored by one metric."""

    dataset: str
    metric: str
    model: str
    subsets: int
    """T."""
    score: float
    """The volatility of its score."""
    rank: float
    """The volatility of its rank."""
    median_rank: float

    @property
    def robustness(self) -> float:
        """The volatility of its rank over its median rank; 0 where it keeps its rank everywhere."""
        return self.rank / self.median_rank


def volatilities(scores: Scores) -> tuple[Volatility, ...]:
    """Return the volatility of every model, by dataset and metric, where there are several models and subsets."""
    found = vectors(scores)
    subsets = _subsets(scores, found)
    of_file = np.array([scores.datasets.index(file.dataset) for file in scores.files])
    several = []
    for metric, by_model in sorted(found.by_metric.items()):
        for number, dataset in enumerate(scores.datasets):
            inside = np.flatnonzero(of_file[found.file] == number)
            models = {model: values for model, values in by_model.items() if not np.isnan(values[inside]).all()}
            if len(models) >= MIN_MODELS:
                several += _of_dataset(dataset, metric, models, _scored_by_all(models, inside), found, subsets)
    return tuple(several)


def _of_dataset(
    dataset: str, metric: str, models: Mapping[str, Floats], shared: Ints, found: Scored, subsets: Sequence[Ints]
) -> list[Volatility]:
    """Return the volatility of every model on the examples of a dataset that all of them have a score for."""
    whole = len(np.unique(found.question[shared]))
    parts = [np.intersect1d(subset, shared) for subset in subsets]
    kept = [part for part in parts if MIN_QUESTIONS <= len(np.unique(found.question[part])) < whole]
    if len(kept) < MIN_SUBSETS:
        return []
    means = [[mean_of_files(values, found.file, part) for values in models.values()] for part in kept]
    ranks = [ranks_of(row) for row in means]
    root = math.sqrt(len(kept))
    return [
        Volatility(dataset, metric, model, len(kept), stdev(own) * root, stdev(places) * root, median(places))
        for model, own, places in zip(models, zip(*means, strict=True), zip(*ranks, strict=True), strict=True)
    ]


def _subsets(scores: Scores, found: Scored) -> list[Ints]:
    """Return the examples of each group of each facet."""
    groups = grouped(found.of_line[scores.members[:, 0]], scores.members[:, 1])
    return [np.unique(examples) for _, examples in sorted(groups.items())]


def _scored_by_all(models: Mapping[str, Floats], inside: Ints) -> Ints:
    """Return the examples that every model has a score for."""
    is_scored = np.all([~np.isnan(values[inside]) for values in models.values()], axis=0)
    return np.asarray(inside[is_scored], np.int64)
