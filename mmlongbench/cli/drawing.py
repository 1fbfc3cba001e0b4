"""Tables on a terminal: their cells come from data and are printable, only their lines are drawn."""

import sys
from typing import Any

from rich.console import Console, ConsoleDimensions
from rich.markup import escape
from rich.table import Table as RichTable

from mmlongbench.io.printable import drawn_on, shown

_ANY_WIDTH = 10_000
"""Columns that any table fits."""


class Table(RichTable):
    """A table whose cells come from data: they are texts, never markup."""

    def add_row(self, *cells: Any, **options: Any) -> None:  # noqa: ANN401  (as rich has it)
        """Add a row."""
        super().add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def plain(text: str) -> str:
    """A text from data as a cell, a head or a title of a table."""
    return escape(shown(text))


def print_table(table: RichTable, folds: int = 0) -> None:
    """Print a table as wide as the terminal; wider where a number would be cut, or where there is no terminal.

    Its texts may be folded by so many columns.
    """
    console = _console()
    most = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
    width = max(console.width, most - folds) if console.is_terminal else most
    console.size = ConsoleDimensions(width, console.height)
    console.print(table)


def print_narrow_table(table: RichTable, usual: int) -> None:
    """Print a table as wide as the terminal, or the usual width; wider where numbers would be cut."""
    console = _console()
    needed = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).minimum
    console.size = ConsoleDimensions(max(console.width if console.is_terminal else usual, needed), console.height)
    console.print(table)


def _console() -> Console:
    """A console that draws tables: their cells are printable already."""
    return Console(file=drawn_on(sys.stdout))
