"""The line of the command line for an error: what happened, where, and what to do."""

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mmlongbench.errors import MMLongBenchError
from tokenization import TokenizationError

_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors that end a build which can go on."""
_OF_MEMORY = ("annot allocate memory", "failed to map segment", "can't start new thread", "std::bad_alloc")
"""What libraries say when they get no memory; not all raise MemoryError."""


def words_of(error: BaseException) -> str:
    """Return the line for an error that a user can mend; nothing for any other, which needs its traceback."""
    if isinstance(error, MMLongBenchError | TokenizationError):
        return str(error)
    if _is_of_memory(error):
        return (
            "memory ran out; nothing is half-written, the same command goes on: use fewer --workers, or allow more "
            "memory (ulimit)"
        )
    return _of_system(error) if isinstance(error, OSError) else ""


def _is_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one that it comes from, is for want of memory."""
    return any(
        isinstance(each, MemoryError)
        or (isinstance(each, OSError) and each.errno == errno.ENOMEM)
        or (isinstance(each, ImportError | RuntimeError) and any(words in str(each) for words in _OF_MEMORY))
        for each in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it comes from."""
    found: BaseException | None = error
    seen = set[int]()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _of_system(error: OSError) -> str:
    """Return the line for an error of the operating system, which may not name its file."""
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
    if error.filename is None:  # what was printed is cut off
        return f"{what}; no file is half-written, run the command again once there is room"
    return f"{what}; nothing is half-written, the same command goes on"


def _is_homeless() -> bool:
    """Return whether the current folder is gone."""
    try:
        Path.cwd()
    except OSError:
        return True
    return False
