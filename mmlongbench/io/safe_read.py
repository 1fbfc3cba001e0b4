"""The bytes of raw sources within bounds: lines, and files read whole. Knows nothing of what they say."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from mmlongbench.errors import Fault, SourceError

MAX_BYTES = 64 * 1024 * 1024
"""The longest line that is parsed."""
MAX_OF_A_FILE = 2 * 1024**3
"""The largest file that is read whole, in bytes; COCO's largest has half a gigabyte."""
_MAX_PACKED = 100
"""What a byte of gzip may unpack to, from `MAX_BYTES` on: JSON packs at about 10 to 1, a bomb at 1000 to 1."""


def bounded_lines(file: IO[bytes]) -> Iterator[tuple[int, int, bytes | None]]:
    """(number from 1, first byte, line) of each line; None for one that is longer than `MAX_BYTES`, never held."""
    number, offset = 0, 0
    while line := file.readline(MAX_BYTES + 1):
        number += 1
        length, is_whole = len(line), len(line) <= MAX_BYTES
        if not is_whole and not line.endswith(b"\n"):
            length += _skip(file)
        yield number, offset, line if is_whole else None
        offset += length


@contextmanager
def source_file(path: Path, expected: str) -> Iterator[BinaryIO]:
    """A regular file of the sources, open; a pipe would be waited for, a device may never end."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise SourceError(Fault("unreadable-source", expected, "a pipe or a device", path.name))
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SourceError(Fault("unreadable-source", expected, error.strerror or str(error), path.name)) from error


def read_whole(path: Path, expected: str) -> bytes:
    """All bytes of a file, unpacked where it is gzipped.

    Raises:
        SourceError: it cannot be read, is too large, or unpacks to much more than data does.

    """
    with source_file(path, expected) as file:
        size = path.stat().st_size
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        most = min(MAX_OF_A_FILE, max(MAX_BYTES, _MAX_PACKED * size)) if is_packed else MAX_OF_A_FILE
        data = b"" if size > MAX_OF_A_FILE else _unpacked(file, most, path) if is_packed else file.read(most + 1)
    if size > MAX_OF_A_FILE or len(data) > most:
        found = f"more in {size} packed ones" if is_packed else str(size)
        raise SourceError(Fault("size-of-a-file", f"at most {most} bytes", found, path.name))
    return data


def read_regular(path: Path, most: int) -> bytes:
    """Return all bytes of a file of a release.

    A pipe would be waited for, and a device may never end; a sparse file takes no room on the disk and all in memory.

    Raises:
        OSError: it is missing, cannot be read, or is no regular file.
        ValueError: it has more than `most` bytes.

    """
    if path.exists() and not path.is_file():
        raise OSError("a folder, a pipe or a device, expected a file")
    with path.open("rb") as file:
        data = file.read(most + 1) if path.stat().st_size <= most else b""
        if (not data and path.stat().st_size > most) or len(data) > most:
            raise ValueError(f"more than {most:,} bytes")
    return data


def _unpacked(file: BinaryIO, most: int, path: Path) -> bytes:
    """What a gzip stream holds, or one byte more than is allowed."""
    try:
        with gzip.open(file) as unpacked:
            return unpacked.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fault = Fault("broken-gzip", "a whole gzip stream", str(error), path.name, todo="fetch it anew")
        raise SourceError(fault) from error


def _skip(lines: IO[bytes]) -> int:
    """Pass over the rest of a line; its bytes."""
    length = 0
    while part := lines.readline(MAX_BYTES):
        length += len(part)
        if part.endswith(b"\n"):
            break
    return length
