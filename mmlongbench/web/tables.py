"""Tables as values, which `tables.html` prints: texts, looks and colours; nothing is computed here. It also prints a
plain table, which is that of `mmlongbench.table`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
    """A cell of a table. It is a tuple because a page has many thousands of cells."""

    text: str = ""
    ramp: str = ""
    """The place of the cell's colour on the ramp of the table, from 0 to 1; empty for no colour."""
    interval: str = ""
    title: str = ""
    """The text that is shown on mouse-over."""
    missing: Sequence[str] = ()
    """A text such as "3 absent" for each way in which examples are missing."""
    rank: str = ""
    look: str = ""
    """The CSS classes of a cell without a colour, such as `na` if it has no number."""
    key: str = ""
    """The value by which rows are sorted in a table that a reader can sort; if it is empty, the text is used."""


EMPTY = Cell()
DASH = Cell("–", look="na")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table."""

    name: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that belong together."""

    name: str
    about: str
    """A note in small print, such as what the group is made of."""
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of numbers with named columns."""

    columns: Sequence[str]
    groups: Iterable[Group]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Ramp:
    """The range of numbers that the colours of a table cover."""

    low: float = 0.0
    high: float = 1.0

    def at(self, number: float) -> str:
        """Return the place of a number on the ramp, from 0 to 1, as text.

        >>> Ramp(0.2, 0.7).at(0.3), Ramp(0.2, 0.7).at(9)
        ('0.200', '1.000')
        """
        return f"{min(1.0, max(0.0, (number - self.low) / (self.high - self.low))):.3f}"


@dataclass(frozen=True, slots=True)
class HeatMaps:
    """Small tables side by side, with one colour ramp."""

    ramp: Ramp
    tables: Sequence[Table]
