"""Sources of a corpus: every format, found by content; bad input is a counted reject that says where and what."""

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pymupdf
import pytest
from pyarrow import parquet

from mmlongbench.corpus.articles import MAX_CHARACTERS, Article, fit
from mmlongbench.corpus.index import Keys, key_of
from mmlongbench.corpus.sources import FORMATS, detect, find_source
from mmlongbench.errors import Fault, SourceError


def read(source: object, format: str | None = None) -> list[Any]:
    """What a source yields: articles, and the faults of those that are none."""
    return list(fit(find_source(str(source), format).articles()))


def lines(folder: Path, *rows: Any, name: str = "corpus.jsonl") -> Path:
    """Write a file of lines: objects as JSON, bytes as they are."""
    written = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    (folder / name).write_bytes(b"".join(row + b"\n" for row in written))
    return folder / name


KILT: dict[str, Any] = {
    "_id": "290",
    "wikipedia_id": "290",
    "wikipedia_title": "A",
    "text": ["A\n", "A is a letter.\n", "Section::::History.\n", "BULLET::::- It is old.\n"],
    "anchors": [{"text": "letter", "href": "Letter", "paragraph_id": 1, "start": 5, "end": 11}],
    "categories": "Letters",
}
WIKI6M = {
    "wikidata_id": "Q3783438",
    "wikipedia_title": "Harold Keeling",
    "wikipedia_content": "Harold A. Keeling is one.\n\nHe is\nold.",
    "wikipedia_image_url": None,
    "wikipedia_summary": "Another.",
}
ROWS = [{"id": str(n), "title": f"Title {n}", "text": f"Text {n}.", "vector": [n]} for n in range(3)]


def told(*found: Article | Fault) -> list[tuple[str, str, tuple[str, ...]]]:
    """Ids, titles and paragraphs of what must be articles."""
    assert not [fault for fault in found if isinstance(fault, Fault)]
    return [(a.doc_id, a.title, a.paragraphs) for a in found if isinstance(a, Article)]


PLAIN = [(str(n), f"Title {n}", (f"Text {n}.",)) for n in range(3)]


def test_the_knowledge_source_of_kilt_loses_its_title_paragraph_only(tmp_path: Path) -> None:
    source = lines(tmp_path, KILT, name="kilt_knowledgesource.json")
    assert detect(str(source)) == "kilt"
    assert read(source) == [
        Article("290", "A", tuple(KILT["text"][1:]), 1, file="kilt_knowledgesource.json", place="line 1")
    ]
    assert read(source, "jsonl") == read(source)


@pytest.mark.parametrize(
    ("row", "article"),
    [
        (ROWS[0], PLAIN[0]),
        ({"_id": 7, "title": "T", "text": "One.\n \nTwo."}, ("7", "T", ("One.", "Two."))),
        (WIKI6M, ("Q3783438", "Harold Keeling", ("Harold A. Keeling is one.", "He is old."))),
        ({"id": "1", "contents": '"Aaron"\nAaron is a man.'}, ("1", "Aaron", ("Aaron is a man.",))),
        ({"id": "1", "title": "T", "contents": "A.\nB."}, ("1", "T", ("A. B.",))),
        ({"id": "1", "title": "T", "text": ["A.", "B."]}, ("1", "T", ("A.", "B."))),
        ({**KILT, "text": {"paragraph": KILT["text"]}}, ("290", "A", tuple(KILT["text"][1:]))),
        (
            {"id": "1", "title": "T", "text": "A.\nSection::::B.\nC.\nBULLET::::- D\nE."},
            ("1", "T", ("A.", "Section::::B.", "C.", "BULLET::::- D", "E.")),
        ),
    ],
)
def test_json_lines_under_the_names_of_others(tmp_path: Path, row: Any, article: Any) -> None:
    assert told(*read(lines(tmp_path, row))) == [article]


