"""Scores as columns: one place a line in every array, so that a report is sums over arrays. Knows nothing by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmlongbench.scoring.scores import UNKNOWN, profile_order
from mmlongbench.task.metric import Score

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
STATES = ("scored", "absent", "failed", "skipped")
SCORED, ABSENT, FAILED, SKIPPED = range(4)
"""A line has a score up to `ABSENT`."""


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """One model's answers, scored by one metric under one profile."""

    model: str
    metric: str
    profile: str = UNKNOWN
    """With the choices behind it that tell the series from others of the model (see `told_apart`)."""
    choices: tuple[str, ...] = ()
    """What changes its scores within the profile; empty once series are told apart."""

    @property
    def label(self) -> str:
        """The metric with its profile, where that is known."""
        return self.metric if self.profile == UNKNOWN else self.full_label

    @property
    def full_label(self) -> str:
        """The metric with its profile."""
        return f"{self.metric} ({self.profile})"

    def summary(self) -> dict[str, str]:
        """As JSON holds it."""
        return {"model": self.model, "metric": self.metric, "profile": self.profile}


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where the rules of a score come from, and what changes it within the profile."""

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


@dataclass(frozen=True, slots=True)
class Population:
    """The questions of a dataset; the files of several lengths share one where they hold the same questions."""

    dataset: str
    ids: tuple[str, ...]
    """Sorted; a question's number is its place here."""


@dataclass(frozen=True, slots=True, order=True)
class Cluster:
    """What one or more questions of a dataset are about, such as a document; clusters are resampled as a whole."""

    dataset: str
    name: str
    is_single: bool = False
    """Whether it is one question whose lines name no cluster; its name is then the question's id."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One of the groups that a facet divides examples into."""

    facet: str
    name: str


@dataclass(frozen=True, slots=True)
class Scores:
    """Every line, sorted by series, file, question and placement, whatever order they were read in."""

    series: tuple[Series, ...]
    files: tuple[ScoredFile, ...]
    """All that any line is of, also under a profile that is not shown."""
    populations: tuple[Population, ...]
    clusters: tuple[Cluster, ...]
    """Every cluster of every dataset, sorted, so that those of one dataset follow each other; also those of questions
    that have lines only under a profile that is not shown."""
    groups: tuple[Group, ...]
    numbers: tuple[str, ...]
    """The names of details that are numbers."""
    of_series: Ints
    of_file: Ints
    of_population: Ints
    question: Ints
    """Its place in the population."""
    cluster: Ints
    """The place of its cluster in `clusters`, the same at every length."""
    placement: Ints
    """The number of its depth or permutation."""
    depth: Floats
    """As asked for; NaN where there is none."""
    status: Ints
    score: Floats
    """0 of what is absent, NaN of what failed or was skipped."""
    members: Ints
    """Rows of (line, group)."""
    details: Ints
    """Rows of (line, name)."""
    values: Floats
    """The numbers that these details have."""
    kept: Mapping[int, Score]
    """By line: whole, of the metrics that have `totals`."""
    failures: Mapping[tuple[Series, str], int]
    """How often each reason."""
    own_metrics: Mapping[str, str]
    """By dataset: its own metric, where any line says which."""
    first_metrics: Mapping[tuple[str, str], str]
    """By dataset and profile: the metric that was read first and is not lenient."""
    averaged_metrics: Mapping[str, str]
    """By dataset: the metric that its average is made of where every model has it, if that is not its own."""
    origins: Mapping[Series, Mapping[Origin, int]]
    """Where the rules of each series come from, and how many lines say so."""
    reasoning: Mapping[tuple[Series, str, str], int]
    """Lines by series, file and what became of reasoning in the predictions."""
    notes: tuple[str, ...] = ()
    """Which lines were left out, and why."""

    @property
    def models(self) -> tuple[str, ...]:
        """Each once, by name."""
        return tuple(sorted({series.model for series in self.series}))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Each once, by name."""
        return tuple(sorted({series.metric for series in self.series}))

    @property
    def default_metrics(self) -> frozenset[str]:
        """The metric of each dataset that is its own, or else was read first."""
        first = (metric for (dataset, _), metric in self.first_metrics.items() if dataset not in self.own_metrics)
        return frozenset((*self.own_metrics.values(), *first))

    @property
    def profiles(self) -> tuple[str, ...]:
        """Each once, the public code's first."""
        there = {series.profile for series in self.series}
        return tuple(sorted(there, key=profile_order))

    @property
    def datasets(self) -> tuple[str, ...]:
        """Each once, by name."""
        return tuple(sorted({file.dataset for file in self.files}))

    @property
    def scored_datasets(self) -> tuple[str, ...]:
        """Each dataset that has a line here, once, by name."""
        return tuple(sorted({self.files[number].dataset for number in np.unique(self.of_file).tolist()}))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Each once, the shortest first."""
        return tuple(sorted({file.length for file in self.files}))

    @property
    def model(self) -> "Column":
        """Of each line."""
        return column([series.model for series in self.series]).at(self.of_series)

    @property
    def metric(self) -> "Column":
        """Of each line."""
        return column([series.metric for series in self.series]).at(self.of_series)

    @property
    def profile(self) -> "Column":
        """Of each line."""
        return column([series.profile for series in self.series]).at(self.of_series)

    @property
    def label(self) -> "Column":
        """Of each line: its metric with the profile, where that is known or there are several."""
        names = [series.label if len(self.profiles) == 1 else series.full_label for series in self.series]
        return column(names).at(self.of_series)

    @property
    def dataset(self) -> "Column":
        """Of each line."""
        return column([file.dataset for file in self.files]).at(self.of_file)

    @property
    def length(self) -> "Column":
        """Of each line."""
        return column([file.length for file in self.files]).at(self.of_file)


@dataclass(frozen=True, slots=True)
class Column:
    """A value a line, as its place among the values there are."""

    values: Sequence[Any]
    codes: Ints

    def at(self, lines: Ints) -> "Column":
        """Of these lines."""
        return Column(self.values, self.codes[lines])


def column(values: Sequence[Any]) -> Column:
    """A value for each of some things."""
    known = sorted(set(values))
    places = {value: place for place, value in enumerate(known)}
    return Column(known, np.array([places[value] for value in values], np.int64))


def by_value(lines: Ints, *columns: Column) -> dict[tuple[Any, ...], Ints]:
    """The lines of each combination of values that there is; each column has a value for each of these lines."""
    return {
        tuple(column.values[code] for column, code in zip(columns, key, strict=True)): found
        for key, found in grouped(lines, *(column.codes for column in columns)).items()
    }


def grouped(lines: Ints, *columns: Ints) -> dict[tuple[int, ...], Ints]:
    """The lines of each combination of numbers that there is, in the order of the numbers."""
    if not len(lines):
        return {}
    order = np.lexsort(columns[::-1])
    ordered = np.stack([column[order] for column in columns])
    changes = np.flatnonzero(np.any(ordered[:, 1:] != ordered[:, :-1], axis=0)) + 1
    keys = ordered[:, np.concatenate([[0], changes])].T.tolist()
    return dict(zip(map(tuple, keys), np.split(lines[order], changes), strict=True))
