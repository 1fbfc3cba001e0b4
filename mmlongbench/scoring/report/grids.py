"""What a report is made of: grids of numbers with named rows and columns, one layer a model. Shows nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mmlongbench.packing.budget import K, format_length
from mmlongbench.scoring.report.estimates import Estimate

MEAN = "mean"
"""The column of the mean over lengths, each counted once."""
ALL = "all"
"""The column of the examples of all lengths together."""


@dataclass(frozen=True, slots=True)
class Row:
    """What stands before a row."""

    name: str
    of: str = ""
    """What it belongs to, or is made of."""
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers of several models, row by column."""

    title: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, Row, str], Estimate]
    """By model, row and column; what is not there was not asked."""
    metric: str = ""
    """Where all rows share one."""
    notes: tuple[str, ...] = field(default=())
    """Sentences that a reader of the numbers must know."""

    def summary(self) -> dict[str, Any]:
        """As JSON holds it: a list of cells."""
        cells = [
            {
                "model": model,
                "metric": row.metric or self.metric,
                "row": row.name,
                **({"of": row.of} if row.of else {}),
                "column": column,
                **counted(found),
            }
            for (model, row, column), found in self.cells.items()
        ]
        return {"title": self.title, "notes": list(self.notes), "cells": cells}


def counted(found: Estimate) -> dict[str, Any]:
    """An estimate as JSON holds it."""
    return {
        "mean": found.mean,
        "interval": None if found.low is None else [found.low, found.high],
        "examples": found.examples,
        "absent": found.absent,
        "failed": found.failed,
    }


def length_name(tokens: int) -> str:
    """A length for the head of a column.

    >>> length_name(8192), length_name(1000)
    ('8K', '1,000')
    """
    return format_length(tokens) if tokens >= K and tokens % K == 0 else f"{tokens:,}"
