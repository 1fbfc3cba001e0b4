"""The search for hard negatives: ranks the passages of a corpus, then keeps those that a filter admits."""

from collections import Counter
from dataclasses import dataclass

from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval.negatives import NegativeFilter
from mmlongbench.corpus.retrieval.rankings import Rankings


@dataclass(frozen=True, slots=True)
class Found:
    """The hard negatives of a query, and how many passages were rejected."""

    numbers: tuple[int, ...]
    """The passage numbers of the negatives, hardest first."""
    rejected: Counter[str]
    """How many passages were rejected, by reason."""


class Search:
    """The search in one corpus."""

    def __init__(self, corpus: Corpus, rankings: Rankings) -> None:
        """Keep a corpus and its rankings."""
        self._corpus = corpus
        self._rankings = rankings

    def find(self, text: str, chosen: NegativeFilter) -> Found:
        """Rank passages for a query text, and return those that a filter admits. The other passages, for example those
        that answer the question, are counted by reason.

        `chosen` is the filter of the question; it must not have admitted any passage yet.
        """
        numbers, rejected = [], Counter[str]()
        for number in self._rankings.rank(text).numbers:
            reason = chosen.admit(self._corpus.passage(number))
            if reason is None:
                numbers.append(number)
            else:
                rejected[reason] += 1
        return Found(tuple(numbers), rejected)
