"""Makes the line that the command line prints for an error: what happened, where, and what to do."""

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mmlongbench.errors import MMLongBenchError
from tokenization import TokenizationError

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
