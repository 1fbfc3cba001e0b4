"""Search by words: the order, its ties, its reproducibility, and what is refused."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from mmlongbench.corpus.retrieval import bm25, small
from mmlongbench.corpus.retrieval.bm25 import TantivyIndex, find_index
from mmlongbench.corpus.retrieval.passages import Hit, Passages
from mmlongbench.corpus.retrieval.small import RankBm25Index, rank_texts
from mmlongbench.corpus.retrieval.text import tokens
from mmlongbench.errors import BuildError, MMLongBenchError, SourceError
from mmlongbench.io.atomic import file_lock

pytestmark = pytest.mark.slow

CorpusOf = Callable[..., Passages]
SYNTAX = [
    '"',
    "(",
    ")",
    "AND",
    "OR",
    "NOT",
    "+word1",
    "-word1",
    "text:word1",
    "word*",
    "[a TO b]",
    "^2",
    "~1",
    "\\",
    "/x/",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus") / "bm25"


@pytest.fixture(scope="module")
def index(drawn: Passages, folder: Path) -> TantivyIndex:
    return find_index(drawn, folder)


@pytest.fixture(scope="module")
def oracle(drawn: Passages) -> RankBm25Index:
    return RankBm25Index(drawn)


def numbers(hits: list[Hit]) -> list[int]:
    return [hit.number for hit in hits]


def overlap(hits: list[Hit], others: list[Hit]) -> float:
    return len(set(numbers(hits)) & set(numbers(others))) / len(others)


def test_the_top_100_are_those_of_rank_bm25(index: TantivyIndex, oracle: RankBm25Index, queries: list[str]) -> None:
    shared = [overlap(index.search(query, 100), oracle.search(query, 100)) for query in queries]
    assert sum(shared) / len(shared) >= 0.98
    assert min(shared) >= 0.9


def test_scores_are_those_of_rank_bm25_but_for_lengths(
    index: TantivyIndex, oracle: RankBm25Index, queries: list[str]
) -> None:
    for query in queries:
        exact = {hit.number: hit.score for hit in oracle.search(query, 1100)}
        for hit in index.search(query, 1100):
            assert hit.score == pytest.approx(exact[hit.number], rel=0.05, abs=0.05)


@pytest.mark.parametrize("k", [1, 7, 100, 1100, 5000])
def test_hits_fall_and_ties_are_in_the_order_of_ids(
    drawn: Passages, index: TantivyIndex, oracle: RankBm25Index, queries: list[str], k: int
) -> None:
    for query in queries[:10]:
        for engine in (index, oracle):
            hits = engine.search(query, k)
            assert len(set(numbers(hits))) == len(hits) <= k
            assert hits == sorted(hits, key=lambda hit: (-hit.score, drawn.passage(hit.number).id))


def test_fewer_are_the_first_of_more(index: TantivyIndex, oracle: RankBm25Index, queries: list[str]) -> None:
    for query in queries[:10]:
        for engine in (index, oracle):
            everything = engine.search(query, 1100)
            for k in (1, 2, 3, 10, 64, 65, 500):
                assert engine.search(query, k) == everything[:k]


@pytest.mark.parametrize("k", [1, 10, 64, 65, 999, 1000])
def test_a_tie_at_the_edge_is_broken_by_id(corpus_of: CorpusOf, tmp_path: Path, k: int) -> None:
    corpus = corpus_of([f"common {'filler' if at % 2 else 'padding'}" for at in range(1000)])
    expected = sorted(range(1000), key=lambda number: corpus.passage(number).id)[:k]
    assert numbers(find_index(corpus, tmp_path / "bm25").search("common", k)) == expected
    assert numbers(RankBm25Index(corpus).search("common", k)) == expected


def test_a_word_asked_twice_counts_twice(corpus_of: CorpusOf, tmp_path: Path) -> None:
    corpus = corpus_of(["ox one", "cow two", "hen three", "pig four"])
    for engine in (find_index(corpus, tmp_path / "bm25"), RankBm25Index(corpus)):
        assert engine.search("ox OX", 1)[0].score == pytest.approx(2 * engine.search("ox", 1)[0].score)


def test_titles_are_searched_and_accents_folded(corpus_of: CorpusOf, tmp_path: Path) -> None:
    corpus = corpus_of(["wrote", "painted", "sang"], "Émile Zola")
    for engine in (find_index(corpus, tmp_path / "bm25"), RankBm25Index(corpus)):
        assert sorted(numbers(engine.search("emile zola’s", 5))) == [0, 1, 2]


@pytest.mark.parametrize("query", ["", "…", "unheard", "\ud800"])
def test_a_query_without_a_known_word_finds_nothing(index: TantivyIndex, oracle: RankBm25Index, query: str) -> None:
    assert index.search(query, 5) == oracle.search(query, 5) == []


@pytest.mark.parametrize("sign", SYNTAX)
def test_a_query_is_words_and_no_syntax(index: TantivyIndex, sign: str) -> None:
    asked = f"word2 {sign} word3"
    assert index.search(asked, 50) == index.search(" ".join(tokens(asked)), 50)


def test_two_builds_find_the_same(
    drawn: Passages, index: TantivyIndex, queries: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = find_index(drawn, tmp_path / "bm25")
    monkeypatch.setattr(bm25, "BLOCK", 100)
    in_blocks = find_index(drawn, tmp_path / "blocks")
    for query in queries:
        assert index.search(query, 100) == again.search(query, 100) == in_blocks.search(query, 100)
    assert index.fingerprint == again.fingerprint


def test_blocks_are_merged_so_that_segments_stay_few(
    drawn: Passages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "BLOCK", 50)
    find_index(drawn, tmp_path / "bm25")
    segments = json.loads((tmp_path / "bm25/meta.json").read_text())["segments"]
    assert sum(segment["max_doc"] for segment in segments) == len(drawn) == 1100
    assert len(segments) < 1100 / 50


def test_an_index_is_opened_and_not_built_again(drawn: Passages, folder: Path, index: TantivyIndex) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert find_index(drawn, folder).fingerprint == index.fingerprint
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_the_index_of_another_corpus_is_refused(corpus_of: CorpusOf, folder: Path, index: TantivyIndex) -> None:
    with pytest.raises(SourceError, match=r"bm25: foreign-index: expected one whose corpus is '.*found '.*remove the"):
        find_index(corpus_of(["another"]), folder)


def test_a_folder_that_is_no_index_is_refused_and_kept(drawn: Passages, tmp_path: Path) -> None:
    (tmp_path / "bm25").mkdir()
    (tmp_path / "bm25/mine.txt").write_text("mine")
    with pytest.raises(SourceError, match=r"no-index: expected an index with its bm25\.json, found none"):
        find_index(drawn, tmp_path / "bm25")
    assert (tmp_path / "bm25/mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["meta.json", "ranks.npy"])
def test_a_broken_index_is_named(drawn: Passages, tmp_path: Path, name: str) -> None:
    find_index(drawn, tmp_path / "bm25")
    (tmp_path / "bm25" / name).write_bytes(b"")
    with pytest.raises(SourceError, match="bm25: broken-index"):
        find_index(drawn, tmp_path / "bm25")


def test_one_process_builds(drawn: Passages, tmp_path: Path) -> None:
    with (
        file_lock(tmp_path / ".bm25.lock", "x"),
        pytest.raises(BuildError, match="the index bm25 of the corpus is being"),
    ):
        find_index(drawn, tmp_path / "bm25")


def test_a_killed_build_leaves_no_index_and_the_next_one_ends(
    drawn: Passages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "ranks_of", lambda blocks: [list(blocks), 1 / 0])
    with pytest.raises(ZeroDivisionError):
        find_index(drawn, tmp_path / "bm25")
    assert not (tmp_path / "bm25").exists()
    monkeypatch.undo()
    assert find_index(drawn, tmp_path / "bm25").search("word1", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".bm25.lock", "bm25"]


def test_rank_bm25_is_for_small_corpora(drawn: Passages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "MOST", 1000)
    with pytest.raises(MMLongBenchError, match="can hold 1 to 1,000 passages, not 1,100; use tantivy"):
        RankBm25Index(drawn)


def test_texts_are_ranked_by_their_words_and_ties_by_place() -> None:
    texts = ["tea", "", "the tea harvest of the valley", "coffee", "harvest tea", "tea harvest"]
    assert rank_texts("tea harvest", texts) == (4, 5, 2, 0)
    assert rank_texts("Tea-HARVEST?", texts) == (4, 5, 2, 0)
    assert rank_texts("cocoa", texts) == ()
    assert rank_texts("", texts) == ()


def test_texts_without_a_word_are_ranked_without_a_warning() -> None:
    assert rank_texts("tea", ["", "  ", "…"]) == ()
    assert rank_texts("tea", []) == ()


def test_texts_are_ranked_as_a_corpus_of_them_is(corpus_of: CorpusOf) -> None:
    texts = [f"word{n} word{n % 7} word{n % 11}" for n in range(200)]
    oracle = RankBm25Index(corpus_of(texts, ""))
    for query in (
        "word1 word3",
        "word8 word2 word6",
        "word40 word5 word5",
        "word9 word10",
        "word150 word4 word0 word3",
    ):
        score = {hit.number: hit.score for hit in oracle.search(query, 200)}
        ranked = rank_texts(query, texts)
        assert sorted(ranked) == sorted(score)
        ties = [math.isclose(score[one], score[other]) for one, other in pairwise(ranked)]
        assert not all(ties)
        for (one, other), is_tie in zip(pairwise(ranked), ties, strict=True):
            assert one < other if is_tie else score[one] > score[other]


def test_hits_do_not_depend_on_threads(folder: Path, index: TantivyIndex, queries: list[str]) -> None:
    script = (
        "import json, sys; from pathlib import Path; from mmlongbench.corpus.retrieval.bm25 import TantivyIndex;"
        "index = TantivyIndex(Path(sys.argv[1]), {});"
        "print(json.dumps([index.search(query, 100) for query in json.loads(sys.argv[2])]))"
    )
    for threads in ("1", "16"):
        names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, threads) | {"PYTHONHASHSEED": threads}
        arguments = [sys.executable, "-c", script, str(folder), json.dumps(queries)]
        found = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
        assert [[Hit(*hit) for hit in hits] for hits in json.loads(found.stdout)] == [
            index.search(query, 100) for query in queries
        ]
