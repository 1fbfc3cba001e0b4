"""A table as a value: made once, where its numbers are known; a terminal or a page shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Cell(NamedTuple):
    """A cell with more than a value. A page shows all of it, a terminal the text alone.

    It is a tuple because a page has many thousands of cells.
    """

    text: str = ""
    """In a page also HTML, if a template made it."""
    below: Sequence[str] = ()
    """Small lines below the text."""
    title: str = ""
    """Shown on mouse-over."""
    key: str | float = ""
    """By which a page sorts the rows; without it, by the text."""
    ramp: str = ""
    """The place of the colour on the ramp of the table, from 0 to 1; empty: no colour."""
    look: str = ""
    """Classes of the stylesheet."""


Value: TypeAlias = str | int | float | Cell
"""A text, a count or a number."""


def text_of(value: Value) -> str:
    """Return the text of a value: counts get separators, numbers two digits after the point.

    >>> text_of(1234), text_of(0.5), text_of("a")
    ('1,234', '0.50', 'a')
    """
    if isinstance(value, Cell):
        return value.text
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table. A row with one value alone is a heading of the rows below it."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Value]]
    title: str = ""
    notes: Sequence[str] = ()
    """Lines below the table."""
    align: str = "l"
    """A letter for each column: l for texts, which a terminal folds if there is no room, L for texts that it does not
    fold, r for numbers. Columns without a letter have numbers."""

    def sides(self) -> str:
        """Return the letter of every column."""
        return self.align.ljust(len(self.columns), "r")
