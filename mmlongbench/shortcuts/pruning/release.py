"""Prunes the datasets of a release by what the audit found in them, and audits again what is left."""

from collections.abc import Sequence
from pathlib import Path

from mmlongbench.io.progress import Progress
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.opened import Release
from mmlongbench.shortcuts.audit import ShortcutAudit, audit_shortcuts, has_requested_places
from mmlongbench.shortcuts.features import ImageFacts
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.pages import PageTexts
from mmlongbench.shortcuts.probes import Kept, keep, measure
from mmlongbench.shortcuts.pruning.advice import advice_for
from mmlongbench.shortcuts.pruning.choosing import MAX_SHARE
from mmlongbench.shortcuts.pruning.dataset import SOURCE, DatasetDrops, leaks_of, prune_dataset
from mmlongbench.shortcuts.pruning.naming import earlier_errata, named
from mmlongbench.shortcuts.pruning.results import Effect, Pruned, PruneVerdict
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
            length = next(each.length for each in found.leaks if each.dataset == name)
            kept = _kept(release, name, length or None)
            drops[name], numbers[name] = _drops(release, name, kept, found), len(kept.ids)
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


def _drops(release: Release, dataset: str, kept: Kept, found: ShortcutAudit) -> DatasetDrops:
    findings = [each for each in found.findings if each.dataset == dataset]
    leaks, hopeless = leaks_of(findings, list(measure(kept)), kept.ids)
    earlier = sum(
        bool(each.get("drop")) and str(each.get("source")).startswith(SOURCE)
        for each in earlier_errata(release.lock, dataset).values()
    )
    most = MAX_SHARE * (len(kept.ids) + earlier) - earlier  # a set that is pruned again loses no more in all
    return prune_dataset(leaks, hopeless, kept.ids, kept.clusters, max(0.0, most / len(kept.ids)))


def _counted(effect: Effect, dataset: str, again: ShortcutAudit | None) -> Effect:
    """Return the effect on a counted finding with what the second audit counts; any other effect is not changed."""
    if effect.verdict == "not mended" or effect.after is not None or again is None:
        return effect
    same = [each for each in again.findings if (each.dataset, each.kind) == (dataset, effect.kind)]
    is_leak = any(each.verdict == "leak" for each in same)
    after = max((each.excess for each in same), default=0.0)
    verdict: PruneVerdict = "reduced" if is_leak else "mended"
    advice = advice_for(effect.kind) if is_leak else ""
    return effect.model_copy(update={"after": after, "verdict": verdict, "advice": advice})


def _new_leaks(dataset: str, found: ShortcutAudit, again: ShortcutAudit | None) -> Sequence[str]:
    """Return a sentence about each leak that only the questions that are left have."""
    before = {each.kind for each in found.leaks if each.dataset == dataset}
    new = [each for each in again.leaks if each.dataset == dataset and each.kind not in before] if again else []
    return tuple(map(_sentence, new))


def _sentence(finding: Finding) -> str:
    excess = f"{100 * finding.excess:+.1f} points"
    return f"{finding.kind} is a leak of the questions that are left only ({excess}): {finding.evidence}"
