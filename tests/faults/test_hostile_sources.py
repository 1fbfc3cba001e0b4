"""Hostile sources as readers see them: each file, row and picture is read, or is a fault that names it. None blocks."""

import gzip
import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from claimed_png import claimed_png
from mutated import refusal_or_none
from PIL import Image

import mmlongbench.task as mt
from builders.mm_niah.readers import _PICTURE
from builders.visual_haystacks.readers import asked_objects
from builders.vrag.readers import named_apart
from mmlongbench.answers import literal_list
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.corpus.sources import find_source
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pages import PageImages, sizes_of
from mmlongbench.documents.pictures import Pictures
from mmlongbench.errors import Fault, Rejected, ReleaseError, SourceError
from mmlongbench.io.files import bounded_lines
from mmlongbench.manifest.plugins import installed, reader_type
from mmlongbench.task.file_formats import JSON_LINES

READERS = [plugin.name for plugin in installed("reader") if not plugin.problem]
WITH_IMAGES = [name for name in READERS if reader_type(name).image is not mt.readers.Reader.image]
WITH_FILES = [name for name in WITH_IMAGES if name != "image_tables"]
LIMITS = Limits(bytes=1_000_000, pages=9, side=16_384)
LONG = 1_000_000
every_end = pytest.mark.parametrize("kind", ["pipe", "device"])


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines may have a thousand bytes."""
    for module in ("io.files", "io.json_lines", "task.file_formats", "corpus.sources"):
        monkeypatch.setattr(f"mmlongbench.{module}.MAX_BYTES", 1_000)


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "ascii")
    return path


def reasons(reader: str, **sources: Path) -> list[str]:
    """The reasons why rows are refused; an empty one of a row that is read."""
    found = read_rows(reader_type(reader)(), sources)
    return [row.fault.reason if isinstance(row, mt.readers.RowFault) else "" for row in found]


def endless(folder: Path, kind: str) -> Path:
    """A file that never ends, or that nobody writes to."""
    path = folder / kind
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    return path


# Devices, pipes and links


@every_end
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_or_a_device_in_place_of_a_source_is_not_read(name: str, kind: str, tmp_path: Path) -> None:
    """Each part that a build reads may be refused by name."""
    reader: Any = reader_type(name)()
    sources = dict.fromkeys((*reader.sources, *reader.optional_sources), endless(tmp_path, kind))
    read: list[Any] = []
    with refusal_or_none():
        read += read_rows(reader, sources)
    with refusal_or_none():
        read += reader.web_pages(sources)
    for part in (reader.documents, reader.shows, reader.image_classes):
        with refusal_or_none():
            part(sources)
    assert [found for found in read if not isinstance(found, mt.readers.RowFault)] == []


@every_end
def test_a_pipe_or_a_device_is_named_as_what_it_is(kind: str, tmp_path: Path) -> None:
    path = endless(tmp_path, kind)
    readers: list[Callable[[], object]] = [
        lambda: list(mt.readers.json_lines(path)),
        lambda: mt.readers.load_json(path, "rows"),
    ]
    for read in readers:
        with pytest.raises(SourceError, match=rf"^{kind}: unreadable-source: .* found a pipe or a device"):
            read()


def test_what_is_a_link_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.pdf").write_bytes(b"%PDF-1.7")
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    (folder / "real.pdf").write_bytes(b"%PDF-1.7")
    (folder / "out.pdf").symlink_to(tmp_path / "secret.pdf")
    (folder / "in.pdf").symlink_to(folder / "real.pdf")
    (folder / "zero.pdf").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.pdf")
    found = mt.readers.pdfs_by_name(folder)
    assert [name for name, path in found.items() if isinstance(path, Path)] == ["in", "real"]
    assert {*found} == {"in", "out", "real"}
    assert str(found["out"]).startswith("out.pdf: path-outside-source: ")
    (tmp_path / "articles").mkdir()
    (tmp_path / "articles" / "a.txt").symlink_to(tmp_path / "secret.pdf")
    [fault] = find_source(str(tmp_path / "articles"), "folder").articles()
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.file) == ("path-outside-source", "a.txt")


@pytest.mark.parametrize("ending", ["txt", "md"])
def test_a_page_that_is_a_link_out_of_its_folder_is_in_no_haystack(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (tmp_path / "secret").write_text("a secret")
    (folder / f"own.{ending}").write_text("a page")
    (folder / f"out.{ending}").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / f"pipe.{ending}")
    (tmp_path / "q.jsonl").touch()
    reader: Any = reader_type("own_pages")()
    sources = {"questions": tmp_path / "q.jsonl", "documents": folder}
    assert [list(page) for page in reader.web_pages(sources).values()] == [[], ["a page"]]
    [fault] = read_rows(reader, sources)
    assert isinstance(fault, mt.readers.RowFault)
    assert (fault.id, fault.fault.reason) == (f"out.{ending}", "path-outside-source")


# Lines and files without end


@pytest.mark.usefixtures("short_lines")
def test_a_line_without_end_is_passed_over_in_pieces_and_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 12_345 + b'"}\n{"a": 3}\n')
    first, fault, last = mt.readers.json_lines(path)
    assert (first.value, last.value, last.number) == ({"a": 1}, {"a": 3}, 3)
    assert fault.value == Fault("line-too-long", "at most 1000 bytes", "more", todo="shorten the row, or take it out")
    assert path.read_bytes()[last.offset :] == b'{"a": 3}\n'
    (_, released), (where, error), (_, other) = JSON_LINES.read(path)
    assert (released, other, where) == ({"a": 1}, {"a": 3}, "line 2")
    assert isinstance(error, ReleaseError)
    assert str(error) == "x.jsonl, line 2: expected at most 1000 bytes, found more"


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("length", [999, 1000, 1001, 1002, 2001, 2002])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nx\n"])
def test_lines_about_as_long_as_is_allowed_are_told_apart(length: int, end: bytes, tmp_path: Path) -> None:
    data = b"y" * (length - 1) + b"\n" + b"z" * (length - 1) + end
    (tmp_path / "x").write_bytes(data)
    with (tmp_path / "x").open("rb") as file:
        found = list(bounded_lines(file))
    given = data.splitlines(keepends=True)
    assert [line for _, _, line in found] == [line if len(line) <= 1000 else None for line in given]
    assert [offset for _, offset, _ in found] == [sum(map(len, given[:n])) for n in range(len(given))]


@pytest.mark.usefixtures("short_lines")
def test_a_bomb_of_gzip_is_not_unpacked_and_its_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "train.json.gz"
    path.write_bytes(gzip.compress(b" " * 3_000_000))
    size = path.stat().st_size
    said = rf"^train\.json\.gz: size-of-a-file: expected at most {size * 100} bytes, found more in {size} packed ones"
    with pytest.raises(SourceError, match=said):
        mt.readers.load_json(path, "annotations")
    with pytest.raises(SourceError, match="size-of-a-file"):
        reasons("inaturalist", images=tmp_path, train=path, test=path)
    good = json.dumps({"id": "1", "title": "T", "text": "A."}).encode()
    (tmp_path / "x.gz").write_bytes(gzip.compress(good + b"\n" + b" " * 3_000_000 + b"\n" + good.replace(b"1", b"2")))
    first, fault, last = find_source(str(tmp_path / "x.gz"), "jsonl").articles()
    assert (getattr(first, "doc_id", ""), getattr(last, "doc_id", "")) == ("1", "2")
    assert str(fault).startswith("x.gz, line 2: line-too-long: expected at most 1,000 bytes a line")


@pytest.mark.parametrize(
    "data",
    [b"\x1f\x8b", gzip.compress(b'{"a": 1}' * 99, mtime=0)[:-9], b"\x1f\x8b\x08\x00" + b"\xff" * 60],
    ids=["its first bytes", "cut off", "noise"],
)
def test_a_torn_gzip_file_is_named(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(SourceError, match=r"^x\.json: broken-gzip: .*fetch it anew"):
        mt.readers.load_json(tmp_path / "x.json", "rows")


def test_a_file_that_is_too_large_to_be_read_whole_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").touch()
    os.truncate(tmp_path / "x.json", 1 << 40)
    with pytest.raises(SourceError, match=r"size-of-a-file: expected at most 2147483648 bytes, found 1099511627776"):
        mt.readers.load_json(tmp_path / "x.json", "rows")
    os.truncate(tmp_path / "x.json", 1 << 27)
    (tmp_path / "y.json").write_text("{}")
    assert reasons("govreport", reports=tmp_path, documents=tmp_path) == ["size-of-a-file", "missing-or-mistyped-field"]


NESTED = {
    "lists": "[" * 400 + "]" * 400,
    "objects": '{"a":' * 400 + "1" + "}" * 400,
    "both": '{"a":[' * 200 + "]}" * 200,
}


@pytest.mark.parametrize("form", NESTED)
def test_what_is_nested_without_end_is_named(form: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(NESTED[form])
    with pytest.raises(SourceError, match=r"^x\.json: nested-too-deeply: expected at most 100 levels"):
        mt.readers.load_json(tmp_path / "x.json", "rows")
    (tmp_path / "x.jsonl").write_text(f'{{"id": 1, "highlight": {NESTED[form]}}}\n{{"a": 3}}')
    fault, row = (line.value for line in mt.readers.json_lines(tmp_path / "x.jsonl"))
    assert isinstance(fault, Fault)
    assert (fault.reason, row) == ("nested-too-deeply", {"a": 3})


def test_a_hundred_levels_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[" * 100 + "]" * 100)
    value: Any = mt.readers.load_json(tmp_path / "x.json", "rows")
    for _ in range(99):
        (value,) = value
    assert value == []


# Rows


def test_rows_with_fields_as_long_as_books_are_faults(tmp_path: Path) -> None:
    """A number of thousands of digits in an id, a question of a million characters, a needle of ten thousand words."""
    id = "infoseek_val_" + "7" * 5_000
    row: dict[str, Any] = {"data_id": id, "image_id": "a", "question": "Who?", "answer": ["I"]}
    entities = lines(tmp_path / "e.jsonl", {"data_id": id, "entity_text": "A mill"})
    questions = lines(tmp_path / "q.jsonl", row)
    assert reasons("infoseek", images=tmp_path, questions=questions, entities=entities) == ["id-without-number"]
    row = {"image": "a.jpg", "input": "a b " * LONG, "original_question": "b a " * LONG, "output": {}}
    questions = lines(tmp_path / "q.jsonl", row)
    assert reasons("viquae", images=tmp_path, questions=questions) == ["field-too-long"]
    needle = "word " * 10_000
    row = {"id": 1, "context": f"A. {needle} B.", "question": "What?", "answer": "word", "images_list": []}
    questions = lines(tmp_path / "q.jsonl", {**row, "meta": {"needles": [needle]}})
    assert reasons("mm_niah", images=tmp_path, questions=questions) == ["needle-too-long"]
    with pytest.raises(Rejected) as refused:
        mt.advanced.Documents({})["x" * LONG]
    assert len(str(refused.value)) < 2_000


def test_texts_on_which_a_search_would_not_end_are_passed_over() -> None:
    assert asked_objects("for the image with a " * 500 + ", is there " * 500 + "! " * 500) == ("", "")
    assert named_apart("a b " * 5_000, "b a " * 5_000) == ""
    assert literal_list(f"[{'1,' * LONG}]") is None
    for text in ("![", "![](", "![](a", "![](a "):
        assert len(_PICTURE.split(text * 50_000)) == 1
    assert _PICTURE.split('![a view](a.png "A title") and ![](<b.png>)') == ["", "a.png", " and ", "b.png", ""]


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "\udcff", "..", "", "/dev/zero"])
def test_annotations_may_name_any_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "images" / "a").mkdir(parents=True)
    annotations = {"images": [{"id": 1, "file_name": name}], "annotations": [], "categories": []}
    row = {"question": "Is it?", "answer": "Yes", "needles": ["a.jpg"], "anchor": "mill"}
    files = {"questions": lines(tmp_path / "q.jsonl", row), "annotations": lines(tmp_path / "coco.json", annotations)}
    if name.isascii():
        assert reasons("photographs", images=tmp_path / "images", **files) == ["unknown-anchor"]
    else:
        with pytest.raises(SourceError, match=r"^coco\.json, images, item 0: invalid-annotations"):
            reasons("photographs", images=tmp_path / "images", **files)


# Tables


def broken_text() -> Any:
    """A column of text of which one cell is not UTF-8."""
    return pa.array([b"a text", b"caf\xe9"], pa.binary()).view(pa.string())


def test_a_table_with_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    fields = ("doc_id", "doc_type", "question", "answer", "evidence_pages", "evidence_sources", "answer_format")
    pq.write_table(pa.table(dict.fromkeys(fields, broken_text())), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=r"^x\.parquet: broken-parquet: .*'utf-8'"):
        reasons("mmlongbench_doc", samples=tmp_path / "x.parquet", documents=tmp_path)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), broken_text())
    pq.write_table(pa.table({"texts": lists, "images": lists}), tmp_path / "x.parquet")
    sources = {"questions": lines(tmp_path / "q.jsonl"), "images": tmp_path, "obelics": tmp_path / "x.parquet"}
    assert reasons("mm_niah", **sources) == ["unreadable-row", "unreadable-row"]
    reader: Any = reader_type("mm_niah")()
    assert [list(page) for page in reader.web_pages(sources).values()] == [[], []]


def test_class_names_that_cannot_be_written_are_left_to_numbers(tmp_path: Path) -> None:
    names = {"info": {"features": {"label": {"names": ["a mill", "\ud800"]}}}}
    about = {"huggingface": json.dumps(names)}
    table = pa.table({"image": [b"1", b"2"], "label": [0, 1]}).replace_schema_metadata(about)
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


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "laugh" * 10}">' for n in range(12))


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "[Content_Types].xml"])
def test_a_spreadsheet_of_entities_that_grow_without_end_is_refused(part: str, tmp_path: Path) -> None:
    needs.library("openpyxl", "xlsx")
    openpyxl = pytest.importorskip("openpyxl")
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
    with pytest.raises(SourceError, match=r"^q\.xlsx: unreadable-source: "):
        reasons("own_documents", questions=tmp_path / "q.xlsx", documents=tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"doc,question,answer,pages\na,{'x' * LONG},I,1\n", r"^q\.csv, line 2: unreadable-source: .*at most 131,?072"),
        ('"' * LONG, r"^q\.csv"),
    ],
    ids=["cell", "line"],
)
def test_a_cell_of_a_million_characters_and_a_table_of_one_line_are_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(text, "ascii")
    with pytest.raises(SourceError, match=said):
        reasons("own_documents", questions=tmp_path / "q.csv", documents=tmp_path)


# Pictures and pages


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of pictures in which one is a picture, and one is huge; a picture outside."""
    folder = tmp_path / "images"
    (folder / "a").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(tmp_path / "outside.jpg")
    for inner in (folder, folder / "a"):
        Image.new("RGB", (9, 9)).save(inner / "real.jpg")
        (inner / "huge.png").write_bytes(HUGE_PNG)
        (inner / "link.jpg").symlink_to(tmp_path / "outside.jpg")
        (inner / "loop.jpg").symlink_to(inner / "loop.jpg")
        (inner / "device.jpg").symlink_to("/dev/zero")
        os.mkfifo(inner / "pipe.jpg")
    return folder


