"""Whether a release is whole: every file of the lock unchanged, every image decodable, nothing beside them.

Examples are counted again only where their file is not the lock's, to say which of them differ.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pixels import header_size, opened, unreadable
from mmlongbench.errors import MMLongBenchError, NotHereError, PluginError
from mmlongbench.io.process_pool import each_done
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.io.safe_read import MAX_OF_A_FILE
from mmlongbench.release.audit import audit_file, audit_lock
from mmlongbench.release.describe_diff import against
from mmlongbench.release.examples import Lines
from mmlongbench.release.inventory import OTHER_BYTES, inventory, problem_of
from mmlongbench.release.layout import DATA, IMAGES, LOCK
from mmlongbench.release.loading import LoadedRelease, PublicFile, open_release
from mmlongbench.release.lock import Lock, read_lock

_BATCH = 64
"""Files that a process is given at once."""
_NAMED = 5
"""Lines of a damaged file that are named for a reason."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    file: str
    """Below the release."""
    problem: str
    where: str = ""
    """More of it, such as the line."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.problem, self.where) if part)


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at, and what is wrong with it."""

    files: int
    """Of the lock."""
    images: int
    """Among them."""
    problems: tuple[Problem, ...]
    note: str = ""
    """What could not be looked at, for want of something on this machine; empty if nothing."""

    def summary(self) -> dict[str, Any]:
        """One JSON object."""
        return asdict(self)


def verify(release: Path, progress: Progress, workers: int = 1) -> Verified:
    """Look at every file of a release.

    Args:
        release: its folder.
        progress: where a bar is shown.
        workers: processes; what is found does not depend on it.

    Raises:
        ReleaseError: it has no lock that can be read.

    """
    lock = read_lock(release)
    files = inventory(release, lock)
    sizes = {name: file.bytes for name, file in lock.files.items()}
    listed = [_Listed(name, sha256, sizes.get(name, 0)) for name, sha256 in files.items()]
    problems: list[Problem] = []
    with progress.meter("verify: files", len(listed)) as advance:
        for found in _looked_at(release, listed, most_pixels(lock), workers, advance):
            problems += found
    damaged = {problem.file for problem in problems if problem.problem == OTHER_BYTES}
    problems += _located(release, damaged)
    of_lock, note = _of_the_lock(release)
    problems += of_lock
    images = sum(name.startswith(f"{IMAGES}/") for name in sizes)
    return Verified(len(sizes), images, tuple(sorted(problems, key=lambda problem: problem.file)), note)


def _of_the_lock(release: Path) -> tuple[list[Problem], str]:
    """Return what the lock says that cannot be, its manifest and its counts; and why that was not looked at, if so."""
    try:
        found = audit_lock(open_release(release))
    except (NotHereError, PluginError) as error:
        return [], f"the manifest and the counts of {LOCK} were not checked: {error}"
    except MMLongBenchError as error:
        return [Problem(LOCK, "the manifest cannot be used", str(error).removeprefix(f"{LOCK}: "))], ""
    return [Problem(LOCK, kind, where) for each in found for kind, where in each.first.items()], ""


def most_pixels(lock: Lock) -> int:
    """What an image may have: the most that any dataset of the manifest allows."""
    limits = [data.get("limits") for data in lock.manifest]
    pixels = [each.get("pixels") for each in limits if isinstance(each, dict)]
    return max((each for each in pixels if isinstance(each, int)), default=Limits().pixels)


