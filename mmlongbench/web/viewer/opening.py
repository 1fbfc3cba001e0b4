"""Makes a site of paths, as the command gives them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.diff import ReleaseDifference, diff
from mmlongbench.release.example_cost import Model
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.web.viewer.answers import read_answers
from mmlongbench.web.viewer.fitting import note_unfit
from mmlongbench.web.viewer.index import open_index
from mmlongbench.web.viewer.review import open_review
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.sources import open_viewed

MAX_FINDINGS = 16 * 1024 * 1024
"""The most bytes of a file of findings."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command is given besides the release."""

    predictions: tuple[Path, ...] = ()
    scores: tuple[Path, ...] = ()
    models: tuple[Model, ...] = ()
    shortcuts: Path | None = None
    against: Path | None = None
    images: Path | None = None
    tasks: TaskFiles = NO_TASK_FILES
    suspects: Path | None = None
    review: Path | None = None


def open_site(release: Path, given: Given, progress: Progress) -> Site:
    """Open everything that pages are made of; what is new is indexed first.

    Raises:
        MMLongBenchError: something that was given cannot be read.

    """
    viewed = open_viewed(release, given.images, given.tasks)
    index = open_index(viewed, given.images, given.tasks, progress)
    answers = read_answers(viewed, given.predictions, given.scores, given.tasks, progress)
    note_unfit(answers, index)
    findings = read_findings(given.shortcuts) if given.shortcuts else ()
    against = (given.against.resolve().name, _difference(release, given.against, progress)) if given.against else None
    review = open_review(given.suspects, given.review)
    return Site(viewed, index, answers, given.models, findings, against, review)


def _difference(release: Path, other: Path, progress: Progress) -> ReleaseDifference:
    """Compare two releases in a process of its own, because reading Parquet takes memory that a server keeps."""
    with progress.bar("diff", 1) as advance:
        for _, found in each_done(1, difference, [(release, other)], [other.name]):
            advance()
            return found
    raise ReleaseError(f"{other}: was not compared")


def difference(release: Path, other: Path) -> ReleaseDifference:
    """Compare two releases.

    Raises:
        ReleaseError: one of them is no release.

    """
    return diff(release, other, Progress(False))


def read_findings(path: Path) -> Sequence[Finding]:
    """Read what `mmlongbench shortcuts --json` printed.

    Raises:
        ReleaseError: the file cannot be read, or has no finding.

    """
    try:
        lines = read_regular(path, MAX_FINDINGS).splitlines()
        values = [json.loads(line) for line in lines if line.strip()]
        found = [Finding.model_validate(each) for each in values if isinstance(each, dict) and "verdict" in each]
    except (OSError, ValueError, ValidationError) as error:
        said = " ".join(str(error).split())[:200]
        raise ReleaseError(f"{path}: expected the output of `mmlongbench shortcuts --json`: {said}") from error
    if not found:
        raise ReleaseError(f"{path}: has no finding; write it with `mmlongbench shortcuts RELEASE --json`")
    order = ("leak", "undecided", "clean")
    return sorted(found, key=lambda each: order.index(each.verdict))
