"""Chooses questions to drop, and judges what their absence does, without looking at the same questions twice.

The clusters of a dataset are in five folds. The questions of a fold are chosen for a drop by a learner that saw the two
following folds alone, so that no question is chosen by a learner that saw it. What is left of the fold is judged by
learners that saw only the remaining two folds. These are pruned for this purpose once more, each by the other one, so
that nothing which the judges learned from has seen the fold. On pure noise, such a judgement is even: it neither
believes that drops helped nor that they harmed.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.measured import FOLDS, Flags, Floats, Ints, Learner, Lesson

MAX_SHARE = 0.1
"""The largest share of a dataset's questions that is dropped."""
_STEPS = 10
"""In how many steps the largest number of drops is reached; after each, scores are computed again."""
Roles: TypeAlias = Mapping[int, Sequence[int]]
"""From which folds a learner learns, by the fold whose questions it scores."""
CHOOSING: Roles = {fold: ((fold + 1) % FOLDS, (fold + 2) % FOLDS) for fold in range(FOLDS)}
JUDGING: Roles = {fold: ((fold + 3) % FOLDS, (fold + 4) % FOLDS) for fold in range(FOLDS)}


@dataclass(frozen=True, slots=True)
class CarrierLesson(Lesson):
    """Questions that are counted; nothing is learned from them."""

    is_carrier: Flags

    def own(self, known: Flags, asked: Flags) -> Floats:
        """Return whether each asked question is counted."""
        return self.is_carrier[asked].astype(np.float64)

    def other(self, known: Flags, asked: Flags) -> Floats:
        """Return the same."""
        return self.own(known, asked)


@dataclass(frozen=True, slots=True)
class Leak:
    """A finding that is to be reduced."""

    finding: Finding
    lesson: Lesson
    """What it was learned from."""
    rows: Ints
    """The places of its questions among all questions of the dataset."""
    aim: float
    """The mean score of the null, at which choosing drops ends."""

    def scores(self, folds: Ints, roles: Roles, known: Flags, asked: Flags, learner: Learner = "own") -> Floats:
        """Return the score of each question of the dataset; not a number where it is not asked.

        Args:
            folds: the fold of each question.
            roles: from which folds each fold is scored.
            known: which questions may be learned from.
            asked: which questions are scored, of the folds of `roles`.
            learner: which learner of the lesson.

        """
        found = np.full(len(folds), np.nan)
        for fold, others in roles.items():
            here = (asked & (folds == fold))[self.rows]
            there = (known & np.isin(folds, others))[self.rows]
            if here.any() and there.any():
                found[self.rows[here]] = self.lesson.scores(there, here, learner)
        return found


def choose(leaks: Sequence[Leak], ids: Sequence[str], folds: Ints, roles: Roles, share: float) -> dict[int, int]:
    """Return the questions to drop, in order, each with the place of the leak that it reduces most.

    Questions that are counted go first. Then each step takes the questions that reduce all leaks above their aim most,
    of each fold as many as it has questions: if folds in which the leak is strong by chance gave more, the judges of
    what is left would be misled. It ends where no leak is above its aim.

    Args:
        leaks: the findings to reduce.
        ids: the id of each question of the dataset; it breaks ties.
        folds: the fold of each question.
        roles: which folds are pruned, and from which folds each is scored.
        share: the largest share of these questions that may be dropped.

    """
    all_, left = np.ones(len(ids), dtype=bool), np.isin(folds, list(roles))
    sizes = {fold: int((folds == fold).sum()) for fold in roles}
    most = math.floor(share * int(left.sum()) + 1e-9)
    dropped = _counted(leaks, ids, left, most)
    left[list(dropped)] = False
    turns = _turns(sizes, most - len(dropped))
    step = max(1, math.ceil(most / _STEPS))
    while leaks and turns:
        gains, needed = _gains([each.scores(folds, roles, all_, left) for each in leaks], leaks)
        if not needed:
            break
        total, number = np.round(gains.sum(axis=0), 12), min(step, needed)
        for fold, times in Counter(turns[:number]).items():
            here = np.flatnonzero((total > 0) & (folds == fold) & left).tolist()
            for at in sorted(here, key=lambda at: (-total[at], ids[at]))[:times]:
                dropped[at] = int(gains[:, at].argmax())
                left[at] = False
        turns = turns[number:]
    return dropped


