"""A corpus on disk: cut as KILT cuts, read by number, id, document, title and Wikidata id; whole or not at all."""

import json
import pickle
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Ran, command

from mmlongbench.corpus.articles import Article, wikidata_number
from mmlongbench.corpus.build import build_corpus
from mmlongbench.corpus.corpus import Corpus, CorpusError, Passage, SourceInfo
from mmlongbench.corpus.cutting import WORDS, Mode, cut
from mmlongbench.corpus.sources import FORMATS
from mmlongbench.errors import BuildError, Fault
from mmlongbench.io.files import file_lock
from mmlongbench.sentences import sentences

SOURCE = SourceInfo(name="x", format="jsonl", sha256="5" * 64)
TREES: list[Article | Fault] = [
    Article("1", "Ash", ("An ash is a tree.", "Section::::Wood.", "It is hard.")),
    Article("a#1", "  The <image>\n oak ", ("An oak <image> is a tree. " * 30,)),
    Fault("empty-text", "text", "none", "x", "line 3"),
    Article("2", "Ash", ("Another ash.",)),
    Article("1", "Ash again", ("Not a word of it.",), file="x", place="line 5"),
]
FILES = ["corpus.json", "index", "passages.arrow", "rejects.jsonl"]
KILT: dict[str, Any] = {
    "_id": "290",
    "wikipedia_id": "290",
    "wikipedia_title": "Example Tower",
    "text": ["Example Tower\n", "It is 61 m high.\n", "Section::::History.\n", "It is old.\n"],
    "wikidata_info": {"wikidata_id": "Q900001", "wikidata_label": "Example Tower", "aliases": ["The Tower"]},
}
HUB = {**KILT, "kilt_id": "290", "text": {"paragraph": KILT["text"]}}
WIKI6M = {"wikidata_id": "Q900001", "wikipedia_title": "Example Tower", "wikipedia_content": "It is 61 m high."}


@pytest.fixture
def trees(tmp_path: Path) -> Corpus:
    build_corpus(TREES, tmp_path / "trees", source=SOURCE)
    return Corpus.open(tmp_path / "trees")


def lines(path: Path, *rows: Any) -> Path:
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


def make(source: object, out: Path, *words: object) -> Ran:
    return command("corpus", "build", source, "--out", out, *words)


def made(source: Path, out: Path) -> Corpus:
    ran = make(source, out)
    assert ran.code == 0, ran.err
    return Corpus.open(out)


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
    assert trees.passage(trees.number_of("a#1#2")).id == "a#1#2"
    assert (trees.of_document("1"), trees.of_document("a#1"), trees.of_document("a")) == ([0, 1], [2, 3, 4], [])
    assert (trees.by_title(" Ash\n"), trees.by_title("The <image> oak"), trees.by_title("ash")) == (
        [0, 1, 5],
        [2, 3, 4],
        [],
    )
    assert trees.of_document("\ud800") == trees.by_title("") == []


def test_an_id_that_is_not_there(trees: Corpus) -> None:
    for id in ("1", "1#2", "1#", "#0", "1#-1", "1#01", "1#٠", "a#1", "3#0", "", "1#99999999999", "\ud800"):
        with pytest.raises(CorpusError, match="trees: no passage"):
            trees.number_of(id)


def test_what_was_left_out_is_counted_and_written_down(trees: Corpus) -> None:
    assert trees.info.rejected == {"duplicate-id": 1, "empty-text": 1}
    assert (trees.info.articles, trees.info.sectioned, trees.info.words_in_all) == (3, 1, 5 + 3 + 30 * 9 - 30 + 2)
    lines = (trees.folder / "rejects.jsonl").read_text("utf-8").splitlines()
    assert ['"place": "line 3"' in lines[0], '"place": "line 5"' in lines[1], len(lines)] == [True, True, 2]


def test_the_library_that_wrote_it_and_another_process_read_it(trees: Corpus) -> None:
    from datasets import Dataset

    table = Dataset.from_file(str(trees.folder / "passages.arrow"))
    assert table.column_names[:5] == ["passage_id", "doc_id", "title", "text", "section"]
    assert table["passage_id"][:] == [passage.id for passage in trees]
    assert table.features["section"].dtype == "int32"
    again = pickle.loads(pickle.dumps(trees))
    assert (list(again), again.fingerprint) == (list(trees), trees.fingerprint)


