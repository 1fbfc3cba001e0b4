"""The files of the sources as they were fingerprinted, and whether they are still the same.

Every file is hashed when a build is planned. A shard compares what it reads by the file's stamp: its size, its inode
and the times of its last changes, the second of which the kernel sets and nobody else. A stamp that differs, as that of
a copy on another machine does, or that is too young to tell two changes apart, is no proof: then the hash is compared.
A stamp that differs before and after a file is read is an error, whatever the hash: the file may have been another one
in between. The tables of a source that has very many are compared in this way around each stage, not around each shard;
sources, a corpus that was built, and errata also around the planning of a build. Before the lock is written, all hashes
are compared; stamps would not do there, for the folder may be on a network, where the times of changes are those of
another clock.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.errors import BuildError, SourceChangedError
from mmlongbench.io.atomic import atomic_replace, sha256_of
from mmlongbench.io.process_pool import cores

UNREADABLE = "unreadable"
"""In place of the hash of a document that cannot be read."""
SETTLED = 2_000_000_000
"""Nanoseconds after which the time of a change tells it from the next one, on any file system."""
SOURCE_FILES = "sources.sqlite"
"""The file of the working folder that has them."""
_OURS = b"\0"
"""How the saved name of a file begins that stands in the working folder."""
_READ = "WHERE length(sha256) = 64"
"""Leaves out documents that could not be read or were too large, which have words in place of a hash."""
_TABLE = """
CREATE TABLE files (path BLOB, dataset TEXT, source TEXT, sha256 TEXT, stamp TEXT, compared INTEGER,
                    PRIMARY KEY (path, dataset, source)) WITHOUT ROWID
