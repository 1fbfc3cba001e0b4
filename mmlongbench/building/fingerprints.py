"""Fingerprints the sources: hashes their files, lists their documents, and refuses documents that cannot be used."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import TypedDict

from mmlongbench.building.source_files import UNREADABLE, Compared, Hashed, SourceFile, hash_files
from mmlongbench.documents.names import folder_names
from mmlongbench.documents.pages import PageImages, Pages
from mmlongbench.documents.pdf import oversized
from mmlongbench.documents.pixels import PICTURE_ENDINGS
from mmlongbench.errors import Fault, ManifestError, nearest
from mmlongbench.io.files import visible_files
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import DatasetSpec

MAX_TABLES = 1000
"""The maximum number of files of a source that each shard compares with their fingerprints; documents do not count. If
a source has more files than this, its pictures are compared only when they are read. If it has more than this many
files that are no pictures, those files are compared in each stage instead of each shard (`when_compared`)."""


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


class SourceFingerprint(TypedDict):
    """The content of a source, as the lock describes it."""

    files: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The result of reading the sources of a dataset once."""

    by_source: dict[str, SourceFingerprint]
    """The number of files, the bytes and the SHA-256 of each source, by its name."""
    documents: dict[str, DocumentFile]
    """The documents that are used, by the names of their folders in the release."""
    refused: dict[str, Fault]
    """Why each of the other documents is not used, by id: it is excluded, too large, ambiguous or unreadable."""
    files: tuple[SourceFile, ...]


def files_of(source: Path) -> list[Path]:
    """Return the files of a source: the file itself, or all visible files below the folder, sorted."""
    return [source] if source.is_file() else visible_files(source)


def fingerprint(
    spec: DatasetSpec, sources: Mapping[str, Path], documents: Mapping[str, Pages | Fault], progress: Progress
) -> Fingerprints:
    """Hash the sources of a dataset; a document that is too large is refused without being read.

    Raises:
        OSError: a file that is not part of a document cannot be read.
        ManifestError: `exclude` names a document that does not exist.

    """
    refused = _refused(spec, documents)
    usable = {id: found for id, found in documents.items() if not isinstance(found, Fault) and id not in refused}
    parts = {file for found in documents.values() if not isinstance(found, Fault) for file in parts_of(found)}
    too_large = {file for id in refused for file in _oversized(spec, documents[id])}
    files = {name: files_of(path) for name, path in sources.items()}
    below = [path for found in files.values() for path in found]
    asked = list(dict.fromkeys([*below, *sorted(path for path in parts if path.is_file())]))
    hashes = {path: Hashed(f"{path.stat().st_size} bytes, not read", None) for path in too_large}
    paths = [path for path in asked if path not in too_large]
    with progress.bar(f"{spec.name}: fingerprints", len(paths)) as advance:
        for path, hashed in hash_files(paths, advance):
            if isinstance(hashed, Hashed):
                hashes[path] = hashed
            elif path in parts:  # its document is refused
                hashes[path] = Hashed(UNREADABLE, None)
            else:
                raise hashed
    listed, unreadable = _documents(usable, folder_names(documents), hashes)
    return Fingerprints(
        {name: _of_source(sources[name], found, hashes) for name, found in files.items()},
        listed,
        {**refused, **unreadable},
        tuple(_source_files(spec.name, files, parts, hashes)),
    )


def source_file_list(dataset: str, source: str, paths: Iterable[Path], progress: Progress) -> tuple[SourceFile, ...]:
    """Hash files that a dataset reads besides its sources, such as those of a corpus, a tokenizer or a model.

    Raises:
        OSError: a file cannot be read.

    """
    asked = list(paths)
    compared, files = when_compared(asked), []
    with progress.bar(f"{dataset}: fingerprints of {source}", len(asked)) as advance:
        for path, hashed in hash_files(asked, advance):
            if isinstance(hashed, OSError):
                raise hashed
            files.append(SourceFile(path, dataset, source, hashed, compared[path]))
    return tuple(files)


def parts_of(document: Pages) -> tuple[Path, ...]:
    """Return the files of a document."""
    return (document,) if isinstance(document, Path) else document.files


