"""Drops are chosen by learners that did not see the question, and judged by learners that did not choose."""

from dataclasses import dataclass

import numpy as np
import pytest

from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.guesses import GuessLesson, guess_answers
from mmlongbench.shortcuts.measured import FOLDS, Flags, Floats, Ints, Lesson, folds_of, uniforms
from mmlongbench.shortcuts.pruning.choosing import (
    CHOOSING,
    JUDGING,
    MAX_SHARE,
    Leak,
    choose,
    judge_drops,
    known_to_judges,
)
from mmlongbench.shortcuts.pruning.dataset import DatasetDrops, leaks_of, prune_dataset
from mmlongbench.shortcuts.verdicts import judge

pytestmark = pytest.mark.slow

FINDING = Finding(
    dataset="set",
    file="file",
    kind="answer from the question",
    verdict="leak",
    questions=0,
    clusters=0,
    measure="pairs",
    found=0.5,
    chance=0.5,
    low=0.0,
    high=0.0,
    p=0.001,
    smallest=None,
    needed=None,
    evidence="",
    examples=(),
)


def noise(seed: int, n: int = 150) -> tuple[Leak, list[str], Ints]:
    """Questions whose features tell nothing; with an aim of 0, as many are dropped as may be."""
    ids = [f"q{number}" for number in range(n)]
    features = uniforms(n * 4, "features", seed).reshape(n, 4) - 0.5
    labels = (uniforms(n, "labels", seed) < 0.5).astype(np.int64)
    return Leak(FINDING, GuessLesson(features, labels), np.arange(n), 0.0), ids, folds_of(ids)


def judged(seed: int, learner: str) -> tuple[float, float, float]:
    """The mean scores of noise before drops and after them by judges, and after them by those who chose."""
    leak, ids, folds = noise(seed)
    chosen = choose([leak], ids, folds, CHOOSING, MAX_SHARE)
    assert len(chosen) == 15
    dropped = np.isin(np.arange(len(ids)), list(chosen))
    known = known_to_judges([leak], ids, folds, MAX_SHARE)
    before, after = judge_drops(leak, folds, dropped, known, learner)  # type: ignore[arg-type]
    naive = leak.scores(folds, CHOOSING, ~dropped, ~dropped)
    return float(np.nanmean(before)), float(np.nanmean(after)), float(np.nanmean(naive))


@pytest.mark.parametrize(("learner", "runs"), [("own", 60), ("other", 4)])
def test_on_noise_the_second_audit_is_biased_neither_way(learner: str, runs: int) -> None:
    found = np.array([judged(seed, learner) for seed in range(runs)]) - 0.5
    errors = found.std(axis=0) / np.sqrt(runs)
    assert abs(found[:, 1].mean()) < 2.5 * errors[1]
    assert found[:, 2].mean() < -0.03  # who chose the drops would believe that they help
    if runs >= 60:
        assert 0.3 < float((found[:, 1] > found[:, 0]).mean()) < 0.7  # a drop is as often a harm as a help


@dataclass(frozen=True, slots=True)
class Spy(Lesson):
    """Records who learns from what."""

    n: int
    calls: list[tuple[frozenset[int], frozenset[int]]]

    def own(self, known: Flags, asked: Flags) -> Floats:
        self.calls.append((frozenset(np.flatnonzero(known).tolist()), frozenset(np.flatnonzero(asked).tolist())))
        found: Floats = uniforms(self.n, "spy")[asked]
        return found

    def other(self, known: Flags, asked: Flags) -> Floats:
        return self.own(known, asked)


