"""The scores as a table with a row for each line; reports are computed from groups of rows."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mmlongbench.scoring.scores import UNKNOWN, profile_order
from mmlongbench.task.metric import Score

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
STATES = ("scored", "absent", "failed", "skipped")
SCORED, ABSENT, FAILED, SKIPPED = range(4)
"""The status of a line. A line has a score if its status is `SCORED` or `ABSENT`."""


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """The outputs of one model, scored by one metric under one profile."""

    model: str
    metric: str
    profile: str = UNKNOWN
    """The profile, followed by choices if these distinguish it from other series of the model (see `told_apart`)."""
    choices: tuple[str, ...] = ()
    """The choices that change scores within the profile. `told_apart` empties this field, and may name choices in
    `profile`."""

    @property
    def label(self) -> str:
        """The metric, with its profile if known."""
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
    """Where the rules of a score come from, and which choices change it within the profile."""

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
class Cluster:
    """The common subject of one or more questions of a dataset, such as a document; clusters are resampled as a
    whole.
    """

    dataset: str
    name: str
    is_single: bool = False
    """Whether it is a single question whose lines name no cluster; its name is then the question's id."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One of the groups into which a facet divides examples."""

    facet: str
    name: str


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """One question of a dataset, at any length and placement."""

    dataset: str
    id: str


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """The placement of an example's needles; missing values are −∞ and come first."""

    depth: float
    """The requested depth."""
    permutation: float

    def __str__(self) -> str:
        if self.depth > -math.inf:
            return f" at depth {self.depth}"
        return f", permutation {self.permutation}" if self.permutation > -math.inf else ""


@dataclass(frozen=True, slots=True)
class Scores:
    """The content of all lines of a folder; names are categories in a fixed order."""

    lines: pd.DataFrame
    """The lines to compare, sorted by series, file, question and placement; the index is a line's number in the order
    of reading. `series`, `file`, `question`, `cluster` and `placement` hold objects of this module; `model`, `metric`,
    `profile`, `dataset` and `length` are their parts. `status` is an index of `STATES`; `score` is 0 for absent
    predictions, NaN for failed or skipped ones; `failure` says why a line failed."""
    members: pd.DataFrame
    """Pairs of `line` and `group`, also for lines that are not compared."""
    details: pd.DataFrame
    """The `line`, `name` and `value` of numeric details, also for lines that are not compared."""
    kept: Mapping[int, Score]
    """The complete score by line, for metrics that have `totals`."""
    own_metrics: Mapping[str, str]
    """The own metric of each dataset, if any line names it."""
    first_metrics: Mapping[tuple[str, str], str]
    """The metric that was read first and is not lenient, by dataset and profile."""
    averaged_metrics: Mapping[str, str]
    """The metric that a builder declares for averages, by dataset, if it is not the own metric. It is used only if
    every model has scores by it."""
    origins: Mapping[Series, Collection[Origin]]
    """Where the rules of each series come from."""
    reasoning: Mapping[tuple[Series, str, str], int]
    """How many lines there are, by series (as read), file, and what was done with reasoning in the predictions."""
    notes: tuple[str, ...] = ()
    """Sentences that say which lines were left out, and why."""

    @property
    def series(self) -> tuple[Series, ...]:
        """All series, sorted."""
        return values_of(self.lines["series"])

    @property
    def files(self) -> tuple[ScoredFile, ...]:
        """All files of any line, including lines under a profile that is not shown."""
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
        """For each dataset its own metric, or else the one that was read first."""
        first = (metric for (dataset, _), metric in self.first_metrics.items() if dataset not in self.own_metrics)
        return frozenset((*self.own_metrics.values(), *first))

    @property
    def profiles(self) -> tuple[str, ...]:
        """All profiles, those of the public code first."""
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
    """Return a column of values that are given by their places in a list; its categories are sorted.

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
    """Return the values that a column may have, sorted."""
    return tuple(found.cat.categories)


def grouped(lines: pd.DataFrame, by: Sequence[str]) -> dict[Any, Ints]:
    """Return the positions of the rows for each combination of values that occurs, in the order of the values."""
    found = lines.groupby(list(by), observed=True).indices
    return {key: np.asarray(at, np.int64) for key, at in found.items()}