def undecodable(path: Path, pixels: int) -> str | None:
    """Why an image cannot be shown: it cannot be decoded, or has more pixels than it may; None where it can."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is damaged but does no harm
        try:
            with opened(path) as picture:
                width, height = picture.size
                if width * height > pixels:
                    return f"{width:,} × {height:,} pixels, limits.pixels allows {pixels:,}"
                picture.load()
            header_size(path)  # refuses several frames
        except unreadable() as error:
            return type(error).__name__ if str(path) in str(error) else f"{type(error).__name__}: {error}"
    return None


@dataclass(frozen=True, slots=True)
class _Listed:
    name: str
    sha256: str | None
    bytes: int


def _looked_at(
    release: Path, files: Sequence[_Listed], pixels: int, workers: int, advance: Advance
) -> Iterator[list[Problem]]:
    """The problems of the files, by one process or several."""
    batches = [files[at : at + _BATCH] for at in range(0, len(files), _BATCH)]
    if workers == 1 or len(batches) == 1:
        for file in files:
            yield _look_at(release, [file], pixels)
            advance(1)
        return
    calls = [(release, batch, pixels) for batch in batches]
    with closing(each_done(workers, _look_at, calls, [batch[0].name for batch in batches])) as ended:
        for place, found in ended:
            yield found
            advance(len(batches[place]))


def _look_at(release: Path, files: Sequence[_Listed], pixels: int) -> list[Problem]:
    return [problem for file in files for problem in _problems(release, file, pixels)]


def _problems(release: Path, file: _Listed, pixels: int) -> Iterator[Problem]:
    """What is wrong with one file; what is not the release's is not opened."""
    problem = problem_of(release, file.name, file.sha256, file.bytes)
    if problem not in (None, OTHER_BYTES):
        yield Problem(file.name, str(problem))
        return
    path = release / file.name
    size = path.stat().st_size
    if problem or size != file.bytes:
        where = "" if size == file.bytes else f"{size:,} bytes, the lock has {file.bytes:,}"
        yield Problem(file.name, OTHER_BYTES, where)
    if file.name.startswith(f"{IMAGES}/") and (why := undecodable(path, pixels)):
        yield Problem(file.name, "the image cannot be decoded", why)


def _located(release: Path, damaged: set[str]) -> Iterator[Problem]:
    """What can be told of where a file is not the lock's."""
    public = {name for name in damaged if name.startswith(f"{DATA}/")}
    if public:
        yield from _recounted(release, public)
    for name in sorted(damaged - public):
        if name.endswith(".jsonl") and (release / name).stat().st_size <= MAX_OF_A_FILE:
            broken = Lines(release / name).unreadable
            yield from (Problem(name, "is no JSON object", line) for line in broken[:_NAMED])


def _recounted(release: Path, damaged: set[str]) -> Iterator[Problem]:
    """Public files whose examples are counted again, and compared with those of other lengths."""
    try:
        found = open_release(release)
    except MMLongBenchError as error:
        yield from (Problem(name, "its examples cannot be counted again", str(error)) for name in sorted(damaged))
        return
    for file in found.files:
        if (name := f"{DATA}/{file.name}") in damaged:
            audited = audit_file(found, file, ())
            for kind, times in audited.problems.items():
                if kind != OTHER_BYTES:
                    yield Problem(name, kind, f"{times}×, first {audited.first[kind]}")
            if (sibling := _sibling(found, file, damaged)) is not None:
                yield from _unlike(name, file, sibling)


def _sibling(found: LoadedRelease, file: PublicFile, damaged: set[str]) -> PublicFile | None:
    """The nearest length of the same dataset whose file is as the lock has it."""
    intact = [
        other
        for other in found.files
        if file.dataset is not None
        and other.dataset is file.dataset
        and other.path.suffix == file.path.suffix == ".jsonl"
        and other.sha256 is not None
        and f"{DATA}/{other.name}" not in damaged
    ]
    return min(intact, key=lambda other: abs(other.length - file.length), default=None)


def _unlike(name: str, file: PublicFile, sibling: PublicFile) -> Iterator[Problem]:
    """Lines that differ from another length in fields that are the same there but for a few: an edited answer."""
    ours, theirs = Lines(file.path), Lines(sibling.path)
    tallies: dict[str, _Tally] = {}
    for number, example in enumerate(ours.digests, 1):
        one = ours.read([example])[example]
        other = theirs.read([example])[example] if example in theirs.digests else None
        if isinstance(one, dict) and isinstance(other, dict):
            for key in one:
                tallies.setdefault(key, _Tally()).add((number, example), one[key], other.get(key))
    found: dict[tuple[int, str], list[str]] = {}
    for key, tally in tallies.items():
        for line, words in tally.first.items() if tally.is_rare else ():
            found.setdefault(line, []).append(f"{key}: {words}")
    for (number, example), said in sorted(found.items()):
        yield Problem(name, f"is unlike {DATA}/{sibling.name}", f"line {number}, {example}: {'; '.join(said)}")


@dataclass(slots=True)
class _Tally:
    """How often a field differs, and where first, by (line, example)."""

    pairs: int = 0
    differ: int = 0
    first: dict[tuple[int, str], str] = field(default_factory=dict)

    def add(self, line: tuple[int, str], one: object, other: object) -> None:
        self.pairs += 1
        if one != other:
            self.differ += 1
            if self.differ <= _NAMED:
                self.first[line] = against(one, other)

    @property
    def is_rare(self) -> bool:
        return self.differ < self.pairs and self.differ <= max(1, self.pairs // 20)
