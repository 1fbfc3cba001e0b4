"""What a reader without pictures answers: a plain search for the page, and the first number after the row's label.

The baselines say how far words alone lead. They change no question.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from mmlongbench.answers import NOT_ANSWERABLE
from mmlongbench.corpus.retrieval.bm25 import rank_texts
from mmlongbench.questions.layer.index import normal
from mmlongbench.questions.question import Question

_QUOTED = re.compile(r"“([^”]+)”")
_NUMBER = re.compile(r"[($€£-]*\d[\d,]*(?:\.\d+)?%?\)?")


class Baseline(NamedTuple):
    """What the baselines find for a question."""

    rank: int
    """The rank of the worst page that is needed, from 1, among the pages of the document; 0 if the search does not
    find it, or if no page is needed."""
    guess: str
    """The answer of the reader of text."""
    is_right: bool
    """Whether the guess is the answer."""


def baseline_of(question: Question, texts: Sequence[str]) -> Baseline:
    """Return the baselines of a question over the texts of the document's pages."""
    ranked = rank_texts(question.question, list(texts))
    places = [ranked.index(page - 1) + 1 if page - 1 in ranked else 0 for page in question.pages]
    rank = max(places) if places and all(places) else 0
    guess = _guess(question.question, texts[ranked[0]] if ranked else "", ranked[0] + 1 if ranked else 0)
    answers = (question.answer,) if isinstance(question.answer, str) else question.answer
    right = {normal(" ".join(answers)), *map(normal, question.accepted)}
    return Baseline(rank, guess, normal(guess) in right)


def _guess(question: str, text: str, page: int) -> str:
    """Return the number that follows the first quoted words on the page that the search finds first."""
    if "on which page" in question.casefold():
        return str(page)
    quoted = [words for words in _QUOTED.findall(question) if words in text]
    label = next((words for words in quoted if _NUMBER.search(text.partition(words)[2][:40])), "")
    if not label:
        return NOT_ANSWERABLE
    found = _NUMBER.search(text.partition(label)[2])
    return found[0] if found else NOT_ANSWERABLE
