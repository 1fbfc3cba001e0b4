"""The shortcut audit without a model: every probe over every dataset of a release."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.io.progress import Progress
from mmlongbench.likeness import Pictures
from mmlongbench.packing.place import Depth
from mmlongbench.release.items import items_path
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.shortcuts.against import Answering, others_of
from mmlongbench.shortcuts.depths import Depths
from mmlongbench.shortcuts.difficulty import Difficulties, Difficulty, Search, drawn_questions
from mmlongbench.shortcuts.features import ImageFacts
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.leakage import Leakage
from mmlongbench.shortcuts.measured import MIN_CLUSTERS, Measured
from mmlongbench.shortcuts.overlap import Overlap
from mmlongbench.shortcuts.pages import PageTexts
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
    difficulties: tuple[Difficulty, ...] = ()
    """How far down a search finds gold, by dataset, length and search; this is no finding."""

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
    searches: Sequence[Search] = (Search(),),
    without: Mapping[str, Collection[str]] | None = None,
) -> ShortcutAudit:
    """Try every probe on a release.

    Args:
        release: the release.
        progress: shows the progress bar.
        datasets: the names of the datasets to try; empty: all.
        against: another release, or a folder of files, with which nothing should be shared; None: not compared.
        searches: how gold is searched for, to say how difficult that is.
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
    shared = None if against is None else Answering(Pictures.of(release))
    read = _Read(release, shared, searches, without or {})
    with progress.bar("datasets tried", len(chosen)) as advance:
        for name in chosen:
            read.add(name)
            advance()
    judged = judge(read.measured)
    findings = (*judged.findings, *read.counted, *read.shared_with(against))
    return ShortcutAudit(findings, judged.p, tuple(read.notes), tuple(read.difficulties))


def has_requested_places(release: Release, dataset: str) -> bool:
    """Return whether the places of needles are requested, so that they tell nothing about gold by design."""
    placements = release.builder(dataset).spec.placements
    return placements is not None and placements.kind is Depth


class _Read:
    """Reads each dataset once, and gives each question to everything that looks at it."""

    def __init__(
        self,
        release: Release,
        shared: Answering | None,
        searches: Sequence[Search],
        without: Mapping[str, Collection[str]],
    ) -> None:
        self._release, self._shared, self._searches, self._without = release, shared, searches, without
        self._images = ImageFacts(release.path / IMAGES)
        self._texts = PageTexts(release)
        self._pictures = shared.pictures if shared else Pictures.of(release)
        self.measured: list[tuple[str, str, Measured]] = []
        self.counted: list[Finding] = []
        self.notes: list[str] = []
        self.difficulties: list[Difficulty] = []

    def add(self, dataset: str) -> None:
        """Try every length: a question may tell its answer in a short context that a longer one hides."""
        lengths = self._release.lengths(dataset)
        ids = self._release.ids(dataset, lengths[-1]) if lengths else ()
        searched = drawn_questions(dataset, [*ids])
        was_tried = False
        counted: dict[str, Finding] = {}
        for length in lengths:
            file, kept = "", Kept()
            has_depths = has_requested_places(self._release, dataset)
            counting = (Leakage(dataset), Overlap(dataset, self._pictures), Depths(dataset))
            hard = Difficulties(dataset, length, self._searches, self._texts)
            for asked in asked_questions(self._release, dataset, length):
                if asked.id in self._without.get(dataset, ()):
                    continue
                file = asked.file
                if asked.id in searched:
                    hard.add(asked)
                keep_one(kept, asked, self._images, has_depths=has_depths, texts=self._texts)
                for each in counting:
                    each.add(asked)
                if self._shared and length == lengths[-1]:
                    self._shared.add(dataset, asked)
            if file and not items_path(self._release.path, file).is_file():
                only = "gold is looked for only where the needles are known"
                self.notes.append(f"{dataset}: the release has no items of {file}: {only}")
            # lessons are large, and not needed any more
            found = [(dataset, file, replace(each, lesson=None, length=length)) for each in measure(kept)]
            was_tried |= bool(found)
            self.measured += found
            self.difficulties += hard.lines()
            for finding in (finding for each in counting for finding in each.findings()):
                known = counted.get(finding.kind)
                if known is None or (finding.verdict == "leak", finding.excess) > (
                    known.verdict == "leak",
                    known.excess,
                ):
                    counted[finding.kind] = finding.model_copy(update={"length": length})
        if lengths and not was_tried:
            self.notes.append(
                f"{dataset}: not tried: its questions are about fewer than {MIN_CLUSTERS} subjects, or one answer"
            )
        self.counted += counted.values()

    def shared_with(self, against: Path | None) -> Iterator[Finding]:
        if self._shared and against is not None:
            for other in others_of(against):
                self._shared.compare(other)
            yield from self._shared.findings()