HUGE_PNG = claimed_png(60_000, 60_000, bytes(1_000))


def pictures_of(name: str, images: Path) -> Pictures:
    reader: Any = reader_type(name)()
    sources = dict.fromkeys((*reader.sources, *reader.optional_sources), images)
    return Pictures("x", lambda asked: reader.image(sources, asked), LIMITS.pixels)


def one_picture(path: Path) -> Any:
    return Pictures("x", lambda _: path, LIMITS.pixels)[path.name]


# fmt: off
HOSTILE = (
    "../outside.jpg", "../../etc/passwd", "/etc/passwd", "/dev/zero", "link.jpg", "link", "loop.jpg", "device.jpg",
    "device", "pipe.jpg", "pipe", "a/link.jpg", "a/device.jpg", "a/pipe.jpg", "a/../../outside.jpg", "", ".", "..",
    "a\0b", "x" * 5000, "\ud800", "\udcff", "a/", "//", "~/x", "file:///etc/passwd", "real.jpg/", "real.jpg/../..",
)
# fmt: on


@pytest.mark.parametrize("name", WITH_IMAGES)
def test_no_reader_gives_a_picture_from_outside(name: str, images: Path) -> None:
    pictures = pictures_of(name, images)
    prefixes = ("", "train/", "test/", "a/", f"{images}/", f"{images.parent}/", "obelics/")
    for asked in (f"{prefix}{hostile}" for prefix in prefixes for hostile in HOSTILE):
        try:
            found = pictures[asked]
        except (Rejected, SourceError):
            continue
        assert isinstance(found.source, Path)
        assert found.source.resolve() in (images / "real.jpg", images / "a" / "real.jpg")


