"""The scores as a table with a row for each line of the scores files; reports are computed from groups of rows."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mmlongbench.scoring.report.differing import Differing
from mmlongbench.scoring.scores import UNKNOWN, profile_order
from mmlongbench.statistics import Ints
from mmlongbench.task.metric import Score

STATES = ("scored", "absent", "failed", "skipped")
SCORED, ABSENT, FAILED, SKIPPED = range(4)
"""The status of a line. A line has a score if its status is `SCORED` or `ABSENT`."""


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """The outputs of one model, scored by one metric under one profile."""

    model: str
    metric: str
    profile: str = UNKNOWN
    """The profile; choices follow its name if series of one model differ in choices (see `told_apart`)."""
    choices: tuple[str, ...] = ()
    """The choices that change scores within the profile. They are empty in the series that `told_apart` returns."""

    @property
    def label(self) -> str:
        """The metric, followed by the profile unless the profile is `unknown`."""
        return self.metric if self.profile == UNKNOWN else self.full_label

    @property
    def full_label(self) -> str:
        """The metric with its profile."""
        return f"{self.metric} ({self.profile})"

    def summary(self) -> dict[str, str]:
        """Return the series as JSON values."""
        return {"model": self.model, "metric": self.metric, "profile": self.profile}


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where the rules of a score come from, and which choices change the score within the profile."""

    follows: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class ScoredFile:
    """One public file."""

    dataset: str
    length: int
    name: str
    category: str
    counted_with: str


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One of the groups into which a facet divides examples (see `Builder.facets`)."""

    facet: str
    name: str


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """One question of a dataset, at any length and placement."""

    dataset: str
    id: str


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """The placement of an example's needles. A missing value is −∞, so it is sorted before others."""

    depth: float
    """The requested depth."""
    permutation: float

    def __str__(self) -> str:
        if self.depth > -math.inf:
            return f" at depth {self.depth}"
        return f", permutation {self.permutation}" if self.permutation > -math.inf else ""


@dataclass(frozen=True, slots=True)
class Scores:
    """The content of all score lines of a folder. Columns of names are categorical, and their categories are sorted."""

    lines: pd.DataFrame
    """The lines to compare, one for each example, sorted by series, file, question and placement; the index is a line's
    number in the order of reading. `series`, `file`, `question` and `placement` hold objects of this module;
    `cluster` is a place in `clusters`;
    `model`, `metric`, `profile`, `dataset` and `length` are fields of these objects. `status` is an index of `STATES`.
    `score` is 0 for absent predictions, and NaN for failed or skipped examples. `failure` says why a line failed.
    `samples`, `best` and `majority` are about the samples of the example (see `combined`)."""
    clusters: Sequence[tuple[str, str]]
    """The dataset and the name of each cluster, sorted; also of those that are not in `lines`."""
    members: pd.DataFrame
    """The columns `line` and `group`: a row for each group of each line, also for lines that are not in `lines`."""
    details: pd.DataFrame
    """The columns `line`, `name` and `value`: a row for each numeric detail, also for lines that are not in `lines`."""
    kept: Mapping[int, Sequence[Score]]
    """The complete scores of the samples of each line, by the number of the line; only for metrics that have
    `totals`."""
    own_metrics: Mapping[str, str]
    """The own metric of each dataset, if it is known from a line with `ScoreLine.is_own`."""
    first_metrics: Mapping[tuple[str, str], str]
    """The first metric that was read and is not lenient (see `LENIENT`), by dataset and profile."""
    averaged_metrics: Mapping[str, str]
    """The metric that a builder declares for averages, by dataset, if it is not the own metric; `counted_metrics` says
    when it is used."""
    origins: Mapping[Series, Collection[Origin]]
    """Where the rules of each series come from."""
    reasoning: Mapping[tuple[Series, str, str], int]
    """The number of lines by series (as read, before `told_apart`), file, and what was done with the reasoning."""
    differing: Differing = field(default_factory=Differing)
    """The examples that are not the same in all scores."""
    locks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The releases (see `ScoreLine.lock`) on which each model was scored, as far as the lines name them."""
    notes: tuple[str, ...] = ()
    """Sentences that say which lines were left out, and why."""

    @property
    def series(self) -> tuple[Series, ...]:
        """All series, sorted."""
        return values_of(self.lines["series"])

    @property
    def files(self) -> tuple[ScoredFile, ...]:
        """All files that were read, including those that have only lines under a profile that is not shown."""
        return values_of(self.lines["file"])

    @property
    def models(self) -> tuple[str, ...]:
        """All models, sorted by name."""
        return values_of(self.lines["model"])

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics, sorted by name."""
        return values_of(self.lines["metric"])

    @property
    def default_metrics(self) -> frozenset[str]:
        """The own metrics of all datasets; if a dataset's own metric is not known, its metrics in `first_metrics`."""
        first = (metric for (dataset, _), metric in self.first_metrics.items() if dataset not in self.own_metrics)
        return frozenset((*self.own_metrics.values(), *first))

    @property
    def profiles(self) -> tuple[str, ...]:
        """All profiles; `official` and its choices come first."""
        return tuple(sorted(values_of(self.lines["profile"]), key=profile_order))

    @property
    def scored_datasets(self) -> tuple[str, ...]:
        """All datasets that have a line here, sorted by name."""
        return values_of(self.lines["dataset"].cat.remove_unused_categories())

    @property
    def lengths(self) -> tuple[int, ...]:
        """All lengths, the shortest first."""
        return values_of(self.lines["length"])


def column(values: Sequence[Any], codes: NDArray[np.integer[Any]]) -> pd.Categorical:
    """Return a column whose rows are the `values` at the positions `codes`; its categories are sorted.

    All values are stored as objects, because pandas' own string type takes only valid Unicode.
    """
    known = sorted(set(values))
    places = {value: place for place, value in enumerate(known)}
    found = np.array([places[value] for value in values], np.int64)[codes]
    return pd.Categorical.from_codes(found, pd.Index(known, dtype=object))


def derived(of: "pd.Series[Any]", value: Callable[[Any], Any]) -> "pd.Series[Any]":
    """Return a column with a property of each value of another column."""
    return pd.Series(column([value(each) for each in of.cat.categories], of.cat.codes.to_numpy()), of.index)


def values_of(found: "pd.Series[Any]") -> tuple[Any, ...]:
    """Return the categories of a column, sorted; some may be in no row."""
    return tuple(found.cat.categories)


def grouped(lines: pd.DataFrame, by: Sequence[str]) -> dict[Any, Ints]:
    """Group rows by the columns `by`; return the positions of the rows of each group. The keys are the values of the
    groups in these columns, sorted.
    """
    found = lines.groupby(list(by), observed=True).indices
    return {key: np.asarray(at, np.int64) for key, at in found.items()}
