"""Unpacks archives and packed files of the sources into a folder, within limits.

An archive comes from a stranger until it is unpacked: names that lead out of the folder, links, devices, and archives
that unpack to far more than they should are refused, and what was unpacked of them is removed.
"""

import errno
import hashlib
import io
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, NamedTuple

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import TEMPORARY

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
"""The endings of archives."""
OTHER_ARCHIVES = (".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".7z", ".rar")
"""The endings of archives that are not unpacked."""
PACKED = (".gz", ".zst")
"""The endings of single packed files, such as JSON Lines."""
MAX_FILES = 4_000_000
"""The maximum number of files of an archive; the largest archive of iNaturalist has 2.7 million."""
MAX_RATIO = 100
"""How many bytes one byte of an archive may unpack to: pictures give 1, JSON about 10, a bomb 1000."""
FREE_BYTES = 64 * 1024 * 1024
"""So many bytes may always be unpacked, whatever the ratio is."""
BROKEN = "broken-archive"
"""The reason of a fault: an archive or a packed file that cannot be unpacked."""
_STEP = 1024 * 1024
_MAX_HEADER = _STEP
"""The maximum size of what a tar writes before a file, such as a long name."""
_JUNK = "__MACOSX"
"""The folder in which macOS keeps attributes of files."""
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OverflowError)
_UTF8, _UNIX = 0x800, 3
"""Values of a zip: the flag of a name in UTF-8, and the system that wrote the file."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of the errors of a full disk."""

Advance = Callable[[int], None]
"""A function that moves a progress bar by a number of bytes of the packed file."""


class Member(NamedTuple):
    """A file of an archive."""

    name: str
    """The name as the archive has it."""
    kind: str
    """`file`, or in words what it is instead."""
    open: Callable[[], IO[bytes]]


def archive_ending(name: str) -> str:
    """Return the ending of an archive's name; empty for other names.

    >>> archive_ending("images.tar.gz"), archive_ending("IMAGES.ZIP"), archive_ending("rows.jsonl.gz")
    ('.tar.gz', '.ZIP', '')
    """
    found = max((ending for ending in ARCHIVES if name.lower().endswith(ending)), key=len, default="")
    return name[len(name) - len(found) :] if found and len(found) < len(name) else ""


def packed_ending(name: str) -> str:
    """Return the ending of the name of a single packed file; empty for other names and for archives.

    >>> packed_ending("rows.jsonl.gz"), packed_ending("rows.jsonl.zst"), packed_ending("images.tar.gz")
    ('.gz', '.zst', '')
    """
    found = next((ending for ending in PACKED if name.lower().endswith(ending)), "")
    return name[len(name) - len(found) :] if found and not archive_ending(name) and len(found) < len(name) else ""


def unpack_file(path: Path, into: Path, field: str, advance: Advance) -> None:
    """Write what a gzip or zstd file holds to `into`, a file that appears complete or not at all.

    Raises:
        SourceError: the file is broken, unpacks to far more than it should, or does not fit on the disk.

    """
    with _named_errors(path, field), _whole(into) as temporary, temporary.open("wb") as file:
        if not path.stat().st_size:
            raise EOFError("empty file")
        opened = _Opened(path, advance)
        with opened.unpacked(packed_ending(path.name), field) as content:
            _copy(content, file, opened.count(field))


def unpack_archive(path: Path, into: Path, field: str, advance: Advance) -> int:
    """Write the files of an archive below the folder `into`. Return their number. Hidden files are left out, as they
    are in folders of sources.

    Raises:
        SourceError: the archive is broken, has a name that leads out of the folder, a link, a device or too many files,
            unpacks to far more than it should, or does not fit on the disk.

    """
    number, there = 0, set[str]()
    with _named_errors(path, field):
        opened = _Opened(path, advance)
        count = opened.count(field)
        for member in _members(opened, field):
            name = _safe_name(member, path.name, field)
            if not name:
                continue
            number += 1
            if number > MAX_FILES:
                raise _refused("too-many-files", f"at most {MAX_FILES:,} files", "more", path.name, field)
            if name in there:
                raise _refused("file-twice", "each file once", name, path.name, field)
            there.add(name)
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with member.open() as content, target.open("xb") as file:
                _copy(content, file, count)
    return number


