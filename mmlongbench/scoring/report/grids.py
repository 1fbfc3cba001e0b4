"""Grids of numbers with named rows and columns, which a report is made of, one layer a model. Shows nothing."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mmlongbench.lengths import K, format_length
from mmlongbench.scoring.report.estimates import Estimate
from mmlongbench.scoring.scores import UNKNOWN, profile_order

MEAN = "mean"
"""The column of the mean over lengths, each counted once."""
DIGITS = 12
"""Digits that a mean is rounded to before models are put in order, so that the order of a sum makes none better."""
ALL = "all"
"""The column of the examples of all lengths together."""


@dataclass(frozen=True, slots=True)
class Row:
    """The head of a row: its name, and what it belongs to."""

    name: str
    of: str = ""
    """The thing that the row belongs to, or is made of."""
    metric: str = ""
    profile: str = ""
    """Whose rules its scores follow."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers of several models, row by column."""

    title: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, Row, str], Estimate]
    """The numbers by model, row and column; what is not there was not asked."""
    metric: str = ""
    """The metric, where all rows share one."""
    profile: str = ""
    """The profile, where all rows share one."""
    ranks: Mapping[tuple[str, Row, str], float] = field(default_factory=dict)
    """By cell, the place of the model among those that have a number there, where models are ranked; 1 is the best,
    equals share the mean of their places."""
    notes: tuple[str, ...] = field(default=())
    """Sentences that a reader of the numbers must know."""

    @property
    def label(self) -> str:
        """The metric and its profile, where all rows share one."""
        return f"{self.metric} ({self.profile})" if self.metric and self.profile not in ("", UNKNOWN) else self.metric

    def over_held_lengths(self, model: str, row: Row) -> float | None:
        """Return a model's mean over the examples of the lengths of which it skipped none; None where it has none.

        It stands in for the number of all lengths together, where that is N/A.
        """
        lengths = (self.cells.get((model, row, column)) for column in self.columns if column not in (ALL, MEAN))
        held = [(found.mean, found.counts) for found in lengths if found is not None and found.mean is not None]
        scored = sum(counts.examples - counts.failed for _, counts in held)
        return math.fsum(mean * (counts.examples - counts.failed) for mean, counts in held) / scored if scored else None

    def by_profile(self) -> Iterator["Grid"]:
        """Yield a grid for each profile, so that no table mixes them; notes are left out."""
        there = {self.profile} if self.profile else {row.profile for row in self.rows}
        for profile in sorted(there, key=profile_order) if self.rows else ():
            rows = tuple(row for row in self.rows if self.profile or row.profile == profile)
            yield replace(self, rows=rows, profile=profile, notes=())

    def summary(self) -> dict[str, Any]:
        """As JSON holds it: a list of cells."""
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
    """Return the places of the models in each row and column that several of them have a number in."""
    means: dict[tuple[Row, str], dict[str, float]] = {}
    for (model, row, column), found in cells.items():
        if found.mean is not None:
            means.setdefault((row, column), {})[model] = round(found.mean, DIGITS)
    return {
        (model, row, column): sum(other > mean for other in of_each.values())
        + (list(of_each.values()).count(mean) + 1) / 2
        for (row, column), of_each in means.items()
        if len(of_each) > 1
        for model, mean in of_each.items()
    }


def counted(found: Estimate) -> dict[str, Any]:
    """Return an estimate as JSON holds it."""
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
