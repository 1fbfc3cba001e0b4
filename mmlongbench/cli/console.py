"""Makes everything that the command line prints safe for a terminal, whatever code prints it.

Names, texts and errors come from data. Control characters in them are shown as escapes. Secrets in URLs are left out,
except in data such as JSON.
"""

import errno
import io
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.printable import PrintableStream, drawn_on, printable, shown
from mmlongbench.table import Table, text_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as Grid

_NARROWEST = 8  # the width in characters to which a column of texts may be folded on a terminal
_NARROWEST_TITLE = 40  # a title is folded where its table ends, but never below this width


def print_table(table: Table, usual: int = 0, gap: int = 2, *, folds_numbers: bool = False) -> None:
    """Print a table as wide as the terminal, or `usual` characters wide if there is no terminal (0: as wide as it is).

    Texts are folded if there is no room. Numbers are never cut; they are folded at blanks only with `folds_numbers`.
    """
    from rich.table import Table as Grid
    from rich.text import Text

    rows = [[shown(text_of(value)) for value in values] for values in table.rows]
    align = table.sides()
    console = _console()
    room = console.width if console.is_terminal else usual
    widths = _widths([[shown(name) for name in table.columns], *rows], align, room, gap, folds_numbers=folds_numbers)
    grid = Grid(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for name, side, width in zip(table.columns, align, widths, strict=True):
        grid.add_column(Text(shown(name)), justify="left" if side in "lL" else "right", width=width, overflow="fold")
    for row in rows:
        style = "bold" if len(row) == 1 < len(widths) else ""
        grid.add_row(*(Text(cell, style) for cell in row))
    width = sum(widths) + gap * (len(widths) - 1)
    if table.title:
        console.width = max(width, _NARROWEST_TITLE)
        console.print(Text(shown(table.title), "bold"))
    console.width = width
    console.print(grid)
    for note in table.notes:
        say(note)


def _widths(
    rows: Sequence[Sequence[str]], align: str, room: int, gap: int, *, folds_numbers: bool = False
) -> list[int]:
    """Return the width of each column. If there is no room, the widest texts become narrower, then numbers."""
    from rich.cells import cell_len

    widths, least = [0] * len(align), [0] * len(align)
    for row in rows:
        for column, cell in enumerate(row):
            widths[column] = max(widths[column], cell_len(cell))
            words = max(map(cell_len, cell.split()), default=0)
            least[column] = max(least[column], _NARROWEST if align[column] == "l" else words)
    excess = sum(widths) + gap * (len(widths) - 1) - room if room else 0
    for side in "lr" if folds_numbers else "l":
        for _ in range(excess):
            wide = [column for column in range(len(align)) if align[column] == side and widths[column] > least[column]]
            if wide:
                widths[max(wide, key=lambda column: widths[column])] -= 1
                excess -= 1
    return widths


def grid(gap: int) -> "Grid":
    """Return a grid of texts for `print_grids`, with `gap` blanks between its columns."""
    from rich.table import Table as Grid

    return Grid.grid(padding=(0, gap, 0, 0))


def print_grids(grids: Iterable["RenderableType"]) -> None:
    """Print grids of texts, as wide as the terminal or, if there is none, 80 characters wide; `COLUMNS` in the
    environment sets another width. Texts in them must be printable.
    """
    console = _console()
    with console.capture() as drawn:
        for each in grids:
            console.print(each, highlight=False)
    lines = drawn.get().splitlines()
    console.file.write("".join(f"{line.rstrip()}\n" for line in lines))


def screen_width() -> int:
    return _console().width


def _console() -> "Console":
    from rich.console import Console

    return Console(file=drawn_on(sys.stdout))


SECONDS = 1.5
"""How many seconds a command may still take to end after Ctrl-C; then the process is ended."""


@contextmanager
def interrupted_soon(said: str) -> Iterator[None]:
    """End the block with KeyboardInterrupt on Ctrl-C; if the block does not end in time, print `said` and end the
    process.

    Python handles a signal only between two steps of Python code, and not during a long call into another language
    (such as writing an index). So the signal is also written to a pipe at once, and a thread reads it there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    ended = threading.Event()
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)

    def watch() -> None:
        while number := os.read(heard, 1):
            if number[0] == signal.SIGINT and not ended.wait(SECONDS):
                sys.stderr.write(f"\n{said}\n")
                sys.stderr.flush()
                os._exit(130)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(told)  # this ends the thread
        thread.join()
        os.close(heard)


_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of the disk that end a build; the build can be continued."""
_OF_MEMORY = ("annot allocate memory", "failed to map segment", "can't start new thread", "std::bad_alloc")
"""Parts of the messages of libraries that get no memory; some of these libraries do not raise MemoryError."""


def error_line(error: BaseException) -> str:
    """Return the line for an error that a user can fix; empty for any other error, which needs its traceback."""
    if isinstance(error, MMLongBenchError):
        return str(error)
    cause: BaseException | None = error
    seen = set[int]()
    while cause and id(cause) not in seen:  # memory may run out below the error of a library
        if (
            isinstance(cause, MemoryError)
            or (isinstance(cause, OSError) and cause.errno == errno.ENOMEM)
            or (isinstance(cause, ImportError | RuntimeError) and any(words in str(cause) for words in _OF_MEMORY))
        ):
            return (
                "memory ran out; no file is half-written, run the same command to continue, "
                "with fewer --workers or a higher limit of memory (ulimit)"
            )
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, OSError):
        return _of_system(error)
    from tokenization import TokenizationError  # `--help` does without it

    return str(error) if isinstance(error, TokenizationError) else ""


