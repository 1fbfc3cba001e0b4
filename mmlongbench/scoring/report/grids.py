"""Grids of numbers with named rows and columns, from which a report is made; a grid has a layer for each model."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mmlongbench.lengths import K, format_length
from mmlongbench.scoring.report.estimates import Estimate
from mmlongbench.scoring.scores import UNKNOWN, profile_order

MEAN = "mean"
"""The name of the column with the mean over lengths; each length has the same weight."""
DIGITS = 12
"""The decimal places to which a mean is rounded before models are ranked, so that rounding errors change no rank."""
ALL = "all"
"""The name of the column with the mean over the examples of all lengths together."""


@dataclass(frozen=True, slots=True)
class Row:
    """The head of a row: its name, and what it belongs to."""

    name: str
    of: str = ""
    """What the row belongs to, such as a dataset; for an average, the datasets that it is made of."""
    metric: str = ""
    profile: str = ""
    """The profile, which says whose rules the scores follow."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The numbers of several models, by row and column."""

    title: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, Row, str], Estimate]
    """The numbers by model, row and column; a number that is missing here was not computed."""
    metric: str = ""
    """The metric, if all rows share one."""
    profile: str = ""
    """The profile, if all rows share one."""
    ranks: Mapping[tuple[str, Row, str], float] = field(default_factory=dict)
    """The ranks by model, row and column, if models are ranked; 1 is the best, and equal models share the mean of their
    ranks."""
    notes: tuple[str, ...] = field(default=())
    """Sentences that a reader of the numbers must know."""

    @property
    def label(self) -> str:
        """The metric and its profile, if all rows share one."""
        return f"{self.metric} ({self.profile})" if self.metric and self.profile not in ("", UNKNOWN) else self.metric

    def over_held_lengths(self, model: str, row: Row) -> float | None:
        """Return a model's mean over all examples of the lengths at which no example was skipped.

        None if there is no such length with a mean. Reports show this mean if the mean over all lengths is N/A.
        """
        lengths = (self.cells.get((model, row, column)) for column in self.columns if column not in (ALL, MEAN))
        held = [(found.mean, found.counts) for found in lengths if found is not None and found.mean is not None]
        scored = sum(counts.examples - counts.failed for _, counts in held)
        return math.fsum(mean * (counts.examples - counts.failed) for mean, counts in held) / scored if scored else None

    def by_profile(self) -> Iterator["Grid"]:
        """Yield a grid for each profile, so that no table mixes profiles; notes are left out."""
        there = {self.profile} if self.profile else {row.profile for row in self.rows}
        for profile in sorted(there, key=profile_order) if self.rows else ():
            rows = tuple(row for row in self.rows if self.profile or row.profile == profile)
            yield replace(self, rows=rows, profile=profile, notes=())

    def summary(self) -> dict[str, Any]:
        """Return the title, the notes and a list of the cells, as JSON values."""
        cells = [
            {
                "model": model,
                "metric": row.metric or self.metric,
                "profile": row.profile or self.profile,
                "row": row.name,
                **({"of": row.of} if row.of else {}),
                "column": column,
                **counted(found),
                **({"rank": self.ranks[model, row, column]} if (model, row, column) in self.ranks else {}),
            }
            for (model, row, column), found in self.cells.items()
        ]
        return {"title": self.title, "notes": list(self.notes), "cells": cells}


def ranks_of(cells: Mapping[tuple[str, Row, str], Estimate]) -> dict[tuple[str, Row, str], float]:
    """Return the ranks by model, row and column, for each row and column with numbers of several models."""
    means: dict[tuple[Row, str], dict[str, float]] = {}
    for (model, row, column), found in cells.items():
        if found.mean is not None:
            means.setdefault((row, column), {})[model] = round(found.mean, DIGITS)
    return {
        (model, row, column): place
        for (row, column), of_each in means.items()
        if len(of_each) > 1
        for model, place in zip(of_each, places(list(of_each.values())), strict=True)
    }


def places(scores: Sequence[float]) -> list[float]:
    """Return the rank of each score: 1 is the best, and equal scores share the mean of their ranks."""
    return [sum(other > score for other in scores) + (scores.count(score) + 1) / 2 for score in scores]


def counted(found: Estimate) -> dict[str, Any]:
    """Return an estimate as JSON values."""
    return {
        "mean": found.mean,
        "interval": None if found.low is None else [found.low, found.high],
        "clusters": found.clusters,
        **asdict(found.counts),
        **({"mean_of_others": found.others} if found.counts.skipped else {}),
    }


def length_name(tokens: int) -> str:
    """Return a length for the head of a column.

    >>> length_name(8192), length_name(1000)
    ('8K', '1,000')
    """
    return format_length(tokens) if tokens >= K and tokens % K == 0 else f"{tokens:,}"
