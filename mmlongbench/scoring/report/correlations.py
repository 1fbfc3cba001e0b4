"""Whether models that do well on one dataset do well on another: Spearman's ρ over models, at each length.

Each dataset, each category and the overall mean are compared with all others; the paper shows this for 128K. Datasets
that count as one in the averages count as one here. A model is left out of a pair if one of its two scores is N/A or
missing.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from mmlongbench.scoring.report.averages import Averages
from mmlongbench.scoring.report.grids import DIGITS, Estimate, length_name

MIN_MODELS = 3
"""The minimum number of models for a meaningful correlation; two models can be ranked in only two ways."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """The correlation of two datasets or categories."""

    rho: float | None
    models: int
    """The number of models that have a score in both."""
    reason: str = ""
    """Why there is no ρ; empty if there is one."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """All correlations under one profile at one length."""

    profile: str
    length: int
    datasets: tuple[str, ...]
    """The names in `Averages.entries`, in the order of their categories."""
    categories: tuple[str, ...]
    """The names of the categories, then `overall` if there are several categories. `(average)` follows a name that is
    also in `datasets`."""
    models: int
    """The number of models that have a score in any dataset or category at this length."""
    pairs: Mapping[tuple[str, str], Correlation]
    """The correlation of each pair of `names`, once: the first name of a pair is the one that is earlier in `names`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The datasets, then the categories."""
        return (*self.datasets, *self.categories)

    def at(self, one: str, other: str) -> Correlation | None:
        """Return the correlation of two names, in any order; None for a name with itself."""
        return self.pairs.get((one, other)) or self.pairs.get((other, one))

    def with_others(self, category: str) -> tuple[float, float] | None:
        """Return the mean and the standard deviation of ρ between a category and every other category.

        `overall` does not count as a category here. Return None if one of these ρ is missing, or if there is no other
        category.
        """
        others = [self.at(category, other) for other in self.categories if other not in (category, self.overall)]
        found = [each.rho for each in others if each is not None and each.rho is not None]
        if len(found) < len(others) or not found:
            return None
        return statistics.fmean(found), statistics.pstdev(found)

    @property
    def overall(self) -> str:
        """The name of the mean of the categories; empty if there is only one category."""
        return self.categories[-1] if len(self.categories) > 1 else ""

    def summary(self) -> dict[str, Any]:
        """Return the correlations as JSON values."""
        pairs = [
            {"of": list(of), **{name: value for name, value in asdict(found).items() if value or name != "reason"}}
            for of, found in self.pairs.items()
        ]
        others = {name: found for name in self.categories if (found := self.with_others(name)) and name != self.overall}
        return {
            "profile": self.profile,
            "length": length_name(self.length),
            "datasets": list(self.datasets),
            "categories": list(self.categories),
            "pairs": pairs,
            "with_other_categories": {name: {"mean": mean, "sd": sd} for name, (mean, sd) in others.items()},
        }


@dataclass(frozen=True, slots=True)
class Correlations:
    """The correlations of all profiles and lengths."""

    matrices: tuple[Matrix, ...] = ()
    reason: str = ""
    """Why there are no correlations; empty if there are some."""

    def longest(self) -> Iterator[Matrix]:
        """Yield the matrix of the longest length of each profile."""
        for profile in dict.fromkeys(matrix.profile for matrix in self.matrices):
            yield max((each for each in self.matrices if each.profile == profile), key=lambda each: each.length)

    def summary(self) -> dict[str, Any]:
        """Return the correlations as JSON values."""
        reason = {"reason": self.reason} if self.reason else {}
        return {"matrices": [matrix.summary() for matrix in self.matrices], **reason}


def correlations(averages: Sequence[Averages]) -> Correlations:
    """Return the correlations of every two datasets or categories, for each profile and length."""
    models = {model for each in averages for model, _, _ in each.of_entries}
    if len(models) < MIN_MODELS:
        return Correlations(reason=f"n/a: {len(models)} of the {MIN_MODELS} models that a correlation needs")
    found = [matrix for each in averages for matrix in _matrices(each)]
    if not found:
        return Correlations(reason=f"n/a: no two datasets have {MIN_MODELS} models in common")
    missing = next((each.reason for matrix in found for each in matrix.pairs.values() if "scipy" in each.reason), "")
    return Correlations(reason=missing) if missing else Correlations(tuple(found))


def _matrices(averages: Averages) -> Iterator[Matrix]:
    """Yield a matrix for each length at which some pair has enough models; nothing if there is only one dataset."""
    datasets = tuple(averages.entries)
    rows = {f"{row.name} (average)" if row.name in datasets else row.name: row for row in averages.rows}
    for length in sorted({length for _, _, length in averages.of_entries}):
        means = {name: _means(averages.of_entries, name, length) for name in datasets}
        means |= {name: _means(averages.by_length, row, length) for name, row in rows.items()}
        pairs = {both: spearman(means[both[0]], means[both[1]]) for both in combinations(means, 2)}
        models = {model for scores in means.values() for model in scores}
        if any(each.models >= MIN_MODELS for each in pairs.values()) and len(datasets) > 1:
            yield Matrix(averages.profile, length, datasets, tuple(rows), len(models), pairs)


def _means(estimates: Mapping[tuple[str, Any, int], Estimate | None], name: object, length: int) -> dict[str, float]:
    """Return the mean of one dataset or row at a length, by model; models without a mean are left out."""
    return {
        model: round(estimate.mean, DIGITS)
        for (model, of, at), estimate in estimates.items()
        if (of, at) == (name, length) and estimate is not None and estimate.mean is not None
    }


def spearman(one: Mapping[str, float], other: Mapping[str, float]) -> Correlation:
    """Return Spearman's ρ over the models that have a score in both; equal scores share the mean of their ranks."""
    models = [model for model in one if model in other]
    if len(models) < MIN_MODELS:
        return Correlation(None, len(models), f"{len(models)} models")
    try:
        from scipy.stats import spearmanr
    except ImportError:
        reason = 'n/a: Spearman\'s ρ needs scipy: pip install "mmlongbench[scoring]"'
        return Correlation(None, len(models), reason)
    scores = [[side[model] for model in models] for side in (one, other)]
    if any(len(set(side)) == 1 for side in scores):
        return Correlation(None, len(models), "all models are equal")
    return Correlation(float(spearmanr(*scores).statistic), len(models))
