"""A corpus on disk: what goes in comes out, by number, id, document and title; the same bytes each time."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmlongbench.corpus import Article, Corpus, CorpusError, Passage, build_corpus
from mmlongbench.corpus.cutting import cut
from mmlongbench.corpus.info import SourceInfo
from mmlongbench.errors import Fault

SOURCE = SourceInfo(name="x", format="jsonl", sha256="5" * 64)
TREES: list[Article | Fault] = [
    Article("1", "Ash", ("An ash is a tree.", "Section::::Wood.", "It is hard.")),
    Article("a#1", "  The <image>\n oak ", ("An oak <image> is a tree. " * 30,)),
    Fault("empty-text", "text", "none", "x", "line 3"),
    Article("2", "Ash", ("Another ash.",)),
    Article("1", "Ash again", ("Not a word of it.",), file="x", place="line 5"),
]
FILES = ["corpus.json", "index", "passages.arrow", "rejects.jsonl"]


@pytest.fixture
def trees(tmp_path: Path) -> Corpus:
    build_corpus(TREES, tmp_path / "trees", source=SOURCE)
    return Corpus.open(tmp_path / "trees")


def test_passages_by_number(trees: Corpus) -> None:
    assert len(trees) == trees.info.passages == 6
    assert trees.passage(0) == Passage("1#0", "1", "Ash", "An ash is a tree.", 0)
    assert trees.passage(1) == Passage("1#1", "1", "Ash", "It is hard.", 1, 2, 2)
    assert trees.passage(2).title == "The < image > oak"
    assert trees.passage(2).text == " ".join(["An oak < image > is a tree."] * 12)
    assert trees.passage(5) == Passage("2#0", "2", "Ash", "Another ash.", 0)
    assert list(trees) == [trees.passage(number) for number in range(6)]
    for number in (-1, 6):
        with pytest.raises(IndexError, match=f"there is no passage {number} in a corpus of 6"):
            trees.passage(number)


def test_passages_by_id_document_and_title(trees: Corpus) -> None:
    assert [trees.number_of(passage.id) for passage in trees] == list(range(6))
    assert trees.by_id("a#1#2").passage_id == "a#1#2"
    assert (trees.of_document("1"), trees.of_document("a#1"), trees.of_document("a")) == ([0, 1], [2, 3, 4], [])
    assert (trees.by_title(" Ash\n"), trees.by_title("The <image> oak"), trees.by_title("ash")) == (
        [0, 1, 5],
        [2, 3, 4],
        [],
    )
    assert trees.of_document("\ud800") == trees.by_title("") == []


@pytest.mark.parametrize(
    "id", ["1", "1#2", "1#", "#0", "1#-1", "1#01", "1#٠", "a#1", "3#0", "", "1#99999999999", "\ud800"]
)
def test_an_id_that_is_not_there(trees: Corpus, id: str) -> None:
    with pytest.raises(CorpusError, match="trees: no passage"):
        trees.by_id(id)


def test_what_was_left_out_is_counted_and_written_down(trees: Corpus) -> None:
    assert trees.info.rejected == {"duplicate-id": 1, "empty-text": 1}
    assert (trees.info.articles, trees.info.sectioned, trees.info.words_in_all) == (3, 1, 5 + 3 + 30 * 9 - 30 + 2)
    lines = (trees.folder / "rejects.jsonl").read_text("utf-8").splitlines()
    assert ['"place": "line 3"' in lines[0], '"place": "line 5"' in lines[1], len(lines)] == [True, True, 2]


def test_the_library_that_wrote_it_reads_it(trees: Corpus) -> None:
    from datasets import Dataset

    table = Dataset.from_file(str(trees.folder / "passages.arrow"))
    assert table.column_names[:5] == ["passage_id", "doc_id", "title", "text", "section"]
    assert table["passage_id"][:] == [passage.id for passage in trees]
    assert table.features["section"].dtype == "int32"


def test_another_process_opens_it_again(trees: Corpus) -> None:
    again = pickle.loads(pickle.dumps(trees))
    assert (list(again), again.fingerprint) == (list(trees), trees.fingerprint)


def test_the_same_articles_make_the_same_bytes(trees: Corpus, tmp_path: Path) -> None:
    again = build_corpus(iter(TREES), tmp_path / "again", source=SOURCE)
    assert again == trees.info
    files = [path.relative_to(trees.folder) for path in sorted(trees.folder.rglob("*")) if path.is_file()]
    assert sorted({file.parts[0] for file in files}) == FILES == sorted(path.name for path in trees.folder.iterdir())
    for file in files:
        assert (trees.folder / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file


def test_a_fingerprint_heeds_every_field_and_nothing_else(trees: Corpus, tmp_path: Path) -> None:
    one = Article("1", "T", ("A. B.",))
    others = [
        Article("2", "T", ("A. B.",)),
        Article("1", "TA.", (" B.",)),
        Article("1", "T", ("A. B", ".")),
        Article("1", "T", ("Section::::", "A. B.")),
        Article("1", "T", ("A. B.",), 1),
    ]
    marks = [build_corpus([a], tmp_path / f"{n}").fingerprint for n, a in enumerate([one, *others])]
    assert len(set(marks)) == len(marks)
    assert build_corpus([one], tmp_path / "again", "words", 50, source=SOURCE).fingerprint == marks[0]


ids = st.text(st.sampled_from("ab#01é\n"), min_size=1, max_size=4).filter(str.strip)
bodies = st.lists(st.sampled_from(["A b. C d e.", "Section::::X", "", "f " * 30]), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.tuples(ids, ids, bodies, st.booleans()), max_size=12))
def test_any_corpus_can_be_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    articles, seen = [Article("first", "First", ("Words.",))], {"first"}
    for id, title, body, is_ready in rows:
        if id not in seen and any(text and not text.startswith("Section") for text in body):
            seen.add(id)
            doc = title if is_ready else id
            articles.append(Article(doc, title, tuple(body), passage_id=id if is_ready else ""))
    out = tmp_path_factory.mktemp("corpus") / "out"
    build_corpus(articles, out, words=5)
    corpus = Corpus.open(out)
    texts = [
        (a.passage_id or f"{a.doc_id}#{n}", a.doc_id, c.text) for a in articles for n, c in enumerate(cut(a, words=5))
    ]
    assert [(p.id, p.doc_id, p.text) for p in corpus] == texts
    for number, (id, doc_id, _) in enumerate(texts):
        assert corpus.by_id(id).id == id
        assert number in corpus.of_document(doc_id)
        assert number in corpus.by_title(corpus.passage(number).title)


def test_a_corpus_of_many_batches(tmp_path: Path) -> None:
    build_corpus((Article(f"d{n}", f"T {n}", (f"Text {n}.",)) for n in range(2500)), tmp_path / "x")
    corpus = Corpus.open(tmp_path / "x")
    for number in (0, 999, 1000, 1001, 2499):
        assert corpus.passage(number).text == corpus.by_id(f"d{number}#0").text == f"Text {number}."
        assert corpus.by_title(f"T {number}") == corpus.of_document(f"d{number}") == [number]
    assert sum(1 for _ in corpus) == 2500


def test_at_most_so_many_articles_are_kept_and_no_more_are_read(tmp_path: Path) -> None:
    def endless() -> Iterator[Article]:
        number = 0
        while True:
            number += 1
            yield Article(f"{number}", "T", ("Words.",))

    assert build_corpus(endless(), tmp_path / "x", limit=7).articles == 7