def test_no_question_is_chosen_or_judged_by_who_saw_it_and_no_fold_is_judged_by_who_chose_in_it() -> None:
    clusters = [f"d{number // 4}" for number in range(200)]
    ids, folds, spy = [str(number) for number in range(200)], folds_of(clusters), Spy(200, [])
    leak = Leak(FINDING, spy, np.arange(200), 0.0)
    dropped = np.isin(np.arange(200), list(choose([leak], ids, folds, CHOOSING, MAX_SHARE)))
    teachers: dict[int, set[int]] = {}
    for known, asked in spy.calls:
        (fold,) = {int(folds[at]) for at in asked}
        teachers.setdefault(fold, set()).update(int(folds[at]) for at in known)
        assert not {clusters[at] for at in known} & {clusters[at] for at in asked}
    assert teachers == {fold: set(others) for fold, others in CHOOSING.items()}
    known_by_fold = known_to_judges([leak], ids, folds, MAX_SHARE)
    spy.calls.clear()
    judge_drops(leak, folds, dropped, known_by_fold, "other")
    for known, asked in spy.calls:
        (fold,) = {int(folds[at]) for at in asked}
        learned = {int(folds[at]) for at in known}
        assert learned == set(JUDGING[fold])
        assert not learned & teachers[fold]
    assert sorted([*CHOOSING[0], *JUDGING[0], 0]) == list(range(FOLDS))


def told(share: float, n: int = 600) -> DatasetDrops:
    """Prune questions in which a word tells the answer in a share of them."""
    ids = [f"q{number}" for number in range(n)]
    answers = ["Yes" if each < 0.5 else "No" for each in uniforms(n, "answers")]
    features = uniforms(n * 3, "features").reshape(n, 3) - 0.5
    features[: int(share * n), 0] = [6.0 if answer == "Yes" else -6.0 for answer in answers[: int(share * n)]]
    measured = guess_answers("answer from the question", ids, ids, answers, features, "words")
    assert measured is not None
    findings = judge([("set", "file", measured)]).findings
    assert findings[0].verdict == "leak"
    return prune_dataset(*leaks_of(findings, [measured], ids), ids, ids, MAX_SHARE)


def test_a_word_in_few_questions_is_mended_by_dropping_them() -> None:
    found = told(0.06)
    (effect,) = found.effects
    assert effect.verdict == "mended"
    assert effect.advice == ""
    assert effect.after is not None
    assert effect.after < effect.before / 2
    assert effect.other_before is not None
    assert effect.other_after is not None
    assert effect.other_after < effect.other_before / 2
    carriers = {f"q{number}" for number in range(36)}
    assert len({drop.id for drop in found.drops} & carriers) >= 27
    assert len(found.drops) <= 60
    assert found.drops[0].reason.startswith("mmlongbench shortcuts: answer from the question: ")
    assert told(0.06) == found


def test_a_word_in_many_questions_is_not_mended_and_nothing_is_dropped() -> None:
    found = told(0.5)
    assert found.drops == ()
    (effect,) = found.effects
    assert (effect.verdict, effect.after, effect.drops) == ("not mended", None, 0)
    assert "balance the answers of each wording" in effect.advice


def test_duplicates_are_dropped_but_for_the_first_of_each() -> None:
    ids = [f"q{number}" for number in range(40)]
    counted = FINDING.model_copy(
        update={
            "kind": "question asked twice",
            "questions": 40,
            "found": 0.1,
            "chance": 0.0,
            "carriers": ("q1", "q3"),
        }
    )
    found = prune_dataset(*leaks_of([counted], [], ids), ids, ids, MAX_SHARE)
    assert [drop.id for drop in found.drops] == ["q1", "q3"]
    without = prune_dataset(*leaks_of([counted], [], ids), ids, ids, 0.0)
    assert (without.drops, without.effects[0].verdict) == ((), "not mended")


def test_a_leak_that_cannot_be_learned_again_says_what_mends_it() -> None:
    ids = [f"q{number}" for number in range(40)]
    found = prune_dataset(*leaks_of([FINDING], [], ids), ids, ids, MAX_SHARE)
    assert (found.drops, [effect.verdict for effect in found.effects]) == ((), ["not mended"])
