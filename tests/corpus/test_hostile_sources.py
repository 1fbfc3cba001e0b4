"""Bad input: each becomes a counted reject that says where and what, and the others are read on."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from mmlongbench.corpus import Article, articles
from mmlongbench.corpus.articles import MAX_CHARACTERS, key_of
from mmlongbench.errors import Fault, SourceError

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


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_a_bad_line_is_named_and_the_next_is_read(read: Any, lines: Any, bad: Any, message: str) -> None:
    first, fault, last = read(lines(GOOD, bad, row(id="last")))
    assert isinstance(first, Article)
    assert isinstance(last, Article)
    assert isinstance(fault, Fault)
    assert str(fault).startswith("corpus.jsonl, line 2")
    assert message in str(fault)


def test_a_first_line_that_is_broken_does_not_hide_the_format(read: Any, lines: Any) -> None:
    fault, good = read(lines(b"\xff", GOOD))
    assert (fault.reason, good.doc_id) == ("invalid-utf-8", "good")


def test_ten_megabytes_are_a_bad_line_and_a_book_is_not(read: Any, lines: Any) -> None:
    book, too_long = read(lines(row(text="x" * MAX_CHARACTERS), row(id="2", text="y" * 10_000_000)))
    assert isinstance(book, Article)
    assert too_long.reason == "text-too-long"


def test_a_line_without_end_is_passed_over_without_being_held(
    read: Any, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmlongbench.corpus.lines.MAX_BYTES", 1000)
    first, fault, last = read(lines(GOOD, b"x" * 12_345, row(id="last")))
    assert (first.doc_id, last.doc_id, last.place) == ("good", "last", "line 3")
    said = "corpus.jsonl, line 2: line-too-long: expected at most 1,000 bytes a line, found more; cut the article into"
    assert str(fault) == f"{said} several lines"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"2\ttext", "line 2: wrong-columns: expected 3 columns (id, text, title), found 2"),
        (b"2\ttext\ttitle\tmore", "line 2: wrong-columns: expected 3 columns (id, text, title), found 4"),
        (b'2\t"an open quote\tT', "line 2: invalid-tsv: expected one row of quoted TSV a line, found unexpected end"),
        (b'2\t"a" b\tT', "line 2: invalid-tsv: expected one row of quoted TSV a line, found "),
        (b"2\t" + b"x" * 200_000 + b"\tT", "line 2: invalid-tsv: expected one row of quoted TSV a line, found field"),
        (b"2\ttext\t", "line 2, title: missing-title: expected a text, found none"),
        (b"\ttext\tT", "line 2, id: missing-id: expected a text, found none"),
        (b"2\t \tT", "line 2, text: empty-text: expected at least one word of text, found none"),
        (b"1\ttext\tT", "line 2, id: duplicate-id: expected an id that no earlier article has, found '1'"),
    ],
)
def test_a_bad_row_of_a_tsv_is_named_and_the_next_is_read(read: Any, lines: Any, line: bytes, message: str) -> None:
    first, fault, last = read(lines(b"1\tOne.\tT", line, b"3\tThree.\tT", name="x.tsv"))
    assert (first.passage_id, last.passage_id) == ("1", "3")
    assert message in str(fault)


def test_a_torn_gzip_stream_stops_the_reading_by_name(read: Any, tmp_path: Path) -> None:
    text = b"".join(b'{"id": "%d", "title": "T", "text": "%d"}\n' % (n, n**5) for n in range(20_000))
    (tmp_path / "x.gz").write_bytes(gzip.compress(text)[:-2000])
    with pytest.raises(SourceError, match=r"^x.gz, line \d+: broken-gzip: .* found Compressed file ended .*; fetch it"):
        read(tmp_path / "x.gz")


def test_a_broken_parquet_file_is_named(read: Any, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(
        SourceError, match=r"^x.parquet: broken-parquet: expected a Parquet file that can be read, found"
    ):
        read(tmp_path / "x.parquet")


def test_missing_columns_are_named_with_those_that_are_there(read: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": ["1"], "body": ["A."], "title": ["T"]}), tmp_path / "x.parquet")
    message = "missing-column: expected a column text or contents or wikipedia_content, found id, body, title"
    with pytest.raises(SourceError, match=message):
        read(tmp_path / "x.parquet")


def test_a_row_of_parquet_that_is_no_utf_8_is_named(read: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    texts = pa.array([b"A.", b"\xff"], pa.binary()).view(pa.string())
    parquet.write_table(pa.table({"id": [1, 2], "title": ["T", "U"], "text": texts}), tmp_path / "x.parquet")
    good, fault = read(tmp_path / "x.parquet")
    assert good.doc_id == "1"
    said = "x.parquet, row 1: invalid-utf-8: expected UTF-8, found byte 0xFF at byte 0; write the text in UTF-8, or"
    assert str(fault) == f"{said} take the row out"


def test_files_of_a_folder_that_cannot_be_read_are_named(read: Any, tmp_path: Path) -> None:
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
    seen = articles.Keys()
    ids = [f"{n}" for n in range(50_000)]
    assert all(seen.add(key_of(id)) for id in ids)
    assert not any(seen.add(key_of(id)) for id in ids)
    assert 8 * len(seen.slots) <= 24 * len(ids)
