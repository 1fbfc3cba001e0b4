"""The fingerprinted files of the sources, and whether they have changed.

Every file is hashed when a build is planned, and again before the lock is written. In between, a shard compares the
stamp of each file that it reads, before and after: the size of the file and the times of its last change. If the stamp
is not the saved one, as for a copy on another machine, the hash is compared. If a source has very many tables (files
that are neither documents nor pictures), these are compared before and after each stage, instead of each shard.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import ClassVar, NamedTuple

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.errors import BuildError, SourceChangedError
from mmlongbench.io.files import atomic_replace, sha256_of
from mmlongbench.io.pool import cores
from mmlongbench.io.store import Store, Value

UNREADABLE = "unreadable"
"""Stored instead of the hash of a document that cannot be read."""
SOURCE_FILES = "sources.sqlite"
"""The name of the file in the working folder that has the fingerprints."""
_OURS = b"\0"
"""A saved name that begins with this byte is a path relative to the working folder."""
_READ = "WHERE stamp != ''"
"""The condition in SQL that excludes files that were not read; these have words instead of a hash."""


class Stamp(NamedTuple):
    """The attributes of a file that change when its content does."""

    bytes: int
    modified: int
    """When the content was changed, in nanoseconds; a program can set this time."""
    changed: int
    """When the content or an attribute was changed, in nanoseconds; only the kernel sets this time."""


class Hashed(NamedTuple):
    """The hash of a file, and its stamp when it was hashed; None if it was not read."""

    sha256: str
    stamp: Stamp | None


class Compared(IntEnum):
    """When a file is compared with its fingerprint; every file is also compared at the end of the build."""

    WHERE_READ = 0
    """When a shard reads the file by its name. This is so for documents, and for the pictures of a source with many
    files."""
    EACH_SHARD = 1
    """Before and after each shard of the file's dataset, because a shard may read the file without saying so."""
    EACH_STAGE = 2
    """Before and after each stage, because its source has too many files to check all of them in each shard."""


class SourceFile(NamedTuple):
    """A file of a source and its fingerprint."""

    path: Path
    dataset: str
    source: str
    """What the file belongs to, such as `source.documents`, `corpus` or `errata`; messages show it."""
    hashed: Hashed
    compared: Compared = Compared.WHERE_READ


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of the file that a path leads to; links are followed."""
    found = path.stat()
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@contextmanager
def unchanged_while_planned(dataset: str, list_files: Callable[[], Iterable[Path]]) -> Iterator[None]:
    """Make sure that the files of `list_files` do not change while the block reads and hashes them.

    Raises:
        SourceChangedError: a file has changed, is gone or is new.

    """
    before = {path: _stamp_if_there(path) for path in list_files()}
    yield
    now = {path: _stamp_if_there(path) for path in list_files()}
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    if changed:
        more = f", and {len(changed) - 1:,} more files changed" if len(changed) > 1 else ""
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
        OSError: the file cannot be read.
        SourceChangedError: the file changes while it is read.

    """
    before = stamp_of(path)
    sha256 = sha256_of(path)
    if stamp_of(path) != before:
        raise SourceChangedError(f"{path}: is being written; run the command again once it is complete")
    return Hashed(sha256, before)


def hash_files(paths: Sequence[Path], advance: Callable[[], None]) -> Iterator[tuple[Path, Hashed | OSError]]:
    """Yield the hash of each file in order, or why it cannot be read; several are hashed at once."""

    def attempt(path: Path) -> Hashed | OSError:
        try:
            return hash_file(path)
        except OSError as error:
            return error

    with ThreadPoolExecutor(cores()) as pool:
        for path, found in zip(paths, pool.map(attempt, paths), strict=True):
            advance()
            yield path, found


class _Files(Store):
    """The file of fingerprints in the working folder: written once under a temporary name, renamed, then only read."""

    table: ClassVar[str] = "files"
    columns: ClassVar[str] = "path BLOB, dataset TEXT, source TEXT, sha256 TEXT, stamp TEXT, compared INTEGER"
    unique: ClassVar[int] = 3

    def unusable(self, error: Exception) -> BuildError:
        """Return the error to raise when the file cannot be written or read."""
        done, todo = "written", "run the command again"
        if self.is_frozen:
            done, todo = "read", "run the build, or its stage prepare, again"
        return BuildError(f"{self.path.with_name(SOURCE_FILES)}: cannot be {done}: {error}; {todo}")


def save_source_files(build_dir: BuildDir, files: Iterable[SourceFile]) -> None:
    """Write the fingerprints of all source files to the file where shards find them."""
    with atomic_replace(build_dir.root / SOURCE_FILES) as path, closing(_Files(path)) as saved:
        saved.write(
            (_name(path, build_dir.root), dataset, source, sha256, " ".join(map(str, stamp or ())), compared)
            for path, dataset, source, (sha256, stamp), compared in files
        )


def _name(path: Path, root: Path) -> bytes:
    """Return a path as it is saved: paths in the working folder are relative, so that they move with it."""
    path, root = one_spelling(path), one_spelling(root)
    return _OURS + os.fsencode(path.relative_to(root)) if path.is_relative_to(root) else os.fsencode(path)


