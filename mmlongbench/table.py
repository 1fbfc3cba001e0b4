"""A table as a value: made once, where its numbers are known; a terminal, a page or JSON shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | int | float
"""A text, a count or a number; counts get separators, numbers two digits after the point."""


@dataclass(frozen=True, slots=True)
class Table:
    """A plain table. A row with one value alone is a heading of the rows below it."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Value]]
    title: str = ""
    notes: Sequence[str] = ()
    """Lines below the table."""
    align: str = "l"
    """A letter for each column of a terminal: l for texts, which are folded if there is no room, L for texts that are
    not, r for numbers. Columns without a letter have numbers."""