@pytest.mark.parametrize("name", WITH_FILES)
def test_every_reader_gives_a_picture_and_rejects_one_of_a_huge_header(name: str, images: Path) -> None:
    pictures = pictures_of(name, images)
    real, huge = {
        "infoseek": ("real", "huge"),
        "image_folders": ("train/a/real.jpg", "train/a/huge.png"),
    }.get(name, ("real.jpg", "huge.png"))
    assert (pictures[real].width, pictures[real].height) == (9, 9)
    with pytest.raises(Rejected, match=r"huge\.png: broken-image: .*3600000000 pixels\) exceeds limit"):
        pictures[huge]


def test_a_download_in_the_hubs_cache_may_be_links_to_its_own_blobs(tmp_path: Path) -> None:
    cache = tmp_path / "datasets--owner--name"
    snapshot = cache / "snapshots" / "5ca1ab1e" / "images"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()
    for blob in (cache / "blobs" / "1", tmp_path / "2"):
        blob.touch()
        (snapshot / f"{blob.name}.jpg").symlink_to(blob)
    assert mt.readers.file_inside(snapshot, "1.jpg") == snapshot / "1.jpg"
    assert mt.readers.file_inside(snapshot, "2.jpg") is None


def test_a_page_of_a_huge_header_refuses_its_document(tmp_path: Path) -> None:
    (tmp_path / "deck-1-1024.png").write_bytes(HUGE_PNG)
    with pytest.raises(SourceError, match=r"^deck-1-1024\.png: broken-page: .*3600000000 pixels\) exceeds limit"):
        sizes_of(PageImages((tmp_path / "deck-1-1024.png",)), 144, LIMITS)


