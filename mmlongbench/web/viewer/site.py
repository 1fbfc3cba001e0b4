"""What all pages are made of: what is viewed, its index, what models answered, and what else the command was given."""

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from mmlongbench.web.viewer.answers import Answers, read_answers
from mmlongbench.web.viewer.example import OpenExample, open_example
from mmlongbench.web.viewer.index import Index, IndexRow, open_index
from mmlongbench.web.viewer.review import Review, open_review
from mmlongbench.web.viewer.viewed import Viewed, ViewedFile, open_viewed

_MAX_FINDINGS = 16 * 1024 * 1024
"""The most bytes of a file of findings."""
_OPEN = 3
"""The examples that are kept open; a reader goes back and forth between few."""


@dataclass
class Site:
    """Everything that pages are made of. Threads may share it."""

    viewed: Viewed
    index: Index
    answers: Answers
    models: Sequence[Model] = ()
    """The models by whose rules the ruler can be drawn."""
    findings: Sequence[Finding] = ()
    against: tuple[str, ReleaseDifference] | None = None
    """The name of another release, and the differences to it."""
    review: Review | None = None
    limit: int | None = None
    """Of a site of files: how many examples of each file have a page. None: a server shows all."""
    _open: OrderedDict[tuple[int, int], OpenExample] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_static(self) -> bool:
        """Whether the pages are files, which cannot ask a server for more."""
        return self.limit is not None

    def file(self, number: int) -> ViewedFile:
        """Return a public file by its number."""
        if number >= len(self.viewed.files):
            raise ReleaseError(f"there is no file {number}")
        return self.viewed.files[number]

    def row(self, file: ViewedFile, row: int) -> IndexRow:
        """Return a row of a public file, which counts from 0."""
        rows = self.index.rows(file.number)
        if not 0 <= row < len(rows):
            raise ReleaseError(f"{file.name}: there is no example {row + 1}")
        return rows[row]

    def address(self, file: ViewedFile, row: int) -> str:
        """Return the address of the page of an example, which counts from 1; empty if the site does not have it."""
        return f"example-{file.number}-{row + 1}.html" if self.limit is None or row < self.limit else ""

    def open(self, file: ViewedFile, row: int) -> OpenExample:
        """Open an example, or return it if it is open; one is opened at a time, which bounds memory."""
        key = (file.number, row)
        with self._guard:
            if key not in self._open:
                self._open[key] = self.read(file, self.row(file, row))
                while len(self._open) > _OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(key)
            return self._open[key]

    def read(self, file: ViewedFile, row: IndexRow) -> OpenExample:
        """Read an example from the disk."""
        record, units = self.index.record(file.number, row), self.index.units(file.number, row)
        return open_example(self.viewed, file, row, record, units)

    def elsewhere(self, file: ViewedFile, row: IndexRow) -> list[tuple[ViewedFile, IndexRow]]:
        """Return the other places of a question in its dataset: other lengths and placements, the shortest first."""
        return [
            (other, each)
            for other in self.viewed.of(file.dataset)
            for each in self.index.rows(other.number)
            if each.id == row.id and (other.number, each.row) != (file.number, row.row)
        ]

    def shorter(self, file: ViewedFile, row: IndexRow) -> tuple[ViewedFile, IndexRow] | None:
        """Return the example of the same question and placement at the next shorter length; None if there is none."""
        same = [
            (other, each)
            for other, each in self.elsewhere(file, row)
            if other.length < file.length and each.placement == row.placement and not each.fault
        ]
        return max(same, key=lambda pair: pair[0].length, default=None)


def open_site(
    release: Path,
    progress: Progress,
    *,
    images: Path | None = None,
    variant: str = "",
    tasks: TaskFiles = NO_TASK_FILES,
    predictions: Sequence[Path] = (),
    scores: Sequence[Path] = (),
    models: Sequence[Model] = (),
    shortcuts: Path | None = None,
    against: Path | None = None,
    suspects: Path | None = None,
    review: Path | None = None,
) -> Site:
    """Open everything that pages are made of; what is new is indexed first."""
    viewed = open_viewed(release, images, tasks, variant)
    index = open_index(viewed, images, tasks, progress, variant)
    answers = read_answers(viewed, index, predictions, scores, tasks, progress)
    found = _read_findings(shortcuts) if shortcuts else ()
    differences = None
    if against:
        with progress.bar("diff", 1) as advance:
            for _, difference in each_done(1, compared, [(release, against)], [against.name]):
                differences = against.resolve().name, difference
                advance()
    return Site(viewed, index, answers, models, found, differences, open_review(suspects, review))


def compared(release: Path, other: Path) -> ReleaseDifference:
    """Compare two releases in a process of its own, because reading Parquet takes memory that a server keeps."""
    return diff(release, other, Progress(False))


def _read_findings(path: Path) -> list[Finding]:
    """Read what `mmlongbench shortcuts --json` printed."""
    try:
        lines = read_regular(path, _MAX_FINDINGS).splitlines()
        values = [json.loads(line) for line in lines if line.strip()]
        found = [Finding.model_validate(each) for each in values if isinstance(each, dict) and "verdict" in each]
    except (OSError, ValueError, ValidationError) as error:
        why = " ".join(str(error).split())[:200]
        raise ReleaseError(f"{path}: expected the output of `mmlongbench shortcuts --json`: {why}") from error
    if not found:
        raise ReleaseError(f"{path}: has no finding; write it with `mmlongbench shortcuts RELEASE --json`")
    order = ("leak", "undecided", "clean")
    return sorted(found, key=lambda each: order.index(each.verdict))
