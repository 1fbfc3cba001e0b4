"""Tables of one's own questions: their forms, their columns, and what a build says about them."""

import datetime
import io
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rows import cleaned_row

import mmlongbench as mm
import mmlongbench.task as mt
from builders.docvqa import DocVQA, DocVQAOptions, OwnDocuments
from builders.docvqa.own_documents import COLUMNS
from builders.docvqa.rows import DocumentQuestion
from builders.samples.docvqa.others import draw_own_documents
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.io import sheets as sheet_module
from mmlongbench.io.tables import ENDINGS

OWN: dict[str, Any] = {"doc": "a.pdf", "question": "Who?", "answer": "Tern Rock", "pages": "3"}
HEADER = "doc,question,answer,pages"


def read(path: Path) -> list[mt.Row | mt.RowFault]:
    return list(read_rows(OwnDocuments(), {"questions": path, "documents": path.parent}))


def row(**changed: Any) -> DocumentQuestion:
    found = cleaned_row(OwnDocuments(), "own_0", {**OWN, **changed})
    assert isinstance(found, DocumentQuestion), found
    return found


def fault(**changed: Any) -> mt.Fault:
    found = cleaned_row(OwnDocuments(), "own_0", {**OWN, **changed})
    assert isinstance(found, mt.Fault), found
    return found


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# Forms


TABLE = [["doc", "question", "answer", "pages"], ["a.pdf", "Who, and where?", "Tern; Rock", "3"]]


def lines(separator: str) -> str:
    return "".join(separator.join(f'"{cell}"' for cell in cells) + "\r\n" for cells in TABLE)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("q.csv", lines(",")),
        ("q.csv", lines(";")),
        ("q.csv", lines("\t")),
        ("q.tsv", lines("\t")),
        ("q.csv", lines(";").encode("utf-8-sig")),
        ("q.txt.csv", lines("\t").encode("utf-16")),
        ("q.csv", lines(",").replace('"doc"', '"Doc "').replace('"pages"', "PAGES")),
    ],
    ids=["commas", "semicolons", "tabs", "tsv", "byte order mark", "utf-16", "capitals"],
)
def test_every_form_of_csv_gives_the_same_row(name: str, data: str | bytes, tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / name, data))
    assert isinstance(found, DocumentQuestion), found
    assert (found.doc, found.question, found.answer, found.pages) == ("a", "Who, and where?", ("Tern; Rock",), (2,))


@pytest.mark.parametrize(("id", "expected"), [(7.0, "7"), (" x ", "x"), (None, "own_0"), (" ", "own_0")])
def test_ids_are_texts_and_whole_numbers(id: object, expected: str, tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / "a.jsonl", json.dumps({**OWN, "id": id})))
    assert isinstance(found, DocumentQuestion)
    assert found.id == expected


@pytest.mark.parametrize("id", [1.5, True, ["q"], {}, "a\rb"])
def test_other_ids_reject_their_rows(id: object, tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / "a.jsonl", json.dumps({**OWN, "id": id})))
    assert isinstance(found, mt.RowFault)
    assert (found.id, found.fault.reason, found.fault.place) == ("own_0", "wrong-id", "line 1")


def test_the_list_names_every_form_and_column_of_the_table() -> None:
    said = OwnDocuments.source_forms["questions"]
    for word in (*COLUMNS.known, *ENDINGS, "semicolons"):
        assert word in said
    assert "page images" in OwnDocuments.source_forms["documents"]


def test_a_column_without_a_name_is_left_out(tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / "q.csv", f"{HEADER},\na,Who?,I,1,x\n"))
    assert isinstance(found, DocumentQuestion)
    assert dict(found.columns) == {}


def test_an_old_spreadsheet_is_told_by_its_ending(tmp_path: Path) -> None:
    with pytest.raises(mt.SourceError, match=r"q\.xls: .* save it as \.xlsx or as CSV UTF-8"):
        read(write(tmp_path / "q.xls", b"\xd0\xcf\x11\xe0"))


