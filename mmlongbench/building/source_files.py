"""The files of the sources: their fingerprints, the documents among them, and whether they have changed.

Every file is hashed when a build is planned, and again before the lock is written. In between, a shard compares the
stamp of each file that it reads, before and after: the size of the file and the times of its last change. If the stamp
is not the saved one, as for a copy on another machine, the hash is compared. If a source has very many tables (files
that are neither documents nor pictures), these are compared before and after each stage instead (`when_compared`).
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import ClassVar, NamedTuple

from typing_extensions import TypedDict

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.documents.names import folder_names
from mmlongbench.documents.pages import PageImages, Pages
from mmlongbench.documents.pdf import oversized
from mmlongbench.documents.pixels import PICTURE_ENDINGS
from mmlongbench.errors import BuildError, Fault, ManifestError, SourceChangedError, nearest
from mmlongbench.io.files import atomic_replace, sha256_of, visible_files
from mmlongbench.io.pool import cores
from mmlongbench.io.progress import Progress
from mmlongbench.io.sqlite_rows import Store, Value
from mmlongbench.manifest.model import DatasetSpec

SOURCE_FILES = "sources.sqlite"
"""The file in the working folder that has the fingerprints."""
MAX_TABLES = 1000
"""How many files of a source, documents not counted, each shard compares at most (`when_compared`)."""
_UNREADABLE = "unreadable"
"""Stands for the hash of a document that cannot be read."""
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
    """When a shard reads the file by its name, such as a document."""
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


class SourceFingerprint(TypedDict):
    """The content of a source, as the lock describes it."""

    files: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A document of the sources."""

    id: str
    name: str
    """The name of its folder in the release."""
    pages: Pages
    """Its PDF, or the image files of its pages."""
    sha256: str

    def named_pages(self, count: int) -> list[tuple[int, str]]:
        """Return (number from 0, file name of the image in the release) of each of the `count` pages that the source
        has.
        """
        images = self.pages if isinstance(self.pages, PageImages) else None
        numbers = images.numbers if images else range(count)
        names = images.names if images and images.names else [f"{self.name}_page{number}.jpg" for number in numbers]
        return list(zip(numbers, names, strict=True))

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the pages of which the source has no image, from 0."""
        return self.pages.missing if isinstance(self.pages, PageImages) else ()


def files_of(source: Path) -> list[Path]:
    """Return the files of a source: the file itself, or all visible files below the folder, sorted."""
    return [source] if source.is_file() else visible_files(source)


def parts_of(document: Pages) -> tuple[Path, ...]:
    """Return the files of a document."""
    return (document,) if isinstance(document, Path) else document.files


# Files are hashed when a build is planned


def fingerprint(
    spec: DatasetSpec, sources: Mapping[str, Path], documents: Mapping[str, Pages | Fault], progress: Progress
) -> tuple[dict[str, SourceFingerprint], dict[str, DocumentFile], dict[str, Fault], list[SourceFile]]:
    """Hash the sources of a dataset; a document that is too large is refused without being read.

    Return the fingerprint of each source by its name, the usable documents by the names of their folders in the
    release, why each other document is refused, by id, and all files. Raises OSError if a file that is not part of a
    document cannot be read.
    """
    refused, too_large = _refused_unread(spec, documents)
    parts = {file for pages in documents.values() if not isinstance(pages, Fault) for file in parts_of(pages)}
    files = {name: files_of(root) for name, root in sources.items()}
    hashes = {path: Hashed(f"{path.stat().st_size} bytes, not read", None) for path in too_large}
    every = dict.fromkeys([*(path for below in files.values() for path in below), *sorted(filter(Path.is_file, parts))])
    unread = [path for path in every if path not in too_large]
    with progress.bar(f"{spec.name}: fingerprints", len(unread)) as advance:
        for path, hashed in hash_files(unread, advance):
            if isinstance(hashed, OSError):
                if path not in parts:
                    raise hashed
                hashed = Hashed(_UNREADABLE, None)  # its document is refused
            hashes[path] = hashed

    usable, names = {}, folder_names(documents)
    for id, pages in sorted(documents.items()):
        if id in refused or isinstance(pages, Fault):
            continue
        shas = [hashes[file].sha256 if file in hashes else "" for file in parts_of(pages)]
        if _UNREADABLE in shas:
            name, todo = parts_of(pages)[shas.index(_UNREADABLE)].name, "make the file readable, or take it out"
            expected, found = "a file that can be read", "one that cannot be"
            refused[id] = Fault("unreadable-document", expected, found, name, todo=todo)
        else:
            sha256 = shas[0] if isinstance(pages, Path) else hashlib.sha256(" ".join(shas).encode()).hexdigest()
            usable[names[id]] = DocumentFile(id, names[id], pages, sha256)

    source_files = []
    for name, below in files.items():
        when = when_compared([path for path in below if path not in parts])
        about = (spec.name, f"source.{name}")
        source_files += [SourceFile(path, *about, hashes[path], when.get(path, Compared.WHERE_READ)) for path in below]
    outside = hashes.keys() - {file.path for file in source_files}
    source_files += [SourceFile(path, spec.name, "a document", hashes[path]) for path in hashes if path in outside]
    fingerprints: dict[str, SourceFingerprint] = {}
    for name, root in sources.items():
        if root.is_file():
            sha256 = hashes[root].sha256
        else:  # the hash of a list, which has the hash and the path of each file
            lines = (f"{hashes[path].sha256}  {path.relative_to(root).as_posix()}\n" for path in files[name])
            sha256 = hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
        size = sum(path.stat().st_size for path in files[name])
        fingerprints[name] = {"files": len(files[name]), "bytes": size, "sha256": sha256}
    return fingerprints, usable, refused, source_files


def _refused_unread(spec: DatasetSpec, documents: Mapping[str, Pages | Fault]) -> tuple[dict[str, Fault], set[Path]]:
    """Return the faults of documents that are refused before any file is hashed, by id: a document is excluded or too
    large, or the reader gave its fault. Also return the files that are too large.
    """
    if unknown := [id for id in spec.exclude if id not in documents]:
        hint = nearest(unknown[0], documents)
        raise ManifestError(f"dataset {spec.name!r}: exclude: there is no document {unknown[0]!r}{hint}")
    refused, too_large = dict[str, Fault](), set[Path]()
    for id, pages in sorted(documents.items()):
        if isinstance(pages, Fault):
            refused[id] = pages
        else:
            reason = "size-of-a-document" if isinstance(pages, Path) else "size-of-a-page"
            for file in parts_of(pages):
                if fault := oversized(file, spec.limits.bytes, reason):
                    refused.setdefault(id, fault)
                    too_large.add(file)
        if id in spec.exclude:
            found = "one that the manifest excludes"
            refused[id] = Fault("excluded", "a document to be used", found, field="exclude", is_expected=True)
    return refused, too_large


def when_compared(paths: Sequence[Path]) -> dict[Path, Compared]:
    """Return when each file of a source is compared; files of documents must not be among them. If there are more than
    `MAX_TABLES`, pictures are compared only when they are read, since they are read by name. If more than `MAX_TABLES`
    are no pictures, these are compared in each stage instead of each shard.
    """
    if len(paths) <= MAX_TABLES:
        return dict.fromkeys(paths, Compared.EACH_SHARD)
    tables = {path for path in paths if path.suffix.lower() not in PICTURE_ENDINGS}
    when = Compared.EACH_SHARD if len(tables) <= MAX_TABLES else Compared.EACH_STAGE
    return {path: when if path in tables else Compared.WHERE_READ for path in paths}


def hash_files(paths: Sequence[Path], advance: Callable[[], None]) -> Iterator[tuple[Path, Hashed | OSError]]:
    """Yield the hash of each file in order, or why it cannot be read; several are hashed at once. A file that changes
    while it is read is a `SourceChangedError`.
    """

    def attempt(path: Path) -> Hashed | OSError:
        try:
            return _hash_file(path)
        except OSError as error:
            return error

    size = max(1, min(16, len(paths) // (4 * cores())))  # to hand one small file to a thread takes longer than its hash
    batches = [paths[first : first + size] for first in range(0, len(paths), size)]
    with ThreadPoolExecutor(cores()) as pool:
        hashes = chain.from_iterable(pool.map(lambda batch: list(map(attempt, batch)), batches))
        for path, hashed in zip(paths, hashes, strict=True):
            advance()
            yield path, hashed


def _hash_file(path: Path) -> Hashed:
    before = stamp_of(path)
    sha256 = sha256_of(path)
    if stamp_of(path) != before:
        raise SourceChangedError(f"{path}: is being written; run the command again once it is complete")
    return Hashed(sha256, before)


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of the file that a path leads to; links are followed."""
    status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@contextmanager
