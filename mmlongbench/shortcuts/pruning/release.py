"""Prunes the datasets of a release by what the audit found in them, and audits again what is left."""

from collections.abc import Sequence
from pathlib import Path

from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.shortcuts.audit import ShortcutAudit, audit_shortcuts, has_requested_places
from mmlongbench.shortcuts.features import ImageFacts
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.measured import Measured
from mmlongbench.shortcuts.pages import PageTexts
from mmlongbench.shortcuts.probes import Kept, keep, measure
from mmlongbench.shortcuts.pruning.advice import advice_for
from mmlongbench.shortcuts.pruning.choosing import MAX_SHARE
from mmlongbench.shortcuts.pruning.dataset import SOURCE, DatasetDrops, leaks_of, prune_dataset
from mmlongbench.shortcuts.pruning.naming import earlier_errata, named
from mmlongbench.shortcuts.pruning.results import Effect, Pruned
from mmlongbench.shortcuts.reading import asked_questions


def prune_shortcuts(
    release: Release, found: ShortcutAudit, progress: Progress, against: Path | None = None
) -> tuple[Pruned, ...]:
    """Choose questions to drop, so that the leaks of an audit are reduced; at most 10 % of a dataset.

    Args:
        release: the release.
        found: what the audit found in it.
        progress: shows the progress bar.
        against: what the audit compared the release with; None: nothing.

    Returns:
        The drops of each dataset that has a leak; there are none where drops do not help.

    Raises:
        ReleaseError: a file cannot be read, or scikit-learn is not installed.

    """
    names = list(dict.fromkeys(each.dataset for each in found.leaks))
    drops, numbers = dict[str, DatasetDrops](), dict[str, int]()
    with progress.bar("datasets pruned", len(names)) as advance:
        for name in names:
            drops[name], numbers[name] = _drops(release, name, found)
            advance()
    without = {name: {drop.id for drop in each.drops} for name, each in drops.items() if each.drops}
    again = (
        audit_shortcuts(release, progress, list(without), against, searches=(), without=without) if without else None
    )
    return tuple(
        named(
            release.lock,
            name,
            numbers[name],
            each.drops,
            tuple(_counted(effect, name, again) for effect in each.effects),
            _new_leaks(name, found, again) if name in without else (),
        )
        for name, each in drops.items()
    )


def _kept(release: Release, dataset: str, length: int | None) -> Kept:
    images = ImageFacts(release.path / IMAGES)
    has_depths, texts = has_requested_places(release, dataset), PageTexts(release)
    return keep(asked_questions(release, dataset, length), images, has_depths=has_depths, texts=texts)


def _drops(release: Release, dataset: str, found: ShortcutAudit) -> tuple[DatasetDrops, int]:
    """Return the drops of a dataset, and the number of its questions. Each leak is learned from its own length."""
    findings = [each for each in found.findings if each.dataset == dataset]
    lengths = {each.kind: each.length for each in findings if each.verdict == "leak"}
    clusters: dict[str, str] = {}
    measured: list[Measured] = []
    for length in dict.fromkeys(lengths.values()):
        kept = _kept(release, dataset, length or None)
        clusters |= zip(kept.ids, kept.clusters, strict=True)
        measured += [each for each in measure(kept) if lengths.get(each.kind) == length]
    ids = list(clusters)
    leaks, hopeless = leaks_of(findings, measured, ids)
    earlier = sum(
        bool(each.get("drop")) and str(each.get("source")).startswith(SOURCE)
        for each in earlier_errata(release.lock, dataset).values()
    )
    most = MAX_SHARE * (len(ids) + earlier) - earlier  # a set that is pruned again loses no more in all
    return prune_dataset(leaks, hopeless, ids, list(clusters.values()), max(0.0, most / len(ids))), len(ids)


def _counted(effect: Effect, dataset: str, again: ShortcutAudit | None) -> Effect:
    """Return an effect with what the second audit finds at any length: what is left of a counted finding, and whether a
    learned one that was mended at its own length is a leak at another one.
    """
    if effect.verdict == "not mended" or again is None:
        return effect
    same = [each for each in again.findings if (each.dataset, each.kind) == (dataset, effect.kind)]
    is_leak = any(each.verdict == "leak" for each in same)
    if effect.after is None:
        after = max((each.excess for each in same), default=0.0)
        effect = effect.model_copy(update={"after": after, "verdict": "mended", "advice": ""})
    return effect.model_copy(update={"verdict": "reduced", "advice": advice_for(effect.kind)}) if is_leak else effect


def _new_leaks(dataset: str, found: ShortcutAudit, again: ShortcutAudit | None) -> Sequence[str]:
    """Return a sentence about each leak that only the questions that are left have, or that they have at another
    length.
    """
    before = {(each.kind, each.length) for each in found.leaks if each.dataset == dataset}
    left = [each for each in again.leaks if each.dataset == dataset] if again else []
    return tuple(_sentence(each) for each in left if (each.kind, each.length) not in before)


def _sentence(finding: Finding) -> str:
    at = f" at {format_length(finding.length)}" if finding.length else ""
    excess = f"{100 * finding.excess:+.1f} points{at}"
    return f"{finding.kind} is a leak of the questions that are left only ({excess}): {finding.evidence}"
