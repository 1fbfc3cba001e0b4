"""Measures whether the words of a question alone tell that it has no answer.

Only words that occur in the questions of several documents count: others, such as the name that an edit brings into a
document, cannot be learned from one document for another.
"""

from collections.abc import Sequence
from itertools import pairwise

from mmlongbench.draws import Draws
from mmlongbench.questions.question import Line
from mmlongbench.questions.writing.answers import words
from mmlongbench.questions.writing.lines import Candidate

MOST = 0.55
"""The largest area under the curve that is wanted."""
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

    @property
    def is_told(self) -> bool:
        """Return whether the words tell more than is wanted, and more than chance does."""
        return self.area is not None and self.area > max(MOST, self.by_chance or 0.0)


def words_alone(questions: Sequence[Candidate]) -> WordsAlone:
    """Measure it by a ridge regression that learns from the questions of other documents.

    Questions are in a drawn order, because the labels of a document stay in their order when they are exchanged.
    """
    import numpy as np

    from mmlongbench.shortcuts.features import of_text, table
    from mmlongbench.shortcuts.guesses import guess_answers, scaled

    drawn = Draws(("words alone",)).order("questions", questions, lambda each: each.slot)
    texts = [each.question for each in drawn]
    known = _vocabulary(drawn)
    if not known:
        return WordsAlone(why="there are too few documents")
    shown = [set(_terms(text)) for text in texts]
    found_words = np.array([[float(term in own) for term in known] for own in shown])
    features = np.concatenate([found_words, scaled(table([of_text(text) for text in texts])) / 4], axis=1)
    labels = ["answerable" if each.is_answerable else "unanswerable" for each in drawn]
    ids, documents = [each.slot for each in drawn], [each.doc for each in drawn]
    found = guess_answers("answerable", ids, documents, labels, features, "words and form of the question")
    if found is None:
        return WordsAlone(why="there are too few documents, or too few unanswerable questions")
    area = float(np.mean(found.scores))
    return WordsAlone(area=round(area, 4), by_chance=round(float(np.quantile(found.null, 0.95)), 4), why=found.evidence)


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