def test_the_same_articles_make_the_same_bytes(trees: Corpus, tmp_path: Path) -> None:
    again = build_corpus(iter(TREES), tmp_path / "again", source=SOURCE)
    assert again == trees.info
    files = [path.relative_to(trees.folder) for path in sorted(trees.folder.rglob("*")) if path.is_file()]
    assert sorted({file.parts[0] for file in files}) == FILES == sorted(path.name for path in trees.folder.iterdir())
    for file in files:
        assert (trees.folder / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file


def test_a_fingerprint_heeds_every_field_and_nothing_else(tmp_path: Path) -> None:
    one = Article("1", "T", ("A. B.",))
    others = [
        Article("2", "T", ("A. B.",)),
        Article("1", "TA.", (" B.",)),
        Article("1", "T", ("A. B", ".")),
        Article("1", "T", ("Section::::", "A. B.")),
        Article("1", "T", ("A. B.",), 1),
        Article("1", "T", ("A. B.",), wikidata=7),
        Article("1", "T", ("A. B.",), wikidata=8),
    ]
    marks = [build_corpus([a], tmp_path / f"{n}").fingerprint for n, a in enumerate([one, *others])]
    assert len(set(marks)) == len(marks)
    assert build_corpus([one], tmp_path / "again", "words", 50, source=SOURCE).fingerprint == marks[0]
    known = build_corpus([Article("1", "Ash", ("An ash.",))], tmp_path / "known").fingerprint
    assert known == "ae2ff7a656822894b0a66f3825e7f1d60b1d16d28906c5d96a920702c91278c7"


ids = st.text(st.sampled_from("ab#01é\n"), min_size=1, max_size=4).filter(str.strip)
bodies = st.lists(st.sampled_from(["A b. C d e.", "Section::::X", "", "f " * 30]), max_size=4)


@settings(max_examples=15)
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
        assert corpus.number_of(id) == number
        assert number in corpus.of_document(doc_id)
        assert number in corpus.by_title(corpus.passage(number).title)


def test_a_corpus_of_many_batches_reads_no_more_than_its_limit(tmp_path: Path) -> None:
    endless = (Article(f"d{n}", f"T {n}", (f"Text {n}.",)) for n in count())
    assert build_corpus(endless, tmp_path / "x", limit=2500).articles == 2500
    corpus = Corpus.open(tmp_path / "x")
    for number in (0, 999, 1000, 1001, 2499):
        assert corpus.passage(number).text == f"Text {number}."
        assert corpus.number_of(f"d{number}#0") == number
        assert corpus.by_title(f"T {number}") == corpus.of_document(f"d{number}") == [number]
    assert sum(1 for _ in corpus) == 2500


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
        ([TREES[2], TREES[2]], "^no article of the source can be used; 2 rejected, the first: x, line 3: empty-text: "),
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


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("corpus.json", b"{", "corpus.json: the file: Invalid JSON"),
        ("corpus.json", b"{}", "corpus.json: mode: Field required; build the corpus again into a new folder"),
        ("passages.arrow", b"", "passages.arrow: .*; build the corpus again"),
        ("passages.arrow", b"no table at all", "passages.arrow: .*; build the corpus again"),
        ("index/starts.npy", b"", "index: cannot be read: .*; build the corpus again"),
        ("index/titles.keys.npy", b"x", "index: cannot be read: .*; build the corpus again"),
        ("passages.arrow", None, "passages.arrow: has 2 passages, but its corpus has 6; build the corpus again"),
    ],
)
def test_a_broken_corpus_is_named(trees: Corpus, tmp_path: Path, file: str, data: bytes | None, message: str) -> None:
    if data is None:  # the table of another corpus
        build_corpus(TREES[:1], tmp_path / "other")
        data = (tmp_path / "other" / file).read_bytes()
    (trees.folder / file).write_bytes(data)
    with pytest.raises(CorpusError, match=message):
        Corpus.open(trees.folder)


def test_two_do_not_write_one_corpus(tmp_path: Path) -> None:
    message = "is being written by another process; wait for it or stop it"
    with file_lock(tmp_path / ".build" / "claim", "it"), pytest.raises(BuildError, match=message):
        build_corpus(TREES, tmp_path)