"""


class Stamp(NamedTuple):
    """What changes when a file does."""

    bytes: int
    modified: int
    """In nanoseconds, like `changed`."""
    changed: int
    inode: int


class Hashed(NamedTuple):
    """The hash of a file, and its stamp then."""

    sha256: str
    stamp: Stamp | None
    """None where it proves nothing: the file was changed only just before it was read, or cannot be read."""


class Compared(IntEnum):
    """When a file is compared with its fingerprint, besides the end of the build."""

    WHERE_READ = 0
    """By whoever reads it, who names it: documents and pictures."""
    EACH_SHARD = 1
    """Before and after each shard of its dataset, which may read it without naming it."""
    EACH_STAGE = 2
    """Before and after each stage: its source has too many files to look at all of them in each shard."""


class SourceFile(NamedTuple):
    """A file of a source as it was fingerprinted."""

    path: Path
    dataset: str
    source: str
    """The manifest's name for the source it belongs to."""
    hashed: Hashed
    compared: Compared = Compared.WHERE_READ


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of the file that a path leads to; links are followed."""
    found = path.stat()
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


@contextmanager
def unchanged_while_planned(dataset: str, list_files: Callable[[], Iterable[Path]]) -> Iterator[None]:
    """Make sure that the files that are listed are the same before and after the block, which reads and hashes them.

    Raises:
        SourceChangedError: one has changed, is gone or is new.

    """
    before = {path: _stamp_if_there(path) for path in list_files()}
    yield
    now = {path: _stamp_if_there(path) for path in list_files()}
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    if changed:
        more = f", and {len(changed) - 1:,} more files did" if len(changed) > 1 else ""
        raise SourceChangedError(
            f"{changed[0]}: changed while the build was planned (dataset {dataset!r}){more}; run the command again "
            "once the sources are complete"
        )


def _stamp_if_there(path: Path) -> Stamp | None:
    try:
        return stamp_of(path)
    except OSError:
        return None


def hash_file(path: Path) -> Hashed:
    """Hash a file.

    Raises:
        OSError: it cannot be read.
        SourceChangedError: it changes while it is read.

    """
    begun, before = time.time_ns(), stamp_of(path)
    sha256 = sha256_of(path)
    if stamp_of(path) != before:
        raise SourceChangedError(f"{path}: is being written; run the command again once it is complete")
    return Hashed(sha256, before if before.changed < begun - SETTLED else None)


def hash_files(paths: Sequence[Path], advance: Callable[[], None]) -> Iterator[tuple[Path, Hashed | OSError]]:
    """The hash of each file in their order, or why it cannot be read; several are hashed at once."""

    def attempt(path: Path) -> Hashed | OSError:
        try:
            return hash_file(path)
        except OSError as error:
            return error

    with ThreadPoolExecutor(cores()) as pool:
        for path, found in zip(paths, pool.map(attempt, paths), strict=True):
            advance()
            yield path, found


def save_source_files(build_dir: BuildDir, files: Iterable[SourceFile]) -> None:
    """Write the files of all sources where the shards find them."""
    target = build_dir.root / SOURCE_FILES
    try:
        with atomic_replace(target) as path, closing(sqlite3.connect(path)) as database, database:
            database.execute(_TABLE)
            rows = (_row(_name(file.path, build_dir.root), file) for file in files)
            database.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", rows)
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target)) from error
        raise BuildError(f"{target}: cannot be written: {error}; run the command again") from error


def _row(name: bytes, file: SourceFile) -> tuple[bytes, str, str, str, str, int]:
    sha256, stamp = file.hashed
    return name, file.dataset, file.source, sha256, " ".join(map(str, stamp or ())), file.compared


def _name(path: Path, root: Path) -> bytes:
    """A path as it is saved: what stands in the working folder moves with it."""
    path, root = one_spelling(path), one_spelling(root)
    return _OURS + os.fsencode(path.relative_to(root)) if path.is_relative_to(root) else os.fsencode(path)


def _path(name: bytes, root: Path) -> Path:
    ours = name.startswith(_OURS)
    return one_spelling(root) / os.fsdecode(name.removeprefix(_OURS)) if ours else Path(os.fsdecode(name))


def one_spelling(path: Path) -> Path:
    """Return a path without `..`, by which the same file may be called in two ways; links on the way are followed."""
    return path.resolve() if ".." in path.parts else path


class SourceFiles:
    """The files that a build has fingerprinted; one in each process."""

    def __init__(self, build_dir: BuildDir) -> None:
        """Open what `save_source_files` has written."""
        self._build_dir = build_dir
        self._proven: dict[Path, Stamp] = {}
        self._listed: dict[tuple[str, Compared], list[SourceFile]] = {}
        try:
            address = f"{(build_dir.root / SOURCE_FILES).absolute().as_uri()}?mode=ro&immutable=1"
            self._database = sqlite3.connect(address, uri=True, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    @contextmanager
    def unchanged(self, *paths: Path) -> Iterator[None]:
        """Make sure that files are the ones that were fingerprinted, all the while that the block reads them.

        A file that stands outside of all sources was never fingerprinted, and is not compared.

        Raises:
            SourceChangedError: one has changed, be it only in between, or is gone.

        """
        found = (next(self._select("WHERE path = ?", _name(path, self._build_dir.root)), None) for path in paths)
        with self._all_unchanged([file for file in found if file]):
            yield

    @contextmanager
    def unchanged_tables(self, dataset: str) -> Iterator[None]:
        """Compare the files that a shard of a dataset may read without naming them: before the shard, and after it."""
        with self._all_unchanged(self._compared(dataset, Compared.EACH_SHARD)):
            yield

    @contextmanager
    def unchanged_in_stage(self, datasets: Iterable[str]) -> Iterator[None]:
        """Compare the tables of datasets that have too many for each shard: before a stage, and after it."""
        with ExitStack() as stack:
            for dataset in dict.fromkeys(datasets):
                stack.enter_context(self._all_unchanged(self._compared(dataset, Compared.EACH_STAGE)))
            yield

    def _compared(self, dataset: str, when: Compared) -> list[SourceFile]:
        if (dataset, when) not in self._listed:
            self._listed[dataset, when] = list(self._select("WHERE dataset = ? AND compared = ?", dataset, int(when)))
        return self._listed[dataset, when]

    @contextmanager
    def _all_unchanged(self, files: Sequence[SourceFile]) -> Iterator[None]:
        before = [self._check(file) for file in files]
        try:
            yield
        except Exception:  # what is wrong with a file that has changed is no fault of its own
            self._compare(files, before)
            raise
        self._compare(files, before)

    def _compare(self, files: Sequence[SourceFile], before: Sequence[Stamp | None]) -> None:
        for file, stamp in zip(files, before, strict=True):
            if self._check(file) != stamp:
                raise SourceChangedError(
                    f"{file.path}: changed while it was read, and is as it was again (dataset {file.dataset!r}, "
                    f"{file.source}); run the command again"
                )

    def check_all(self, advance: Callable[[], None]) -> None:
        """Hash every file again.

        Raises:
            SourceChangedError: one or more have changed or are gone; the first is named.

        """
        known = {file.path: file for file in self._select(_READ)}
        found = hash_files(list(known), advance)
        changed = [path for path, now in found if isinstance(now, OSError) or now.sha256 != known[path].hashed.sha256]
        if changed:
            raise self._changed(known[changed[0]], len(changed) - 1)

    def count(self) -> int:
        """How many files `check_all` hashes."""
        return sum(1 for _ in self._select(_READ))

    def names(self, dataset: str, source: str) -> set[Path]:
        """The files of one source."""
        return {file.path for file in self._select("WHERE dataset = ? AND source = ?", dataset, source)}

    def differences(self, others: Iterable[SourceFile]) -> list[Path]:
        """The files of others whose content is new, then those whose content is gone; they may stand elsewhere now."""
        known = {file.hashed.sha256: file.path for file in self._select("")}
        now = {file.hashed.sha256: file.path for file in others}
        new = sorted(path for sha256, path in now.items() if sha256 not in known)
        return [*new, *sorted(path for sha256, path in known.items() if sha256 not in now and path not in new)]

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _check(self, known: SourceFile) -> Stamp | None:
        """The stamp of a file that is found to be the one that was fingerprinted; None of one that is never read."""
        path, (sha256, proof) = known.path, known.hashed
        if len(sha256) != 64:
            return None
        try:
            stamp = stamp_of(path)
            if stamp in (proof, self._proven.get(path)):
                return stamp
            found = hash_file(path)
        except OSError as error:
            raise self._changed(known) from error
        if found.sha256 != sha256:
            raise self._changed(known)
        if found.stamp:
            self._proven[path] = found.stamp
        return stamp

    def _select(self, where: str, *values: object) -> Iterator[SourceFile]:
        """The files of which something is so."""
        try:
            for name, dataset, source, sha256, stamp, compared in self._database.execute(
                f"SELECT * FROM files {where}", values
            ):
                hashed = Hashed(sha256, Stamp(*map(int, stamp.split())) if stamp else None)
                yield SourceFile(_path(name, self._build_dir.root), dataset, source, hashed, Compared(compared))
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise self._unusable(error) from error

    def _changed(self, file: SourceFile, others: int = 0) -> SourceChangedError:
        state = "changed while the release was built" if file.path.exists() else "is gone, or is not on this machine"
        more = f", and {others:,} more files did" if others else ""
        todo = f"put it back as it was and run the command again, or remove {self._build_dir.out} and build anew"
        return SourceChangedError(f"{file.path}: {state} (dataset {file.dataset!r}, {file.source}){more}; {todo}")

    def _unusable(self, error: Exception) -> BuildError:
        path = self._build_dir.root / SOURCE_FILES
        return BuildError(f"{path}: cannot be read: {error}; run the build, or its stage prepare, again")
