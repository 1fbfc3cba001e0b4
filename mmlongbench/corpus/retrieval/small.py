"""The search of `bm25` in memory, with the package rank-bm25: for small corpora, and to check the index on disk.

It uses the variant BM25+ with δ = 0. This is BM25 with the idf ln((N + 1) / n), which is never negative and within 1 /
2n of Lucene's. The package's `BM25Okapi` is not used: for a word in more than half of all passages its idf is below 0,
and is replaced by a quarter of the mean idf.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from mmlongbench.corpus.retrieval.bm25 import K1, TOKENS, B
from mmlongbench.corpus.retrieval.passages import Hit, Passages
from mmlongbench.corpus.retrieval.text import tokens
from mmlongbench.corpus.retrieval.ties import ranks_of, settle
from mmlongbench.draws import digest
from mmlongbench.errors import MMLongBenchError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 100_000
"""The maximum number of passages; a hundred thousand take a gigabyte."""
TOLERANCE = 2.0**-40
"""The relative difference below which scores are equal; sums here are in double precision."""
_DOCUMENTS = 8
"""How many documents' scorers are kept for the next question; the scorer of 50 pages takes about a megabyte."""


class RankBm25Index:
    """The index of a corpus in memory."""

    def __init__(self, corpus: Passages) -> None:
        """Read the whole corpus.

        Raises:
            MMLongBenchError: the corpus is too large for memory.

        """
        if not 0 < len(corpus) <= MOST:
            raise MMLongBenchError(f"rank-bm25 can hold 1 to {MOST:,} passages, not {len(corpus):,}; use tantivy")
        passages = list(corpus)
        self._scorer = _Scorer([tokens(f"{p.title}\n{p.text}") for p in passages])
        self._ranks = ranks_of([[p.id for p in passages]])
        made_by = f"rank-bm25 {version('rank-bm25')}"
        self.fingerprint = digest(corpus.fingerprint, len(corpus), made_by, K1, B, TOKENS).hex()

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the best k passages that share a word with the query, ordered by (-score, passage id)."""
        return self._scorer.best(query, k, self._ranks)


def rank_texts(query: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the texts that share a word with a query, the best by BM25 first. Of texts with equal
    scores, the earlier comes first.

    >>> rank_texts("red roof", ["a blue roof", "nothing", "red tiles on a red roof"])
    (2, 0)
    """
    import numpy as np

    scorer = _scorer_of(tuple(texts))
    hits = scorer.best(query, len(texts), np.arange(len(texts), dtype=np.uint32)) if scorer else []
    return tuple(hit.number for hit in hits)


@lru_cache(maxsize=_DOCUMENTS)
def _scorer_of(texts: tuple[str, ...]) -> "_Scorer | None":
    """Return the scorer of some texts; None if no text has a word."""
    words = list(map(tokens, texts))
    return _Scorer(words) if any(words) else None


class _Scorer:
    """BM25 over texts that are given as words; at least one text has a word."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        from rank_bm25 import BM25Plus

        self._engine = BM25Plus(texts, k1=K1, b=B, delta=0)

    def best(self, query: str, k: int, ranks: "NDArray[np.uint32]") -> list[Hit]:
        """Return the best k texts that share a word with the query, ordered by (-score, rank)."""
        import numpy as np

        scores = np.asarray(self._engine.get_scores(tokens(query)), np.float64)
        numbers = np.argsort(-scores, kind="stable")
        numbers = numbers[: np.count_nonzero(scores > 0)]
        return settle(scores[numbers], numbers, ranks, k, TOLERANCE, is_all=True) or []
