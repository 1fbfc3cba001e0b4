"""Files that appear whole or not at all, their hashes, and the kernel's locks on who may write them."""

import fcntl
import hashlib
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mmlongbench.errors import BuildError

TEMPORARY = ".tmp-"
"""How the name of a file begins that is not yet whole."""


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when the block ends well.

    The temporary file stands in the same folder, is synced, and renamed; a failing block leaves nothing.
    """
    with atomic_replace(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Give the path of a new file, named when the block ends well: as `atomic_write`, for other writers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{path.name}"[:200])
    try:
        with suppress(FileNotFoundError):
            temporary.unlink()  # of a killed process that had this number
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # as of a write, which knows no name
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write pieces to a file that appears whole or not at all."""
    with atomic_write(path) as file:
        file.writelines(pieces)


def sweep(root: Path) -> None:
    """Remove what killed writers left half-written."""
    for path in root.rglob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def file_lock(path: Path, what: str, *, is_shared: bool = False) -> Iterator[None]:
    """Hold the kernel's lock on a file, so that one process writes a thing; the lock dies with its owner.

    With `is_shared` others may hold it so too, and none may hold it alone.

    Raises:
        BuildError: another process holds it.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BuildError(f"{what} is being written by another process; wait for it or stop it") from error
        yield