def _refused(spec: DatasetSpec, documents: Mapping[str, Pages | Fault]) -> dict[str, Fault]:
    """Return the faults of documents that can be refused before any file is hashed, by id. Such a document is excluded
    or too large, or the reader gave its fault.
    """
    if unknown := [id for id in spec.exclude if id not in documents]:
        hint = nearest(unknown[0], documents)
        raise ManifestError(f"dataset {spec.name!r}: exclude: there is no document {unknown[0]!r}{hint}")
    refused: dict[str, Fault] = {}
    for id, pages in sorted(documents.items()):
        if id in spec.exclude:
            found = "one that the manifest excludes"
            refused[id] = Fault("excluded", "a document to be used", found, field="exclude", is_expected=True)
        elif isinstance(pages, Fault):
            refused[id] = pages
        elif large := _oversized(spec, pages):
            refused[id] = next(iter(large.values()))
    return refused


def _oversized(spec: DatasetSpec, document: Pages | Fault) -> dict[Path, Fault]:
    """Return the faults of those files of a document that are larger than `limits.bytes`, by path."""
    if isinstance(document, Fault):
        return {}
    reason = "size-of-a-document" if isinstance(document, Path) else "size-of-a-page"
    found = {file: oversized(file, spec.limits.bytes, reason) for file in parts_of(document)}
    return {file: fault for file, fault in found.items() if fault}


def _documents(
    documents: Mapping[str, Pages], names: Mapping[str, str], hashes: Mapping[Path, Hashed]
) -> tuple[dict[str, DocumentFile], dict[str, Fault]]:
    """Return the readable documents, by the names of their folders, and the faults of the others, by id."""
    listed, refused = {}, {}
    for id, found in sorted(documents.items()):
        parts = [hashes[file].sha256 if file in hashes else "" for file in parts_of(found)]
        if UNREADABLE in parts:
            name, todo = parts_of(found)[parts.index(UNREADABLE)].name, "make the file readable, or take it out"
            expected, said = "a file that can be read", "one that cannot be"
            refused[id] = Fault("unreadable-document", expected, said, name, todo=todo)
        else:
            sha256 = parts[0] if isinstance(found, Path) else hashlib.sha256(" ".join(parts).encode()).hexdigest()
            listed[names[id]] = DocumentFile(id, names[id], found, sha256)
    return listed, refused


def _of_source(path: Path, files: list[Path], hashes: Mapping[Path, Hashed]) -> SourceFingerprint:
    """Return the fingerprint of a source. The `sha256` of a folder is the hash of a list, which has the hash and the
    path of each file.
    """
    size = sum(found.stat().st_size for found in files)
    if path.is_file():
        return {"files": 1, "bytes": size, "sha256": hashes[path].sha256}
    lines = "".join(f"{hashes[found].sha256}  {found.relative_to(path).as_posix()}\n" for found in files)
    sha256 = hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    return {"files": len(files), "bytes": size, "sha256": sha256}


def _source_files(
    dataset: str, files: Mapping[str, list[Path]], parts: set[Path], hashes: Mapping[Path, Hashed]
) -> Iterable[SourceFile]:
    """Yield every file of each source, and the files of documents that are outside all sources."""
    below = set[Path]()
    for source, found in files.items():
        below.update(found)
        compared = when_compared([path for path in found if path not in parts])
        for path in found:
            when = compared.get(path, Compared.WHERE_READ)
            yield SourceFile(path, dataset, f"source.{source}", hashes[path], when)
    yield from (SourceFile(path, dataset, "a document", hashes[path]) for path in hashes if path not in below)


def when_compared(paths: Sequence[Path]) -> dict[Path, Compared]:
    """Return when each of some files is compared (see `MAX_TABLES`); files of documents must not be among them."""
    if len(paths) <= MAX_TABLES:
        return dict.fromkeys(paths, Compared.EACH_SHARD)
    # a picture is read by its name, so it can be compared at that time
    tables = {path for path in paths if path.suffix.lower() not in PICTURE_ENDINGS}
    when = Compared.EACH_SHARD if len(tables) <= MAX_TABLES else Compared.EACH_STAGE
    return {path: when if path in tables else Compared.WHERE_READ for path in paths}
