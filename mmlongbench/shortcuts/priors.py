"""Answers without reading the question: the place at which the right answer is offered most often, or the most frequent
free answer, each learned from other clusters.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mmlongbench.shortcuts.measured import (
    FOLDS,
    PERMUTATIONS,
    Flags,
    Floats,
    Ints,
    Lesson,
    Measured,
    folds_of,
    has_enough,
    uniforms,
)
from mmlongbench.statistics import effective_number

TOLERATED = 0.05
"""How often a free answer may be right without any reading: in one question of twenty."""
_CANDIDATES = 20
"""How many answers of a format are drawn in the null: the most frequent ones. No more can be right in one question of
twenty each."""
_MAX_DRAWN = 2000
"""How many answers are drawn at most."""
_KIND, _MEASURE = "answer from priors", "questions answered right"


@dataclass(frozen=True, slots=True)
class PriorLesson(Lesson):
    """Questions and the numbers of their answers."""

    answers: Ints
    """The number of each question's answer, or the place at which it is offered."""
    clusters: tuple[str, ...]
    """What each question is about."""
    formats: tuple[str, ...] = ()
    """The format of each answer, if the most frequent answer of the format is guessed."""

    def own(self, known: Flags, asked: Flags) -> Floats:
        """Return whether the answer that most questions have is right."""
        return self._guessed(known, asked, lambda rows: self.answers[rows])

    def other(self, known: Flags, asked: Flags) -> Floats:
        """Return whether the answer is right that questions about the most subjects have."""
        return self._guessed(known, asked, self._of_subjects)

    def _of_subjects(self, rows: Ints) -> Ints:
        """Return the answers of questions, each answer of a subject once."""
        pairs = {(self.clusters[n], int(self.answers[n])) for n in rows.tolist()}
        return np.array([answer for _, answer in pairs], dtype=np.int64)

    def _guessed(self, known: Flags, asked: Flags, counted: Callable[[Ints], Ints]) -> Floats:
        """Return whether the most frequent one of the counted answers, in the format of the question, is right."""
        formats = np.array(self.formats or [""] * len(self.answers))
        scores = np.zeros(len(self.answers))
        for form in set(formats[asked].tolist()):
            rows, tried = np.flatnonzero(known & (formats == form)), asked & (formats == form)
            if rows.size:
                scores[tried] = self.answers[tried] == np.bincount(counted(rows)).argmax()
        found: Floats = scores[asked]
        return found


def offered_prior(ids: Sequence[str], clusters: Sequence[str], chances: Sequence[tuple[int, int]]) -> Measured | None:
    """Measure how often the choice is right that is right most often elsewhere; the null renumbers the choices of each
    cluster at random.

    Args:
        ids: the ids of the questions.
        clusters: what each is about.
        chances: the place of the right choice, and the number of choices, of each question.

    """
    if not has_enough(clusters):
        return None
    right = np.array([place for place, _ in chances], dtype=np.int64)
    offered = np.array([n for _, n in chances], dtype=np.int64)
    names, numbers = np.unique(np.array(clusters), return_inverse=True)
    turned = uniforms(PERMUTATIONS * len(names), "prior", *names.tolist()).reshape(len(names), PERMUTATIONS)
    turns = (turned[numbers] * offered[:, None]).astype(np.int64)
    drawn = np.concatenate([right[:, None], (right[:, None] + turns) % offered[:, None]], axis=1)
    scores = _guessed(drawn, folds_of(clusters))
    most = int(np.bincount(right).argmax())
    return Measured(
        kind=_KIND,
        measure=_MEASURE,
        ids=tuple(ids),
        clusters=tuple(clusters),
        scores=scores[:, 0],
        null=scores[:, 1:].mean(axis=0),
        evidence=f"choice {most + 1} is right in {int((right == most).sum())} of {len(ids)} questions",
        chance=float((1 / offered).mean()),
        lesson=PriorLesson(right, tuple(clusters)),
    )


def _guessed(drawn: Ints, folds: Ints) -> Floats:
    """Return whether the most frequent place of the other folds is right: a row for each question. Where the other
    folds have no question, nothing is guessed.
    """
    scores = np.zeros(drawn.shape)
    most = int(drawn.max()) + 1
    for fold in range(FOLDS):
        tested = folds == fold
        if tested.all():
            continue
        counts = np.stack([(drawn[~tested] == place).sum(axis=0) for place in range(most)])
        scores[tested] = drawn[tested] == counts.argmax(axis=0)
    return scores


