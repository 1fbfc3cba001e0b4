"""The reader of MMLongBench-Doc: each kind of faulty row is repaired or rejected, with reason, row and field."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.docvqa import MMLongBenchDoc
from builders.docvqa.mmlongbench_doc import FIELDS
from builders.docvqa.rows import DocumentQuestion
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.task import Document, Documents, Fault, Rejected, RowFault, SourceError

REAL = Path(__file__).parents[2].parent / "shared/real/mmlongbench-doc"
CLEAN: dict[str, Any] = {
    "doc_id": "PH_2016.06.08_Economy-Final.pdf",
    "doc_type": "Research report / Introduction",
    "question": "Who was worse off?",
    "answer": "Less well-off",
    "evidence_pages": "[5]",
    "evidence_sources": "['Chart']",
    "answer_format": "Str",
}
Read = Callable[..., DocumentQuestion | RowFault]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """One row, clean but for some fields, as the reader gives it."""

    def read_one(**changed: Any) -> DocumentQuestion | RowFault:
        (found,) = rows_of(tmp_path, [CLEAN | changed])
        return found

    return read_one


def rows_of(folder: Path, raw: Sequence[object]) -> list[DocumentQuestion | RowFault]:
    path = folder / "samples.json"
    path.write_text(json.dumps(raw), encoding="utf-8")
    return read_file(path)


def read_file(path: Path) -> list[DocumentQuestion | RowFault]:
    found = list(read_rows(MMLongBenchDoc(), {"samples": path, "documents": path.parent}))
    assert all(isinstance(row, DocumentQuestion | RowFault) for row in found)
    return found  # type: ignore[return-value]  # just checked


def question(found: DocumentQuestion | RowFault) -> DocumentQuestion:
    assert isinstance(found, DocumentQuestion)
    return found


def fault(found: DocumentQuestion | RowFault) -> Fault:
    assert isinstance(found, RowFault)
    assert (found.id, found.fault.file, found.fault.place) == ("mmlongdoc_0", "samples.json", "row 0")
    return found.fault


def refused(path: Path) -> Fault:
    with pytest.raises(SourceError) as caught:
        read_file(path)
    assert str(path.parent) not in str(caught.value)
    return caught.value.fault


def test_a_clean_row_is_read(read: Read) -> None:
    assert read() == DocumentQuestion(
        id="mmlongdoc_0",
        doc="PH_2016.06.08_Economy-Final",
        doc_type="Research report / Introduction",
        question="Who was worse off?",
        answer=("Less well-off",),
        answer_format="String",
        pages=(4,),
        sources=("Chart",),
        file="samples.json",
        place="row 0",
    )


# Faulty rows that are repaired


def test_pages_are_sorted_once_each_and_counted_from_zero(read: Read) -> None:
    assert question(read(evidence_pages="[12, 3, 3, 7]")).pages == (2, 6, 11)


def test_an_integer_that_is_none_becomes_a_string(read: Read) -> None:
    row = question(read(answer="14:04 CET", answer_format="Int"))
    assert (row.answer_format, row.answer, row.repairs) == ("String", ("14:04 CET",), ("integer-to-string",))


def test_a_bare_list_answer_becomes_a_string(read: Read) -> None:
    row = question(read(answer="0.66", answer_format="List"))
    assert (row.answer_format, row.answer, row.repairs) == ("String", ("0.66",), ("list-to-string",))


@pytest.mark.parametrize("pages", ["[3]", "[0]", "none", ""])
def test_an_unanswerable_row_has_no_pages(read: Read, pages: str) -> None:
    row = question(read(answer="Not answerable", answer_format="None", evidence_pages=pages))
    assert (row.answer_format, row.pages, row.repairs) == ("None", (), ("pages-of-unanswerable-dropped",))


def test_a_clean_unanswerable_row_needs_no_repair(read: Read) -> None:
    row = question(read(answer="Not answerable", answer_format="None", evidence_pages="[]"))
    assert (row.answer, row.pages, row.repairs) == (("Not answerable",), (), ())


def test_sources_that_are_no_list_are_dropped_by_name(read: Read) -> None:
    row = question(read(evidence_sources="Chart"))
    assert (row.sources, row.repairs) == ((), ("unreadable-evidence-sources-dropped",))


def test_a_literal_marker_is_spelled_apart_in_what_is_released(read: Read) -> None:
    assert question(read(question="What is <image>?")).question == "What is < image >?"
    assert question(read(answer="['<image>', 'b']", answer_format="List")).answer == ("< image >", "b")


# Faulty rows that are rejected


@pytest.mark.parametrize(
    ("changed", "reason", "field"),
    [
        ({"evidence_pages": "[0]"}, "answer-page-out-of-range", "evidence_pages"),
        ({"evidence_pages": "[3, -1]"}, "answer-page-out-of-range", "evidence_pages"),
        ({"evidence_pages": "[]"}, "no-answer-pages", "evidence_pages"),
        ({"evidence_pages": ""}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "5"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "5-7"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "(5, 7)"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "['five']"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "[5.0]"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "[True]"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "[[5]]"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "[5"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": f"[-0x{'f' * 5000}]"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": "[__import__('os').getpid()]"}, "answer-pages-not-a-list", "evidence_pages"),
        ({"evidence_pages": [5]}, "missing-or-mistyped-field", "evidence_pages"),
        ({"answer": "[]", "answer_format": "List"}, "list-answer", "answer"),
        ({"answer": ""}, "empty-answer", "answer"),
        ({"answer": 5, "answer_format": "Int"}, "missing-or-mistyped-field", "answer"),
        ({"answer": None}, "missing-or-mistyped-field", "answer"),
        ({"answer": float("nan")}, "missing-or-mistyped-field", "answer"),
        ({"answer_format": "Date"}, "unknown-answer-format", "answer_format"),
        ({"answer_format": "None"}, "answer-of-format-none", "answer"),
        ({"question": " \n"}, "empty-question", "question"),
        ({"question": "a \ud800 b"}, "invalid-unicode", "question"),
        ({"doc_id": "\udfff.pdf"}, "invalid-unicode", "doc_id"),
        ({"doc_type": None}, "missing-or-mistyped-field", "doc_type"),
    ],
)
def test_a_row_that_cannot_be_asked_says_why(read: Read, changed: dict[str, Any], reason: str, field: str) -> None:
    found = fault(read(**changed))
    assert (found.reason, found.field) == (reason, field)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_is_missing_is_named(tmp_path: Path, field: str) -> None:
    (found,) = rows_of(tmp_path, [{name: value for name, value in CLEAN.items() if name != field}])
    where = f"samples.json, row 0, {field}"
    assert (
        str(fault(found)) == f"{where}: missing-or-mistyped-field: expected a string, found nothing; write a text there"
    )


@pytest.mark.parametrize(("raw", "found"), [([], "list"), ("row", "str"), (None, "NoneType"), (5, "int")])
def test_a_row_that_is_no_object_is_refused(tmp_path: Path, raw: object, found: str) -> None:
    (row,) = rows_of(tmp_path, [raw])
    assert (fault(row).reason, fault(row).found) == ("not-a-row", found)


def test_a_refused_row_leaves_the_numbers_of_the_others(tmp_path: Path) -> None:
    found = rows_of(tmp_path, [CLEAN, None, CLEAN])
    assert [row.id for row in found] == ["mmlongdoc_0", "mmlongdoc_1", "mmlongdoc_2"]
    assert [type(row) for row in found] == [DocumentQuestion, RowFault, DocumentQuestion]


def test_fields_that_are_not_known_are_passed_over(read: Read) -> None:
    assert read(note="new", score=0.5) == read()


# Files


def test_invalid_json_is_refused_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    path.write_text('[\n  {"doc_id": "a.pdf",\n   "answer" 5}\n]')
    assert str(refused(path)) == (
        "samples.json, line 3, column 13: invalid-json: expected a JSON array of rows, found Expecting ':' delimiter; "
        "correct the file"
    )


@pytest.mark.parametrize(("text", "found"), [("{}", "dict"), ('"rows"', "str"), ("null", "NoneType"), ("3", "int")])
def test_json_that_is_no_array_is_refused(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "samples.json"
    path.write_text(text)
    assert (refused(path).reason, refused(path).found) == ("invalid-source", found)


@pytest.mark.parametrize("data", [b'["\xff"]', b"[" * 100_000, b"[" + b"9" * 5000 + b"]"])
def test_json_that_cannot_be_decoded_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "samples.json"
    path.write_bytes(data)
    assert refused(path).reason == "unreadable-source"


def test_a_folder_in_place_of_the_samples_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    path.mkdir()
    assert (refused(path).reason, refused(path).found) == ("unreadable-source", "Is a directory")


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    path.write_text(json.dumps([CLEAN]), encoding="utf-8-sig")
    assert read_file(path) == rows_of(tmp_path, [CLEAN])


def test_an_empty_array_has_no_rows(tmp_path: Path) -> None:
    assert rows_of(tmp_path, []) == []


def test_parquet_gives_what_json_gives(tmp_path: Path) -> None:
    rows = [CLEAN, CLEAN | {"evidence_pages": "[0]"}, CLEAN | {"answer": None}, CLEAN | {"answer": "é <image>"}]
    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    from_json = rows_of(tmp_path, rows)
    found = read_file(path)
    assert [row.id for row in found] == [row.id for row in from_json]
    for number in (0, 3):
        assert question(found[number]).model_copy(update={"file": "samples.json"}) == from_json[number]
    faults = [(row.fault.reason, row.fault.field, row.fault.place) for row in found if isinstance(row, RowFault)]
    assert faults == [
        ("answer-page-out-of-range", "evidence_pages", "row 1"),
        ("missing-or-mistyped-field", "answer", "row 2"),
    ]


def test_parquet_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    path.write_bytes(b"no table")
    assert (refused(path).reason, refused(path).expected) == ("unreadable-source", "a Parquet file")


# Documents


def documents(folder: Path, *names: str) -> dict[str, str]:
    for name in names:
        (folder / name).touch()
    found = MMLongBenchDoc().documents({"samples": folder, "documents": folder})
    return {id: path.name if isinstance(path, Path) else str(path) for id, path in found.items()}


def test_documents_are_known_by_their_names_without_the_ending(tmp_path: Path) -> None:
    found = documents(tmp_path, "2310.07609v1.pdf", "B.PDF", "notes.txt", "README", ".hidden.pdf", "._B.pdf")
    assert found == {"2310.07609v1": "2310.07609v1.pdf", "B": "B.PDF"}


def test_two_documents_of_one_name_are_refused_unless_they_are_one(tmp_path: Path) -> None:
    (tmp_path / "x.PDF").write_bytes(b"another")
    (tmp_path / "y.PDF").touch()
    found = documents(tmp_path, "x.PDF", "x.pdf", "y.pdf")
    assert found["y"] in ("y.pdf", "y.PDF")
    assert "two-documents-of-one-name: expected names that differ before the ending, found x.PDF, x.pdf" in found["x"]


def test_documents_that_are_no_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "documents"
    path.touch()
    with pytest.raises(SourceError, match="documents: unreadable-source: expected a folder of PDFs, found a file"):
        MMLongBenchDoc().documents({"samples": path, "documents": path})


@pytest.mark.parametrize("ending", [".pdf", ".PDF", ""])
def test_a_row_names_its_document_with_or_without_the_ending(read: Read, ending: str) -> None:
    assert question(read(doc_id=f"2310.07609v1{ending}")).doc == "2310.07609v1"


@pytest.mark.parametrize("doc_id", ["../../etc/passwd.pdf", "/etc/passwd.pdf", "sub/passwd.pdf", "..", ".pdf", ""])
def test_a_path_for_a_document_is_a_missing_document(read: Read, doc_id: str) -> None:
    documents = Documents({"passwd": Document("passwd", "passwd", "11", ())})
    with pytest.raises(Rejected, match="missing-document"):
        documents[question(read(doc_id=doc_id)).doc]


# The real rows


@pytest.mark.skipif(not REAL.is_dir(), reason="shared/real/mmlongbench-doc is absent")
def test_the_real_rows_are_read_and_accounted_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = read_file(REAL / "samples.json")
    rows = {row.id: row for row in found if isinstance(row, DocumentQuestion)}
    assert [row.id for row in found] == [f"mmlongdoc_{number}" for number in range(213)]
    formats = Counter(row.answer_format for row in rows.values())
    assert formats == {"Float": 52, "String": 50, "Integer": 46, "None": 37, "List": 26}
    refused = {row.id: row.fault.reason for row in found if isinstance(row, RowFault)}
    assert refused == {"mmlongdoc_109": "no-answer-pages", "mmlongdoc_116": "no-answer-pages"}
    repairs = Counter(repair for row in rows.values() for repair in row.repairs)
    assert repairs == {"pages-of-unanswerable-dropped": 3, "integer-to-string": 2}
    assert {row.doc for row in rows.values()} <= {path.stem for path in (REAL / "documents").iterdir()}
    assert rows["mmlongdoc_0"].pages == (2, 4)
    assert rows["mmlongdoc_142"].answer == ("14:04 CET",)
    assert capsys.readouterr() == ("", "")
