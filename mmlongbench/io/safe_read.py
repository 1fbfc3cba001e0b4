"""Reads the bytes of raw sources within limits: lines, and whole files. The content is not interpreted here."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from mmlongbench.errors import Fault, SourceError

MAX_BYTES = 64 * 1024 * 1024
"""The maximum length of a line, in bytes."""
MAX_OF_A_FILE = 2 * 1024**3
"""The maximum size of a file that is read whole, in bytes; the largest file of COCO has half a gigabyte."""
_MAX_PACKED = 100
"""How many bytes one byte of gzip may unpack to, if the result has more than `MAX_BYTES`: about 10 are usual for JSON,
1000 for a zip bomb."""


def bounded_lines(file: IO[bytes]) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield (number from 1, position of the first byte, line) of each line. A line over `MAX_BYTES` is not kept in
    memory: None is yielded instead of its text.
    """
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
    """Open a regular file of the sources; refuse a pipe or a device, because reading it might never end."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise SourceError(Fault("unreadable-source", expected, "a pipe or a device", path.name, todo="give a file"))
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SourceError(
            Fault(
                "unreadable-source",
                expected,
                error.strerror or str(error),
                path.name,
                todo="make the file readable, or correct its path",
            )
        ) from error


def read_whole(path: Path, expected: str) -> bytes:
    """Return all bytes of a file, unpacked if it is gzipped.

    Raises:
        SourceError: the file cannot be read, is too large, or unpacks to far more than real data would.

    """
    with source_file(path, expected) as file:
        size = path.stat().st_size
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        most = min(MAX_OF_A_FILE, max(MAX_BYTES, _MAX_PACKED * size)) if is_packed else MAX_OF_A_FILE
        data = b"" if size > MAX_OF_A_FILE else _unpacked(file, most, path) if is_packed else file.read(most + 1)
    if size > MAX_OF_A_FILE or len(data) > most:
        found = f"more in {size} packed ones" if is_packed else str(size)
        raise SourceError(
            Fault("size-of-a-file", f"at most {most} bytes", found, path.name, todo="give a smaller file")
        )
    return data


def text_lines(path: Path, expected: str) -> list[str]:
    """Return the lines of a text file in UTF-8, without their ends.

    Raises:
        SourceError: the file cannot be read, is too large, or is not in UTF-8.

    """
    data = read_whole(path, expected)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        found, todo = f"byte 0x{data[error.start]:02x}", "save the file in UTF-8"
        fault = Fault("invalid-unicode", f"{expected} in UTF-8", found, path.name, f"line {number}", todo=todo)
        raise SourceError(fault) from error
    return [line.removesuffix("\r") for line in text.split("\n")]


def read_regular(path: Path, most: int) -> bytes:
    """Return all bytes of a file of a release.

    Reading a pipe or a device might never end. A sparse file takes no space on disk, but its full size in memory, so
    the size is checked first.

    Raises:
        OSError: the file is missing, cannot be read, or is not a regular file.
        ValueError: the file has more than `most` bytes.

    """
    if path.exists() and not path.is_file():
        raise OSError("a folder, a pipe or a device, expected a file")
    with path.open("rb") as file:
        data = file.read(most + 1) if path.stat().st_size <= most else b""
        if (not data and path.stat().st_size > most) or len(data) > most:
            raise ValueError(f"more than {most:,} bytes")
    return data


def _unpacked(file: BinaryIO, most: int, path: Path) -> bytes:
    """Return the content of a gzip stream, but at most `most` + 1 bytes of it."""
    try:
        with gzip.open(file) as unpacked:
            return unpacked.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fault = Fault("broken-gzip", "a whole gzip stream", str(error), path.name, todo="fetch it anew")
        raise SourceError(fault) from error


def _skip(lines: IO[bytes]) -> int:
    """Skip the rest of a line, and return the number of its bytes."""
    length = 0
    while part := lines.readline(MAX_BYTES):
        length += len(part)
        if part.endswith(b"\n"):
            break
    return length