def unchanged_while_planned(dataset: str, list_files: Callable[[], Iterable[Path]]) -> Iterator[None]:
    """Raise a `SourceChangedError` if a file of `list_files` changes, goes or comes while the block reads and hashes
    them.
    """

    def stamps() -> dict[Path, Stamp | None]:
        found: dict[Path, Stamp | None] = {}
        for path in list_files():
            found[path] = None
            with suppress(OSError):  # the file is gone
                found[path] = stamp_of(path)
        return found

    before = stamps()
    yield
    now = stamps()
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    if changed:
        more = f", and {len(changed) - 1:,} more files changed" if len(changed) > 1 else ""
        raise SourceChangedError(
            f"{changed[0]}: changed while the build was planned (dataset {dataset!r}){more}; run the command again "
            "once the sources are complete"
        )


# The fingerprints are saved, and shards compare the files that they read


class _Files(Store):
    """The file of fingerprints in the working folder: written once under a temporary name, renamed, then only read."""

    table: ClassVar[str] = "files"
    columns: ClassVar[str] = "path BLOB, dataset TEXT, source TEXT, sha256 TEXT, stamp TEXT, compared INTEGER"
    unique: ClassVar[int] = 3

    def unusable(self, error: Exception) -> BuildError:
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
        """Raise a `SourceChangedError` if a file of a source changes, or is gone, while the block reads it."""
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
                found = _hash_file(path).sha256
            except OSError as error:
                raise self._changed(file) from error
            if found != sha256:
                raise self._changed(file)
            self._proven[path] = stamp

    def check_all(self, progress: Progress) -> None:
        """Hash every file again; the `SourceChangedError` names the first that has changed or is gone."""
        known = {file.path: file for file in self._select(_READ)}
        with progress.bar("finish: sources compared", len(known)) as advance:
            found = list(hash_files(list(known), advance))
        changed = [path for path, now in found if isinstance(now, OSError) or now.sha256 != known[path].hashed.sha256]
        if changed:
            raise self._changed(known[changed[0]], len(changed) - 1)

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