# Spreadsheets


def sheet(path: Path, *rows: Sequence[object], **formats: str) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra xlsx is not installed")
    book = openpyxl.Workbook()
    for cells in rows:
        book.active.append(list(cells))
    for cell, shape in formats.items():
        book.active[cell].number_format = shape
    book.save(path)
    return path


def test_cells_are_read_as_a_person_sees_them(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "q.xlsx",
        ("doc", "question", "answer", "pages"),
        ("a", "Which year?", 2019.0, 3),
        (None, None, None, None),
        ("a", "Which share?", 0.125, "3; 5"),
        ("a", "When?", datetime.datetime(2019, 4, 1), 3),  # noqa: DTZ001  (a sheet has no time zones)
        ("a", "How many?", 3927, 3),
        C4="0.0%",
        C6="#,##0",
    )
    found = [each for each in read(path) if isinstance(each, DocumentQuestion)]
    assert [each.answer[0] for each in found] == ["2019", "12.5%", "2019-04-01", "3,927"]
    assert [each.answer_format for each in found] == ["Integer", "Float", "String", "Integer"]
    assert [each.pages for each in found] == [(2,), (2, 4), (2,), (2,)]
    assert [each.place for each in found] == ["row 2", "row 4", "row 5", "row 6"]


def test_a_formula_gives_its_saved_value_and_an_error_is_named(tmp_path: Path) -> None:
    path = sheet(tmp_path / "q.xlsx", ("doc", "question", "answer", "pages"), ("a", "Who?", "=1/0", 1))
    edited = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(edited, "w") as new:
        for part in old.namelist():
            text = old.read(part)
            if part == "xl/worksheets/sheet1.xml":
                assert b"<f>1/0</f><v />" in text
                text = text.replace(b"<f>1/0</f><v />", b"<f>1/0</f><v>#DIV/0!</v>").replace(b'r="C2"', b'r="C2" t="e"')
            new.writestr(part, text)
    path.write_bytes(edited.getvalue())
    (found,) = read(path)
    assert isinstance(found, mt.RowFault)
    assert str(found.fault) == (
        "q.xlsx, row 2, answer: invalid-text: expected a value, found the error #DIV/0!; write the value into the cell"
    )


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(mt.SourceError, match=r'pip install "mmlongbench\[xlsx\]", or save the table as CSV UTF-8'):
        read(write(tmp_path / "q.xlsx", b"PK"))


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip", b"\0" * 1000])
def test_a_file_that_is_no_spreadsheet_is_refused(data: bytes, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="the extra xlsx is not installed")
    with pytest.raises(mt.SourceError, match=r"^q\.xlsx: unreadable-source: expected an Excel file"):
        read(write(tmp_path / "q.xlsx", data))


def test_a_sheet_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = sheet(tmp_path / "q.xlsx", ("doc", "question", "answer", "pages"), ("a", "Who?", "I", 1))
    block = b" " * 1_000_000
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/big.xml", "w") as part:
        for _ in range(200):
            part.write(block)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(mt.SourceError, match="bytes after unpacking, found"):
        read(path)


def test_a_sheet_with_a_row_far_below_is_refused_quickly(tmp_path: Path) -> None:
    path = sheet(tmp_path / "q.xlsx", ("doc", "question", "answer", "pages"), ("a", "Who?", "I", 1))
    edited = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(edited, "w") as new:
        for part in old.namelist():
            text = old.read(part)
            new.writestr(part, text.replace(b'r="2"', b'r="999999999"').replace(b'2"', b'999999999"'))
    with pytest.raises(mt.SourceError, match=r"q\.xlsx: unreadable-source"):
        read(write(path, edited.getvalue()))