def _of_system(error: OSError) -> str:
    """Return the line for an error of the operating system; some of these errors do not name a file."""
    said = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            f"{f'{error.filename}: ' if error.filename else ''}{said}; allow more (ulimit -n), or use fewer --workers"
        )
    if error.filename is None and error.errno == errno.ENOENT:
        try:
            Path.cwd()
        except OSError:
            return "the current folder was removed; change to another and run the command again"
    where = error.filename or f"standard output, or a file in the output folder or in {tempfile.gettempdir()}"
    what = f"{where}: {said}"
    if error.errno not in _OF_THE_DISK:
        return what
    if error.filename is None:  # the printed output is cut off
        return f"{what}; no file is half-written, run the command again once there is room"
    return f"{what}; no file is half-written, run the same command to continue"


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make everything that the block prints printable, whatever code prints it, and let the streams accept any text.

    A stream that was closed is opened: otherwise the next file to be opened would get its number, and libraries would
    write into that file.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.excepthook = _show_traceback
    output = PrintableStream(sys.stdout, printable)  # this keeps URLs whole, because JSON data may have them
    try:
        with redirect_stdout(output), redirect_stderr(PrintableStream(sys.stderr)):
            yield
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # the command has said so; Python would say it again at its end, and change the exit code
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with redirect_stderr(PrintableStream(sys.stderr)):
        click.echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)


def say(text: str, *, err: bool = False) -> None:
    """Print one line; the text may contain anything. Secrets in addresses are left out."""
    click.echo(shown(text), err=err)


def say_wrapped(text: str, first: str = "", hanging: str = "  ", width: int = 0, *, err: bool = False) -> None:
    """Print a text in lines of at most `width` characters; 0: as wide as the terminal, or in one line if there is none.
    A longer word is not broken. The first line begins with `first`, the others with `hanging`.
    """
    if not width and (sys.stderr if err else sys.stdout).isatty():
        width = shutil.get_terminal_size().columns
    wrapper = textwrap.TextWrapper(width, first, hanging, break_long_words=False, break_on_hyphens=False)
    for line in wrapper.wrap(text) if width else [f"{first}{text}"]:
        say(line, err=err)


def say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say(f"note: {note}", err=True)
