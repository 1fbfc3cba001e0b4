"""Search for pages: what a builder asks, what is found, and the rankers, by words (BM25), by the meaning of the pages'
text, or by the vectors of their pictures.

A page of text is longer than a text model reads, so it is embedded in pieces, and its score is that of its best piece.
Where a model gives several vectors for a question or a page, each vector of the question counts with its best match
(late interaction).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mmlongbench.corpus.retrieval.bm25 import rank_texts
from mmlongbench.corpus.retrieval.dense import ModelSpec, PictureEncoder, Reranker, by_score
from mmlongbench.corpus.retrieval.text import tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PageId: TypeAlias = tuple[str, int]
"""A page: the id of its document, and its number from 0."""
AT = (1, 5, 10)  # the numbers of pages at which recall is stated
MAX_RANKED = 1000  # the maximum number of pages that a ranking keeps
PIECE = 120  # how many words of a page are embedded at once; the default model reads 256 tokens


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A search for pages, which a builder declares for a row (`Builder.page_query`)."""

    text: str
    """The words that are searched for."""
    documents: tuple[str, ...] = ()
    """The ids of the documents whose pages are ranked; empty: all documents of the dataset."""
    gold: tuple[PageId, ...] = ()
    """The pages that hold the answer, by which recall is measured."""


@dataclass(frozen=True, slots=True)
class PageRanking:
    """The pages that a retriever found for a row."""

    pages: tuple[PageId, ...]
    """The pages, the best first, at most `MAX_RANKED`. Pages without text are not among those that are ranked by
    text."""
    gold_ranks: tuple[int, ...] = ()
    """The rank of each gold page of the query among all ranked pages, from 1; 0 if it is not ranked."""


def recall_at(ranks: Iterable[Sequence[int]], k: int) -> float:
    """Return the mean share of gold pages among the first k pages, over the questions that have gold pages.

    Args:
        ranks: the ranks of the gold pages of each question, from 1; 0 for a page that is not ranked.
        k: the number of pages.

    >>> recall_at([(1,), (7, 2), (0,), ()], 5)
    0.5

    """
    found = [sum(1 <= rank <= k for rank in each) / len(each) for each in ranks if each]
    return sum(found) / len(found) if found else 0.0


def said_recall(recall: Mapping[str, float]) -> str:
    """Return recall figures in words.

    >>> said_recall({"1": 0.5, "10": 1.0})
    'recall@1 0.500, @10 1.000'
    """
    return "recall" + ", ".join(f"@{k} {share:.3f}" for k, share in recall.items())


class PageRanker(ABC):
    """Orders pages for a question."""

    @abstractmethod
    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return the indices of the pages that can be ranked, the best first; of equal pages, the earlier first."""

    def close(self) -> None:
        return


class WordRanker(PageRanker):
    """BM25 over the texts of pages. A page that shares no word with the question is not ranked."""

    def __init__(self, text: Callable[[PageId], str]) -> None:
        """`text` returns the text of a page."""
        self._text = text
        self._asked: tuple[PageId, ...] = ()
        self._texts: tuple[str, ...] = ()

    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return the pages that share a word with the question."""
        if self._asked != tuple(pages):
            self._asked = tuple(pages)
            self._texts = tuple(map(self._text, pages))
        return list(rank_texts(query, self._texts))


class TextRanker(PageRanker):
    """Cosines between a question and the texts of pages. A page without words is not ranked."""

    def __init__(self, spec: ModelSpec, cache: Path, text: Callable[[PageId], str]) -> None:
        """Load the model (see `SentenceEncoder`); the vectors of pages are kept in the folder `cache`."""
        self._model = Reranker.open(spec, cache)
        self._text = text
        self._asked: tuple[PageId, ...] = ()
        self._owners: list[int] = []
        """The place of the page of each piece."""
        self._vectors: NDArray[np.float32] | None = None
        """The vector of each piece; None if no page has words."""

    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return the pages with words, by the cosine of their best piece."""
        import numpy as np

        if self._asked != tuple(pages):
            self._asked = tuple(pages)
            pieces = [_pieces(self._text(page)) for page in pages]
            self._owners = [place for place, each in enumerate(pieces) for _ in each]
            self._vectors = self._model.vectors([piece for each in pieces for piece in each]) if self._owners else None
        if self._vectors is None:
            return []
        best = np.full(len(pages), -np.inf)
        np.maximum.at(best, self._owners, self._model.cosines(query, self._vectors))
        places = sorted(set(self._owners))
        return [places[at] for at in by_score(best[places], places)]

    def close(self) -> None:
        self._model.close()


def _pieces(text: str) -> list[str]:
    """Return a text in pieces of at most `PIECE` words; empty if it has no word.

    >>> [len(piece.split()) for piece in _pieces("word " * 130)], _pieces(" . ")
    ([120, 10], [])
    """
    words = text.split() if tokens(text) else []
    return [" ".join(words[start : start + PIECE]) for start in range(0, len(words), PIECE)]


class PictureRanker(PageRanker):
    """Similarities between a question and the pictures of pages."""

    def __init__(
        self, spec: ModelSpec, cache: Path, name: Callable[[PageId], str], picture: Callable[[PageId], bytes]
    ) -> None:
        """Load the model; vectors are kept in the folder `cache`, by what `name` returns for a page. `picture` returns
        the picture of a page as PNG or JPEG.
        """
        self._encoder = PictureEncoder(spec, cache)
        self._name, self._picture = name, picture

    def rank(self, query: str, pages: Sequence[PageId]) -> list[int]:
        """Return all pages, by the sum over the question's vectors of the best match among the page's vectors."""
        import numpy as np

        asked = self._encoder.query(query)
        width = asked.shape[1]
        vectors = (self._encoder.page(self._name(page), partial(self._picture, page), width) for page in pages)
        scores = [float((asked @ each.T).max(axis=1).sum()) for each in vectors]
        return by_score(np.array(scores), range(len(pages)))

    def close(self) -> None:
        self._encoder.close()
