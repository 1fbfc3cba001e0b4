"""The bytes of a file that is being downloaded: a hidden file beside the target, which is continued or dropped."""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mmlongbench.errors import DiskFullError
from mmlongbench.io.progress import Advance

_CHUNK = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Received:
    """The bytes that were downloaded."""

    size: int
    sha256: str


@dataclass
class Part:
    """The bytes of a file that are already there."""

    path: Path
    validator: str = ""
    """What the server calls this version of the file: a strong ETag, or a date."""
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _hashed: int = 0
    """How many of the bytes are in `_digest`, counted from the first."""

    def add(self, chunk: bytes, offset: int) -> None:
        """Take bytes into account that were written at an offset."""
        if offset == 0:
            self._digest, self._hashed = hashlib.sha256(), 0
        if offset == self._hashed:
            self._digest.update(chunk)
            self._hashed += len(chunk)

    def received(self) -> Received:
        """Return the size and the SHA-256 of the bytes; they are read again if another process wrote some of them."""
        is_hashed = self._hashed == self.size
        return Received(self._hashed, self._digest.hexdigest()) if is_hashed else received_of(self.path)

    @property
    def size(self) -> int:
        """The number of bytes; 0 if there is no file."""
        return self.path.stat().st_size if self.path.is_file() and not self.path.is_symlink() else 0

    def drop(self) -> None:
        """Remove the bytes."""
        self.path.unlink(missing_ok=True)
        self.validator = ""


def part_of(target: Path) -> Path:
    """Return the path of the bytes of a file that is not complete."""
    return target.with_name(f".part-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}")


def received_of(path: Path, advance: Advance = lambda size: None) -> Received:
    """Return the size and the SHA-256 of a file that is there."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            advance(len(chunk))
    return Received(size, digest.hexdigest())


def git_id(path: Path) -> str:
    """Return the id that git gives the bytes of a file."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def opened_part(part: Path, target: Path, *, is_new: bool) -> Iterator[IO[bytes]]:
    """Open the bytes of a file for writing at their end; a link is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | (os.O_TRUNC if is_new else 0)
    with disk_errors(target):
        part.parent.mkdir(parents=True, exist_ok=True)
        opened = os.fdopen(os.open(part, flags, 0o644), "ab", buffering=0)
    with opened as file:
        yield file


@contextmanager
def disk_errors(target: Path) -> Iterator[None]:
    """Turn an error of a full disk into one that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFullError(
            f"{target}: {error.strerror}; what was downloaded is kept: make room and run the same command to continue"
        ) from error