def unpacked_size(path: Path) -> int | None:
    """Return how many bytes an archive unpacks to, as far as its list of files says; None if it has no such list."""
    ending = archive_ending(path.name).lower()
    if ending == ".tar":
        return path.stat().st_size
    if ending != ".zip":
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):  # unpacking it says what is wrong
        return None


class _Opened:
    """A packed file that is read from its beginning to its end."""

    def __init__(self, path: Path, advance: Advance) -> None:
        self.path = path
        self.advance = advance
        self._most = FREE_BYTES + MAX_RATIO * path.stat().st_size

    def count(self, field: str) -> Callable[[int], None]:
        """Return a function that adds up unpacked bytes, and refuses too many."""
        done = 0

        def add(size: int) -> None:
            nonlocal done
            done += size
            if done > self._most:
                expected = f"at most {self._most:,} bytes in a file of {self.path.stat().st_size:,}"
                raise _refused("unpacks-to-too-much", expected, "more", self.path.name, field)

        return add

    @contextmanager
    def unpacked(self, ending: str, field: str) -> Iterator["_Forward"]:
        """Give the unpacked content of a file with this ending; the headers of a tar count as content too."""
        count = self.count(field)
        with self.path.open("rb") as raw:
            watched = _Watched(raw, self.advance)
            if ending.lower() in (".gz", ".tar.gz", ".tgz"):
                import gzip

                with gzip.GzipFile(fileobj=watched) as content:
                    yield _Forward(content.read, count)
            elif ending.lower() == ".zst":
                import pyarrow as pa

                with pa.CompressedInputStream(pa.PythonFile(watched, mode="r"), "zstd") as stream:
                    yield _Forward(stream.read, count)
            else:
                yield _Forward(watched.read, count)


class _Watched(io.RawIOBase):
    """A file whose reading moves a progress bar."""

    def __init__(self, file: BinaryIO, advance: Advance) -> None:
        self._file, self._advance = file, advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._advance(len(data))
        return len(data)


class _Forward:
    """What `tarfile` needs of a file: it is only read forward, and a header never fills the memory."""

    def __init__(self, read: Callable[[int], bytes], count: Callable[[int], None]) -> None:
        self._read, self._count, self._at = read, count, 0
        self.last = b""
        """What was read last."""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer only at the end."""
        if not 0 <= size <= _MAX_HEADER:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        parts, left = list[bytes](), size
        while left and (part := self._read(left)):
            parts.append(part)
            left -= len(part)
            self._count(len(part))
        self.last = b"".join(parts)
        self._at += len(self.last)
        return self.last

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._at

    def seek(self, place: int, whence: int = 0) -> int:
        """Skip to a place that is not before the present one."""
        if whence or place < self._at:
            raise tarfile.ReadError("files that overlap")
        while self._at < place and self.read(min(_STEP, place - self._at)):
            pass
        return self._at


def _members(opened: _Opened, field: str) -> Iterator[Member]:
    """Yield the members of an archive that are not folders, in its order; each must be opened before the next."""
    ending = archive_ending(opened.path.name)
    if ending.lower() != ".zip":
        with opened.unpacked(ending, field) as content:
            yield from _of_tar(content)
        return
    with opened.path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 28
            kind = "a link" if mode == 0o12 else "a device or a pipe" if mode in (1, 2, 6, 12) else "file"
            if not info.is_dir():
                yield Member(_zip_name(info), kind, partial(archive.open, info))
            opened.advance(info.compress_size)


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Return the name of a file. Many programs, such as `zip` on Linux and the Finder, write the bytes of the name
    without saying that they are UTF-8; Python then reads them as code page 437.
    """
    if info.flag_bits & _UTF8:
        return info.filename
    with suppress(UnicodeError):
        return info.filename.encode("cp437").decode(
            errors="surrogateescape" if info.create_system == _UNIX else "strict"
        )
    return info.filename


