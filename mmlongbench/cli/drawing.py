"""Draws tables on a terminal; texts in cells come from data and are made printable."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Console, ConsoleDimensions
from rich.markup import escape
from rich.table import Table as RichTable

from mmlongbench.io.printable import drawn_on, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

Grid: TypeAlias = RichTable
"""A table without lines, whose cells are made printable by those who fill it."""
_ANY_WIDTH = 10_000
"""A width in characters that any table fits."""


class Table(RichTable):
    """A table whose cells come from data: they are plain text, never markup."""

    def add_row(self, *cells: "RenderableType | None", **options: Any) -> None:  # noqa: ANN401  (as rich has it)
        """Add a row."""
        super().add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def plain(text: str) -> str:
    """Return a text from data in the form that a cell, head or title of a table needs."""
    return escape(shown(text))


def print_table(table: RichTable, folds: int = 0) -> None:
    """Print a table as wide as the terminal, or wider if a number would be cut. If there is no terminal, nothing is
    folded.

    On a terminal, long texts may be folded; `folds` is the maximum number of characters by which this narrows the
    table.
    """
    console = _console()
    most = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
    width = max(console.width, most - folds) if console.is_terminal else most
    console.size = ConsoleDimensions(width, console.height)
    console.print(table)


def print_narrow_table(table: RichTable, usual: int) -> None:
    """Print a table as wide as the terminal or, if there is no terminal, with a width of `usual` characters. It is
    wider if numbers would be cut.
    """
    console = _console()
    needed = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).minimum
    console.size = ConsoleDimensions(max(console.width if console.is_terminal else usual, needed), console.height)
    console.print(table)


def print_grids(grids: Iterable["RenderableType"]) -> None:
    """Print grids of texts, as wide as the terminal or, if there is none, 80 characters wide; `COLUMNS` in the
    environment sets another width. Texts in them must be printable.
    """
    console = _console()
    with console.capture() as drawn:
        for grid in grids:
            console.print(grid, highlight=False)
    lines = drawn.get().splitlines()
    console.file.write("".join(f"{line.rstrip()}\n" for line in lines))


def screen_width() -> int:
    """Return the width in characters that `print_grids` uses."""
    return _console().width


def _console() -> Console:
    """Return a console that draws tables; their cells are already printable."""
    return Console(file=drawn_on(sys.stdout))
