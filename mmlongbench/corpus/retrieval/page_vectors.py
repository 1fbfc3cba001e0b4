"""Vectors of pictures of pages, and of the questions about them; the only module that embeds pictures.

A model of sentence-transformers gives one vector, or several if it is made for late interaction. The vectors of a page
are computed once and kept on disk.
"""

import hashlib
import io
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mmlongbench.corpus.retrieval.models import ModelError, ModelSpec, find_model, hash_files, need_libraries
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
