"""Answers without reading the question: the place at which the right answer is offered most often, or the most frequent
free answer, each learned from other clusters.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmlongbench.shortcuts.extra import missing
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
from mmlongbench.shortcuts.verdicts import effective_number

TOLERATED = 0.05
"""How often a free answer may be right without any reading: in one question of twenty."""
_KIND, _MEASURE = "answer from priors", "questions answered right"


@dataclass(frozen=True, slots=True)
class PriorLesson(Lesson):
    """Questions and the numbers of their answers."""

    answers: Ints
    """The number of each question's answer, or the place at which it is offered."""
    clusters: tuple[str, ...]
    """What each question is about."""

    def own(self, known: Flags, asked: Flags) -> Floats:
        """Return whether the answer that most questions have is right."""
        found: Floats = (self.answers[asked] == np.bincount(self.answers[known]).argmax()).astype(np.float64)
        return found

    def other(self, known: Flags, asked: Flags) -> Floats:
        """Return whether the answer is right that questions about the most subjects have."""
        pairs = {(self.clusters[n], int(self.answers[n])) for n in np.flatnonzero(known).tolist()}
        usual = np.bincount([answer for _, answer in pairs]).argmax()
        found: Floats = (self.answers[asked] == usual).astype(np.float64)
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
    """Return whether the most frequent place of the other folds is right: a row for each question."""
    scores = np.zeros(drawn.shape)
    most = int(drawn.max()) + 1
    for fold in range(FOLDS):
        tested = folds == fold
        counts = np.stack([(drawn[~tested] == place).sum(axis=0) for place in range(most)])
        scores[tested] = drawn[tested] == counts.argmax(axis=0)
    return scores


def free_prior(ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str]) -> Measured | None:
    """Measure how often the most frequent free answer is right.

    The null has it right in one question of twenty. It draws as many questions as would be independent: the questions
    of a document are often not answerable together.
    """
    if not has_enough(clusters):
        return None
    try:
        from scipy.stats import binom
    except ModuleNotFoundError as error:
        raise missing("scipy", "the frequency of free answers") from error
    folded = [answer.casefold() for answer in answers]
    places = {answer: place for place, answer in enumerate(sorted(set(folded)))}
    numbers = np.array([places[answer] for answer in folded], dtype=np.int64)
    scores = _guessed(numbers[:, None], folds_of(clusters))[:, 0]
    independent = max(1, round(effective_number(scores, clusters)))
    drawn = uniforms(PERMUTATIONS, "free prior", *sorted(set(clusters)))
    usual, times = Counter(answers).most_common(1)[0]
    return Measured(
        kind=_KIND,
        measure=_MEASURE,
        ids=tuple(ids),
        clusters=tuple(clusters),
        scores=scores,
        null=np.asarray(binom.ppf(drawn, independent, TOLERATED), dtype=np.float64) / independent,
        evidence=f"the most frequent answer is {usual[:40]!r}, in {times} of {len(ids)} questions",
        chance=0.0,
        lesson=PriorLesson(numbers, tuple(clusters)),
    )
