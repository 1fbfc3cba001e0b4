"""Where the command line meets the terminal: the only place that writes to it, and what is written is printable.

Names, texts and errors come from data. What of them a terminal would obey is shown as an escape, and the secrets of
URLs are left out.
"""

import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import TracebackType

import click

from mmlongbench.io.printable import PrintableStream, printable, shown


@contextmanager
def printable_streams() -> Iterator[None]:
    """Let all that the block prints be printable, whoever prints it, and whatever the streams were at the start."""
    _open_streams()
    output = PrintableStream(sys.stdout, printable)  # JSON of data keeps the URLs in it
    with redirect_stdout(output), redirect_stderr(PrintableStream(sys.stderr)):
        yield


def _open_streams() -> None:
    """Make sure that there are three standard streams, which write whatever they are given.

    Where one was closed, the next file that is opened would take its number, and libraries would write into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.excepthook = _show_traceback


def _show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with redirect_stderr(PrintableStream(sys.stderr)):
        click.echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)


def say(text: str, *, err: bool = False) -> None:
    """Print one line, whatever is in it."""
    click.echo(shown(text), err=err)


def can_print(text: str) -> bool:
    """Whether the output has these characters."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
