"""Measures how much a model's score and rank vary between subsets of the questions: volatility and robustness.

Both are defined by Nourbakhsh et al., Findings of NAACL 2025 (arXiv:2503.19120), appendix B.6. The volatility of a
score is its standard deviation over T subsets, times √T. The volatility of a rank is computed in the same way.
Robustness is the volatility of the rank times the median rank; smaller values mean a steadier and better model.

The following is assumed where the paper is not explicit. It scales the volatility of the rank by the median rank, so
that a poor model does not count as robust (section 5.4); a quotient would favour poor models, so this is a product. A
model whose rank never changes has 0 at any rank. The subsets are the groups of every facet of a dataset, except
groups of fewer than `MIN_QUESTIONS` questions or of all questions (the paper uses the kinds of questions that its
leaderboards list, which overlap too). Only examples for which every model has a score are used; a model without any
score on the dataset is left out. A score is the mean of the files' means. Rank 1 is the best, and equal models share
the mean of their ranks. The standard deviation is that of a sample.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, stdev

import numpy as np

from mmlongbench.scoring.report.agreement import means_of_files
from mmlongbench.scoring.report.columns import Scores
from mmlongbench.scoring.report.grids import places
from mmlongbench.scoring.report.variants import Scored
from mmlongbench.statistics import Floats, Ints

MIN_MODELS = 2
MIN_SUBSETS = 2
MIN_QUESTIONS = 10


@dataclass(frozen=True, slots=True)
class Volatility:
    """How much one model varies between the subsets of a dataset, scored by one metric."""

    dataset: str
    metric: str
    model: str
    subsets: int
    """The number of subsets, T."""
    score: float
    """The volatility of the model's score."""
    rank: float
    """The volatility of the model's rank."""
    median_rank: float

    @property
    def robustness(self) -> float:
        """The volatility of the model's rank times its median rank; 0 if all subsets give the same rank."""
        return self.rank * self.median_rank


def volatilities(scores: Scores, found: Scored) -> tuple[Volatility, ...]:
    """Return the volatility of every model by dataset and metric, if there are several models and subsets."""
    in_file = [[file.dataset == dataset for file in scores.files] for dataset in scores.scored_datasets]
    members = scores.members.join(found.of_line.rename("example"), on="line", how="inner")
    subsets = [group.unique() for _, group in members.groupby("group", observed=True)["example"]]
    several = []
    for metric, table in sorted(found.by_metric.items()):
        for dataset, is_in in zip(scores.scored_datasets, np.array(in_file)[:, found.file], strict=True):
            has_score = ~np.isnan(table) & is_in[:, None]
            models = np.flatnonzero(has_score.any(axis=0))
            if len(models) >= MIN_MODELS:
                shared = np.flatnonzero(has_score[:, models].all(axis=1))
                names = [scores.models[model] for model in models]
                several += _of_dataset(dataset, metric, names, table[:, models], shared, found, subsets)
    return tuple(several)


def _of_dataset(
    dataset: str,
    metric: str,
    names: Sequence[str],
    table: Floats,
    shared: Ints,
    found: Scored,
    subsets: Sequence[Ints],
) -> list[Volatility]:
    """Return the volatility of every model on the examples of a dataset for which all models have a score."""
    whole = len(np.unique(found.question[shared]))
    parts = [np.intersect1d(subset, shared) for subset in subsets]
    kept = [part for part in parts if MIN_QUESTIONS <= len(np.unique(found.question[part])) < whole]
    if len(kept) < MIN_SUBSETS:
        return []
    means = [means_of_files(table[part], found.file[part]) for part in kept]
    ranks = [places(row) for row in means]
    root = math.sqrt(len(kept))
    return [
        Volatility(dataset, metric, name, len(kept), stdev(own) * root, stdev(ranked) * root, median(ranked))
        for name, own, ranked in zip(names, zip(*means, strict=True), zip(*ranks, strict=True), strict=True)
    ]
