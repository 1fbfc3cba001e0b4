"""Checks that a release is complete: every file of the lock is unchanged, every image can be decoded, nothing was
added.

Examples are counted again only in files that differ from the lock, to say which examples differ.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pixels import header_size, opened, unreadable
from mmlongbench.errors import MMLongBenchError, NotHereError, PluginError
from mmlongbench.io.files import MAX_OF_A_FILE
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.audit import audit_file
from mmlongbench.release.diff import against
from mmlongbench.release.examples import ExampleFile
from mmlongbench.release.layout import DATA, IMAGES, LOCK
from mmlongbench.release.lock import OTHER_BYTES, Lock, inventory, problem_of, read_lock
from mmlongbench.release.lock_checks import audit_lock
from mmlongbench.release.published import is_published, unlike_checksums
from mmlongbench.release.release import PublicFile, Release

_BATCH = 64
"""How many files a process is given at once."""
_NAMED = 5
"""How many lines of a damaged file are named for each reason."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a release."""

    file: str
    """The path of the file below the release."""
    problem: str
    """What is wrong with the file."""
    where: str = ""
    """More details, such as the line."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.problem, self.where) if part)


@dataclass(frozen=True, slots=True)
class Verified:
    """The number of files that were checked, and the problems that were found."""

    files: int
    """The number of files in the lock."""
    images: int
    """How many of these files are images."""
    problems: tuple[Problem, ...]
    """The problems, sorted by file; empty if there are none."""
    note: str = ""
    """What could not be checked because something is missing on this machine; empty if everything was checked."""

    def summary(self) -> dict[str, object]:
        """Return the result as one JSON object."""
        return asdict(self)


def verify(release: Path, progress: Progress, workers: int = 1, tasks: TaskFiles = NO_TASK_FILES) -> Verified:
    """Check every file of a release, or of a folder that `publish` wrote.

    Args:
        release: its folder.
        progress: shows the bar.
        workers: the number of processes; it does not change the result.
        tasks: the task files that the release was built with.

    Raises:
        ReleaseError: the release has no readable lock.

    """
    lock, root = read_lock(release), release
    problems: list[Problem] = []
    if is_published(release):
        problems += [Problem(name, fault) for name, fault in unlike_checksums(release) if not name.startswith(".")]
        try:
            opened = Release.open(release, tasks=tasks)
        except MMLongBenchError as error:
            if not problems:
                raise
            problems.append(Problem(LOCK, "the public files cannot be made again", str(error)))
            return Verified(len(lock.files), 0, tuple(sorted(problems, key=lambda problem: problem.file)), "")
        root, parts = opened.path, {f"{DATA}/{file.name}" for file in opened.files if file.is_part}
        files = {name: sha256 for name, sha256 in inventory(root, lock).items() if (root / name).exists()}
        files = {name: sha256 for name, sha256 in files.items() if name not in parts}
        sizes = {name: lock.files[name].bytes for name in files if name in lock.files}
    else:
        files, sizes = inventory(release, lock), {name: file.bytes for name, file in lock.files.items()}
    listed = [(name, sha256, sizes.get(name, 0)) for name, sha256 in files.items()]
    with progress.meter("verify: files", len(listed)) as advance:
        for found in _looked_at(root, listed, most_pixels(lock), workers, advance):
            problems += found
    damaged = {problem.file for problem in problems if problem.problem == OTHER_BYTES}
    note = ""
    try:
        opened = Release.open(release, tasks=tasks)
        opened.load_tokenizers()
    except MMLongBenchError as error:
        if isinstance(error, NotHereError | PluginError):
            note = f"the manifest and the counts of {LOCK} were not checked: {error}"
        else:
            problems.append(Problem(LOCK, "the manifest cannot be used", str(error).removeprefix(f"{LOCK}: ")))
        why = "its examples cannot be counted again"
        problems += [Problem(name, why, str(error)) for name in sorted(damaged) if name.startswith(f"{DATA}/")]
    else:
        problems += _recounted(opened, damaged)
        audits = audit_lock(opened)
        problems += [Problem(LOCK, kind, where) for each in audits for kind, where in each.first.items()]
    problems += _unreadable_lines(root, damaged)
    images = sum(name.startswith(f"{IMAGES}/") for name in sizes)
    return Verified(len(sizes), images, tuple(sorted(problems, key=lambda problem: problem.file)), note)


def most_pixels(lock: Lock) -> int:
    """Return how many pixels an image may have: the highest limit of any dataset of the manifest."""
    limits = [data.get("limits") for data in lock.manifest]
    pixels = [each.get("pixels") for each in limits if isinstance(each, dict)]
    return max((each for each in pixels if isinstance(each, int)), default=Limits().pixels)


def undecodable(path: Path, pixels: int) -> str | None:
    """Return why an image cannot be decoded or has too many pixels; None if it is fine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about harmless damage
        try:
            with opened(path) as picture:
                width, height = picture.size
                if width * height > pixels:
                    return f"{width:,} × {height:,} pixels, limits.pixels allows {pixels:,}"
                picture.load()
            header_size(path)  # refuses files with several frames
        except unreadable() as error:
            return type(error).__name__ if str(path) in str(error) else f"{type(error).__name__}: {error}"
    return None


