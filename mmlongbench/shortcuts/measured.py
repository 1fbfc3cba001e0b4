"""What a probe measures: how often something that should not tell is right, and how often if nothing tells.

Every probe guesses out of sample: a question is never judged by a rule that was learned from a question about the same
document, entity or needle picture. The null repeats the whole procedure, learning included, 999 times with the answers
exchanged, or with other units of the context as gold.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mmlongbench.draws import digest

PERMUTATIONS = 999
"""How often the null is drawn."""
FOLDS = 5
"""Into how many parts the clusters are divided."""
MIN_CLUSTERS = 6
"""The minimum number of clusters for a probe; with fewer, nothing can be learned from others."""

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Learner: TypeAlias = Literal["own", "other"]
"""The learner of a probe, or one of another family."""


class Lesson(ABC):
    """What a probe learned from, so that it can be learned again from some questions and tried on others.

    `known` and `asked` mark questions of `Measured.ids`: those that are learned from, and those that are tried.
    """

    __slots__ = ()

    @abstractmethod
    def own(self, known: Flags, asked: Flags) -> Floats:
        """Return the scores of the asked questions by the probe's own learner, which sees only the known ones."""

    @abstractmethod
    def other(self, known: Flags, asked: Flags) -> Floats:
        """Return the same by a learner of another family.

        Raises:
            ReleaseError: scikit-learn is not installed.

        """

    def scores(self, known: Flags, asked: Flags, learner: Learner) -> Floats:
        """Return the scores of the asked questions by one of the two learners."""
        return self.own(known, asked) if learner == "own" else self.other(known, asked)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one probe measured in one dataset."""

    kind: str
    """What was tried."""
    measure: str
    """What a score is a share of."""
    ids: tuple[str, ...]
    """The ids of the questions."""
    clusters: tuple[str, ...]
    """The cluster of each question."""
    scores: Floats
    """The score of each question, from 0 to 1."""
    null: Floats
    """The mean score of each draw of the null."""
    evidence: str
    """What tells, in words."""
    chance: float | None = None
    """The share that is reached if nothing tells, if it is known; None: the mean of the null."""
    lesson: Lesson | None = None
    """What it was learned from; None if it cannot be learned again."""
    length: int = 0
    """The length of the contexts, in tokens; 0 if it is not known."""


def uniforms(n: int, *key: str | int) -> Floats:
    """Return n drawn numbers from 0 to 1, the same for the same key."""
    drawn = hashlib.shake_128(digest("shortcuts", *key)).digest(4 * n)
    found: Floats = (np.frombuffer(drawn, "<u4").astype(np.float64) + 0.5) / 2.0**32
    return found


def folds_of(clusters: Sequence[str]) -> Ints:
    """Return the fold of each question: all questions of a cluster are in one fold, and folds have about equally many
    questions.
    """
    sizes: dict[str, int] = {}
    for cluster in clusters:
        sizes[cluster] = sizes.get(cluster, 0) + 1
    filled, fold = [0] * FOLDS, dict[str, int]()
    for cluster in sorted(sizes, key=lambda each: (-sizes[each], digest("fold", each))):
        fold[cluster] = filled.index(min(filled))
        filled[fold[cluster]] += sizes[cluster]
    return np.array([fold[cluster] for cluster in clusters], dtype=np.int64)


def has_enough(clusters: Sequence[str]) -> bool:
    """Return whether there are enough clusters to learn from some and to guess in others."""
    return len(set(clusters)) >= MIN_CLUSTERS