@pytest.mark.parametrize("row", [KILT, HUB, WIKI6M], ids=["KILT", "KILT of the hub", "Wiki6M"])
def test_an_article_is_found_by_the_wikidata_id_of_its_row(tmp_path: Path, row: dict[str, Any]) -> None:
    found = made(lines(tmp_path / "k.jsonl", {**row, "wikidata_info": row.get("wikidata_info")}), tmp_path / "out")
    assert found.of_wikidata("Q900001") == [list(range(len(found)))]
    assert found.of_wikidata("q900001 ") == found.of_wikidata("Q900001")
    assert (found.info.format, found.info.wikidata_ids, found.info.wikidata_ids_shared) == (2, 1, 0)


def test_what_is_no_wikidata_id_is_no_key_and_no_fault(tmp_path: Path) -> None:
    without = {key: value for key, value in KILT.items() if key != "wikidata_info"}
    texts: list[Any] = [None, "", 900001, "P31", f"Q{'9' * 40}"]
    infos: list[Any] = [None, {}, "Q900001", ["Q900001"], *({"wikidata_id": text} for text in texts)]
    rows = [without, *({**without, "_id": str(n), "wikidata_info": info} for n, info in enumerate(infos))]
    found = made(lines(tmp_path / "kilt.json", *rows), tmp_path / "out")
    assert (found.info.articles, found.info.rejected, found.info.wikidata_ids) == (10, {}, 0)
    assert found.of_wikidata("Q900001") == found.of_wikidata("") == found.of_wikidata("290") == []
    for id in ("", "Q", "Q0", "Q01", "42", "Q4 2", "Q٤٢", f"Q{'9' * 19}", "🂡", "Q-1"):
        assert wikidata_number(id) == 0, id


def test_pages_that_share_an_id_are_all_found_in_their_order_and_counted(tmp_path: Path) -> None:
    articles = [
        Article("1", "Ash", ("An ash.",), wikidata=7),
        Article("2", "Oak", ("An oak.",), wikidata=8),
        Article("3", "Ash tree", ("An ash is a tree.", "Section::::Wood.", "It is hard."), wikidata=7),
        Article("4", "Elm", ("An elm.",)),
    ]
    info = build_corpus(articles, tmp_path / "out")
    found = Corpus.open(tmp_path / "out")
    assert (info.wikidata_ids, info.wikidata_ids_shared) == (3, 1)
    assert found.of_wikidata("Q7") == [[0], [2, 3]]
    assert found.of_wikidata("Q8") == [[1]]
    assert found.of_wikidata("Q9") == []


def test_the_command_says_what_it_kept_and_what_it_left_out(tmp_path: Path) -> None:
    rows = [
        {"id": f"{n}", "title": f"Title {n}", "text": f"Text {n}. It has nine words, as has every one."}
        for n in range(4)
    ]
    source = lines(tmp_path / "source.jsonl", *rows, {"id": "4", "text": "No title."}, b"no json", b"no more")
    out = tmp_path / "out"
    said = [
        "articles: 4 kept, 3 rejected",
        "  rejected 2: invalid-json",
        "  rejected 1: missing-title",
        "passages: 4 of 10.0 words on average",
    ]
    assert make(source, out).out.splitlines() == [*said, f"{out} is complete"]
    assert make(source, out).out.splitlines() == [*said, f"{out} was complete already"]
    found = json.loads(make(source, tmp_path / "a", "--json", "--mode", "words", "--limit", 2).out)
    assert (found["articles"], found["mode"], found["limit"], found["was_complete"]) == (2, "words", 2, False)
    assert (found["rejected"], found["source"]["name"]) == ({}, "source.jsonl")
    assert make(source, tmp_path / "b", "-q").out == ""
    assert len(Corpus.open(tmp_path / "b")) == 4
    for words, facts in (
        ((source, tmp_path / "c", "--format", "parquet"), "source.jsonl: broken-parquet: expected a Parquet file"),
        (("nowhere", tmp_path), f"--out {tmp_path}: is not empty"),  # before the source is looked for
    ):
        failed = make(*words)
        assert (failed.code, failed.err.count("\n")) == (2, 1)
        assert facts in failed.err
    assert not (tmp_path / "c").exists()
    unknown = make(source, tmp_path / "c", "--format", "x").err
    assert [format for format in FORMATS if f"'{format}'" not in unknown] == []


