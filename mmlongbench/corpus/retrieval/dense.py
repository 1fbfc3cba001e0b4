"""Reranking by meaning: sorts passages by the cosine between a passage's vector and the query's. See also `models`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.corpus.retrieval.embeddings import Embeddings
from mmlongbench.corpus.retrieval.models import Encoder, ModelSpec, SentenceEncoder
from mmlongbench.corpus.retrieval.passages import Passage
from mmlongbench.corpus.retrieval.ties import groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOLERANCE = 1e-6
"""Cosines that differ by less count as equal, because the last bits of a sum depend on the shape of the batch."""


class Reranker:
    """Orders passages by meaning, with an encoder and the vectors that the encoder has computed so far."""

    def __init__(self, encoder: Encoder, cache: Path) -> None:
        """Keep the vectors of passages in the folder `cache`."""
        self._encoder = encoder
        self._embeddings = Embeddings(encoder, cache)
        self.fingerprint = encoder.fingerprint

    @classmethod
    def open(cls, spec: ModelSpec, cache: Path) -> "Reranker":
        """Load a model.

        Raises:
            ModelError: the model is not on disk and cannot be downloaded, or the extra `dense` is missing.

        """
        return cls(SentenceEncoder(spec), cache)

    def close(self) -> None:
        """Close the cache."""
        self._embeddings.close()

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[int]:
        """Return the indices of `passages`, ordered by cosine with the query, highest first; ties are ordered by
        passage id.
        """
        return [place for place, _ in self.scored(query, passages)]

    def scored(self, query: str, passages: Sequence[Passage]) -> list[tuple[int, float]]:
        """Return (index, cosine) of each passage in `passages`, highest cosine first; ties are ordered by passage
        id.
        """
        import numpy as np

        if not passages:
            return []
        vectors = self._embeddings.of([f"{passage.title}\n{passage.text}" for passage in passages])
        cosines: NDArray[np.float64] = (vectors @ self._encoder.queries([query])[0]).astype(np.float64)
        order = np.argsort(-cosines, kind="stable")
        tied: list[int] = groups(cosines[order], TOLERANCE, is_relative=False).tolist()
        best = sorted(zip(tied, order.tolist(), strict=True), key=lambda pair: (pair[0], passages[pair[1]].id))
        return [(place, float(cosines[place])) for _, place in best]
