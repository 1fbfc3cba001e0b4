"""Guesses an answer from features of a question that should not tell it.

A ridge regression learns from the questions of other clusters. The score of a question is the share of questions with
other answers for which its answer is less likely: one half if nothing tells, however often an answer occurs. The null
exchanges answers between clusters of about the same size, so that answers of a cluster stay together.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmlongbench.likeness import missing
from mmlongbench.shortcuts import trees
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

MAX_QUESTIONS = 2000
"""The maximum number of questions of a dataset from which an answer is guessed."""
MAX_ANSWERS = 10
"""How many different answers are guessed: the most frequent ones."""
_LEAST = 4
"""In how many clusters an answer must occur to be guessed."""
_RIDGE = 0.1


@dataclass(frozen=True, slots=True)
class GuessLesson(Lesson):
    """Questions with features and answers."""

    features: Floats
    """A row of numbers for each question."""
    labels: Ints
    """The number of each question's answer."""

    def own(self, known: Flags, asked: Flags) -> Floats:
        """Return the scores of a ridge regression."""
        used, features = known | asked, self.features - self.features[known].mean(axis=0)
        scores = _of_fold(features[used], self.labels[used][:, None], asked[used], int(self.labels.max()) + 1)
        found: Floats = scores[:, 0]
        return found

    def other(self, known: Flags, asked: Flags) -> Floats:
        """Return the scores of decision trees."""
        return trees.answers_told(self.features[known], self.labels[known], self.features[asked], self.labels[asked])


def guess_answers(
    kind: str, ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str], features: Floats, evidence: str
) -> Measured | None:
    """Measure how well features tell the answers; None if there are too few clusters, or fewer than two answers that
    occur in several clusters.

    Args:
        kind: what is tried.
        ids: the id of each question.
        clusters: what each question is about.
        answers: the answer of each question.
        features: a row of numbers for each question; a number with a larger spread weighs more.
        evidence: what the features are.

    """
    labels, names = _labels(answers, clusters)
    if len(names) < 2 or not has_enough(clusters) or not features.size or np.ptp(features, axis=0).max() == 0:
        return None
    folds, drawn = folds_of(clusters), _exchanged(labels, clusters)
    scores = np.full((len(ids), PERMUTATIONS + 1), 0.5)
    for fold in range(FOLDS):
        tested = folds == fold
        if tested.any() and not tested.all():
            scores[tested] = _of_fold(features - features[~tested].mean(axis=0), drawn, tested, len(names))
    if np.ptp(scores) < 1e-9:
        return None
    return Measured(
        kind=kind,
        measure="pairs of questions with different answers that are told apart",
        ids=tuple(ids),
        clusters=tuple(clusters),
        scores=scores[:, 0],
        null=scores[:, 1:].mean(axis=0),
        evidence=evidence,
        lesson=GuessLesson(features, labels),
    )


def _labels(answers: Sequence[str], clusters: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return the number of each question's answer, and the answers; all rare answers are one."""
    spread = Counter(answer for answer, _ in dict.fromkeys(zip(answers, clusters, strict=True)))
    frequent = sorted((a for a, n in spread.items() if n >= _LEAST), key=lambda a: (-spread[a], a))[:MAX_ANSWERS]
    names = [*frequent, *([""] if any(answer not in frequent for answer in answers) else [])]
    place = {name: number for number, name in enumerate(frequent)}
    return np.array([place.get(answer, len(frequent)) for answer in answers], dtype=np.int64), names


def _exchanged(labels: Ints, clusters: Sequence[str]) -> Ints:
    """Return the real labels (first column) and those of each draw of the null.

    In a draw, each cluster is given the answers of one cluster of about its size, maybe its own, from a drawn one of
    them on and round. So answers that depend on each other do so in the null, too. If the answers of several small
    clusters were given to a large one, the null would spread less than the scores of a clean file.
    """
    members: dict[str, list[int]] = {}
    for number, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(number)
    names = sorted(members)
    laid, sizes = np.array([n for name in names for n in members[name]]), np.array([len(members[n]) for n in names])
    starts = np.cumsum(sizes) - sizes
    keys, turns = uniforms(2 * PERMUTATIONS * len(names), "exchange", *names).reshape(2, PERMUTATIONS, -1)
    found = np.empty((len(labels), PERMUTATIONS + 1), dtype=np.int64)
    found[:, 0] = labels
    for alike in _of_like_size(sizes):
        givers = alike[np.argsort(keys[:, alike], axis=1)]
        for giver, taker in zip(givers.T, alike.tolist(), strict=True):
            first = (turns[:, taker] * sizes[giver]).astype(np.int64)
            answers = starts[giver] + (first + np.arange(sizes[taker])[:, None]) % sizes[giver]
            found[members[names[taker]], 1:] = labels[laid[answers]]
    return found


def _of_like_size(sizes: Ints) -> list[Ints]:
    """Return the numbers of clusters in groups of which the largest cluster has at most 1.5 times the questions of the
    smallest.

    >>> [group.tolist() for group in _of_like_size(np.array([9, 1, 2, 1, 6, 3]))]
    [[0, 4], [5, 2], [1, 3]]
    """
    groups: list[list[int]] = []
    for number in np.argsort(-sizes, kind="stable").tolist():
        if not groups or 3 * sizes[number] < 2 * sizes[groups[-1][0]]:
            groups.append([])
        groups[-1].append(number)
    return [np.array(group) for group in groups]


def scaled(features: Floats) -> Floats:
    """Return features with mean 0 and spread 1, cut at six standard deviations."""
    spread = features.std(axis=0)
    found: Floats = np.clip((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1), -6, 6)
    return found


def _of_fold(features: Floats, drawn: Ints, tested: Flags, classes: int) -> Floats:
    """Return the scores of the questions of a fold: a row for each, a column for each draw."""
    known, asked = features[~tested], features[tested]
    width = features.shape[1]
    products = known.T @ known
    projected = asked @ np.linalg.solve(products + _RIDGE * len(known) * np.eye(width), known.T)
    of_known, of_asked = drawn[~tested], drawn[tested]
    scores = np.full(of_asked.shape, 0.5)
    for answer in range(classes):
        is_answer = (of_known == answer).astype(np.float64)
        likely = np.round(projected @ (is_answer - is_answer.mean(axis=0)), 9)
        own = of_asked == answer
        others = np.count_nonzero(~own, axis=0)
        # among all, minus among those with this answer: how many others are less likely, and half of the equal ones
        lower = ranks(likely) - ranks(np.where(own, likely, np.inf))
        np.copyto(scores, lower / np.maximum(1, others), where=own & (others > 0))
    return scores


def ranks(values: Floats) -> Floats:
    """Return the ranks of numbers within their column, from 1; equal ones have the mean of their ranks.

    Raises:
        ReleaseError: scipy is not installed.

    """
    try:
        from scipy.stats import rankdata
    except ModuleNotFoundError as error:
        raise missing("scipy", "guessing answers") from error
    found: Floats = np.asarray(rankdata(values, axis=0), dtype=np.float64)
    return found