def _counted(leaks: Sequence[Leak], ids: Sequence[str], asked: Flags, most: int) -> dict[int, int]:
    """Return the drops for counted findings; a question that several findings count goes first."""
    counted = {n: each.lesson.is_carrier for n, each in enumerate(leaks) if isinstance(each.lesson, CarrierLesson)}
    times: Ints = sum((flags.astype(np.int64) for flags in counted.values()), np.zeros(len(ids), dtype=np.int64))
    left, dropped = asked.copy(), dict[int, int]()
    for at in sorted(np.flatnonzero(asked & (times > 0)).tolist(), key=lambda at: (-times[at], ids[at])):
        over = [n for n, flags in counted.items() if flags[at] and flags[left].mean() > leaks[n].aim]
        if over and len(dropped) < most:
            dropped[at] = over[0]
            left[at] = False
    return dropped


def _turns(sizes: Mapping[int, int], number: int) -> list[int]:
    """Return the folds that give a question, one after another, each as often as it has questions.

    >>> _turns({0: 20, 1: 10}, 6)
    [0, 1, 0, 0, 1, 0]
    """
    given, turns, n = dict.fromkeys(sizes, 0), list[int](), sum(sizes.values())
    for turn in range(1, number + 1):
        fold = max(sizes, key=lambda each: (sizes[each] * turn / n - given[each], -each))
        given[fold] += 1
        turns.append(fold)
    return turns


def _gains(scores: Sequence[Floats], leaks: Sequence[Leak]) -> tuple[Floats, int]:
    """Return how much each leak falls without each question, and how many drops are needed at least; a leak that is
    counted, or not above its aim, gains nothing.
    """
    gains, needed = np.zeros((len(leaks), len(scores[0]))), 0
    for number, (own, leak) in enumerate(zip(scores, leaks, strict=True)):
        tried = ~np.isnan(own)
        over = float((own[tried] - leak.aim).sum()) if tried.any() else 0.0
        if over > 1e-9 and not isinstance(leak.lesson, CarrierLesson):
            gains[number, tried] = (own[tried] - leak.aim) / tried.sum()
            needed = max(needed, math.ceil(over / max(1e-9, float(own[tried].max()) - leak.aim) - 1e-9))
    return gains, needed


def known_to_judges(leaks: Sequence[Leak], ids: Sequence[str], folds: Ints, share: float) -> dict[int, Flags]:
    """Return, by judged fold, the questions that its judges may learn from: drops are chosen anew among their folds."""
    found = {}
    for fold, (one, two) in JUDGING.items():
        known = np.ones(len(ids), dtype=bool)
        known[list(choose(leaks, ids, folds, {one: (two,), two: (one,)}, share))] = False
        found[fold] = known
    return found


def judge_drops(
    leak: Leak, folds: Ints, dropped: Flags, known: Mapping[int, Flags], learner: Learner
) -> tuple[Floats, Floats]:
    """Return the scores of a finding by a learner, before and after drops that it did not choose. They are not numbers
    where a question is not tried.

    Args:
        leak: the finding.
        folds: the fold of each question.
        dropped: the questions that are dropped.
        known: what `known_to_judges` returns.
        learner: which learner of the finding.

    """
    all_ = np.ones(len(folds), dtype=bool)
    before, after = np.full(len(folds), np.nan), np.full(len(folds), np.nan)
    for fold, others in JUDGING.items():
        own, role = folds == fold, {fold: others}
        before[own] = leak.scores(folds, role, all_, all_, learner)[own]
        after[own] = leak.scores(folds, role, known[fold], ~dropped, learner)[own]
    return before, after
