"""The shortcut audit without a model: every probe over every dataset of a release."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.io.progress import Progress
from mmlongbench.packing.place import Depth
from mmlongbench.release.items import items_path
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.opened import Release
from mmlongbench.shortcuts.against import Answering, others_of
from mmlongbench.shortcuts.features import ImageFacts
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.leakage import Leakage
from mmlongbench.shortcuts.measured import MIN_CLUSTERS, Measured
from mmlongbench.shortcuts.near import Pictures
from mmlongbench.shortcuts.overlap import Overlap
from mmlongbench.shortcuts.probes import Kept, keep_one, measure
from mmlongbench.shortcuts.reading import asked_questions
from mmlongbench.shortcuts.verdicts import judge


@dataclass(frozen=True, slots=True)
class ShortcutAudit:
    """What the audit says about a release."""

    findings: tuple[Finding, ...]
    """A finding for each probe of each dataset."""
    p: float | None
    """The probability that the strongest of all probes is so strong if nothing tells anywhere; None if nothing could be
    tried."""
    notes: tuple[str, ...]
    """The datasets that could not be tried, or not in full, and why."""

    @property
    def leaks(self) -> tuple[Finding, ...]:
        """Return the findings that are leaks, those with the largest excess first."""
        found = [each for each in self.findings if each.verdict == "leak"]
        return tuple(sorted(found, key=lambda each: -each.excess))


def audit_shortcuts(
    release: Release,
    progress: Progress,
    datasets: Sequence[str] = (),
    against: Path | None = None,
    without: Mapping[str, Collection[str]] | None = None,
) -> ShortcutAudit:
    """Try every probe on a release.

    Args:
        release: the release.
        progress: shows the progress bar.
        datasets: the names of the datasets to try; empty: all.
        against: another release, or a folder of files, with which nothing should be shared; None: not compared.
        without: the ids of questions that are not read, by dataset.

    Raises:
        ReleaseError: there is no such dataset, or a file cannot be read.

    """
    for name in datasets:
        if name not in release.datasets:
            hint = nearest(name, release.datasets)
            raise ReleaseError(
                f"{release.path.name}: no dataset {name!r}; there are {', '.join(release.datasets)}{hint}"
            )
    chosen = [name for name in release.datasets if name in datasets or not datasets]
    read = _Read(release, None if against is None else Answering(Pictures.of(release)), without or {})
    with progress.bar("datasets tried", len(chosen)) as advance:
        for name in chosen:
            read.add(name)
            advance()
    judged = judge(read.measured)
    return ShortcutAudit((*judged.findings, *read.counted, *read.shared_with(against)), judged.p, tuple(read.notes))


def has_requested_places(release: Release, dataset: str) -> bool:
    """Return whether the places of needles are requested, so that they tell nothing about gold by design."""
    placements = release.builder(dataset).spec.placements
    return placements is not None and placements.kind is Depth


class _Read:
    """Reads each dataset once, and gives each question to everything that looks at it."""

    def __init__(self, release: Release, shared: Answering | None, without: Mapping[str, Collection[str]]) -> None:
        self._release, self._shared, self._without = release, shared, without
        self._images = ImageFacts(release.path / IMAGES)
        self._pictures = shared.pictures if shared else Pictures.of(release)
        self.measured: list[tuple[str, str, Measured]] = []
        self.counted: list[Finding] = []
        self.notes: list[str] = []

    def add(self, dataset: str) -> None:
        file, has_depths = "", has_requested_places(self._release, dataset)
        kept, leakage, overlap = Kept(), Leakage(dataset), Overlap(dataset, self._pictures)
        for asked in asked_questions(self._release, dataset):
            if asked.id in self._without.get(dataset, ()):
                continue
            file = asked.file
            keep_one(kept, asked, self._images, has_depths=has_depths)
            leakage.add(asked)
            overlap.add(asked)
            if self._shared:
                self._shared.add(dataset, asked)
        if file and not items_path(self._release.path, file).is_file():
            self.notes.append(
                f"{dataset}: the release has no items of {file}: gold is looked for only where the needles are known"
            )
        found = [(dataset, file, each) for each in measure(kept)]
        if not found:
            self.notes.append(
                f"{dataset}: not tried: its questions are about fewer than {MIN_CLUSTERS} subjects, or one answer"
            )
        self.measured += [(name, where, replace(each, lesson=None)) for name, where, each in found]  # lessons are large
        self.counted += [*leakage.findings(), *overlap.findings()]

    def shared_with(self, against: Path | None) -> Iterator[Finding]:
        if self._shared and against is not None:
            for other in others_of(against):
                self._shared.compare(other)
            yield from self._shared.findings()
