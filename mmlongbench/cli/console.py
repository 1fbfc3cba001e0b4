"""Makes everything that the command line prints safe for a terminal, whatever code prints it.

Names, texts and errors come from data. Control characters in them are shown as escapes. Secrets in URLs are left out,
except in data such as JSON.
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
