"""Checks that a release is complete: every file of the lock is unchanged, every image can be decoded, nothing was
added.

Examples are counted again only in files that differ from the lock, to say which examples differ.
"""

import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pixels import header_size, opened, unreadable
from mmlongbench.errors import MMLongBenchError, NotHereError, PluginError
from mmlongbench.io.files import MAX_OF_A_FILE, Links
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.audit import audit_file
from mmlongbench.release.diff import ExampleFile, against
from mmlongbench.release.layout import DATA, IMAGES, LOCK
from mmlongbench.release.lock import OTHER_BYTES, LockedFile, inventory, problem_of, read_lock
from mmlongbench.release.lock_checks import audit_lock
from mmlongbench.release.published_folder import is_publication, unlike_checksums
from mmlongbench.release.release import PublicFile, Release

_BATCH = 16
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
    """Check every file of a release, or of a folder that `publish` wrote (see `mmlongbench.verify`)."""
    lock, root, note = read_lock(release), release, ""
    problems: list[Problem] = []
    opening: Release | MMLongBenchError
    try:
        opening = Release.open(release, tasks=tasks)
    except MMLongBenchError as error:
        opening = error
    if is_publication(release):
        problems += [Problem(name, fault) for name, fault in unlike_checksums(release) if not name.startswith(".")]
        if isinstance(opening, MMLongBenchError):
            if not problems:
                raise opening
            problems.append(Problem(LOCK, "the public files cannot be made again", str(opening)))
            return Verified(len(lock.files), 0, tuple(sorted(problems, key=attrgetter("file"))))
        root, parts = opening.path, {f"{DATA}/{file.name}" for file in opening.files if file.is_part}
        there = {name: file for name, file in inventory(root, lock).items() if (root / name).exists()}
        files = {name: file for name, file in there.items() if name not in parts}
    else:
        files = inventory(release, lock)

    limits = [data.get("limits") for data in lock.manifest]
    pixels = [each.get("pixels") for each in limits if isinstance(each, dict)]
    most_pixels = max((each for each in pixels if isinstance(each, int)), default=Limits().pixels)
    listed = list(files.items())
    batches = [listed[at : at + _BATCH] for at in range(0, len(listed), _BATCH)]
    check = partial(_problems_of, Links(root), pixels=most_pixels)
    # hashing and decoding leave the interpreter to other threads, which may not change its filters of warnings
    with (
        warnings.catch_warnings(),
        ThreadPoolExecutor(workers) as pool,
        progress.meter("verify: files", len(listed)) as advance,
    ):
        warnings.simplefilter("ignore")  # about harmless damage
        for batch, of_batch in zip(batches, pool.map(check, batches), strict=True):
            problems += of_batch
            advance(len(batch))

    damaged = sorted({problem.file for problem in problems if problem.problem == OTHER_BYTES})
    try:
        if isinstance(opening, MMLongBenchError):
            raise opening
        opening.load_tokenizers()
    except MMLongBenchError as error:
        if isinstance(error, NotHereError | PluginError):
            note = f"the manifest and the counts of {LOCK} were not checked: {error}"
        else:
            problems.append(Problem(LOCK, "the manifest cannot be used", str(error).removeprefix(f"{LOCK}: ")))
        why = "its examples cannot be counted again"
        problems += [Problem(name, why, str(error)) for name in damaged if name.startswith(f"{DATA}/")]
    else:
        problems += _changed_examples(opening, damaged)
        audits = audit_lock(opening)
        problems += [Problem(LOCK, kind, where) for audit in audits for kind, where in audit.first.items()]
    for name in damaged:
        is_listed = name.endswith(".jsonl") and not name.startswith(f"{DATA}/")
        if is_listed and (root / name).stat().st_size <= MAX_OF_A_FILE:
            lines = ExampleFile(root / name).unreadable[:_NAMED]
            problems += [Problem(name, "is no JSON object", line) for line in lines]
    locked = [name for name, file in files.items() if file]
    images = sum(name.startswith(f"{IMAGES}/") for name in locked)
    return Verified(len(locked), images, tuple(sorted(problems, key=attrgetter("file"))), note)


