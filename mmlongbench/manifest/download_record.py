"""The file of a data folder that says what was downloaded: from where, at which commit, with which bytes.

The first download of a file writes its size and SHA-256; later downloads are checked against them.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from mmlongbench.errors import FetchError, ManifestError, nearest
from mmlongbench.io.files import MAX_OF_A_FILE, read_regular, said_bytes, write_whole
from mmlongbench.manifest.downloads import MAIN, RESERVED, DownloadSpec, fault_of_path
from mmlongbench.manifest.model import Manifest


@dataclass(frozen=True, slots=True)
class Place:
    """A place that files come from, and the datasets that need them."""

    spec: DownloadSpec
    licence: str
    datasets: tuple[str, ...]

    @property
    def key(self) -> str:
        """The name of the place in the record of downloads."""
        spec = self.spec
        return f"{spec.name}@{spec.revision or MAIN} {' '.join(spec.files)} → {spec.to}"


def places_of(manifest: Manifest, only: Collection[str] = ()) -> tuple[Place, ...]:
    """Return the places of a manifest, each once, in the order of its datasets.

    Args:
        manifest: the manifest.
        only: the names of datasets; empty for all of them.

    Raises:
        ManifestError: there is no such dataset.

    """
    names = [dataset.name for dataset in manifest.datasets]
    for name in only:
        if name not in names:
            raise ManifestError(
                f"--only {name!r:.100}: no such dataset; there are {', '.join(names)}{nearest(name, names)}"
            )
    found: dict[DownloadSpec, list[str]] = {}
    licences: dict[DownloadSpec, str] = {}
    for dataset in manifest.datasets:
        for spec in dataset.downloads if dataset.name in only or not only else ():
            found.setdefault(spec, []).append(dataset.name)
            licences.setdefault(spec, spec.licence or dataset.licence_text)
    return tuple(Place(spec, licences[spec], tuple(names)) for spec, names in found.items())


def paths_of(spec: DownloadSpec, files: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (file of the hub, path below the data folder) of each file that an entry asks for.

    Raises:
        FetchError: the path of a file leads out of the folder, or no file has one of the names.

    """
    matching = [file for file in files if spec.matches(file)]
    for file in files:
        # as a program might resolve it
        parts = [part for part in file.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        fault = fault_of_path(file)
        if fault and (spec.matches(file) or spec.matches("/".join(parts))):
            said = f"lists a file {file!r:.200}, whose path cannot be used ({fault})"
            raise FetchError(f"{spec.name}: {said}; nothing of this dataset is downloaded")
    for pattern in spec.files:
        if not any(spec.model_copy(update={"files": (pattern,)}).matches(file) for file in matching):
            raise FetchError(f"{spec.name}: has no file {pattern!r} at this revision; see its page on the hub")
    yield from ((file, f"{spec.to}/{file}") for file in sorted(set(matching)))


def safe_target(folder: Path, path: str) -> Path:
    """Return the target of a download.

    Raises:
        FetchError: the target, or a folder on the way to it, is a link or no folder.

    """
    target, above = folder / path, folder
    for part in PurePosixPath(path).parts:
        above /= part
        if above.is_symlink():
            todo = "replace it by a folder or a file"
            raise FetchError(f"{above}: is a link; downloads are not written through links: {todo}")
        if above != target and above.exists() and not above.is_dir():
            raise FetchError(f"{above}: expected a folder, found a file; move it away")
    if target.exists() and not target.is_file():
        raise FetchError(f"{target}: expected a file, found a folder or a device; move it away")
    return target


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FetchedFile(_Model):
    """A file that was downloaded whole."""

    origin: str
    """`hub:owner/name@commit/path`, or the URL without secrets."""
    size: int
    """Its bytes."""
    sha256: str
    """The SHA-256 of its bytes."""
    version: str = ""
    """What the server of a URL calls this version of the file (ETag)."""


class FetchedDataset(_Model):
    """The files of a dataset of the hub that an entry of a manifest asks for."""

    commit: str
    """The commit that the revision was when its files were first listed."""
    files: tuple[str, ...]
    """Their paths below the data folder, whether they were downloaded or not."""


class DownloadRecord(_Model):
    """What was downloaded into a data folder."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)  # earlier versions wrote `unfinished` too

    version: Literal[1] = 1
    """The version of this format."""
    datasets: dict[str, FetchedDataset] = {}
    """By the dataset, its revision, the patterns of its files, and the folder that they are in."""
    files: dict[str, FetchedFile] = {}
    """By the path below the data folder."""

    @field_validator("files")
    @classmethod
    def _inside(cls, value: dict[str, FetchedFile]) -> dict[str, FetchedFile]:
        for path in value:
            if fault := fault_of_path(path):
                raise ValueError(f"{path!r:.200}: {fault}")
        return value


def load_record(folder: Path) -> DownloadRecord:
    """Return the record of a data folder; an empty one if there is none.

    Raises:
        FetchError: the file cannot be read, or is not a record.

    """
    path = folder / RESERVED
    if not path.exists():
        return DownloadRecord()
    try:
        return DownloadRecord.model_validate_json(read_regular(path, MAX_OF_A_FILE))
    except (OSError, ValueError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise FetchError(
            f"{path}: expected a record of downloads, found another file ({said}); move it away, and the files are "
            "compared with those of their places, or downloaded again"
        ) from error


def save_record(folder: Path, record: DownloadRecord) -> None:
    """Write the record of a data folder."""
    write_whole(folder / RESERVED, [record.model_dump_json(indent=1).encode(), b"\n"])


@dataclass(frozen=True, slots=True)
class FetchedPlace:
    """What was downloaded from one place."""

    name: str
    """`hub:owner/name`, or the URL without secrets."""
    folder: Path
    """The folder of the files; for a URL the file."""
    datasets: tuple[str, ...]
    """The datasets that need the files."""
    licence: str
    """The licence of the files."""
    commit: str = ""
    """The commit of a dataset of the hub; empty for a URL, or if the hub did not answer."""
    files: int = 0
    """How many files the place has for these datasets."""
    bytes: int = 0
    """The bytes of those of them that are there."""
    downloaded: int = 0
    """How many of them were downloaded now."""
    there: int = 0
    """How many of them are there, and have the expected bytes."""
    notes: tuple[str, ...] = ()
    """What a user must know, such as a file that was downloaded again."""
    problems: tuple[str, ...] = ()
    """Why files are not there, one sentence each."""
    unverified: bool = False
    """Whether nothing is known that confirms this place."""

    @property
    def is_complete(self) -> bool:
        """Whether all files are there."""
        return not self.problems and 0 < self.files == self.there


@dataclass(frozen=True, slots=True)
class LeftToDo:
    """What a person has to do, because no program may download the files."""

    folder: Path
    """Where the files go."""
    steps: tuple[str, ...]
    """What to do, in order."""
    datasets: tuple[str, ...]
    """The datasets that need the files."""
    licence: str
    """The licence of the files."""
    is_there: bool
    """Whether the file or folder is there; its content is not checked."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of `fetch`."""

    folder: Path
    """The data folder."""
    places: tuple[FetchedPlace, ...]
    """The places that a program may download from."""
    left: tuple[LeftToDo, ...]
    """What a person has to do."""

    @property
    def is_complete(self) -> bool:
        """Whether everything is there that a program may download."""
        return all(place.is_complete for place in self.places)


def state_of(place: Place, folder: Path, record: DownloadRecord) -> str:
    """Return in words what is there of a place, by names and sizes alone; no server is asked."""
    spec, target = place.spec, folder / place.spec.to
    if spec.steps:
        return "there (not checked)" if is_filled(target) else "missing"
    known = record.datasets.get(place.key)
    paths = [spec.to] if spec.url else known.files if known else ()
    sizes = []
    for path in paths:
        file = folder / path
        if path in record.files and file.is_file() and file.stat().st_size == record.files[path].size:
            sizes.append(record.files[path].size)
    if sizes:
        if len(sizes) == len(paths) == 1:
            return f"there ({said_bytes(sizes[0])})"
        state = "there" if len(sizes) == len(paths) else "incomplete"
        return f"{state}: {len(sizes):,} of {len(paths):,} files ({said_bytes(sum(sizes))})"
    patterns = [f"{spec.to}/{pattern}" for pattern in spec.files] or [spec.to]
    return "there (not checked)" if all(any(folder.glob(pattern)) for pattern in patterns) else "missing"


def is_filled(path: Path) -> bool:
    """Return whether a path is a file, or a folder that is not empty."""
    return path.is_file() or (path.is_dir() and any(path.iterdir()))
