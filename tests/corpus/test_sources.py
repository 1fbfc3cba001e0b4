"""Every format a corpus can be made from, found by content, and read into the same articles."""

import gzip
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from mmlongbench.corpus import Article
from mmlongbench.corpus.sources import FORMATS, detect, find_source
from mmlongbench.errors import Fault, SourceError

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


def test_the_knowledge_source_of_kilt_loses_its_title_paragraph_only(read: Any, lines: Any) -> None:
    source = lines(KILT, name="kilt_knowledgesource.json")
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
def test_json_lines_under_the_names_of_others(read: Any, lines: Any, row: Any, article: Any) -> None:
    assert told(*read(lines(row))) == [article]


def test_a_gzipped_file_is_read_as_the_plain_one(read: Any, lines: Any, tmp_path: Path) -> None:
    source = lines(*ROWS)
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert told(*read(packed)) == told(*read(source)) == PLAIN


def test_a_byte_order_mark_and_blank_lines_are_passed_over(read: Any, tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_bytes(b'\xef\xbb\xbf{"id": "0", "title": "T", "text": "A."}\r\n\r\n')
    assert told(*read(source)) == [("0", "T", ("A.",))]


@pytest.mark.parametrize("head", [b"id\ttext\ttitle", None])
def test_a_tsv_of_dpr_is_cut_already(read: Any, lines: Any, head: bytes | None) -> None:
    rows = [b'1\t"Aaron ( or ; ""Ahar\xc3\xb6n"") is"\tAaron', b'2\tmore  of him\t"A ""B"""', b'3\t"end"\tAaron']
    found = read(lines(*([head] if head else []), *rows, name="psgs_w100.tsv"))
    assert told(*found) == [
        ("Aaron", "Aaron", ('Aaron ( or ; "Aharön") is',)),
        ('A "B"', 'A "B"', ("more  of him",)),
        ("Aaron", "Aaron", ("end",)),
    ]
    assert [article.passage_id for article in found] == ["1", "2", "3"]


def test_the_columns_of_a_tsv_are_those_its_first_line_names(read: Any, lines: Any) -> None:
    (found,) = read(lines(b"title\tid\ttext", b"T\t5\tWords.", name="x.tsv"))
    assert (found.title, found.passage_id, found.paragraphs) == ("T", "5", ("Words.",))


def test_parquet(read: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    source = tmp_path / "rows"
    parquet.write_table(pa.Table.from_pylist(ROWS), source)
    assert detect(str(source)) == "parquet"
    assert told(*read(source)) == PLAIN
    assert find_source(str(source)).steps == 3
    assert read(source)[2].place == "row 2"


def test_a_saved_dataset(read: Any, tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    dataset = Dataset.from_list(ROWS)
    dataset.save_to_disk(tmp_path / "saved")
    DatasetDict({"a": dataset, "b": dataset}).save_to_disk(tmp_path / "splits")
    assert detect(str(tmp_path / "saved")) == "dataset"
    assert told(*read(tmp_path / "saved")) == PLAIN == told(*read(tmp_path / "splits" / "a"))
    with pytest.raises(SourceError, match="splits: several-splits: expected one split, found a, b; give the folder"):
        read(tmp_path / "splits")


def test_a_folder_of_texts_and_pdfs(read: Any, tmp_path: Path) -> None:
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


def test_a_format_that_is_given_is_not_guessed(read: Any, lines: Any) -> None:
    with pytest.raises(SourceError, match=f"--format: unknown-format: expected one of {', '.join(FORMATS)}, found 'x'"):
        read(lines(*ROWS), "x")
    with pytest.raises(SourceError, match="expected a folder for the format folder, found a file"):
        read(lines(*ROWS), "folder")
    (fault,) = read(lines(ROWS[0]), "kilt")
    said = "corpus.jsonl, line 1, text: wrong-type: expected a list of texts, found str; correct the field, or take the"
    assert str(fault) == f"{said} row out"


@pytest.mark.parametrize(
    ("data", "found"), [(b"", "no line of text at its beginning"), (b"A story.\n", "'A story.' at its beginning")]
)
def test_a_file_of_no_known_format_is_refused(read: Any, tmp_path: Path, data: bytes, found: str) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(SourceError, match=rf"x: unknown-format: .* found {found}; name the format"):
        read(tmp_path / "x")


def test_a_fingerprint_tells_bytes_apart_and_names_not(lines: Any, tmp_path: Path) -> None:
    one, same = lines(*ROWS, name="one"), lines(*ROWS, name="two")
    other = lines(*ROWS[1:], name="three")
    hashes = [find_source(str(path)).info.sha256 for path in (one, same, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert find_source(str(tmp_path)).info.sha256 != hashes[0]
