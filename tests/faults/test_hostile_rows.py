"""Rows that once ended a build, never ended, or took more memory than there is: each is a fault, or is read."""

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from builders.docvqa.rows import literal_list
from builders.mm_niah.own_pages import _PICTURE
from builders.visual_haystacks.fields import asked_objects
from builders.vrag.viquae import named_apart
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import Fault, SourceError
from mmlongbench.manifest.registry import reader_type
from mmlongbench.task.rows import RowFault

LONG = 1_000_000


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "ascii")
    return path


def faults(reader: str, **sources: Path) -> list[str]:
    """The reasons why rows are refused; an empty one of a row that is read."""
    found = read_rows(reader_type(reader)(), sources)
    return [row.fault.reason if isinstance(row, RowFault) else "" for row in found]


def test_a_number_of_thousands_of_digits_in_an_id_is_a_fault(tmp_path: Path) -> None:
    row = {"data_id": "infoseek_val_" + "7" * 5_000, "image_id": "a", "question": "Who?", "answer": ["I"]}
    known = {"data_id": row["data_id"], "entity_text": "A mill"}
    files = {"questions": lines(tmp_path / "q.jsonl", row), "entities": lines(tmp_path / "e.jsonl", known)}
    assert faults("infoseek", images=tmp_path, **files) == ["id-without-number"]


def test_a_question_of_a_million_characters_is_a_fault(tmp_path: Path) -> None:
    row = {"image": "a.jpg", "input": "a b " * LONG, "original_question": "b a " * LONG, "output": {}}
    assert faults("viquae", questions=lines(tmp_path / "q.jsonl", row), images=tmp_path) == ["field-too-long"]


def test_texts_on_which_a_search_would_not_end_are_passed_over() -> None:
    assert asked_objects("for the image with a " * 500 + ", is there " * 500 + "! " * 500) == ("", "")
    assert named_apart("a b " * 5_000, "b a " * 5_000) == ""
    assert literal_list(f"[{'1,' * LONG}]") is None
    for text in ("![", "![](", "![](a", "![](a "):
        assert len(_PICTURE.split(text * 50_000)) == 1
    assert _PICTURE.split('![a view](a.png "A title") and ![](<b.png>)') == ["", "a.png", " and ", "b.png", ""]


def test_a_needle_as_long_as_a_book_is_a_fault(tmp_path: Path) -> None:
    needle = "word " * 10_000
    row = {"id": 1, "context": f"A. {needle} B.", "question": "What?", "answer": "word", "images_list": []}
    questions = lines(tmp_path / "q.jsonl", {**row, "meta": {"needles": [needle]}})
    assert faults("mm_niah", questions=questions, images=tmp_path) == ["needle-too-long"]


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "\udcff", "..", "", "/dev/zero"])
def test_annotations_may_name_any_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "images" / "a").mkdir(parents=True)
    annotations = {"images": [{"id": 1, "file_name": name}], "annotations": [], "categories": []}
    row = {"question": "Is it?", "answer": "Yes", "needles": ["a.jpg"], "anchor": "mill"}
    files = {"questions": lines(tmp_path / "q.jsonl", row), "annotations": lines(tmp_path / "coco.json", annotations)}
    if name.isascii():
        assert faults("photographs", images=tmp_path / "images", **files) == ["unknown-anchor"]
    else:
        with pytest.raises(SourceError, match=r"^coco\.json, images, item 0: invalid-annotations"):
            faults("photographs", images=tmp_path / "images", **files)


def broken_text() -> Any:
    """A column of text of which one cell is not UTF-8."""
    return pa.array([b"a text", b"caf\xe9"], pa.binary()).view(pa.string())


def test_a_table_with_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    fields = ("doc_id", "doc_type", "question", "answer", "evidence_pages", "evidence_sources", "answer_format")
    pq.write_table(pa.table(dict.fromkeys(fields, broken_text())), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=r"^x\.parquet: unreadable-source: expected a Parquet file, found 'utf-8'"):
        faults("mmlongbench_doc", samples=tmp_path / "x.parquet", documents=tmp_path)


