"""Files: found in folders, read within limits, written completely or not at all, hashed, and locked so that only one
process writes.
"""

import fcntl
import filecmp
import gzip
import hashlib
import os
import socket
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import IO, BinaryIO

from mmlongbench.errors import BuildError, Fault, SourceError

MAX_BYTES = 64 * 1024 * 1024  # the maximum length of a line, in bytes
MAX_OF_A_FILE = 2 * 1024**3
"""The maximum size of a file that is read whole, in bytes; the largest file of COCO has half a gigabyte."""
_MAX_PACKED = 100
"""How many bytes one byte of gzip may unpack to, if the result has more than `MAX_BYTES`: about 10 are usual for JSON,
1000 for a zip bomb."""
TEMPORARY = ".tmp-"  # the beginning of the name of a file that is not complete yet
_PAUSE = 0.05


def said_bytes(size: int) -> str:
    """Return a number of bytes in words.

    >>> said_bytes(44_300_000_000), said_bytes(1200), said_bytes(7)
    ('44.3 GB', '1.2 kB', '7 bytes')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def bounded_lines(file: IO[bytes] | gzip.GzipFile, most: int | None = None) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield (number from 1, position of the first byte, line) of each line. A line of more than `most` bytes, by
    default `MAX_BYTES`, is not kept in memory: None is yielded instead of its text.
    """
    most = MAX_BYTES if most is None else most
    number, offset = 0, 0
    while line := file.readline(most + 1):
        number += 1
        is_whole, length = len(line) <= most, len(line)
        part = line
        while not is_whole and part and not part.endswith(b"\n"):
            part = file.readline(most)
            length += len(part)
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
        found, todo = error.strerror or str(error), "make the file readable, or correct its path"
        raise SourceError(Fault("unreadable-source", expected, found, path.name, todo=todo)) from error


def read_whole(path: Path, expected: str) -> bytes:
    """Return all bytes of a file, unpacked if it is gzipped.

    Raises:
        SourceError: the file cannot be read, is too large, or unpacks to far more than real data would.

    """
    with source_file(path, expected) as file:
        size, most, data = path.stat().st_size, MAX_OF_A_FILE, b""
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if size <= MAX_OF_A_FILE and is_packed:
            most = min(MAX_OF_A_FILE, max(MAX_BYTES, _MAX_PACKED * size))
            try:
                with gzip.open(file) as unpacked:
                    data = unpacked.read(most + 1)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                fault = Fault("broken-gzip", "a whole gzip stream", str(error), path.name, todo="fetch it anew")
                raise SourceError(fault) from error
        elif size <= MAX_OF_A_FILE:
            data = file.read(most + 1)
    if size > MAX_OF_A_FILE or len(data) > most:
        found = f"more in {size} packed ones" if is_packed else str(size)
        expected, todo = f"at most {most} bytes", "give a smaller file"
        raise SourceError(Fault("size-of-a-file", expected, found, path.name, todo=todo))
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


def _take(descriptor: int, what: str, kind: int, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise BuildError(f"{what} is being written by another process; wait for it or stop it") from error
        time.sleep(_PAUSE)


def pdfs_by_name(folder: Path, *, is_deep: bool = True) -> dict[str, Path | Fault]:
    """Return every visible PDF of a folder by its name without the ending; with `is_deep`, those of subfolders too.

    The value is a fault if several PDFs have the name and differ, or if one of them is a link out of the folder.

    Raises:
        SourceError: the path is not a folder.

    """
    if not folder.is_dir():
        todo = "give the folder, not a file in it"
        raise SourceError(Fault("unreadable-source", "a folder of PDFs", "a file", folder.name, todo=todo))
    named: dict[str, list[Path]] = {}
    for path in visible_files(folder):
        if path.suffix.lower() == ".pdf" and (is_deep or path.parent == folder):
            named.setdefault(path.stem, []).append(path)
    pdfs: dict[str, Path | Fault] = {}
    for stem, paths in named.items():
        outside = next((path for path in paths if file_inside(folder, path.relative_to(folder)) is None), None)
        if outside:
            name, todo = outside.relative_to(folder).as_posix(), "copy it into the folder"
            expected = "a PDF that lies in the folder"
            pdfs[stem] = Fault("path-outside-source", expected, "a link out of it", name, todo=todo)
        elif all(filecmp.cmp(paths[0], path, shallow=False) for path in paths[1:]):
            pdfs[stem] = paths[0]
        else:
            pdfs[stem] = two_of_one_name(paths, folder)
    return pdfs


def two_of_one_name(paths: list[Path], folder: Path) -> Fault:
    """Return the fault of different documents with the same name, of which a question could mean any."""
    found = ", ".join(path.relative_to(folder).as_posix() for path in paths)
    expected, todo = "names that differ before the ending", "rename all but one"
    return Fault("two-documents-of-one-name", expected, found, folder.name, todo=todo)


def is_unicode(name: str) -> bool:
    """Return whether the bytes of a file's name are UTF-8, so that it can be written into a text file."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def shown_name(name: str) -> str:
    r"""Return the name of a file as a text that can be written; a byte that is not UTF-8 becomes four letters.

    >>> shown_name("r\udce9port")
    'r\\xe9port'
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def visible_files(folder: Path) -> list[Path]:
    """Return all files below a folder, sorted, except files and folders whose name begins with a dot."""
    found, folders = list[Path](), [os.fspath(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:  # `rglob` would ask the disk about each file
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                folders += [entry.path] if entry.is_dir(follow_symlinks=False) else []
                with suppress(OSError):  # a link to itself
                    found += [Path(entry.path)] if entry.is_file() else []
    return sorted(found)


class Links:
    """Tells which files below a folder lead out of it through links; those of each folder are followed once a pass."""

    def __init__(self, root: Path) -> None:
        self.root, self._out = root, dict[str, bool]()

    def lead_out(self, name: str, *, of_top: bool = False) -> bool:
        """Return whether a file leads out of the folder; with `of_top`, of its top folder, which may be a link."""
        top = name.split("/")[0] if of_top and "/" in name else ""

        def is_outside(path: str) -> bool:
            return not Path(os.path.realpath(self.root / path)).is_relative_to(os.path.realpath(self.root / top))

        folder = name.rpartition("/")[0]
        if folder not in self._out:
            self._out[folder] = is_outside(folder)
        is_link = os.path.islink(f"{self.root}/{name}")  # noqa: PTH114  (a `Path` takes longer than a header)
        return self._out[folder] or (is_link and is_outside(name))


def file_inside(folder: Path, name: str | PurePath) -> Path | None:
    """Return a file of a folder if it is inside the folder when all links are followed; otherwise None.

    `name` may come from data. It is a path relative to the folder, or an absolute path. For a download in the hub's
    cache, the folder `blobs` of its dataset counts as a part of the folder.
    """
    path = folder / name
    try:
        root = folder.resolve()
        roots = [root]
        for above in root.parents:
            if above.name == "snapshots" and above.parent.name.startswith(("datasets--", "models--")):
                roots.append(above.parent / "blobs")
        is_there = path.is_file() and any(path.resolve().is_relative_to(root) for root in roots)
    except (OSError, ValueError):  # too long, or not a possible name of a file
        return None
    return path if is_there else None
