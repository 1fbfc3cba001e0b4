"""Makes everything that the command line prints safe for a terminal, whatever code prints it.

Names, texts and errors come from data. Control characters in them are shown as escapes. Secrets in URLs are left out,
except in data such as JSON.
"""

import errno
import io
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from rich.console import Console, ConsoleDimensions
from rich.markup import escape
from rich.table import Table as RichTable

from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.printable import PrintableStream, drawn_on, printable, shown
from tokenization import TokenizationError

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
    watch = threading.Thread(target=_watch, args=(heard, ended, said), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(told)  # this ends the thread
        watch.join()
        os.close(heard)


def _watch(heard: int, ended: threading.Event, said: str) -> None:
    while number := os.read(heard, 1):
        if number[0] == signal.SIGINT and not ended.wait(SECONDS):
            sys.stderr.write(f"\n{said}\n")
            sys.stderr.flush()
            os._exit(130)


_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of the disk that end a build; the build can be continued."""
_OF_MEMORY = ("annot allocate memory", "failed to map segment", "can't start new thread", "std::bad_alloc")
"""Parts of the messages of libraries that get no memory; some of these libraries do not raise MemoryError."""


def words_of(error: BaseException) -> str:
    """Return the line for an error that a user can fix; empty for any other error, which needs its traceback."""
    if isinstance(error, MMLongBenchError | TokenizationError):
        return str(error)
    if _is_of_memory(error):
        return (
            "memory ran out; no file is half-written, run the same command to continue, "
            "with fewer --workers or a higher limit of memory (ulimit)"
        )
    return _of_system(error) if isinstance(error, OSError) else ""


def _is_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one that caused it, means that memory ran out."""
    return any(
        isinstance(each, MemoryError)
        or (isinstance(each, OSError) and each.errno == errno.ENOMEM)
        or (isinstance(each, ImportError | RuntimeError) and any(words in str(each) for words in _OF_MEMORY))
        for each in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it."""
    found: BaseException | None = error
    seen = set[int]()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _of_system(error: OSError) -> str:
    """Return the line for an error of the operating system; some of these errors do not name a file."""
    said = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            f"{f'{error.filename}: ' if error.filename else ''}{said}; allow more (ulimit -n), or use fewer --workers"
        )
    if error.filename is None and error.errno == errno.ENOENT and _is_homeless():
        return "the current folder was removed; change to another and run the command again"
    where = error.filename or f"standard output, or a file in the output folder or in {tempfile.gettempdir()}"
    what = f"{where}: {said}"
    if error.errno not in _OF_THE_DISK:
        return what
    if error.filename is None:  # the printed output is cut off
        return f"{what}; no file is half-written, run the command again once there is room"
    return f"{what}; no file is half-written, run the same command to continue"


def _is_homeless() -> bool:
    """Return whether the current folder was removed."""
    try:
        Path.cwd()
    except OSError:
        return True
    return False


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make everything that the block prints printable, whatever code prints it."""
    _open_streams()
    output = PrintableStream(sys.stdout, printable)  # this keeps URLs whole, because JSON data may have them
    try:
        with redirect_stdout(output), redirect_stderr(PrintableStream(sys.stderr)):
            yield
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # the command has said so; Python would say it again at its end, and change the exit code
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_streams() -> None:
    """Make sure that the three standard streams are open and accept any text.

    If a stream was closed, the next file to be opened would get the stream's number, and libraries would write into
    that file.
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


def _show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with redirect_stderr(PrintableStream(sys.stderr)):
        click.echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)


def say(text: str, *, err: bool = False, has_secret: bool = False) -> None:
    """Print one line; the text may contain anything. Secrets in addresses are left out, unless the line is there to
    give the user one (`has_secret`).
    """
    click.echo(printable(text) if has_secret else shown(text), err=err)


def can_print(text: str) -> bool:
    """Return whether the output can show these characters."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
