"""Unpacks archives and packed files of the sources into a folder, within limits.

An archive comes from a stranger until it is unpacked: names that lead out of the folder, links, devices, and archives
that unpack to far more than they should are refused (SourceError), and what was unpacked of them is removed.
"""

import errno
import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import TEMPORARY
from mmlongbench.io.progress import Advance

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
OTHER_ARCHIVES = (".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".7z", ".rar")
"""The endings of archives that are not unpacked."""
PACKED = (".gz", ".zst")  # the endings of single packed files, such as JSON Lines
MAX_FILES = 4_000_000
"""The maximum number of files of an archive; the largest archive of iNaturalist has 2.7 million."""
MAX_RATIO = 100
"""How many bytes one byte of an archive may unpack to: pictures give 1, JSON about 10, a bomb 1000."""
FREE_BYTES = 64 * 1024 * 1024  # so many bytes may always be unpacked, whatever the ratio is
BROKEN = "broken-archive"
"""The reason of a fault: an archive or a packed file that cannot be unpacked."""
MORE_SPACE = "free some space, build in a folder on another disk, or unpack it there and give the folder"
FULL = (errno.ENOSPC, errno.EDQUOT)  # the numbers of the errors of a full disk
_STEP = 1024 * 1024
_MACOS = "__MACOSX"  # the folder in which macOS keeps attributes of files
_ERRORS = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OverflowError)


def archive_ending(name: str) -> str:
    """Return the ending of an archive's name; empty for other names.

    >>> archive_ending("images.tar.gz"), archive_ending("IMAGES.ZIP"), archive_ending("rows.jsonl.gz")
    ('.tar.gz', '.ZIP', '')
    """
    return _ending(name, ARCHIVES)


def packed_ending(name: str) -> str:
    """Return the ending of the name of a single packed file; empty for other names and for archives.

    >>> packed_ending("rows.jsonl.gz"), packed_ending("rows.jsonl.zst"), packed_ending("images.tar.gz")
    ('.gz', '.zst', '')
    """
    return "" if archive_ending(name) else _ending(name, PACKED)


def _ending(name: str, endings: Sequence[str]) -> str:
    longest = max((ending for ending in endings if name.lower().endswith(ending)), key=len, default="")
    return name[len(name) - len(longest) :] if 0 < len(longest) < len(name) else ""


def unpack_file(path: Path, into: Path, field: str, advance: Advance) -> None:
    """Write what a gzip or zstd file holds to `into`, a file that appears complete or not at all."""
    packed = _Packed(path, field)
    with packed.named_errors(), _whole(into) as temporary, temporary.open("wb") as file, path.open("rb") as raw:
        if not path.stat().st_size:
            raise EOFError("empty file")
        content, at = _Content(raw, packed_ending(path.name), packed), 0
        while part := content.read(_STEP):
            file.write(part)
            advance(raw.tell() - at)
            at = raw.tell()


def unpack_archive(path: Path, into: Path, field: str, advance: Advance) -> int:
    """Write the files of an archive below the folder `into`. Return their number. Hidden files are left out, as they
    are in folders of sources.
    """
    packed, count = _Packed(path, field), 0
    is_zip = archive_ending(path.name).lower() == ".zip"
    with packed.named_errors():
        for name in packed.unpack_zip(into, advance) if is_zip else packed.unpack_tar(into, advance):
            # some disks take names for the same that differ in case or Unicode form
            if os.path.lexists(into / name) and not (into / name).is_dir():
                raise packed.refused("file-twice", "each file once", name)
            if count == MAX_FILES:
                raise packed.refused("too-many-files", f"at most {MAX_FILES:,} files", "more")
            count += 1
    return count


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