def test_too_many_rows_and_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sheet(tmp_path / "q.xlsx", ("doc", "question", "answer", "pages", *range(sheet_module.MAX_COLUMNS)))
    with pytest.raises(mt.SourceError, match="at most 100 columns"):
        read(path)
    monkeypatch.setattr(sheet_module, "MAX_ROWS", 2)
    path = sheet(tmp_path / "r.xlsx", ("doc", "question", "answer", "pages"), *[("a", "Who?", "I", 1)] * 2)
    with pytest.raises(mt.SourceError, match="at most 2 rows, found more; split the table"):
        read(path)


# Columns


def test_a_declared_format_is_used_instead_of_the_guessed_one() -> None:
    assert row(answer="2019").answer_format == "Integer"
    assert row(answer="2019", answer_format="string").answer_format == "String"
    assert row(answer="2019", answer_format=" ").answer_format == "Integer"
    found = fault(answer="about three", answer_format="Integer")
    assert (found.reason, found.expected) == ("answer-of-another-format", "an answer of the format Integer")
    assert fault(answer="3", answer_format="Number").reason == "unknown-answer-format"


def test_sources_are_written_as_the_public_datasets_write_them() -> None:
    assert row(sources="text; Chart;map").sources == ("Text", "Chart", "map")
    assert row(sources=["table"]).sources == ("Table",)
    assert row(sources="").sources == ()
    assert fault(sources={"a": 1}).field == "sources"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("IBM; I.B.M.", ("IBM", "I.B.M.")),
        ('["a; b", "c"]', ("a; b", "c")),
        (["x", 3], ("x", "3")),
        (None, ()),
        (" ; ", ()),
    ],
)
def test_several_answers_are_accepted(cell: object, expected: tuple[str, ...]) -> None:
    assert row(accepted=cell).accepted == expected


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"accepted": [["a"]]}, "accepted"),
        ({"accepted": "[1, x]"}, "accepted"),
        ({"accepted": ["a"] * 101}, "accepted"),
        ({"accepted": ["a\ud800"]}, "accepted"),
        ({"accepted": "b", "answer": '["a", "b"]'}, "accepted"),
        ({"accepted": "b", "answer": "Not answerable", "pages": ""}, "accepted"),
    ],
)
def test_accepted_answers_that_cannot_be_used_are_refused(changed: dict[str, object], field: str) -> None:
    found = fault(**changed)
    assert found.field == field
    assert found.todo


def test_further_columns_are_kept_as_short_texts() -> None:
    found = row(region=" north ", year=2019, tags=["a"], long="x" * 1000, bad="a\ud800")
    assert found.columns == {"region": "north", "year": "2019", "tags": "", "long": "x" * 101}


@pytest.mark.parametrize(
    "changed",
    [
        {"doc": None},
        {"question": " "},
        {"answer": ""},
        {"answer": True},
        {"answer": "[[]]"},
        {"answer": "[]"},
        {"pages": ""},
        {"pages": "0"},
        {"pages": "a"},
        {"pages": "3-5"},
        {"pages": {}},
        {"answer": "3", "answer_format": "None"},
        {"answer_format": "x"},
        {"doc": "\ud800"},
    ],
)
def test_every_refusal_says_what_to_do(changed: dict[str, object]) -> None:
    assert fault(**changed).todo


# What a build says


@pytest.fixture
def drawn(tmp_path: Path) -> dict[str, Path]:
    return draw_own_documents(tmp_path)


def with_columns(path: Path, names: str, cells: str) -> None:
    header, *rows = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([f"{header},{names}", *(f"{each},{cells}" for each in rows), ""]), "utf-8")


def manifest(path: Path, source: dict[str, Path], **options: object) -> Path:
    paths = {name: str(found) for name, found in source.items()}
    about = {"name": "reports", "builder": "docvqa", "reader": "own_documents", "source": paths}
    text = json.dumps({"datasets": [{**about, "lengths": ["8K"], "options": options}]})
    path.write_text(text, "utf-8")
    return path


