"""What `fetch` found and did, for its callers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.io.files import said_bytes
from mmlongbench.manifest.downloads import DownloadSpec
from mmlongbench.manifest.fetching.places import Place
from mmlongbench.manifest.fetching.record import DownloadRecord


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


def left_to_do(place: Place, folder: Path) -> LeftToDo:
    """Return the steps of a place."""
    target = folder / place.spec.to
    return LeftToDo(target, place.spec.steps, place.datasets, place.licence, is_there=is_filled(target))


def state_of(place: Place, folder: Path, record: DownloadRecord) -> str:
    """Return in words what is there of a place, by names and sizes alone; no server is asked."""
    target = folder / place.spec.to
    if place.spec.steps:
        return "there (not checked)" if is_filled(target) else "missing"
    known = record.datasets.get(place.key)
    paths = [place.spec.to] if place.spec.url else known.files if known else ()
    if state := _state(paths, folder, record):
        return state
    patterns = [f"{place.spec.to}/{pattern}" for pattern in place.spec.files] or [place.spec.to]
    return "there (not checked)" if all(any(folder.glob(pattern)) for pattern in patterns) else "missing"


def _state(paths: Sequence[str], folder: Path, record: DownloadRecord) -> str:
    """Return in words how many files are there with their recorded sizes; empty if none is."""
    there = [path for path in paths if path in record.files and _size(folder / path) == record.files[path].size]
    if len(there) == len(paths) == 1:
        return f"there ({said_bytes(record.files[there[0]].size)})"
    if not there:
        return ""
    size = said_bytes(sum(record.files[path].size for path in there))
    return f"{'there' if len(there) == len(paths) else 'incomplete'}: {len(there):,} of {len(paths):,} files ({size})"


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1


def is_filled(path: Path) -> bool:
    """Return whether a path is a file, or a folder that is not empty."""
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def is_for_a_program(spec: DownloadSpec) -> bool:
    """Return whether a program may download the files of a place."""
    return not spec.steps
