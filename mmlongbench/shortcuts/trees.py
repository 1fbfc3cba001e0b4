"""The second learner of the audit: extremely randomised trees of scikit-learn, which share no form with a regression.

They find a value between two others and two features that tell only together. They draw with a fixed seed of their own,
and the same questions always give the same scores.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mmlongbench.likeness import missing
from mmlongbench.shortcuts.measured import Floats, Ints

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier

_TREES = 100
_LEAF = 3
"""The fewest questions, or candidates, of a leaf."""
_SEED = 42
_OTHERS = 8
"""How many other candidates of a context are learned from."""


def answers_told(known: Floats, labels: Ints, asked: Floats, golds: Ints) -> Floats:
    """Return the share of the asked questions with other answers for which the answer of a question is less likely.

    Args:
        known: the features of the questions that are learned from.
        labels: the numbers of their answers.
        asked: the features of the asked questions.
        golds: the numbers of their answers.

    Raises:
        ReleaseError: scikit-learn is not installed.

    """
    scores = np.full(len(golds), 0.5)
    if len(known) == 0 or len(asked) == 0:
        return scores
    forest = _forest().fit(known, labels)
    likely = np.round(forest.predict_proba(asked), 9)
    for column, answer in enumerate(forest.classes_.tolist()):
        own = golds == answer
        if own.any() and not own.all():
            others, mine = np.sort(likely[~own, column]), likely[own, column]
            ends = np.searchsorted(others, mine, "left") + np.searchsorted(others, mine, "right")
            scores[own] = ends / 2 / len(others)
    return scores


def gold_values(known: Sequence[Floats], golds: Sequence[Ints], asked: Sequence[Floats]) -> list[Floats]:
    """Return how likely each candidate of each asked context is gold.

    Args:
        known: the features of the candidates of each context that is learned from.
        golds: the places of gold among them.
        asked: the features of the candidates of each asked context.

    Raises:
        ReleaseError: scikit-learn is not installed.

    """
    if not known or not asked:
        return [np.zeros(len(each)) for each in asked]
    chosen = [_some(len(each), places) for each, places in zip(known, golds, strict=True)]
    rows = np.concatenate([each[places] for each, places in zip(known, chosen, strict=True)])
    labels = np.concatenate([np.isin(all_, own) for all_, own in zip(chosen, golds, strict=True)])
    forest = _forest().fit(rows, labels)
    values: Floats = forest.predict_proba(np.concatenate(list(asked)))[:, -1]
    return np.split(values, np.cumsum([len(each) for each in asked])[:-1])


def _some(candidates: int, golds: Ints) -> Ints:
    """Return the places of gold, and of at most 8 others that are evenly spread."""
    others = np.setdiff1d(np.arange(candidates), golds)
    at = np.unique(np.linspace(0, len(others) - 1, min(len(others), _OTHERS)).astype(np.int64))
    return np.concatenate([golds, others[at]]).astype(np.int64)


def _forest() -> "ExtraTreesClassifier":
    try:
        from sklearn.ensemble import ExtraTreesClassifier
    except ModuleNotFoundError as error:
        raise missing("scikit-learn", "the second learner") from error
    return ExtraTreesClassifier(_TREES, min_samples_leaf=_LEAF, class_weight="balanced", random_state=_SEED)
