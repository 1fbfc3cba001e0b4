"""Files that are written completely or not at all, their hashes, and kernel locks that let only one process write."""

import fcntl
import hashlib
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mmlongbench.errors import BuildError

_PAUSE = 0.05
"""The seconds between two looks whether a lock is free."""
TEMPORARY = ".tmp-"
"""The beginning of the name of a file that is not complete yet."""


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only if the block ends without an error.

    A temporary file in the same folder is written, synced and renamed. After an error it is removed.
    """
    with atomic_replace(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Yield a temporary path, at which the block makes a file. The file is renamed to `path` if the block ends without
    an error (see `atomic_write`).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{path.name}"[:200])
    try:
        with suppress(FileNotFoundError):
            temporary.unlink()  # left by a killed process that had the same process id
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # errors of a write have no file name
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write pieces to a file that appears complete or not at all."""
    with atomic_write(path) as file:
        file.writelines(pieces)


def sweep(root: Path) -> None:
    """Remove the half-written files that killed processes left below a folder."""
    for path in root.rglob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def file_lock(path: Path, what: str, *, is_shared: bool = False, patience: float = 0.0) -> Iterator[None]:
    """Hold a kernel lock on a file, so that only one process writes something; the lock ends with the block or the
    process.

    With `is_shared`, several processes may hold the lock at the same time, provided that all of them use `is_shared`.
    If another process holds the lock, wait for it for `patience` seconds.

    Raises:
        BuildError: another process holds the lock.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        _take(file.fileno(), what, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX, patience)
        yield


@contextmanager
def folder_lock(folder: Path, what: str, *, patience: float = 0.0) -> Iterator[None]:
    """Hold a kernel lock on a folder, which leaves no file in it. Where a folder cannot be locked, as on some network
    disks, or cannot be read, nothing is held.

    Raises:
        BuildError: another process holds the lock for longer than `patience`, in seconds.

    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as left:
        with suppress(OSError):
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            left.callback(os.close, opened)
            _take(opened, what, fcntl.LOCK_EX, patience)
        yield


def _take(descriptor: int, what: str, kind: int, patience: float) -> None:
    """Take a kernel lock, and wait for it for `patience` seconds."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise BuildError(f"{what} is being written by another process; wait for it or stop it") from error
        time.sleep(_PAUSE)
