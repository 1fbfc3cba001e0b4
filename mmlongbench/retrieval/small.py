"""The same search by the package rank-bm25, all in memory: for small corpora, and to check the index on disk by.

Of its variants BM25+ with δ = 0 is taken: that is BM25 with an idf, ln((N + 1) / n), that is never negative and within
1 / 2n of Lucene's; the idf of its `BM25Okapi` is below 0 for words of more than half of all passages, and is then
replaced by a quarter of the mean idf.
"""

from importlib import import_module
from importlib.metadata import version

from mmlongbench.draws import digest
from mmlongbench.errors import MMLongBenchError
from mmlongbench.retrieval.bm25 import K1, TOKENS, B
from mmlongbench.retrieval.passages import Hit, Passages
from mmlongbench.retrieval.text import tokens
from mmlongbench.retrieval.ties import ranks_of, settle

MOST = 100_000
"""Passages; a hundred thousand take a gigabyte."""
TOLERANCE = 2.0**-40
"""Relative; sums here are in double precision."""


class RankBm25Index:
    """A corpus in memory."""

    def __init__(self, corpus: Passages) -> None:
        """Read the whole corpus.

        Raises:
            MMLongBenchError: the corpus is too large for this, or the package is not installed.

        """
        if not 0 < len(corpus) <= MOST:
            raise MMLongBenchError(f"rank-bm25 holds 1 to {MOST:,} passages, not {len(corpus):,}; use tantivy")
        try:
            engine = import_module("rank_bm25").BM25Plus
        except ImportError as error:
            raise MMLongBenchError("rank-bm25 is not installed; `pip install rank-bm25`, or use tantivy") from error
        passages = list(corpus)
        self._engine = engine([tokens(f"{p.title}\n{p.text}") for p in passages], k1=K1, b=B, delta=0)
        self._ranks = ranks_of([[p.id for p in passages]])
        made_by = f"rank-bm25 {version('rank-bm25')}"
        self.fingerprint = digest(corpus.fingerprint, len(corpus), made_by, K1, B, TOKENS).hex()

    def search(self, query: str, k: int) -> list[Hit]:
        """The best k passages that share a word with the query, by (-score, passage id)."""
        import numpy as np

        scores = np.asarray(self._engine.get_scores(tokens(query)), np.float64)
        numbers = np.argsort(-scores, kind="stable")
        numbers = numbers[: np.count_nonzero(scores > 0)]
        return settle(scores[numbers], numbers, self._ranks, k, TOLERANCE, is_all=True) or []
