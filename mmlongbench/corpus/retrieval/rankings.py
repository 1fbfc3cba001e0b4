"""Rankings as an artifact: once a query was ranked, the order is kept and read, never computed again while it holds.

Vectors differ in their last bits between devices, and so may the order of two passages. What is built from a kept
ranking has equal bytes everywhere.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.corpus.retrieval.dense import Reranker
from mmlongbench.corpus.retrieval.passages import Index, Passages
from mmlongbench.draws import digest
from mmlongbench.io.atomic import write_whole

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Ranking:
    """The passages nearest to a query, the nearest first."""

    query: str
    numbers: tuple[int, ...]
    """Places in the corpus."""
    fingerprint: str
    """Of all that decided the order."""


class Rankings:
    """Ranks queries over one corpus, and keeps what it ranked in a folder, a file a query."""

    def __init__(self, folder: Path, corpus: Passages, index: Index, k: int, reranker: Reranker | None = None) -> None:
        """Of the best k by words, all are reordered by meaning if there is a reranker."""
        self._folder = folder
        self._corpus = corpus
        self._index = index
        self._k = k
        self._reranker = reranker

    def rank(self, query: str) -> Ranking:
        """The ranking of a query, from disk if it is there."""
        facts = self._facts(query)
        fingerprint = digest(json.dumps(facts, sort_keys=True)).hex()
        path = self._folder / fingerprint[:2] / f"{fingerprint}.json"
        numbers = _kept(path, facts)
        if numbers is None:
            numbers = self._ranked(query)
            write_whole(path, [json.dumps(facts | {"numbers": numbers}, sort_keys=True).encode(), b"\n"])
        return Ranking(query, tuple(numbers), fingerprint)

    def _facts(self, query: str) -> dict[str, Any]:
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


def _kept(path: Path, facts: dict[str, Any]) -> list[int] | None:
    """The numbers of a file that was written whole and says what is asked; None where it is to be made anew."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("numbers"), list):
        return None
    numbers = found.pop("numbers")
    return list(numbers) if found == facts else None
