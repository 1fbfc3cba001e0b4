"""Ranks pages for a question: by words (BM25), by the meaning of their text, or by the vectors of their pictures.

A page of text is longer than a text model reads, so it is embedded in pieces, and its score is that of its best piece.
Where a model gives several vectors for a question or a page, each vector of the question counts with its best match
(late interaction).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.corpus.retrieval.dense import TOLERANCE
from mmlongbench.corpus.retrieval.embeddings import Embeddings
from mmlongbench.corpus.retrieval.models import ModelSpec, SentenceEncoder
from mmlongbench.corpus.retrieval.page_queries import PageId
from mmlongbench.corpus.retrieval.page_vectors import PictureEncoder
from mmlongbench.corpus.retrieval.small import rank_texts
from mmlongbench.corpus.retrieval.text import tokens
from mmlongbench.corpus.retrieval.ties import groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIECE = 120
"""How many words of a page are embedded at once; the default model reads 256 tokens."""


class PageRanker(ABC):
    """Orders pages for a question."""

    @abstractmethod
    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return the indices of the pages that can be ranked, the best first; of equal pages, the earlier first."""

    def close(self) -> None:
        """Close what is open."""
        return


class WordRanker(PageRanker):
    """BM25 over the texts of pages. A page that shares no word with the question is not ranked."""

    def __init__(self, text: Callable[[PageId], str]) -> None:
        """`text` returns the text of a page."""
        self._text = text
        self._known: tuple[tuple[PageId, ...], tuple[str, ...]] = ((), ())

    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return the pages that share a word with the question."""
        asked = tuple(pages)
        if self._known[0] != asked:
            self._known = asked, tuple(map(self._text, asked))
        return list(rank_texts(query, self._known[1]))


class TextRanker(PageRanker):
    """Cosines between a question and the texts of pages. A page without words is not ranked."""

    def __init__(self, spec: ModelSpec, cache: Path, text: Callable[[PageId], str]) -> None:
        """Load the model; the vectors of pages are kept in the folder `cache`.

        Raises:
            ModelError: the model is not on disk and cannot be downloaded, or the extra `dense` is missing.

        """
        self._encoder = SentenceEncoder(spec)
        self._embeddings = Embeddings(self._encoder, cache)
        self._text = text
        self._known: tuple[tuple[PageId, ...], tuple[list[int], NDArray[np.float32]] | None] = ((), None)

    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return the pages with words, by the cosine of their best piece."""
        import numpy as np

        asked = tuple(pages)
        if self._known[0] != asked:
            self._known = asked, self._embedded(asked)
        if self._known[1] is None:
            return []
        owners, vectors = self._known[1]
        best = np.full(len(pages), -np.inf)
        np.maximum.at(best, owners, vectors @ self._encoder.queries([query])[0])
        return ordered(best, sorted(set(owners)))

    def _embedded(self, pages: tuple[PageId, ...]) -> "tuple[list[int], NDArray[np.float32]] | None":
        """Return the place of the page of each piece, and the vector of each piece; None if no page has words."""
        pieces = [pieces_of(self._text(page)) for page in pages]
        owners = [place for place, each in enumerate(pieces) for _ in each]
        return (owners, self._embeddings.of([piece for each in pieces for piece in each])) if owners else None

    def close(self) -> None:
        """Close the file with the vectors."""
        self._embeddings.close()


class PictureRanker(PageRanker):
    """Similarities between a question and the pictures of pages."""

    def __init__(
        self, spec: ModelSpec, cache: Path, name: Callable[[PageId], str], picture: Callable[[PageId], bytes]
    ) -> None:
        """Load the model; vectors are kept in the folder `cache`, by what `name` returns for a page. `picture` returns
        the picture of a page as PNG or JPEG.

        Raises:
            ModelError: the model is not on disk and cannot be downloaded, or the extra `dense` is missing.

        """
        self._encoder = PictureEncoder(spec, cache)
        self._name, self._picture = name, picture

    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return all pages, by the sum over the question's vectors of the best match among the page's vectors."""
        import numpy as np

        asked = self._encoder.query(query)
        vectors = (self._encoder.page(self._name(page), partial(self._picture, page)) for page in pages)
        scores = [float((asked @ each.T).max(axis=1).sum()) for each in vectors]
        return ordered(np.array(scores), range(len(pages)))

    def close(self) -> None:
        """Close the file with the vectors."""
        self._encoder.close()


def pieces_of(text: str) -> list[str]:
    """Return a text in pieces of at most `PIECE` words; empty if it has no word.

    >>> [len(piece.split()) for piece in pieces_of("word " * 130)], pieces_of(" . ")
    ([120, 10], [])
    """
    if not tokens(text):
        return []
    words = text.split()
    return [" ".join(words[start : start + PIECE]) for start in range(0, len(words), PIECE)]


def ordered(scores: "NDArray[np.float64]", places: Sequence[int]) -> list[int]:
    """Return places by their scores, the highest first; scores that hardly differ count as equal, and the earlier place
    comes first.
    """
    import numpy as np

    chosen = np.asarray(places, np.int64)
    order = chosen[np.argsort(-scores[chosen], kind="stable")]
    tied: list[int] = groups(scores[order], TOLERANCE, is_relative=False).tolist()
    return [place for _, place in sorted(zip(tied, order.tolist(), strict=True))]