def one_spelling(path: Path) -> Path:
    """Return a path without `..`, so that a file has one spelling only. Links are followed only in a path with `..`."""
    return path.resolve() if ".." in path.parts else path


class SourceFiles:
    """The files that a build has fingerprinted; each process has one such object."""

    def __init__(self, build_dir: BuildDir) -> None:
        """Open the file that `save_source_files` has written."""
        self._build_dir = build_dir
        self._proven: dict[Path, Stamp] = {}
        """The stamps with which this process has found the saved hash again."""
        self._tables: dict[tuple[str, Compared], list[SourceFile]] = {}
        self._saved = _Files(build_dir.root / SOURCE_FILES, is_frozen=True)

    @contextmanager
    def unchanged(self, *paths: Path) -> Iterator[None]:
        """Compare files before and after the block that reads them; a file outside all sources is not compared.

        Raises:
            SourceChangedError: a file has changed, or is gone.

        """
        found = (next(self._select("WHERE path = ?", _name(path, self._build_dir.root)), None) for path in paths)
        with self._all_unchanged([file for file in found if file]):
            yield

    @contextmanager
    def unchanged_tables(self, when: Compared, datasets: Iterable[str]) -> Iterator[None]:
        """Compare the files that shards of some datasets may read without naming them, before and after the block: a
        shard (`Compared.EACH_SHARD`) or a stage (`Compared.EACH_STAGE`).
        """
        files: list[SourceFile] = []
        for dataset in dict.fromkeys(datasets):
            if (dataset, when) not in self._tables:
                where = "WHERE dataset = ? AND compared = ?"
                self._tables[dataset, when] = list(self._select(where, dataset, int(when)))
            files += self._tables[dataset, when]
        with self._all_unchanged(files):
            yield

    @contextmanager
    def _all_unchanged(self, files: Iterable[SourceFile]) -> Iterator[None]:
        self._compare(files)
        try:
            yield
        except Exception:  # if a file has changed, that is the error to report
            self._compare(files)
            raise
        self._compare(files)

    def _compare(self, files: Iterable[SourceFile]) -> None:
        for file in files:
            path, (sha256, planned) = file.path, file.hashed
            if planned is None:  # the file is never read
                continue
            try:
                if (stamp := stamp_of(path)) in (planned, self._proven.get(path)):
                    continue
                found = hash_file(path).sha256
            except OSError as error:
                raise self._changed(file) from error
            if found != sha256:
                raise self._changed(file)
            self._proven[path] = stamp

    def check_all(self, advance: Callable[[], None]) -> None:
        """Hash every file again.

        Raises:
            SourceChangedError: files have changed or are gone; the error names the first.

        """
        known = {file.path: file for file in self._select(_READ)}
        found = hash_files(list(known), advance)
        changed = [path for path, now in found if isinstance(now, OSError) or now.sha256 != known[path].hashed.sha256]
        if changed:
            raise self._changed(known[changed[0]], len(changed) - 1)

    def count(self) -> int:
        """Return how many files `check_all` hashes."""
        return sum(1 for _ in self._select(_READ))

    def names(self, dataset: str, source: str) -> set[Path]:
        """Return the paths of the files of one source."""
        return {file.path for file in self._select("WHERE dataset = ? AND source = ?", dataset, source)}

    def hashes(self, dataset: str) -> dict[Path, str]:
        """Return the SHA-256 of each file of the sources of a dataset, without those that are never read."""
        found = self._select("WHERE dataset = ?", dataset)
        read = (file for file in found if file.source.startswith("source.") and file.hashed.stamp)
        return {file.path: file.hashed.sha256 for file in read}

    def all(self) -> list[SourceFile]:
        """Return all fingerprinted files."""
        return list(self._select(""))

    def close(self) -> None:
        """Close the file."""
        self._saved.close()

    def _select(self, where: str, *values: Value) -> Iterator[SourceFile]:
        """Yield the files for which a condition of SQL is true."""
        try:
            for name, dataset, source, sha256, stamp, compared in self._saved.select(where, *values):
                path = Path(os.fsdecode(name.removeprefix(_OURS)))
                if name.startswith(_OURS):
                    path = one_spelling(self._build_dir.root) / path
                hashed = Hashed(sha256, Stamp(*map(int, stamp.split())) if stamp else None)
                yield SourceFile(path, dataset, source, hashed, Compared(compared))
        except (TypeError, ValueError) as error:
            raise self._saved.unusable(error) from error

    def _changed(self, file: SourceFile, others: int = 0) -> SourceChangedError:
        state = "changed while the release was built" if file.path.exists() else "is gone, or is not on this machine"
        more = f", and {others:,} more files changed" if others else ""
        todo = f"restore it and run the command again, or remove {self._build_dir.out} and start the build again"
        return SourceChangedError(f"{file.path}: {state} (dataset {file.dataset!r}, {file.source}){more}; {todo}")