def test_a_gzipped_file_a_byte_order_mark_and_blank_lines_are_read_alike(tmp_path: Path) -> None:
    source, packed, odd = lines(tmp_path, *ROWS), tmp_path / "packed.gz", tmp_path / "odd.jsonl"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    odd.write_bytes(b"\xef\xbb\xbf" + source.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert told(*read(packed)) == told(*read(source)) == told(*read(odd)) == PLAIN


@pytest.mark.parametrize("head", [b"id\ttext\ttitle", None])
def test_a_tsv_of_dpr_is_cut_already(tmp_path: Path, head: bytes | None) -> None:
    rows = [b'1\t"Aaron ( or ; ""Ahar\xc3\xb6n"") is"\tAaron', b'2\tmore  of him\t"A ""B"""', b'3\t"end"\tAaron']
    found = read(lines(tmp_path, *([head] if head else []), *rows, name="psgs_w100.tsv"))
    assert told(*found) == [
        ("Aaron", "Aaron", ('Aaron ( or ; "Aharön") is',)),
        ('A "B"', 'A "B"', ("more  of him",)),
        ("Aaron", "Aaron", ("end",)),
    ]
    assert [article.passage_id for article in found] == ["1", "2", "3"]
    (other,) = read(lines(tmp_path, b"title\tid\ttext", b"T\t5\tWords.", name="x.tsv"))  # the first line names columns
    assert (other.title, other.passage_id, other.paragraphs) == ("T", "5", ("Words.",))


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    source = tmp_path / "rows"
    parquet.write_table(pa.Table.from_pylist(ROWS), source)
    assert detect(str(source)) == "parquet"
    assert told(*read(source)) == PLAIN
    assert find_source(str(source)).steps == 3
    assert read(source)[2].place == "row 2"


def test_a_saved_dataset(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    dataset = Dataset.from_list(ROWS)
    dataset.save_to_disk(tmp_path / "saved")
    DatasetDict({"a": dataset, "b": dataset}).save_to_disk(tmp_path / "splits")
    assert detect(str(tmp_path / "saved")) == "dataset"
    assert told(*read(tmp_path / "saved")) == PLAIN == told(*read(tmp_path / "splits" / "a"))
    with pytest.raises(SourceError, match="splits: several-splits: expected one split, found a, b; give the folder"):
        read(tmp_path / "splits")


def test_a_folder_of_texts_and_pdfs(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "Two Trees.TXT").write_text("\ufeffAn ash.\n\nAn\noak.", "utf-8")
    (tmp_path / "notes.md").write_text("no")
    with pymupdf.open() as document:
        for page in ("First page.", "Second page."):
            document.new_page().insert_text((72, 72), page)
        document.save(tmp_path / "a.pdf")
    two, pdf, other = read(tmp_path)[1:][0], read(tmp_path)[0], read(tmp_path)[2]
    assert told(pdf, two) == [
        ("a.pdf", "a", ("First page.\n", "Second page.\n")),
        ("b/Two Trees.TXT", "Two Trees", ("An ash.", "An oak.")),
    ]
    said = "notes.md: unknown-kind: expected a .txt or a .pdf, found .md; convert it to one of these formats"
    assert str(other) == f"{said}, or take it out"


def test_a_format_that_is_given_is_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"--format: unknown-format: expected one of {', '.join(FORMATS)}, found 'x'"):
        read(lines(tmp_path, *ROWS), "x")
    with pytest.raises(SourceError, match="expected a folder for the format folder, found a file"):
        read(lines(tmp_path, *ROWS), "folder")
    (fault,) = read(lines(tmp_path, ROWS[0]), "kilt")
    said = "corpus.jsonl, line 1, text: wrong-type: expected a list of texts, found str; correct the field, or take the"
    assert str(fault) == f"{said} row out"


@pytest.mark.parametrize(
    ("data", "found"), [(b"", "no line of text at its beginning"), (b"A story.\n", "'A story.' at its beginning")]
)
def test_a_file_of_no_known_format_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(SourceError, match=rf"x: unknown-format: .* found {found}; name the format"):
        read(tmp_path / "x")


def test_a_fingerprint_tells_bytes_apart_and_names_not(tmp_path: Path) -> None:
    one, same = lines(tmp_path, *ROWS, name="one"), lines(tmp_path, *ROWS, name="two")
    other = lines(tmp_path, *ROWS[1:], name="three")
    hashes = [find_source(str(path)).info.sha256 for path in (one, same, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert find_source(str(tmp_path)).info.sha256 != hashes[0]


class Hub:
    """The fake hub: two datasets, one of them with two splits."""

    splits = {"me/one": {"train": ROWS}, "me/two": {"a": ROWS[:1], "b": ROWS[1:]}}  # noqa: RUF012

    def load(self, name: str, config: str | None, *, revision: str | None, streaming: bool) -> Any:
        assert streaming
        assert (config, revision) in ((None, None), ("full", "v1"))
        return self.splits[name]

    def dataset_info(self, name: str, revision: str | None) -> Any:
        if name not in self.splits:
            raise ConnectionError("no network\nat all")
        return SimpleNamespace(sha=f"{name} {revision}")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("datasets.load_dataset", Hub().load)
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("hub")
def test_a_dataset_of_the_hub() -> None:
    assert [(a.doc_id, a.title, a.paragraphs) for a in read("me/one")] == [
        (str(n), f"Title {n}", (f"Text {n}.",)) for n in range(3)
    ]
    assert [(a.doc_id, a.place) for a in read("me/two:full:b@v1")] == [("1", "row 0"), ("2", "row 1")]
    assert find_source("me/two:full:b@v1").info.sha256 == "me/two v1"
    assert find_source("me/one").info.name == "me/one"


@pytest.mark.usefixtures("hub")
def test_what_the_hub_cannot_give_is_said_in_one_line() -> None:
    with pytest.raises(SourceError, match=r"^me/two: unknown-split: expected one of the splits a, b, found none; name"):
        read("me/two")
    with pytest.raises(
        SourceError, match=r"me/no: unreachable-dataset: .* found ConnectionError: no network; download"
    ):
        read("me/no")
    with pytest.raises(SourceError, match=r"unknown-source: expected owner/name\[:config\[:split\]\]\[@revision\]"):
        read("no name", "hub")


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("source", ["corpora/wiki.jsonl", "/a/b", "nowhere", "a/b/c", "./one"])
def test_a_path_that_leads_nowhere_is_not_looked_for_on_the_hub(source: str) -> None:
    message = "missing-source: expected a file, a folder, or owner/name on the hub, found none; check the path"
    with pytest.raises(SourceError, match=f"^{source}: {message}"):
        read(source)


GOOD = {"id": "good", "title": "Good", "text": "It is read."}


def row(**changes: Any) -> dict[str, Any]:
    return {"id": "bad", "title": "Bad", "text": "Words.", **changes}


BAD = [
    ({"id": "1", "text": "A."}, "title: missing-title: expected a text, found none"),
    (row(title=None), "title: missing-title: expected a text, found none"),
    (row(title=" \n"), "title: missing-title: expected a text, found only whitespace"),
    (row(title=["A"]), "title: wrong-type: expected a text, found list"),
    (row(title="t" * 1001), "title: title-too-long: expected at most 1,000 characters, found 1,001; split the article"),
    (row(id=None), "id: missing-id: expected a text, found none"),
    (row(id=""), "id: missing-id: expected a text, found none"),
    (row(id=True), "id: wrong-type: expected a text or a whole number, found bool"),
    (row(id=1.5), "id: wrong-type: expected a text or a whole number, found float"),
    (row(text=""), "text: empty-text: expected at least one word of text, found none; leave it out"),
    (row(text=" \n\t"), "text: empty-text: expected at least one word of text, found none"),
    (row(text=None), "text: empty-text: expected at least one word of text, found none"),
    (row(text="Section::::Only.\n"), "text: empty-text: expected at least one word of text, found none"),
    (row(text=5), "text: wrong-type: expected a text, found int"),
    (row(text=["A.", None]), "text: wrong-type: expected a text, found a list with a NoneType"),
    (row(text={"other": 1}), "text: empty-text: expected at least one word of text, found none"),
    (row(text="word " * 2_000_000), "text: text-too-long: expected at most 5,000,000 characters, found 9,999,999"),
    (row(text="a\n\nb\ud800c"), "found U+D800 at character 1, paragraph 1"),
    (row(title="\udfff"), "title: lone-surrogate: expected text that UTF-8 can spell, found U+DFFF at character 0"),
    (row(id="x\ud800"), "id: lone-surrogate: expected text that UTF-8 can spell, found U+D800 at character 1"),
    (row(id="good"), "id: duplicate-id: expected an id that no earlier article has, found 'good'; give each"),
    (
        b'{"id": "1", "title": "T", "text": "cut o',
        "invalid-json: expected one JSON object a line, found Unterminated string starting at at character 34",
    ),
    (b"[" * 100_000, "invalid-json: expected one JSON object a line, found maximum recursion"),
    (b'"a text"', "not-an-object: expected one JSON object a line, found str"),
    (b'{"id": "1", "title": "T\xff"}', "invalid-utf-8: expected UTF-8, found byte 0xFF at byte 23"),
    (b"\x00\x01\x02", "invalid-json: expected one JSON object a line, found Expecting value at character 0"),
]


def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    """The first line is broken: it does not hide the format."""
    found = read(lines(tmp_path, b"\xff", GOOD, *(bad for bad, _ in BAD), row(id="last")))
    assert (found[0].reason, found[1].doc_id, found[-1].doc_id) == ("invalid-utf-8", "good", "last")
    for number, (fault, (_, message)) in enumerate(zip(found[2:-1], BAD, strict=True), 3):
        assert isinstance(fault, Fault)
        assert str(fault).startswith(f"corpus.jsonl, line {number}")
        assert message in str(fault)


def test_ten_megabytes_are_a_bad_line_and_a_book_is_not(tmp_path: Path) -> None:
    book, too_long = read(lines(tmp_path, row(text="x" * MAX_CHARACTERS), row(id="2", text="y" * 10_000_000)))
    assert isinstance(book, Article)
    assert too_long.reason == "text-too-long"


def test_a_bad_row_of_a_tsv_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    bad = {
        b"2\ttext": "wrong-columns: expected 3 columns (id, text, title), found 2",
        b"2\ttext\ttitle\tmore": "wrong-columns: expected 3 columns (id, text, title), found 4",
        b'2\t"an open quote\tT': "invalid-tsv: expected one row of quoted TSV a line, found unexpected end",
        b'2\t"a" b\tT': "invalid-tsv: expected one row of quoted TSV a line, found ",
        b"2\t" + b"x" * 200_000 + b"\tT": "invalid-tsv: expected one row of quoted TSV a line, found field",
        b"2\ttext\t": "title: missing-title: expected a text, found none",
        b"\ttext\tT": "id: missing-id: expected a text, found none",
        b"4\t \tT": "text: empty-text: expected at least one word of text, found none",
        b"1\ttext\tT": "id: duplicate-id: expected an id that no earlier article has, found '1'",
    }
    first, *faults, last = read(lines(tmp_path, b"1\tOne.\tT", *bad, b"3\tThree.\tT", name="x.tsv"))
    assert (first.passage_id, last.passage_id) == ("1", "3")
    for number, (fault, said) in enumerate(zip(faults, bad.values(), strict=True), 2):
        assert str(fault).startswith(f"x.tsv, line {number}")
        assert said in str(fault)


def test_a_torn_gzip_stream_stops_the_reading_by_name(tmp_path: Path) -> None:
    text = b"".join(b'{"id": "%d", "title": "T", "text": "%d"}\n' % (n, n**5) for n in range(20_000))
    (tmp_path / "x.gz").write_bytes(gzip.compress(text)[:-2000])
    with pytest.raises(SourceError, match=r"^x.gz, line \d+: broken-gzip: .* found Compressed file ended .*; fetch it"):
        read(tmp_path / "x.gz")


def test_a_parquet_file_that_cannot_be_used_is_named_with_its_columns_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(
        SourceError, match=r"^x.parquet: broken-parquet: expected a Parquet file that can be read, found"
    ):
        read(path)
    texts = pa.array(["A."])
    parquet.write_table(pa.Table.from_arrays([pa.array([1]), *[texts] * 4], ["id", "title", "text", "x", "x"]), path)
    assert [article.title for article in read(path)] == ["A."]
    parquet.write_table(pa.Table.from_arrays([pa.array([1]), *[texts] * 3], ["id", "title", "text", "text"]), path)
    with pytest.raises(SourceError, match="wrong-columns: expected each column once, found 'text' twice"):
        read(path)
    parquet.write_table(pa.table({"id": ["1"], "body": ["A."], "title": ["T"]}), path)
    message = "missing-column: expected a column text or contents or wikipedia_content, found id, body, title"
    with pytest.raises(SourceError, match=message):
        read(path)
    texts = pa.array([b"A.", b"\xff"], pa.binary()).view(pa.string())
    parquet.write_table(pa.table({"id": [1, 2], "title": ["T", "U"], "text": texts}), path)
    good, fault = read(path)
    assert good.doc_id == "1"
    assert str(fault).startswith("x.parquet, row 1: invalid-utf-8: expected UTF-8, found byte 0xFF at byte 0")


def test_files_of_a_folder_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7\nbroken")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    (tmp_path / "c.txt").write_bytes(b" \n")
    (tmp_path / "d.txt").write_bytes(b"Good.")
    broken, latin, empty, good = read(tmp_path)
    assert str(broken).startswith("a.pdf: ")
    assert str(latin) == "b.txt: invalid-utf-8: expected UTF-8, found byte 0xE9 at byte 3; save the file in UTF-8"
    assert (empty.reason, empty.file) == ("empty-text", "c.txt")
    assert good.doc_id == "d.txt"


def test_many_ids_are_told_apart() -> None:
    seen = Keys()
    ids = [f"{n}" for n in range(50_000)]
    assert all(seen.add(key_of(id)) for id in ids)
    assert not any(seen.add(key_of(id)) for id in ids)
    assert 8 * len(seen.slots) <= 24 * len(ids)