def test_a_picture_file_of_terabytes_is_not_hashed(tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "x.bmp")
    os.truncate(tmp_path / "x.bmp", 1 << 40)
    with pytest.raises(Rejected, match=r"^x\.bmp: size-of-an-image: expected at most 268435456 bytes, found 10995116"):
        one_picture(tmp_path / "x.bmp")


GIF = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00"


@pytest.mark.parametrize("data", [GIF + b"!", GIF + b"!\xf9\x00", GIF + b"!\xff\x0bNETSCAPE2.0\x00", GIF + b",\x00"])
def test_a_gif_that_ends_in_a_block_is_a_reject(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.gif").write_bytes(data)
    with pytest.raises(Rejected, match=r"^x\.gif: broken-image"):
        one_picture(tmp_path / "x.gif")


def test_a_picture_whose_name_is_not_utf8_is_a_fault(tmp_path: Path) -> None:
    folders = {split: tmp_path / split for split in ("train", "test")}
    for folder in folders.values():
        (folder / "a").mkdir(parents=True)
        for name in ("a.png", os.fsdecode(b"caf\xe9.png")):
            Image.new("RGB", (9, 9)).save(folder / "a" / name)
    assert reasons("image_folders", **folders) == ["", "invalid-unicode"]
    [*_, fault] = read_rows(reader_type("image_folders")(), folders)
    assert isinstance(fault, mt.readers.RowFault)
    shown = "a/caf\\udce9.png"
    assert fault.fault == Fault("invalid-unicode", "a name in UTF-8", shown, shown, "name", todo="rename the file")