_Listed: TypeAlias = tuple[str, str | None, int]
"""The path of a file, its SHA-256 in the lock (None if the lock does not have it), and its bytes there."""


def _looked_at(
    release: Path, files: Sequence[_Listed], pixels: int, workers: int, advance: Advance
) -> Iterator[list[Problem]]:
    """Yield the problems of the files, found by one or several processes."""
    batches = [files[at : at + _BATCH] for at in range(0, len(files), _BATCH)]
    if workers == 1 or len(batches) == 1:
        for file in files:
            yield _look_at(release, [file], pixels)
            advance(1)
        return
    calls = [(release, batch, pixels) for batch in batches]
    with closing(each_done(workers, _look_at, calls, [batch[0][0] for batch in batches])) as ended:
        for place, found in ended:
            yield found
            advance(len(batches[place]))


def _look_at(release: Path, files: Sequence[_Listed], pixels: int) -> list[Problem]:
    return [problem for file in files for problem in _problems(release, file, pixels)]


def _problems(release: Path, file: _Listed, pixels: int) -> Iterator[Problem]:
    """Yield what is wrong with one file; files outside the release are not opened."""
    name, sha256, bytes_ = file
    problem = problem_of(release, name, sha256, bytes_)
    if problem not in (None, OTHER_BYTES):
        yield Problem(name, str(problem))
        return
    path = release / name
    size = path.stat().st_size
    if problem or size != bytes_:
        yield Problem(name, OTHER_BYTES, "" if size == bytes_ else f"{size:,} bytes, the lock has {bytes_:,}")
    if name.startswith(f"{IMAGES}/") and (why := undecodable(path, pixels)):
        yield Problem(name, "the image cannot be decoded", why)


def _unreadable_lines(release: Path, damaged: set[str]) -> Iterator[Problem]:
    """Yield lines that are no JSON objects of changed files outside `mmlb_data/`."""
    for name in sorted(damaged):
        is_listed = name.endswith(".jsonl") and not name.startswith(f"{DATA}/")
        if is_listed and (release / name).stat().st_size <= MAX_OF_A_FILE:
            broken = ExampleFile(release / name).unreadable
            yield from (Problem(name, "is no JSON object", line) for line in broken[:_NAMED])


def _recounted(opened: Release, damaged: set[str]) -> Iterator[Problem]:
    """Yield the problems of changed public files.

    Their examples are counted again, and are compared with the same examples at another length.
    """
    for file in opened.files:
        if (name := f"{DATA}/{file.name}") in damaged:
            audited = audit_file(opened, file, ())
            for kind, times in audited.problems.items():
                if kind != OTHER_BYTES:
                    yield Problem(name, kind, f"{times}×, first {audited.first[kind]}")
            if (sibling := _sibling(opened, file, damaged)) is not None:
                yield from _unlike(name, file, sibling)


def _sibling(found: Release, file: PublicFile, damaged: set[str]) -> PublicFile | None:
    """Return an undamaged file of the same dataset: the one with the nearest length; None if there is none."""
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
    """Yield the lines with a field, such as an edited answer, that has another value in the same example at another
    length. Fields that differ in many examples are not reported.
    """
    ours, theirs = ExampleFile(file.path), ExampleFile(sibling.path)
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
    """Counts how often a field differs; `first` has the first differences in words, by (line number, example)."""

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