def _of_tar(content: _Forward) -> Iterator[Member]:
    with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]
        while (info := archive.next()) is not None:
            archive.members.clear()  # otherwise all members stay in memory
            if info.size < 0:
                raise tarfile.ReadError(f"a file of {info.size:,} bytes")
            if info.isdir():
                continue
            kind = "file" if info.isreg() and not info.issparse() else "a sparse file" if info.isreg() else "a device"
            kind = "a link" if info.issym() or info.islnk() else kind

            def read(info: tarfile.TarInfo = info) -> IO[bytes]:
                found: IO[bytes] | None = archive.extractfile(info)
                if found is None:
                    raise tarfile.ReadError(f"{info.name}: no content")
                return found

            yield Member(info.name, kind, read)
    if content.last.strip(b"\0"):  # `tarfile` takes a damaged header for the end
        raise tarfile.ReadError("a damaged header")
    if not content.last:
        raise tarfile.ReadError("no mark of its end: it may have been cut off")
    while content.read(_STEP):  # the sum that gzip keeps of its content follows the last file
        pass


def _safe_name(member: Member, archive: str, field: str) -> str:
    """Return the path of a member below the folder that it is unpacked into; empty for hidden files.

    Raises:
        SourceError: the path leads out of the folder, or the member is not a file.

    """
    name = member.name
    parts = [part for part in name.split("/") if part not in ("", ".")]
    is_bad = name.startswith(("/", "\\")) or ".." in parts or not parts or (len(name) > 1 and name[1] == ":")
    if is_bad or any("\\" in part and ".." in part for part in parts) or "\0" in name:
        raise _refused("path-out-of-archive", "names below the archive", repr(name)[:120], archive, field)
    if any(part.startswith(".") for part in parts) or parts[0] == _JUNK:
        return ""
    if member.kind != "file":
        raise _refused("not-a-file", "files and folders only", f"{member.kind}, {name!r:.120}", archive, field)
    return str(PurePosixPath(*parts))


def _copy(content: "IO[bytes] | _Forward", file: IO[bytes], count: Callable[[int], None]) -> None:
    while part := content.read(_STEP):
        count(len(part))
        file.write(part)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give the name under which a file or a folder is made; it is renamed to `path` at the end, or removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(path.name)).hexdigest()  # never longer than a name may be
    temporary = path.with_name(f"{TEMPORARY}{name}")
    remove(temporary)
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        remove(temporary)
        raise


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a new folder to fill, which gets the name `path` at the end; after an error it is removed."""
    with _whole(path) as temporary:
        temporary.mkdir()
        yield temporary


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def _named_errors(path: Path, field: str) -> Iterator[None]:
    """Turn what goes wrong while a file is unpacked into an error that names the file."""
    try:
        yield
    except (*_BROKEN, NotImplementedError, RuntimeError, ValueError) as error:  # encrypted, an unknown method
        found = str(error) or type(error).__name__
        todo = "download it again, or unpack it and give the folder"
        fault = Fault(BROKEN, "a whole archive that can be unpacked", found[:200], path.name, "", field, todo)
        raise SourceError(fault) from error
    except OSError as error:
        raise disk_error(error, path.name, field) from error


def disk_error(error: OSError, file: str, field: str) -> SourceError:
    """Return the error for a file that cannot be unpacked or downloaded; a full disk is named."""
    if error.errno in FULL:
        todo = "free some space, build in a folder on another disk, or unpack it there and give the folder"
        return SourceError(Fault("disk-full", "space for the unpacked files", "a full disk", file, "", field, todo))
    found = error.strerror or str(error) or type(error).__name__
    todo = "download it again, or unpack it and give the folder"
    return SourceError(Fault(BROKEN, "files that can be unpacked", found[:200], file, "", field, todo))


def _refused(reason: str, expected: str, found: str, file: str, field: str) -> SourceError:
    todo = "check where it comes from; unpack what you need of it, and give the folder"
    return SourceError(Fault(reason, expected, found, file, "", field, todo))
