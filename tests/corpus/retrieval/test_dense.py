"""Reranking with a tiny encoder: the order, the cache, what a kill leaves, what is refused."""

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mmlongbench.corpus.retrieval import embeddings
from mmlongbench.corpus.retrieval.dense import Reranker
from mmlongbench.corpus.retrieval.embeddings import Embeddings
from mmlongbench.corpus.retrieval.passages import Passage
from mmlongbench.errors import BuildError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MakePassage = Callable[..., Passage]
LETTERS = "abcdefgh"


class Letters:
    """An encoder that counts letters and records its inputs."""

    width = len(LETTERS)

    def __init__(self, fingerprint: str = "letters", dtype: str = "float32") -> None:
        self.fingerprint = fingerprint
        self.dtype = dtype
        self.embedded: list[str] = []

    def queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        counts = np.array([[text.count(letter) for letter in LETTERS] for text in texts], np.float32)
        return np.asarray(counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9), np.float32)

    def passages(self, texts: Sequence[str]) -> "NDArray[np.float32]":
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


def test_the_closest_is_first_and_ties_are_in_the_order_of_ids(reranker: Reranker, passage: MakePassage) -> None:
    passages = [passage("4", "bbb"), passage("3", "ab"), passage("1", "ba"), passage("2", "a"), passage("0", "aab")]
    assert reranker.rerank("ab", passages) == [2, 1, 4, 3, 0]
    assert [round(cosine, 3) for _, cosine in reranker.scored("ab", passages)] == [1, 1, 0.949, 0.707, 0.707]
    assert reranker.rerank("ab", passages[::-1]) == [2, 3, 0, 1, 4]


def test_the_title_is_part_of_a_passage(encoder: Letters, reranker: Reranker, passage: MakePassage) -> None:
    assert reranker.rerank("c", [passage("1", "b", "a"), passage("2", "b", "c")]) == [1, 0]
    assert encoder.embedded == ["a\nb", "c\nb"]


def test_no_passage_has_no_order(reranker: Reranker) -> None:
    assert reranker.rerank("a", []) == []


def test_each_text_is_embedded_once_for_all_runs(
    encoder: Letters, reranker: Reranker, passage: MakePassage, tmp_path: Path
) -> None:
    passages = [passage(str(at), "abcdefgh"[at % 5 :]) for at in range(20)]
    first = [reranker.rerank(query, passages) for query in "abc"]
    assert len(encoder.embedded) == 5
    later = Letters()
    again = Reranker(later, tmp_path / "cache")
    assert [again.rerank(query, passages) for query in "abc"] == first
    again.close()
    assert later.embedded == []


def test_another_model_has_vectors_of_its_own(passage: MakePassage, tmp_path: Path) -> None:
    for name in ("one", "other"):
        encoder = Letters(name)
        store = Embeddings(encoder, tmp_path)
        store.of(["ab"])
        store.close()
        assert encoder.embedded == ["ab"]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_come_back_as_they_were_made(dtype: str, tmp_path: Path) -> None:
    import numpy as np

    texts = ["ab", "c", "ab", "a\ud800", "cde"]
    for _ in range(2):
        store = Embeddings(Letters(dtype=dtype), tmp_path)
        found = store.of(texts)
        store.close()
        assert found.shape == (5, 8)
        assert np.array_equal(found, Letters().queries(texts).astype(dtype).astype("float32"))


def test_more_texts_than_one_statement_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.io.store.MAX_KEYS", 7)
    monkeypatch.setattr(embeddings, "BATCH", 5)
    encoder = Letters()
    store = Embeddings(encoder, tmp_path)
    texts = [f"{'a' * (at % 23)}b" for at in range(100)]
    assert (store.of(texts) == encoder.queries(texts)).all()
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
    store = Embeddings(encoder, tmp_path)
    texts = ["a" * (at + 1) + "b" for at in range(12)]
    assert (store.of(texts) == encoder.queries(texts)).all()
    assert 0 < len(encoder.embedded) < 12
    store.close()


def killed(folder: Path) -> None:
    """Embed, and die by the eighth text."""

    class Dying(Letters):
        def passages(self, texts: Sequence[str]) -> "NDArray[np.float32]":
            if len(self.embedded) >= 8:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().passages(texts)

    embeddings.BATCH = 4
    Embeddings(Dying(), folder).of(["a" * (at + 1) + "b" for at in range(12)])


def test_two_that_write_agree(tmp_path: Path) -> None:
    one, other = Embeddings(Letters(), tmp_path), Embeddings(Letters(), tmp_path)
    assert (one.of(["a", "b"]) == other.of(["b", "a"])[::-1]).all()
    one.close()
    other.close()


def test_damaged_embeddings_are_named(tmp_path: Path) -> None:
    store = Embeddings(Letters(), tmp_path)
    store.close()
    store.path.write_bytes(b"not a database" * 100)
    with pytest.raises(BuildError, match=r"the embeddings \w+\.sqlite cannot be used: .*; remove that file"):
        Embeddings(Letters(), tmp_path)


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    import numpy as np

    store = Embeddings(Letters(), tmp_path)
    store.close()
    store.path.unlink()
    vector = np.arange(8, dtype="<f4")
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("CREATE TABLE vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")
        database.execute("INSERT INTO vectors VALUES (?, ?)", (hashlib.sha256(b"a").digest(), vector.tobytes()))
    with closing(Embeddings(Letters(), tmp_path)) as store:
        assert (store.of(["a"])[0] == vector).all()


def test_a_vector_of_the_wrong_size_is_made_anew(tmp_path: Path) -> None:
    store = Embeddings(Letters(), tmp_path)
    store.of(["a"])
    store.close()
    with sqlite3.connect(store.path) as database:
        database.execute("UPDATE vectors SET vector = x'00'")
    database.close()
    store = Embeddings(Letters(), tmp_path)
    assert store.of(["a"])[0, 0] == 1
    assert store.of(["a"])[0, 0] == 1
    store.close()
