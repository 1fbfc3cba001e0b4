"""Measures whether the words of a question alone tell that it has no answer, and drops questions until they do not.

Only words that occur in the questions of several documents count: others, such as the name that an edit brings into a
document, cannot be learned from one document for another.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from mmlongbench.draws import Draws
from mmlongbench.questions.question import Line
from mmlongbench.questions.writing.answers import words
from mmlongbench.questions.writing.lines import Candidate

if TYPE_CHECKING:
    from mmlongbench.shortcuts.findings import Measured

MOST = 0.55
"""The largest area under the curve that is wanted."""
SHARE = 0.1
"""The share of the questions without an answer that are dropped before it is measured again."""
TOLD = "told-by-words-alone"
"""The reason of a question that is dropped."""
MIN_DOCUMENTS = 4
"""In how many documents a word or a pair of words must be asked for."""


class WordsAlone(Line):
    """How well questions without an answer are told by their words."""

    area: float | None = None
    """The area under the curve: 0.5 if nothing tells; None if it is not known."""
    by_chance: float | None = None
    """The area that 95 % of exchanges of the labels between documents do not reach."""
    why: str = ""
    """Why it is not known; what was tried if it is."""
    dropped: int = 0
    """How many questions without an answer were dropped because their words tell."""

    @property
    def is_told(self) -> bool:
        """Return whether the words tell more than is wanted, and more than chance does."""
        return self.area is not None and self.area > max(MOST, self.by_chance or 0.0)

    @property
    def is_undecided(self) -> bool:
        """Return whether there are too few questions to say that the words tell as little as is wanted."""
        return self.area is None or (self.area > MOST and not self.is_told)


def words_alone(questions: Sequence[Candidate]) -> WordsAlone:
    """Measure it by a ridge regression that learns from the questions of other documents."""
    return _said(_measured(questions))


def _said(found: "Measured | str") -> WordsAlone:
    if isinstance(found, str):
        return WordsAlone(why=found)
    area, chance = float(found.scores.mean()), float(sorted(found.null)[ceil(0.95 * len(found.null)) - 1])
    return WordsAlone(area=round(area, 4), by_chance=round(chance, 4), why=found.evidence)


def told(questions: Sequence[Candidate]) -> dict[str, float]:
    """Return the slots of the questions without an answer that must be dropped, with the share of answerable ones from
    which their words told them apart.

    A question is told by what was learned from other documents. Those that are told best are dropped, a tenth of those
    that are left at a time, and it is measured again; ties are broken by the slot.
    """
    left, dropped = list(questions), dict[str, float]()
    while True:
        found = _measured(left)
        if isinstance(found, str) or not _said(found).is_told:
            return dropped
        scores = dict(zip(found.ids, map(float, found.scores), strict=True))
        absent = sorted((each.slot for each in left if not each.is_answerable), key=lambda slot: (-scores[slot], slot))
        worst = absent[: ceil(SHARE * len(absent))]
        dropped |= {slot: scores[slot] for slot in worst}
        left = [each for each in left if each.slot not in dropped]


def _measured(questions: Sequence[Candidate]) -> "Measured | str":
    """Return what is measured, or why nothing can be.

    Questions are in a drawn order, because the labels of a document stay in their order when they are exchanged.
    """
    import numpy as np

    from mmlongbench.shortcuts.learners import guess_answers
    from mmlongbench.shortcuts.text_features import of_text, scaled, table

    drawn = Draws(("words alone",)).order("questions", questions, lambda each: each.slot)
    texts = [each.question for each in drawn]
    known = _vocabulary(drawn)
    if not known:
        return "there are too few documents"
    shown = [set(_terms(text)) for text in texts]
    found_words = np.array([[float(term in own) for term in known] for own in shown])
    features = np.concatenate([found_words, scaled(table([of_text(text) for text in texts])) / 4], axis=1)
    labels = ["answerable" if each.is_answerable else "unanswerable" for each in drawn]
    ids, documents = [each.slot for each in drawn], [each.doc for each in drawn]
    found = guess_answers("answerable", ids, documents, labels, features, "words and form of the question")
    return "there are too few documents, or too few unanswerable questions" if found is None else found


def _vocabulary(questions: Sequence[Candidate]) -> list[str]:
    """Return the words and pairs of words that are asked for in several documents."""
    where: dict[str, set[str]] = {}
    for each in questions:
        for term in _terms(each.question):
            where.setdefault(term, set()).add(each.doc)
    return sorted(term for term, documents in where.items() if len(documents) >= MIN_DOCUMENTS)


def _terms(question: str) -> list[str]:
    found = words(question).split()
    return [*found, *(f"{one} {other}" for one, other in pairwise(found))]
