"""Prunes one dataset: which of its leaks drops can mend, which questions go, and what is left of each leak."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.measured import Flags, Floats, Ints, Measured, folds_of
from mmlongbench.shortcuts.pruning.advice import advice_for
from mmlongbench.shortcuts.pruning.choosing import (
    CHOOSING,
    CarrierLesson,
    Leak,
    choose,
    judge_drops,
    known_to_judges,
)
from mmlongbench.shortcuts.pruning.results import Drop, Effect, PruneVerdict
from mmlongbench.shortcuts.verdicts import TOLERATED
from mmlongbench.statistics import effective_number, wilson

SOURCE = "mmlongbench shortcuts"
"""How the source of each erratum begins."""
_LESS = 0.01
"""A finding that falls by less is not reduced: 1 point."""


@dataclass(frozen=True, slots=True)
class DatasetDrops:
    """The drops of one dataset."""

    drops: tuple[Drop, ...]
    effects: tuple[Effect, ...]
    """One for each leak; what is left of a counted one is not known yet."""


def leaks_of(
    findings: Sequence[Finding], measured: Sequence[Measured], ids: Sequence[str]
) -> tuple[list[Leak], list[Finding]]:
    """Return the leaks that can be tried without some questions, and those that cannot.

    Args:
        findings: the findings of a dataset.
        measured: what its probes measured, with their lessons.
        ids: the ids of all its questions.

    """
    place, by_kind = {id: n for n, id in enumerate(ids)}, {each.kind: each for each in measured}
    found, others = [], []
    for finding in (each for each in findings if each.verdict == "leak"):
        own = by_kind.get(finding.kind)
        if own and own.lesson:
            rows = np.array([place[id] for id in own.ids], dtype=np.int64)
            found.append(Leak(finding, own.lesson, rows, float(own.null.mean())))
        elif finding.carriers:
            flags = np.isin(np.array(ids), np.array(finding.carriers))
            aim = finding.chance * finding.questions / len(ids)
            found.append(Leak(finding, CarrierLesson(flags), np.arange(len(ids)), aim))
        else:
            others.append(finding)
    return found, others


def prune_dataset(
    leaks: Sequence[Leak], hopeless: Sequence[Finding], ids: Sequence[str], clusters: Sequence[str], share: float
) -> DatasetDrops:
    """Return the questions to drop for some leaks, and the effect.

    Drops are made only for leaks of which less than 5 points are left if they have all drops for themselves. If judges
    who did not choose the drops find that they do not help a leak, the choice is made again without it.

    Args:
        leaks: the leaks that can be tried without some questions.
        hopeless: other leaks.
        ids: the ids of all questions.
        clusters: what each question is about.
        share: the largest share of the questions that may be dropped.

    """
    folds = folds_of(clusters)
    pruned = [leak for leak in leaks if _can_mend(leak, ids, folds, share)]
    while True:
        chosen = choose(pruned, ids, folds, CHOOSING, share)
        dropped = np.isin(np.arange(len(ids)), list(chosen))
        known = known_to_judges(pruned, ids, folds, share)
        numbers = Counter(chosen.values())
        effects = [_effect(leak, clusters, folds, dropped, known, numbers[n]) for n, leak in enumerate(pruned)]
        kept = [leak for leak, effect in zip(pruned, effects, strict=True) if effect.verdict != "not mended"]
        if len(kept) == len(pruned):
            break
        pruned = kept
    drops = tuple(_drop(ids[at], pruned[number].finding) for at, number in chosen.items())
    tried = {each.kind: each for each in effects}
    found = (tried.get(each.kind) or _untried(each) for each in (*(leak.finding for leak in leaks), *hopeless))
    return DatasetDrops(drops, tuple(found))


def _can_mend(leak: Leak, ids: Sequence[str], folds: Ints, share: float) -> bool:
    """Return whether less than 5 points are left of a leak if all drops are for it."""
    pairs = 1 - (1 - share) ** 2  # the largest share of pairs of questions that drops take away
    if leak.finding.excess > pairs * (1 - leak.finding.chance) + TOLERATED:
        return False
    all_ = np.ones(len(ids), dtype=bool)
    left = all_.copy()
    left[list(choose([leak], ids, folds, CHOOSING, share))] = False
    scores = leak.scores(folds, CHOOSING, all_, left)
    if isinstance(leak.lesson, CarrierLesson):
        return float(np.nanmean(scores)) - leak.aim < TOLERATED
    return float(np.nanmean(scores)) - leak.finding.chance < TOLERATED


def _effect(
    leak: Leak, clusters: Sequence[str], folds: Ints, dropped: Flags, known: dict[int, Flags], drops: int
) -> Effect:
    finding = leak.finding
    if not dropped.any():
        return _untried(finding)
    if isinstance(leak.lesson, CarrierLesson):
        is_reduced = bool((leak.lesson.is_carrier & dropped).any())
        return _result(finding, finding.excess, None, (None, None), drops, "reduced" if is_reduced else "not mended")
    before, after = judge_drops(leak, folds, dropped, known, "own")
    other_before, other_after = judge_drops(leak, folds, dropped, known, "other")
    excesses = [float(np.nanmean(each)) - finding.chance for each in (before, after, other_before, other_after)]
    is_small = excesses[1] < TOLERATED and excesses[3] < TOLERATED
    is_certain = any(_low(each, clusters) > leak.aim for each in (after, other_after))
    is_less = excesses[1] < excesses[0] - _LESS
    verdict: PruneVerdict = "mended" if is_small and not is_certain else "reduced" if is_less else "not mended"
    return _result(finding, excesses[0], excesses[1], (excesses[2], excesses[3]), drops, verdict)


def _low(scores: Floats, clusters: Sequence[str]) -> float:
    """Return the lower end of the 95 % interval of the mean of the scores that are numbers."""
    tried = np.flatnonzero(~np.isnan(scores)).tolist()
    own = scores[tried]
    return wilson(float(own.mean()), effective_number(own, [clusters[at] for at in tried]))[0]


def _result(
    finding: Finding,
    before: float,
    after: float | None,
    other: tuple[float | None, float | None],
    drops: int,
    verdict: PruneVerdict,
) -> Effect:
    return Effect(
        kind=finding.kind,
        before=before,
        after=after,
        other_before=other[0],
        other_after=other[1],
        drops=drops,
        verdict=verdict,
        advice="" if verdict == "mended" else advice_for(finding.kind),
    )


def _untried(finding: Finding) -> Effect:
    return _result(finding, finding.excess, None, (None, None), 0, "not mended")


def _drop(id: str, finding: Finding) -> Drop:
    strength = f"{100 * finding.found:.1f} of 100 {finding.measure}, chance {100 * finding.chance:.1f}"
    return Drop(id=id, kind=finding.kind, reason=f"{SOURCE}: {finding.kind}: {strength}; {finding.evidence}")
