"""Keeps vectors of texts on disk: a model embeds each text only once, for all questions and all runs.

There is one file for each model. If the process is killed, vectors that were committed are not lost. Two processes may
write at the same time; the first to write a vector wins.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mmlongbench.corpus.retrieval.models import Encoder
from mmlongbench.errors import BuildError
from mmlongbench.io.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 1024
"""How many texts are embedded between two commits; if the process is killed, at most this many vectors are lost."""


class Embeddings(Store):
    """The vectors that one model has computed for passages."""

    table: ClassVar[str] = "vectors"
    columns: ClassVar[str] = "text BLOB, vector BLOB NOT NULL"

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        """Open or make the file of this model in a folder."""
        self._encoder = encoder
        self._stored = "<f2" if encoder.dtype == "float16" else "<f4"
        super().__init__(folder / f"{hashlib.sha256(encoder.fingerprint.encode()).hexdigest()[:32]}.sqlite")

    def unusable(self, error: Exception) -> BuildError:
        """Return the error to raise when the file cannot be used."""
        return BuildError(f"the embeddings {self.path.name} cannot be used: {error}; remove that file")

    def of(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the unit vectors of texts, embedding those that are new; shape (texts, width)."""
        import numpy as np

        keys = [_key(text) for text in texts]
        found = self._look_up(list(dict.fromkeys(keys)))
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        left = list(new)
        for at in range(0, len(left), BATCH):
            batch = left[at : at + BATCH]
            found |= self._embed(batch, [new[key] for key in batch])
        vectors = np.frombuffer(b"".join(found[key] for key in keys), self._stored)
        return vectors.reshape(len(texts), self._encoder.width).astype(np.float32)

    def _look_up(self, keys: list[bytes]) -> dict[bytes, bytes]:
        import numpy as np

        size = self._encoder.width * np.dtype(self._stored).itemsize
        return {key: vector for key, vector in self.rows(keys) if len(vector) == size}

    def _embed(self, keys: list[bytes], texts: list[str]) -> dict[bytes, bytes]:
        """Embed texts and keep their vectors; if another process was first, return its vectors."""
        vectors = self._encoder.passages(texts).astype(self._stored)
        rows = [(key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        self.write(rows)
        return dict(rows) | self._look_up(keys)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