def undecodable(path: Path, pixels: int) -> str | None:
    """Return why an image cannot be decoded or has too many pixels; None if it is fine."""
    try:
        with opened(path) as picture:
            width, height = picture.size
            if width * height > pixels:
                return f"{width:,} × {height:,} pixels, limits.pixels allows {pixels:,}"
            picture.draft("L", (1, 1))  # of a JPEG, all is decoded, but only the mean of each block is made a pixel
            picture.load()
        header_size(path)  # refuses files with several frames
    except unreadable() as error:
        return type(error).__name__ if str(path) in str(error) else f"{type(error).__name__}: {error}"
    return None


def _problems_of(links: Links, files: Sequence[tuple[str, LockedFile | None]], pixels: int) -> list[Problem]:
    """Return what is wrong with some files of the inventory; files outside the release are not opened."""
    problems = []
    for name, file in files:
        problem = problem_of(links, name, file)
        if file is None or problem not in (None, OTHER_BYTES):
            problems.append(Problem(name, str(problem)))
            continue
        path = links.root / name
        if problem:
            size = path.stat().st_size
            where = "" if size == file.bytes else f"{size:,} bytes, the lock has {file.bytes:,}"
            problems.append(Problem(name, problem, where))
        if name.startswith(f"{IMAGES}/") and (why := undecodable(path, pixels)):
            problems.append(Problem(name, "the image cannot be decoded", why))
    return problems


def _changed_examples(opened: Release, damaged: Collection[str]) -> Iterator[Problem]:
    """Count the examples of changed public files again, and compare them with the same examples at the nearest length
    whose file is unchanged.
    """
    for file in opened.files:
        if (name := f"{DATA}/{file.name}") not in damaged:
            continue
        audited = audit_file(opened, file, ())
        for kind, times in audited.problems.items():
            if kind != OTHER_BYTES:
                yield Problem(name, kind, f"{times}×, first {audited.first[kind]}")
        siblings = [
            other
            for other in opened.files
            if file.dataset is not None
            and other.dataset is file.dataset
            and other.path.suffix == file.path.suffix == ".jsonl"
            and other.sha256 is not None
            and f"{DATA}/{other.name}" not in damaged
        ]
        if siblings:
            yield from _unlike(name, file, min(siblings, key=lambda other: abs(other.length - file.length)))


def _unlike(name: str, file: PublicFile, sibling: PublicFile) -> Iterator[Problem]:
    """Yield the lines with a field, such as an edited answer, that has another value in the same example at another
    length. Fields that differ in many examples are not reported.
    """
    ours, theirs = ExampleFile(file.path), ExampleFile(sibling.path)
    pairs, differ = Counter[str](), Counter[str]()
    first: dict[str, dict[tuple[int, str], str]] = {}
    for number, example in enumerate(ours.digests, 1):
        one = ours.read([example])[example]
        other = theirs.read([example])[example] if example in theirs.digests else None
        if not isinstance(one, dict) or not isinstance(other, dict):
            continue
        for key, value in one.items():
            pairs[key] += 1
            if value != other.get(key):
                differ[key] += 1
                if differ[key] <= _NAMED:
                    first.setdefault(key, {})[number, example] = against(value, other.get(key))
    by_line: dict[tuple[int, str], list[str]] = {}
    for key in pairs:
        if differ[key] < pairs[key] and differ[key] <= max(1, pairs[key] // 20):
            for line, words in first.get(key, {}).items():
                by_line.setdefault(line, []).append(f"{key}: {words}")
    for (number, example), fields in sorted(by_line.items()):
        yield Problem(name, f"is unlike {DATA}/{sibling.name}", f"line {number}, {example}: {'; '.join(fields)}")
