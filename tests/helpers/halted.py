"""Builds that are stopped, or whose surroundings change, just before a file of theirs gets its name."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from tiny import Ran, build

FIRST_OF_FINISH = "rejects.jsonl"
"""The file that a build writes first when the shards of all stages are done."""


@contextmanager
def before(end: str, do: Callable[[], object]) -> Iterator[list[str]]:
    """Do something once in this process, before the first file appears whose path has this end.

    Yields the names of all files that were written so far, in order. There must be such a file.
    """
    with _renamed(end, left := [do]) as written:
        yield written
    assert not left, f"no path ends with {end}: {written}"


@contextmanager
def noted() -> Iterator[list[str]]:
    """Yields the names of all files that were written so far, in order."""
    with _renamed("", []) as written:
        yield written


@contextmanager
def _renamed(end: str, left: list[Callable[[], object]]) -> Iterator[list[str]]:
    rename, written = os.replace, list[str]()

    def replace(source: Any, target: Any) -> None:
        if str(target).endswith(end) and left:
            left.pop()()
        rename(source, target)
        if Path(source).name.startswith("."):  # otherwise it is moved
            written.append(Path(target).name)

    with mock.patch.object(os, "replace", replace):
        yield written


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


def interrupted(source: Path, out: Path, *args: object) -> None:
    """Build the tiny source up to the last stage, and stop there as by Ctrl-C."""
    with before(FIRST_OF_FINISH, interrupt):
        assert build(source, out, *args).code == 130


def refused(ran: Ran, *facts: object, code: int = 2) -> None:
    """Check that a command ended with one line of error that names some facts."""
    errors = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
    assert (ran.code, len(errors)) == (code, 1), ran
    assert [fact for fact in facts if str(fact) not in ran.err] == [], ran.err
