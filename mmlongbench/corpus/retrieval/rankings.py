"""Saved rankings: the ranking of a query is computed once, kept on disk, and read from there while it is valid.

Vectors differ in their last bits between devices, so the order of two passages may differ too. A build from a saved
ranking has the same bytes everywhere.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval.dense import Reranker
from mmlongbench.corpus.retrieval.negatives import NegativeFilter
from mmlongbench.corpus.retrieval.passages import Index, Passages
from mmlongbench.draws import digest
from mmlongbench.io.files import write_whole

FORMAT = 2


@dataclass(frozen=True, slots=True)
class Ranking:
    """The passages nearest to a query, the nearest first."""

    query: str
    numbers: tuple[int, ...]
    """The passage numbers (`Passages.passage`), the nearest first."""
    fingerprint: str
    """A hash of everything that decided the order."""


class Rankings:
    """Ranks queries over one corpus, and keeps each ranking in a folder, one file for each query."""

    def __init__(self, folder: Path, corpus: Passages, index: Index, k: int, reranker: Reranker | None = None) -> None:
        """Rank by words, and let the reranker, if there is one, reorder the best k by meaning."""
        self._folder = folder
        self._corpus = corpus
        self._index = index
        self._k = k
        self._reranker = reranker

    def rank(self, query: str) -> Ranking:
        """Return the ranking of a query, from disk if it was saved."""
        facts = self._facts(query)
        fingerprint = digest(json.dumps(facts, sort_keys=True)).hex()
        path = self._folder / fingerprint[:2] / f"{fingerprint}.json"
        numbers = _kept(path, facts)
        if numbers is None:
            numbers = self._ranked(query)
            write_whole(path, [json.dumps(facts | {"numbers": numbers}, sort_keys=True).encode(), b"\n"])
        return Ranking(query, tuple(numbers), fingerprint)

    def _facts(self, query: str) -> dict[str, object]:
        return {
            "format": FORMAT,
            "corpus": self._corpus.fingerprint,
            "index": self._index.fingerprint,
            "reranker": self._reranker.fingerprint if self._reranker else None,
            "k": self._k,
            "query": query,
        }

    def _ranked(self, query: str) -> list[int]:
        numbers = [hit.number for hit in self._index.search(query, self._k)]
        if self._reranker is None:
            return numbers
        order = self._reranker.rerank(query, [self._corpus.passage(number) for number in numbers])
        return [numbers[place] for place in order]


def _kept(path: Path, facts: dict[str, object]) -> list[int] | None:
    """Return the saved numbers; None if they must be computed, because the file is missing, damaged or was saved for
    other facts.
    """
    try:
        found: object = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("numbers"), list):
        return None
    numbers = found.pop("numbers")
    return list(numbers) if found == facts else None


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