def test_the_command_says_how_many_articles_have_a_wikidata_id_and_reads_a_corpus_of_before(tmp_path: Path) -> None:
    without = {key: value for key, value in KILT.items() if key != "wikidata_info"}
    rows = [KILT, {**KILT, "_id": "7", "wikipedia_title": "Tower"}, {**without, "_id": "8"}]
    source, out = lines(tmp_path / "k.json", *rows), tmp_path / "out"
    said = make(source, out).out
    assert "articles with a Wikidata id: 2, 1 of them with the id of an earlier article\n" in said
    for name in ("wikidata.keys.npy", "wikidata.values.npy"):
        (out / "index" / name).unlink()
    info = json.loads((out / "corpus.json").read_text())
    kept = {key: value for key, value in info.items() if not key.startswith("wikidata")}
    (out / "corpus.json").write_text(json.dumps({**kept, "format": 1}))
    found = Corpus.open(out)
    assert not found.info.keeps_wikidata_ids
    assert found.of_wikidata("Q900001") == []
    assert (len(found.by_title("Example Tower")), len(found.of_document("290"))) == (4, 2)
    ran = make(source, out)
    assert (ran.code, "build the corpus again into a new folder" in ran.out) == (0, True)


MODES: tuple[Mode, ...] = ("sentences", "words")


def article(*paragraphs: str, first: int = 1, passage_id: str = "") -> Article:
    return Article("9", "A title", paragraphs, first, passage_id)


def sentence(words: int, name: str = "word") -> str:
    return " ".join(["This", *[name] * (words - 2), "ends."])


def as_kilt_cuts(paragraphs: tuple[str, ...], limit: int) -> list[str]:
    """The loop of KILT's `create_kilt_data_paragraphs.py`, for articles whose sections have names of their own."""
    output: list[tuple[str, str, int]] = []
    section = "Section::::Abstract"
    for paragraph in paragraphs:
        if "Section::::" in paragraph:
            section = paragraph.strip()
            continue
        buffer: list[str] = []
        for found in sentences(paragraph):
            if buffer and len(buffer) + len(found.split()) >= limit:
                output.append((section, " ".join(buffer), len(buffer)))
                buffer = []
            buffer += found.split()
        if buffer and output and output[-1][0] == section and len(buffer) + output[-1][2] < limit:
            _, text, size = output[-1]
            output[-1] = (section, f"{text} {' '.join(buffer)}", size + len(buffer) + 1)
        elif buffer:
            output.append((section, " ".join(buffer), len(buffer)))
    return [text for _, text, _ in output]


sentences_of_any_length = st.integers(2, 14).map(sentence)
plain = st.lists(sentences_of_any_length | st.sampled_from(["é è", "\u00a0", "\n"]), max_size=9).map(" ".join)
texts = st.lists(plain | st.just("Section::::"), max_size=9)


def numbered(texts: list[str]) -> tuple[str, ...]:
    """Give every section and every word a name of its own."""
    marked = [f"Section::::{n}." if text.startswith("Section") else text for n, text in enumerate(texts)]
    return tuple(text.replace("word", f"word{n}") for n, text in enumerate(marked))


articles = texts.map(numbered)


@settings(max_examples=60)
@given(articles, st.integers(3, 30))
def test_whole_sentences_are_cut_as_kilt_cuts_them(paragraphs: tuple[str, ...], limit: int) -> None:
    pieces = cut(article(*paragraphs), "sentences", limit)
    assert [piece.text for piece in pieces] == as_kilt_cuts(paragraphs, limit)
    for piece in pieces:
        assert len(piece.text.split()) < limit or len(sentences(piece.text)) == 1


