"""Ranks pages for a question: by words (BM25), by the meaning of their text, or by the vectors of their pictures.

A page of text is longer than a text model reads, so it is embedded in pieces, and its score is that of its best piece.
Where a model gives several vectors for a question or a page, each vector of the question counts with its best match
(late interaction).
"""

import hashlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mmlongbench.corpus.retrieval.bm25 import rank_texts
from mmlongbench.corpus.retrieval.dense import (
    TOLERANCE,
    Embeddings,
    ModelError,
    ModelSpec,
    SentenceEncoder,
    find_model,
    hash_files,
    need_libraries,
)
from mmlongbench.corpus.retrieval.page_queries import PageId
from mmlongbench.corpus.retrieval.passages import groups
from mmlongbench.corpus.retrieval.text import tokens
from mmlongbench.errors import BuildError
from mmlongbench.io.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ABOUT = "config_sentence_transformers.json"
"""The file of a model that says of which type it is."""
_SEVERAL = "MultiVectorEncoder"
"""The type of a model that gives several vectors."""


class PictureEncoder(Store):
    """A model that embeds questions and pictures, and the vectors of the pages that it has embedded."""

    table: ClassVar[str] = "pages"
    columns: ClassVar[str] = "page BLOB, vectors BLOB NOT NULL"

    def __init__(self, spec: ModelSpec, cache: Path) -> None:
        """Load the model, and open the file of its vectors in the folder `cache`.

        Raises:
            ModelError: the model cannot be loaded, or the extra `dense` is missing.

        """
        need_libraries()
        folder = find_model(spec.name, spec.revision)
        self._name, self._model = spec.name, _load(folder, spec)
        self.fingerprint = hash_files(folder)
        super().__init__(cache / f"{self.fingerprint[:32]}-pictures.sqlite")

    def unusable(self, error: Exception) -> BuildError:
        """Return the error to raise when the file cannot be used."""
        return BuildError(f"the vectors {self.path.name} cannot be used: {error}; remove that file")

    def query(self, text: str) -> "NDArray[np.float32]":
        """Return the unit vectors of a question; shape (vectors, width)."""
        return self._vectors(self._model.encode_query, text)

    def page(self, name: str, picture: Callable[[], bytes]) -> "NDArray[np.float32]":
        """Return the unit vectors of a page; shape (vectors, width).

        Args:
            name: what tells the picture of the page apart from all others.
            picture: returns the picture as PNG or JPEG; it is called if the vectors are not known.

        """
        import numpy as np
        from PIL import Image

        key = hashlib.sha256(name.encode()).digest()
        row = self.row(key)
        found = row[1] if row else None
        if not isinstance(found, bytes):
            with Image.open(io.BytesIO(picture())) as opened:
                vectors = self._vectors(self._model.encode_document, opened.convert("RGB"))
            found = np.uint32(vectors.shape[1]).tobytes() + vectors.astype("<f4").tobytes()
            self.write([(key, found)])
        width = int(np.frombuffer(found[:4], np.uint32)[0])
        return np.frombuffer(found[4:], "<f4").reshape(-1, width)

    def _vectors(self, encode: Callable[..., object], item: object) -> "NDArray[np.float32]":
        import numpy as np

        try:
            made = np.asarray(_plain(encode([item], show_progress_bar=False)), np.float32)
        except (ValueError, TypeError, AttributeError, RuntimeError, KeyError) as error:
            said = " ".join(str(error).split())[:200]
            what = "texts" if isinstance(item, str) else "pictures"
            raise ModelError(
                f"the model {self._name} does not embed {what} ({said}); name one that embeds texts and pictures in "
                "page_retrieval.model, or rank by text (page_retrieval.by: text)"
            ) from error
        vectors = made.reshape(-1, made.shape[-1])
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)


def _plain(value: Any) -> Any:  # noqa: ANN401  (what an encoder returns: an array, a tensor, or a list of these)
    first = value[0]
    return first.detach().cpu().numpy() if hasattr(first, "detach") else first


def _load(folder: Path, spec: ModelSpec) -> Any:  # noqa: ANN401  (a module without types)
    library = import_module("sentence_transformers")
    try:
        about = json.loads((folder / _ABOUT).read_bytes())
    except (OSError, ValueError):
        about = {}
    kind = about.get("model_type") if isinstance(about, dict) else None
    name = _SEVERAL if kind == _SEVERAL and hasattr(library, _SEVERAL) else "SentenceTransformer"
    try:
        return getattr(library, name)(
            str(folder), device=spec.device, trust_remote_code=spec.trust_remote_code, local_files_only=True
        )
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError) as error:
        said = " ".join(str(error).split())[:300]
        raise ModelError(f"the model {spec.name} cannot be loaded: {said}; name another model") from error


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