def test_unused_columns_are_named_once_and_facets_are_in_records_and_groups(
    drawn: dict[str, Path], tmp_path: Path
) -> None:
    with_columns(drawn["questions"], "region,reviewer,notes", "north,AB,fine")
    built = mm.build(manifest(tmp_path / "m.yaml", drawn, facets=["region"]), tmp_path / "out")
    assert built.notes == (
        "dataset 'reports': questions.csv: columns not used: reviewer, notes; name them in options.facets to break "
        "scores down by them",
    )
    text = (tmp_path / "out/mmlb_data/documentQA/reports_K8.jsonl").read_text("utf-8")
    record = json.loads(text.splitlines()[0])
    assert record["facets"] == {"region": "north"}
    assert "reviewer" not in record
    task = DocVQA("reports", DocVQAOptions())
    assert task.facets(record)["region"] == ["north"]
    assert task.facets({**record, "facets": {"anchor": "x"}})["anchor (column)"] == ["x"]
    assert "region" not in task.facets({**record, "facets": ["x"]})
    again = mm.build(tmp_path / "m.yaml", tmp_path / "out")
    assert (again.was_complete, again.notes) == (True, built.notes)


def test_a_facet_without_its_column_is_refused_before_anything_is_built(drawn: dict[str, Path], tmp_path: Path) -> None:
    with_columns(drawn["questions"], "region", "north")
    for name, said in (("regoin", "did you mean 'region'"), ("doc_type", "the reader uses doc_type itself")):
        with pytest.raises(mt.SourceError, match=said):
            mm.build(manifest(tmp_path / "m.yaml", drawn, facets=[name]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_long_facet_is_a_reject(drawn: dict[str, Path], tmp_path: Path) -> None:
    with_columns(drawn["questions"], "region", "x" * 101)
    built = mm.build(manifest(tmp_path / "m.yaml", drawn, facets=["region"]), tmp_path / "out")
    assert built.lock.readable["reports"].questions.rejected.keys() == {"long-facet"}


def test_a_mistyped_document_is_answered_with_the_nearest_name(drawn: dict[str, Path], tmp_path: Path) -> None:
    name = sorted(drawn["documents"].iterdir())[0].stem
    write(drawn["questions"], f"{HEADER}\n{name[:-2]}x,Who?,I,1\nzzzzz,Who?,I,1\n{name}.PDF,Who?,I,1\n")
    mm.build(manifest(tmp_path / "m.yaml", drawn), tmp_path / "out")
    rejects = [json.loads(line) for line in (tmp_path / "out/rejects.jsonl").read_text("utf-8").splitlines()]
    assert [each["todo"] for each in rejects] == [
        f"did you mean {name!r}?",
        "add it to the sources, or correct its name",
    ]


def test_long_answers_are_kept_and_grouped(drawn: dict[str, Path], tmp_path: Path) -> None:
    name = sorted(drawn["documents"].iterdir())[0].stem
    write(drawn["questions"], f"{HEADER},accepted\n{name},Why?,for it has always been so,1,\n{name},Who?,I,1,me; We\n")
    built = mm.build(manifest(tmp_path / "m.yaml", drawn), tmp_path / "out")
    assert built.lock.readable["reports"].questions.kept == 2
    text = (tmp_path / "out/mmlb_data/documentQA/reports_K8.jsonl").read_text("utf-8")
    long, short = map(json.loads, text.splitlines())
    assert (long["answer_length"], short["answer_length"]) == ("long", "short")
    task = DocVQA("reports", DocVQAOptions())
    assert task.facets(long)["answer length"] == ["long"]
    assert (task.accepted(long), task.accepted(short)) == ((), ("me", "We"))


@pytest.mark.parametrize(("limit", "has_field"), [(None, True), (20, True), (5, False)])
def test_only_records_that_may_have_long_answers_say_how_long_theirs_is(limit: int | None, has_field: bool) -> None:
    from builders.docvqa.builder import more_fields

    assert ("answer_length" in more_fields(row(), DocVQAOptions(max_answer_words=limit))) == has_field