def test_web_pages_of_a_table_that_is_not_utf8_are_faults(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), broken_text())
    pq.write_table(pa.table({"texts": lists, "images": lists}), tmp_path / "x.parquet")
    sources = {"questions": lines(tmp_path / "q.jsonl"), "images": tmp_path, "obelics": tmp_path / "x.parquet"}
    assert faults("mm_niah", **sources) == ["unreadable-row", "unreadable-row"]
    reader: Any = reader_type("mm_niah")()
    assert [list(page) for page in reader.web_pages(sources).values()] == [[], []]


def test_class_names_that_cannot_be_written_are_left_to_numbers(tmp_path: Path) -> None:
    names = {"info": {"features": {"label": {"names": ["a mill", "\ud800"]}}}}
    table = pa.table({"image": [b"1", b"2"], "label": [0, 1]}).replace_schema_metadata(
        {"huggingface": json.dumps(names)}
    )
    for split in ("train", "test"):
        pq.write_table(table, tmp_path / f"{split}.parquet")
    reader: Any = reader_type("image_tables")()
    assert [kind.name for kind in reader.image_classes({"data": tmp_path}).classes.values()] == ["0", "1"]


def test_pictures_whose_cells_cannot_be_read_are_rejects(tmp_path: Path) -> None:
    table = pa.table({"image": [hashlib.shake_128(b"x").digest(2_000)] * 2, "label": [0, 1]})
    for split in ("train", "test"):
        pq.write_table(table, tmp_path / f"{split}.parquet", compression="gzip")
    data = bytearray((tmp_path / "test.parquet").read_bytes())
    data[100:140] = bytes(40)
    (tmp_path / "test.parquet").write_bytes(data)
    reader: Any = reader_type("image_tables")()
    with pytest.raises(OSError, match=r"^test\.parquet: "):
        reader.image({"data": tmp_path}, "tests/0").read_bytes()


def test_a_picture_whose_name_is_not_utf8_is_a_fault(tmp_path: Path) -> None:
    folders = {split: tmp_path / split for split in ("train", "test")}
    for folder in folders.values():
        (folder / "a").mkdir(parents=True)
        for name in ("a.png", os.fsdecode(b"caf\xe9.png")):
            Image.new("RGB", (9, 9)).save(folder / "a" / name)
    assert faults("image_folders", **folders) == ["", "invalid-unicode", "invalid-unicode"]
    [*_, fault] = read_rows(reader_type("image_folders")(), folders)
    assert isinstance(fault, RowFault)
    shown = "a/caf\\udce9.png"
    assert fault.fault == Fault("invalid-unicode", "a name in UTF-8", shown, shown, "name", todo="rename the file")


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "laugh" * 10}">' for n in range(12))


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "[Content_Types].xml"])
def test_a_spreadsheet_of_entities_that_grow_without_end_is_refused(part: str, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra xlsx is not installed")
    book = openpyxl.Workbook()
    book.active.append(["doc", "question", "answer", "pages"])
    book.active.append(["a", "Who?", "I", 1])
    book.save(tmp_path / "plain.xlsx")
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as old, zipfile.ZipFile(tmp_path / "q.xlsx", "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            if name == part:
                body = text.partition("?>")[2] if text.startswith("<?xml") else text
                end = body.rindex("</")
                text = f"<!DOCTYPE x [{LAUGHS}]>{body[:end]}<a>&l11;</a>{body[end:]}"
            new.writestr(name, text)
    with pytest.raises(SourceError, match=r"^q\.xlsx: unreadable-source: expected an Excel file"):
        faults("own_documents", questions=tmp_path / "q.xlsx", documents=tmp_path)


def test_a_cell_of_a_million_characters_and_a_table_of_one_line_are_named(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("doc,question,answer,pages\na," + "x" * LONG + ",I,1\n", "ascii")
    with pytest.raises(SourceError, match=r"^q\.csv, line 2: unreadable-source: expected cells of at most 131"):
        faults("own_documents", questions=tmp_path / "q.csv", documents=tmp_path)
    (tmp_path / "q.csv").write_text('"' * LONG, "ascii")
    with pytest.raises(SourceError, match=r"^q\.csv"):
        faults("own_documents", questions=tmp_path / "q.csv", documents=tmp_path)


def test_a_name_of_a_document_as_long_as_a_book_is_a_short_reject(tmp_path: Path) -> None:
    from mmlongbench.errors import Rejected
    from mmlongbench.task.documents import Documents

    with pytest.raises(Rejected) as refused:
        Documents({})["x" * LONG]
    assert len(str(refused.value)) < 2_000