@settings(max_examples=60)
@given(articles, st.integers(3, 30), st.sampled_from(MODES))
def test_no_word_is_lost_no_section_mixed_and_a_passage_says_its_paragraphs(
    paragraphs: tuple[str, ...], limit: int, mode: Mode
) -> None:
    body: dict[int, list[str]] = {}
    section = 0
    for paragraph in paragraphs:
        if paragraph.startswith("Section::::"):
            section += 1
        else:
            body.setdefault(section, []).extend(paragraph.split())
    found: dict[int, list[str]] = {}
    pieces, texts = cut(article(*paragraphs), mode, limit), ["", *paragraphs]
    for piece in pieces:
        words = piece.text.split()
        found.setdefault(piece.section, []).extend(words)
        assert piece.text == " ".join(words)
        assert words[0] in texts[piece.first].split()
        assert words[-1] in texts[piece.last].split()
    assert found == {section: words for section, words in body.items() if words}
    assert [piece.first for piece in pieces] == sorted(piece.first for piece in pieces)
    spaced = tuple(f" {text}".replace(" ", " \t ") for text in paragraphs)
    assert cut(article(*spaced), mode, limit) == pieces


@given(articles, st.integers(3, 30))
def test_words_are_counted_out_and_only_the_last_of_a_section_are_fewer(paragraphs: tuple[str, ...], n: int) -> None:
    pieces = cut(article(*paragraphs), "words", n)
    for piece, following in pairwise(pieces):
        assert len(piece.text.split()) == n or following.section > piece.section
    assert all(0 < len(piece.text.split()) <= n for piece in pieces)


GOLDEN = (
    "Orthochirus is a genus of scorpions. It was described by Karsch in 1891.\n",
    sentence(40, "desert") + " " + sentence(50, "sand") + " " + sentence(20, "rock") + "\n",
    "It is small.\n",
    "Section::::Species.\n",
    'BULLET::::- "Orthochirus aristidis" Simon, 1882\n',
    'BULLET::::- "Orthochirus bicolor" Pocock, 1897\n',
    "Section::::Species.:Fossils.\n",
    "Section::::Names.\n",
    sentence(120, "long") + " It has <image> in it.\n",
)


def test_an_article_of_kilt() -> None:
    assert [(passage.text, passage.section, passage.first, passage.last) for passage in cut(article(*GOLDEN))] == [
        ("Orthochirus is a genus of scorpions. It was described by Karsch in 1891.", 0, 1, 1),
        (f"{sentence(40, 'desert')} {sentence(50, 'sand')}", 0, 2, 2),
        (f"{sentence(20, 'rock')} It is small.", 0, 2, 3),
        ('BULLET::::- "Orthochirus aristidis" Simon, 1882 BULLET::::- "Orthochirus bicolor" Pocock, 1897', 1, 5, 6),
        (sentence(120, "long"), 3, 9, 9),
        ("It has < image > in it.", 3, 9, 9),
    ]


def test_the_same_article_by_words() -> None:
    pieces = cut(article(*GOLDEN), "words")
    assert [(len(piece.text.split()), piece.section) for piece in pieces] == [
        (100, 0), (26, 0), (10, 1), (100, 3), (27, 3)
    ]  # fmt: skip
    assert (pieces[0].first, pieces[0].last, pieces[1].first, pieces[1].last) == (1, 2, 2, 3)


def test_the_limit_itself_is_not_reached_and_a_joint_counts_as_a_word_as_in_kilt() -> None:
    apart, together = (cut(article(sentence(33), sentence(33), sentence(last))) for last in (33, 32))
    assert [len(piece.text.split()) for piece in apart] == [66, 33]
    assert [len(piece.text.split()) for piece in together] == [98]
    assert len(cut(article(f"{sentence(50)} {sentence(50)}"))) == 2
    assert len(cut(article(f"{sentence(50)} {sentence(49)}"))) == 1
    assert WORDS == 100


def test_a_marker_inside_a_text_is_text_and_a_ready_passage_is_kept_as_it_stands() -> None:
    assert [piece.section for piece in cut(article("See Section::::X. Here.", " Section::::Y.", "More."))] == [0, 1]
    text = f"Section::::X  {sentence(300)}\n{sentence(3)}"
    for mode in MODES:
        (ready,) = cut(article(text, passage_id="7", first=0), mode)
        assert (ready.text, ready.section, ready.first, ready.last) == (" ".join(text.split()), 0, 0, 0)
    with pytest.raises(ValueError, match="a passage of 0 words; expected at least 1"):
        cut(article("A."), "words", 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_million_words_without_an_end_are_cut_in_one_pass(mode: Mode) -> None:
    pieces = cut(article("word " * 1_000_000), mode)
    assert len(pieces) == (1 if mode == "sentences" else 10_000)
