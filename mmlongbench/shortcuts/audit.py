"""The shortcut audit without a model: every probe over every dataset of a release."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.io.progress import Progress
from mmlongbench.packing.place import Depth
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.opened import Release
from mmlongbench.shortcuts.features import ImageFacts
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.leakage import leakage_findings
from mmlongbench.shortcuts.measured import MIN_CLUSTERS, Measured
from mmlongbench.shortcuts.overlap import overlap_findings
from mmlongbench.shortcuts.probes import keep, measure
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
    """The datasets that could not be tried, and why."""

    @property
    def leaks(self) -> tuple[Finding, ...]:
        """Return the findings that are leaks, those with the largest excess first."""
        found = [each for each in self.findings if each.verdict == "leak"]
        return tuple(sorted(found, key=lambda each: -each.excess))


def audit_shortcuts(
    release: Release, progress: Progress, datasets: Sequence[str] = (), against: Path | None = None
) -> ShortcutAudit:
    """Try every probe on a release.

    Args:
        release: the release.
        progress: shows the progress bar.
        datasets: the names of the datasets to try; empty: all.
        against: another release, or a folder of files, with which nothing should be shared; None: not compared.

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
    images, measured, notes = ImageFacts(release.path / IMAGES), list[tuple[str, str, Measured]](), list[str]()
    with progress.bar("datasets tried", len(chosen)) as advance:
        for name in chosen:
            found = _of_dataset(release, name, images)
            if not found:
                notes.append(
                    f"{name}: not tried: its questions are about fewer than {MIN_CLUSTERS} subjects, or one answer"
                )
            measured += found
            advance()
    judged = judge(measured)
    counted = (*leakage_findings(release), *overlap_findings(release, against))
    kept = (each for each in counted if each.dataset in chosen)
    return ShortcutAudit((*judged.findings, *kept), judged.p, tuple(notes))


def _of_dataset(release: Release, dataset: str, images: ImageFacts) -> list[tuple[str, str, Measured]]:
    placements = release.builder(dataset).spec.placements
    kept = keep(
        asked_questions(release, dataset), images, has_depths=placements is not None and placements.kind is Depth
    )
    lengths = release.lengths(dataset)
    file = release.file(dataset, lengths[-1]) if lengths else ""
    return [(dataset, file, each) for each in measure(kept)]