class _Packed:
    """An archive or a packed file; `field` is the source as messages name it."""

    def __init__(self, path: Path, field: str) -> None:
        self._path, self._field, self._size = path, field, 0
        with self.named_errors():
            self._size = path.stat().st_size
        self.most = FREE_BYTES + MAX_RATIO * self._size
        """The bytes that it may unpack to."""

    def refused(self, reason: str, expected: str, found: str) -> SourceError:
        todo = "check where it comes from; unpack what you need of it, and give the folder"
        return SourceError(Fault(reason, expected, found, self._path.name, "", self._field, todo))

    def too_much(self) -> SourceError:
        expected = f"at most {self.most:,} bytes in a file of {self._size:,}"
        return self.refused("unpacks-to-too-much", expected, "more")

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        try:
            yield
        except (*_ERRORS, NotImplementedError, RuntimeError, ValueError) as error:  # encrypted, an unknown method
            expected, todo = (
                "a whole archive that can be unpacked",
                "download it again, or unpack it and give the folder",
            )
            found = (str(error) or type(error).__name__)[:200]
            raise SourceError(Fault(BROKEN, expected, found, self._path.name, "", self._field, todo)) from error
        except OSError as error:
            raise disk_error(error, self._path.name, self._field) from error

    def unpack_zip(self, into: Path, advance: Advance) -> Iterator[str]:
        """Yield the name of each file before it is written."""
        with zipfile.ZipFile(self._path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            if sum(info.file_size for info in members) > self.most:  # `zipfile` reads no more of a file than this size
                raise self.too_much()
            for info in members:
                kind = stat.S_IFMT(info.external_attr >> 16)  # some programs leave odd bits there, which mean nothing
                is_special = kind in (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK)
                other = "a link" if kind == stat.S_IFLNK else "a device or a pipe" if is_special else ""
                name = info.filename
                if not info.flag_bits & 0x800:
                    # Many programs, such as `zip` on Linux and the Finder, write the bytes of the name without saying
                    # that they are UTF-8 (bit 11); Python then reads them as code page 437.
                    is_unix = info.create_system == 3
                    with suppress(UnicodeError):
                        name = name.encode("cp437").decode(errors="surrogateescape" if is_unix else "strict")
                if name := self._safe_name(name, other):
                    yield name
                    info.filename = name
                    archive.extract(info, into)
                advance(info.compress_size)

    def unpack_tar(self, into: Path, advance: Advance) -> Iterator[str]:
        """Yield the name of each file before it is written."""
        with self._path.open("rb") as raw:
            content, at = _Content(raw, archive_ending(self._path.name), self), 0
            with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]
                while (info := archive.next()) is not None:
                    archive.members.clear()  # otherwise all members stay in memory
                    if info.isdir():
                        continue
                    other = "a link" if info.issym() or info.islnk() else "a sparse file" if info.issparse() else ""
                    other = other or ("" if info.isreg() else "a device or a pipe")
                    if name := self._safe_name(info.name, other):
                        yield name
                        info.name = name
                        archive.extract(info, into, set_attrs=False, filter="data")
                    advance(raw.tell() - at)
                    at = raw.tell()
            if content.last.strip(b"\0"):  # `tarfile` takes a damaged header for the end
                raise tarfile.ReadError("a damaged header")
            if not content.last:
                raise tarfile.ReadError("no mark of its end: it may have been cut off")
            while content.read(_STEP):  # the sum that gzip keeps of its content follows the last file
                pass

    def _safe_name(self, name: str, other: str) -> str:
        """Return the path of a member below the folder that it is unpacked into; empty for hidden files.

        `other` says what the member is, if it is no file.
        """
        parts = [part for part in name.split("/") if part not in ("", ".")]
        is_bad = name.startswith(("/", "\\")) or ".." in parts or not parts or name[1:2] == ":"
        if is_bad or any("\\" in part and ".." in part for part in parts) or "\0" in name:
            raise self.refused("path-out-of-archive", "names below the archive", repr(name)[:120])
        if any(part.startswith(".") for part in parts) or parts[0] == _MACOS:
            return ""
        if other:
            raise self.refused("not-a-file", "files and folders only", f"{other}, {name!r:.120}")
        return str(PurePosixPath(*parts))


class _Content:
    """The unpacked content of a file, read forward and counted: as much of a file object as `tarfile` needs."""

    def __init__(self, raw: io.BufferedReader, ending: str, packed: _Packed) -> None:
        self._content: Any = raw
        if ending.lower() == ".zst":
            import pyarrow as pa

            self._content = pa.CompressedInputStream(raw, "zstd")
        elif ending.lower() != ".tar":
            self._content = gzip.GzipFile(fileobj=raw)
        self._packed, self._at = packed, 0
        self.last = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes; fewer only at the end of a tar."""
        if not 0 <= size <= _STEP:  # only a header of `tarfile`, such as a long name, is read in one piece
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        self.last = self._content.read(size)
        self._at += len(self.last)
        if self._at > self._packed.most:
            raise self._packed.too_much()
        return self.last

    def tell(self) -> int:
        return self._at

    def seek(self, place: int) -> None:
        if place < self._at:
            raise tarfile.ReadError("files that overlap")
        while self._at < place and self.read(min(_STEP, place - self._at)):
            pass


def disk_error(error: OSError, file: str, field: str) -> SourceError:
    """Return the error for a file that cannot be unpacked or downloaded; a full disk is named."""
    if error.errno in FULL:
        expected = "space for the unpacked files"
        return SourceError(Fault("disk-full", expected, "a full disk", file, "", field, MORE_SPACE))
    found = error.strerror or str(error) or type(error).__name__
    todo = "download it again, or unpack it and give the folder"
    return SourceError(Fault(BROKEN, "files that can be unpacked", found[:200], file, "", field, todo))


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
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
