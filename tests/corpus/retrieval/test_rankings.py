"""Rankings are kept: made once, read after, made anew when anything that decided them changes."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mmlongbench.corpus.retrieval.bm25 import find_index
from mmlongbench.corpus.retrieval.passages import Hit, Passages
from mmlongbench.corpus.retrieval.rankings import Rankings
from mmlongbench.corpus.retrieval.small import RankBm25Index


class Counting:
    """An index that counts its queries."""

    def __init__(self, found: Sequence[int], fingerprint: str = "index") -> None:
        self.found = found
        self.fingerprint = fingerprint
        self.asked: list[tuple[str, int]] = []

    def search(self, query: str, k: int) -> list[Hit]:
        self.asked.append((query, k))
        return [Hit(number, 1.0) for number in self.found[:k]]


@pytest.fixture
def corpus(corpus_of: Callable[..., Passages]) -> Passages:
    return corpus_of(["one", "two", "three"])


def test_a_ranking_is_made_once(corpus: Passages, tmp_path: Path) -> None:
    index, later = Counting([2, 0]), Counting([1])
    ranking = Rankings(tmp_path, corpus, index, 5).rank("two or three")
    assert ranking.numbers == (2, 0)
    assert Rankings(tmp_path, corpus, later, 5).rank("two or three") == ranking
    assert (index.asked, later.asked) == ([("two or three", 5)], [])


def test_equal_rankings_have_equal_bytes(corpus: Passages, tmp_path: Path) -> None:
    for name in ("one", "other"):
        Rankings(tmp_path / name, corpus, Counting([2, 0]), 5).rank("ünd \ud800")
    [one], [other] = ([*(tmp_path / name).rglob("*.json")] for name in ("one", "other"))
    assert one.name == other.name
    assert one.read_bytes() == other.read_bytes()


def test_whatever_decides_a_ranking_makes_it_anew(
    corpus: Passages, corpus_of: Callable[..., Passages], tmp_path: Path
) -> None:
    made = [
        Rankings(tmp_path, corpus, Counting([0]), 5).rank("a"),
        Rankings(tmp_path, corpus, Counting([0]), 5).rank("b"),
        Rankings(tmp_path, corpus, Counting([0]), 6).rank("a"),
        Rankings(tmp_path, corpus, Counting([0], "another index"), 5).rank("a"),
        Rankings(tmp_path, corpus_of(["another"]), Counting([0]), 5).rank("a"),
    ]
    assert len({ranking.fingerprint for ranking in made}) == 5
    assert len(list(tmp_path.rglob("*.json"))) == 5


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"numbers": 3}', b'{"numbers": [1], "query": "b"}', b"\xff"])
def test_a_file_that_does_not_hold_is_made_anew(corpus: Passages, tmp_path: Path, content: bytes) -> None:
    index = Counting([1])
    rankings = Rankings(tmp_path, corpus, index, 5)
    first = rankings.rank("a")
    [path] = tmp_path.rglob("*.json")
    kept = path.read_bytes()
    path.write_bytes(content)
    assert rankings.rank("a") == first
    assert path.read_bytes() == kept
    assert len(index.asked) == 2


def test_engines_have_rankings_of_their_own(drawn: Passages, queries: list[str], tmp_path: Path) -> None:
    for engine in (find_index(drawn, tmp_path / "bm25"), RankBm25Index(drawn)):
        ranking = Rankings(tmp_path / "rankings", drawn, engine, 100).rank(queries[0])
        assert list(ranking.numbers) == [hit.number for hit in engine.search(queries[0], 100)]
    assert len(list((tmp_path / "rankings").rglob("*.json"))) == 2
