"""Vectors of texts on disk: each text is embedded once by a model, for all questions and all runs.

One SQLite file a model. What was committed survives a kill; two processes may write at once, and the first to write a
vector wins.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.corpus.retrieval.models import Encoder
from mmlongbench.errors import BuildError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ASKED = 500
"""Vectors that are looked up by one statement."""
SAVED = 1024
"""Texts that are embedded between two commits: what a kill can cost."""
PATIENCE = 60.0
"""Seconds to wait for another process that writes."""


class Embeddings:
    """The vectors of one model's passages."""

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        """Open or make the file of this model in a folder."""
        self._encoder = encoder
        self._stored = "<f2" if encoder.dtype == "float16" else "<f4"
        self.path = folder / f"{hashlib.sha256(encoder.fingerprint.encode()).hexdigest()[:32]}.sqlite"
        folder.mkdir(parents=True, exist_ok=True)
        with self._readable():
            self._database = sqlite3.connect(self.path, timeout=PATIENCE)
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
            )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def of(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The unit vectors of texts, embedding those that are new; shape (texts, width)."""
        import numpy as np

        keys = [_key(text) for text in texts]
        with self._readable():
            found = self._look_up(keys)
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            for batch in _batches(list(new), SAVED):
                found |= self._embed(batch, [new[key] for key in batch])
        vectors = np.frombuffer(b"".join(found[key] for key in keys), self._stored)
        return vectors.reshape(len(texts), self._encoder.width).astype(np.float32)

    def _look_up(self, keys: list[bytes]) -> dict[bytes, bytes]:
        import numpy as np

        size = self._encoder.width * np.dtype(self._stored).itemsize
        found: dict[bytes, bytes] = {}
        for batch in _batches(list(dict.fromkeys(keys)), ASKED):
            marks = ",".join("?" * len(batch))
            found |= self._database.execute(f"SELECT text, vector FROM vectors WHERE text IN ({marks})", batch)
        return {key: vector for key, vector in found.items() if len(vector) == size}

    def _embed(self, keys: list[bytes], texts: list[str]) -> dict[bytes, bytes]:
        """Embed and keep; where another process was first, its vectors are taken."""
        vectors = self._encoder.passages(texts).astype(self._stored)
        rows = [(key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
        return dict(rows) | self._look_up(keys)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BuildError(f"the embeddings {self.path.name} cannot be used: {error}; remove that file") from error


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _batches(keys: list[bytes], size: int) -> Iterator[list[bytes]]:
    return (keys[at : at + size] for at in range(0, len(keys), size))