def format_prior(
    ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str], formats: Sequence[str]
) -> Measured | None:
    """Measure how often the free answer is right that is the most frequent one of its format, such as `2` of all whole
    numbers. A question often tells the format of its answer. The null is that of `free_prior`.
    """
    if not has_enough(clusters):
        return None
    folded, folds = _numbered(answers), folds_of(clusters)
    scores = np.zeros(len(ids))
    for form in set(formats):
        own = np.array([each == form for each in formats])
        scores[own] = _guessed(folded[own][:, None], folds[own])[:, 0]
    usual, times = Counter(zip(formats, answers, strict=True)).most_common(1)[0]
    evidence = f"of the {formats.count(usual[0])} answers of the format {usual[0]}, {times} are {usual[1][:40]!r}"
    lesson = PriorLesson(folded, tuple(clusters), tuple(formats))
    return _of_free("answer from its format", ids, scores, evidence, lesson)


def free_prior(ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str]) -> Measured | None:
    """Measure how often the most frequent free answer is right.

    The null has it right in one question of twenty. It draws as many questions as would be independent: the questions
    of a document are often not answerable together.
    """
    if not has_enough(clusters):
        return None
    numbers = _numbered(answers)
    scores = _guessed(numbers[:, None], folds_of(clusters))[:, 0]
    usual, times = Counter(answers).most_common(1)[0]
    evidence = f"the most frequent answer is {usual[:40]!r}, in {times} of {len(ids)} questions"
    return _of_free(_KIND, ids, scores, evidence, PriorLesson(numbers, tuple(clusters)))


def _numbered(answers: Sequence[str]) -> Ints:
    """Return a number for each answer; equal ones have the same."""
    folded = [answer.casefold() for answer in answers]
    places = {answer: place for place, answer in enumerate(sorted(set(folded)))}
    return np.array([places[answer] for answer in folded], dtype=np.int64)


def _of_free(kind: str, ids: Sequence[str], scores: Floats, evidence: str, lesson: PriorLesson) -> Measured:
    """Return what was measured about free answers, with the null in which one of twenty is right."""
    return Measured(
        kind=kind,
        measure=_MEASURE,
        ids=tuple(ids),
        clusters=lesson.clusters,
        scores=scores,
        null=_null_of_free(lesson, max(1, round(effective_number(scores, lesson.clusters)))),
        evidence=evidence,
        chance=0.0,
        lesson=lesson,
    )


def _null_of_free(lesson: PriorLesson, n: int) -> Floats:
    """Return the mean score of each draw of n answers in which one of twenty is right at most.

    The frequent answers of the file are drawn again, each as often as in the file if that is tolerable, and the most
    frequent one of the other folds is guessed. Where many answers are about equally frequent, one of them is always
    more frequent than the others by chance.
    """
    shares, groups = _tolerable(lesson)
    n, rest = min(n, _MAX_DRAWN), len(shares)
    where = uniforms(PERMUTATIONS * n, "free prior", *sorted(set(lesson.clusters)))
    drawn = np.searchsorted(np.cumsum(shares), where, "right").reshape(n, -1)
    draws, times = np.arange(PERMUTATIONS), np.empty((FOLDS, rest + 1, PERMUTATIONS), dtype=np.int64)
    for fold in range(FOLDS):
        cells = drawn[fold::FOLDS] * PERMUTATIONS + draws
        times[fold] = np.bincount(cells.ravel(), minlength=(rest + 1) * PERMUTATIONS).reshape(rest + 1, -1)
    others, right = times.sum(axis=0) - times, np.zeros(PERMUTATIONS)
    for group in set(groups.tolist()):
        own = np.flatnonzero(groups == group)
        guessed = own[others[:, own].argmax(axis=1)]
        right += np.take_along_axis(times, guessed[:, None], axis=1).sum(axis=(0, 1))
    return right / n


def _tolerable(lesson: PriorLesson) -> tuple[Floats, Ints]:
    """Return the shares of the most frequent answers, so that the most frequent ones of all formats are right in one
    question of twenty at most, and the number of the format of each.
    """
    forms = np.unique(np.array(lesson.formats or [""] * len(lesson.answers)), return_inverse=True)[1]
    found: list[tuple[float, int]] = []
    for form in range(int(forms.max()) + 1):
        times = np.sort(np.bincount(lesson.answers[forms == form]))[::-1][:_CANDIDATES]
        found += [(float(each) / len(forms), form) for each in times]
    shares, groups = np.array([share for share, _ in found]), np.array([form for _, form in found], dtype=np.int64)
    most = np.array([shares[groups == form].max() for form in range(int(forms.max()) + 1)])
    return np.minimum(shares, (most * min(1.0, TOLERATED / most.sum()))[groups]), groups
