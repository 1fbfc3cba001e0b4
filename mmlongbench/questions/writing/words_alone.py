"""Measures whether the words of a question alone tell that it has no answer."""

from collections.abc import Sequence

from mmlongbench.errors import ReleaseError
from mmlongbench.questions.question import Line
from mmlongbench.questions.writing.lines import Candidate

MOST = 0.55
"""The largest area under the curve that is wanted."""


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
    """Measure it by a ridge regression that learns from the questions of other documents."""
    import numpy as np

    from mmlongbench.shortcuts.guesses import guess_answers
    from mmlongbench.shortcuts.probes import question_words

    labels = ["answerable" if each.is_answerable else "unanswerable" for each in questions]
    try:
        features = question_words([each.question for each in questions])
    except ReleaseError as error:
        return WordsAlone(why=str(error))
    if not features.size:
        return WordsAlone(why="there are too few questions")
    ids, documents = [each.slot for each in questions], [each.doc for each in questions]
    found = guess_answers("answerable", ids, documents, labels, features, "words and form of the question")
    if found is None:
        return WordsAlone(why="there are too few documents, or too few unanswerable questions")
    area = float(np.mean(found.scores))
    return WordsAlone(area=round(area, 4), by_chance=round(float(np.quantile(found.null, 0.95)), 4), why=found.evidence)
