"""The folder of a corpus: whole or not at all, never written over, and named where it is broken."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mmlongbench.corpus import Article, Corpus, CorpusError, build_corpus
from mmlongbench.corpus.info import SourceInfo
from mmlongbench.errors import BuildError, Fault
from mmlongbench.io.atomic import file_lock

SOURCE = SourceInfo(name="x", format="jsonl", sha256="5" * 64)
TREES: list[Article | Fault] = [
    Article("1", "Ash", ("An ash is a tree.", "Section::::Wood.", "It is hard.")),
    Fault("empty-text", "text", "none", "x", "line 2"),
    Article("2", "Oak", ("An oak is a tree. " * 30,)),
]
FILES = ["corpus.json", "index", "passages.arrow", "rejects.jsonl"]


@pytest.fixture
def trees(tmp_path: Path) -> Corpus:
    build_corpus(TREES, tmp_path / "trees", source=SOURCE)
    return Corpus.open(tmp_path / "trees")


def test_the_same_corpus_is_left_as_it_is(trees: Corpus) -> None:
    before = (trees.folder / "corpus.json").stat().st_mtime_ns
    renamed = SOURCE.model_copy(update={"name": "y"})
    assert build_corpus([], trees.folder, source=renamed) == trees.info
    assert (trees.folder / "corpus.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "words"}, "mode is sentences, not words"),
        ({"words": 50}, "words is 100, not 50"),
        ({"limit": 3}, "limit is None, not 3"),
        (
            {"source": SourceInfo(name="z", format="tsv", sha256="6" * 64)},
            r"source is x \(jsonl, sha256 5{12}…\), not z \(tsv, .*",
        ),
        ({"source": None}, "source is x .*, not one without a hash"),
    ],
)
def test_another_corpus_is_not_written_over(trees: Corpus, changes: Any, message: str) -> None:
    with pytest.raises(
        BuildError, match=f"^--out .*trees: holds a corpus whose {message}; give another folder, or rem"
    ):
        build_corpus(TREES, trees.folder, **{"source": SOURCE, **changes})
    assert list(Corpus.open(trees.folder)) == list(trees)


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BuildError, match="is not empty and holds no corpus; give an empty or a new folder"):
        build_corpus(TREES, tmp_path)
    with pytest.raises(BuildError, match="mine: is a file; give a folder"):
        build_corpus(TREES, tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("articles", "message"),
    [
        ([], "^the source has no article; nothing was written$"),
        ([TREES[1], TREES[1]], "^no article of the source can be used; 2 rejected, the first: x, line 2: empty-text: "),
    ],
)
def test_no_article_is_no_corpus(tmp_path: Path, articles: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        build_corpus(articles, tmp_path / "new")
    with pytest.raises(BuildError, match=message):
        build_corpus(articles, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_breaks_off_leaves_nothing_and_one_that_was_killed_is_begun_anew(
    trees: Corpus, tmp_path: Path
) -> None:
    def breaking() -> Iterator[Article | Fault]:
        yield from TREES
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_corpus(breaking(), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    killed = tmp_path / "killed"
    (killed / ".build" / "index").mkdir(parents=True)
    (killed / ".build" / ".tmp-1-passages.arrow").write_text("half")
    (killed / "index").mkdir()
    (killed / "index" / "passages.keys.npy").write_text("of another")
    with pytest.raises(
        CorpusError, match=r"killed: no corpus.json: this is no corpus, or its build has not finished; build"
    ):
        Corpus.open(killed)
    assert build_corpus(TREES, killed, source=SOURCE) == trees.info
    assert sorted(path.name for path in killed.iterdir()) == FILES
    assert list(Corpus.open(killed)) == list(trees)


def test_two_do_not_write_one_corpus(tmp_path: Path) -> None:
    message = "is being written by another process; wait for it or stop it"
    with file_lock(tmp_path / ".build" / "claim", "it"), pytest.raises(BuildError, match=message):
        build_corpus(TREES, tmp_path)


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("corpus.json", b"{", "corpus.json: the file: Invalid JSON"),
        ("corpus.json", b"{}", "corpus.json: mode: Field required; build the corpus again into a new folder"),
        ("passages.arrow", b"", "passages.arrow: .*; build the corpus again"),
        ("passages.arrow", b"no table at all", "passages.arrow: .*; build the corpus again"),
        ("index/starts.npy", b"", "index: cannot be read: .*; build the corpus again"),
        ("index/titles.keys.npy", b"x", "index: cannot be read: .*; build the corpus again"),
    ],
)
def test_a_broken_corpus_is_named(trees: Corpus, file: str, data: bytes, message: str) -> None:
    (trees.folder / file).write_bytes(data)
    with pytest.raises(CorpusError, match=message):
        Corpus.open(trees.folder)


def test_a_table_of_another_corpus_is_told(trees: Corpus, tmp_path: Path) -> None:
    build_corpus(TREES[:1], tmp_path / "other")
    (trees.folder / "passages.arrow").write_bytes((tmp_path / "other" / "passages.arrow").read_bytes())
    with pytest.raises(
        CorpusError, match=r"passages.arrow: has 2 passages, but its corpus has 4; build the corpus again"
    ):
        Corpus.open(trees.folder)
