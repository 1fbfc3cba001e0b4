"""Files without usable data: devices, pipes, links out of the folder, bombs, endless lines. None blocks."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutated import refusal_or_none

from mmlongbench.building.stages.rows import read_rows
from mmlongbench.corpus.sources import find_source
from mmlongbench.errors import Fault, ReleaseError, SourceError
from mmlongbench.io.folders import pdfs_by_name
from mmlongbench.io.json_lines import json_lines, load_json
from mmlongbench.io.safe_read import bounded_lines
from mmlongbench.manifest.registry import installed, reader_type
from mmlongbench.task.formats import JSON_LINES
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row, RowFault

READERS = [plugin.name for plugin in installed("reader") if not plugin.problem]


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines may have a thousand bytes."""
    for module in (
        "mmlongbench.io.safe_read",
        "mmlongbench.io.json_lines",
        "mmlongbench.task.formats",
        "mmlongbench.corpus.lines",
    ):
        monkeypatch.setattr(f"{module}.MAX_BYTES", 1_000)


def device(folder: Path, kind: str) -> Path:
    """A file that never ends, or that nobody writes to."""
    path = folder / kind
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    return path


def read_all(reader: Reader[Row], sources: dict[str, Path]) -> list[Any]:
    """Read all that a build reads, each part of which may be refused by name; return the rows and web pages."""
    read: list[Any] = []
    with refusal_or_none():
        read += read_rows(reader, sources)
    with refusal_or_none():
        read += reader.web_pages(sources)
    for part in (reader.documents, reader.shows, reader.image_classes):
        with refusal_or_none():
            part(sources)
    return read


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_or_a_device_in_place_of_a_source_is_not_read(name: str, kind: str, tmp_path: Path) -> None:
    reader = reader_type(name)()
    path = device(tmp_path, kind)
    names = (*reader.sources, *reader.optional_sources)
    assert [found for found in read_all(reader, dict.fromkeys(names, path)) if not isinstance(found, RowFault)] == []


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_is_named_as_what_it_is(kind: str, tmp_path: Path) -> None:
    path = device(tmp_path, kind)
    readers: list[Callable[[], object]] = [lambda: list(json_lines(path)), lambda: load_json(path, "rows")]
    for read in readers:
        with pytest.raises(SourceError, match=rf"^{kind}: unreadable-source: expected .*, found a pipe or a device"):
            read()


def test_a_document_that_is_a_link_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret.pdf").write_bytes(b"%PDF-1.7")
    (folder / "real.pdf").write_bytes(b"%PDF-1.7")
    (folder / "out.pdf").symlink_to(tmp_path / "secret.pdf")
    (folder / "in.pdf").symlink_to(folder / "real.pdf")
    (folder / "zero.pdf").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.pdf")
    found = pdfs_by_name(folder)
    assert sorted(found) == ["in", "out", "real"]
    said = (
        "path-outside-source: expected a PDF that lies in the folder, found a link out of it; copy it into the folder"
    )
    assert str(found["out"]) == f"out.pdf: {said}"
    assert [name for name, path in found.items() if isinstance(path, Path)] == ["in", "real"]


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
    assert isinstance(fault, RowFault)
    assert (fault.id, fault.fault.reason) == (f"out.{ending}", "path-outside-source")


def test_an_article_that_is_a_link_out_of_its_folder_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "articles").mkdir()
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "articles" / "a.txt").symlink_to(tmp_path / "secret")
    [fault] = find_source(str(tmp_path / "articles"), "folder").articles()
    assert isinstance(fault, Fault)
    assert (fault.reason, fault.file) == ("path-outside-source", "a.txt")


# Lines and files without end


@pytest.fixture
def long_line(tmp_path: Path) -> Path:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 12_345 + b'"}\n{"a": 3}\n')
    return path


@pytest.mark.usefixtures("short_lines")
def test_a_line_without_end_is_passed_over_in_pieces(long_line: Path) -> None:
    first, fault, last = json_lines(long_line)
    assert (first.value, last.value, last.number) == ({"a": 1}, {"a": 3}, 3)
    assert fault.value == Fault("line-too-long", "at most 1000 bytes", "more", todo="shorten the row, or take it out")
    assert long_line.read_bytes()[last.offset :] == b'{"a": 3}\n'


@pytest.mark.usefixtures("short_lines")
def test_a_released_line_without_end_is_named(long_line: Path) -> None:
    (_, first), (where, error), (_, last) = JSON_LINES.read(long_line)
    assert (first, last, where) == ({"a": 1}, {"a": 3}, "line 2")
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
    lines = data.splitlines(keepends=True)
    assert [line for _, _, line in found] == [line if len(line) <= 1000 else None for line in lines]
    assert [offset for _, offset, _ in found] == [sum(map(len, lines[:n])) for n in range(len(lines))]


@pytest.mark.usefixtures("short_lines")
def test_a_bomb_of_gzip_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "train.json.gz"
    path.write_bytes(gzip.compress(b" " * 3_000_000))
    size = path.stat().st_size
    with pytest.raises(SourceError) as caught:
        load_json(path, "annotations")
    said = f"size-of-a-file: expected at most {size * 100} bytes, found more in {size} packed ones; give a smaller file"
    assert str(caught.value) == f"train.json.gz: {said}"
    reader = reader_type("inaturalist")()
    with pytest.raises(SourceError, match="size-of-a-file"):
        list(read_rows(reader, {"images": tmp_path, "train": path, "test": path}))


@pytest.mark.usefixtures("short_lines")
def test_a_bomb_of_gzip_as_lines_is_passed_over(tmp_path: Path) -> None:
    good = json.dumps({"id": "1", "title": "T", "text": "A."}).encode()
    (tmp_path / "x.gz").write_bytes(gzip.compress(good + b"\n" + b" " * 3_000_000 + b"\n" + good.replace(b"1", b"2")))
    first, fault, last = find_source(str(tmp_path / "x.gz"), "jsonl").articles()
    assert (getattr(first, "doc_id", ""), getattr(last, "doc_id", "")) == ("1", "2")
    said = "expected at most 1,000 bytes a line, found more; cut the article into several lines"
    assert str(fault) == f"x.gz, line 2: line-too-long: {said}"


@pytest.mark.parametrize(
    "data",
    [b"\x1f\x8b", gzip.compress(b'{"a": 1}' * 99, mtime=0)[:-9], b"\x1f\x8b\x08\x00" + b"\xff" * 60],
    ids=["its first bytes", "cut off", "noise"],
)
def test_a_torn_gzip_file_is_named(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(
        SourceError, match=r"^x\.json: broken-gzip: expected a whole gzip stream, found .*fetch it anew"
    ):
        load_json(tmp_path / "x.json", "rows")


def test_a_file_that_is_too_large_to_be_read_whole_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").touch()
    os.truncate(tmp_path / "x.json", 1 << 40)
    with pytest.raises(SourceError, match=r"size-of-a-file: expected at most 2147483648 bytes, found 1099511627776"):
        load_json(tmp_path / "x.json", "rows")
    reader = reader_type("govreport")()
    os.truncate(tmp_path / "x.json", 1 << 27)
    (tmp_path / "y.json").write_text("{}")
    reasons = [getattr(row, "fault", None) for row in read_rows(reader, {"reports": tmp_path, "documents": tmp_path})]
    assert [fault.reason for fault in reasons if fault] == ["size-of-a-file", "missing-or-mistyped-field"]


# Values that are no text, or have no end


NESTED = ["[" * 400 + "]" * 400, '{"a":' * 400 + "1" + "}" * 400, '{"a":[' * 200 + "]}" * 200]


@pytest.mark.parametrize("text", NESTED, ids=["lists", "objects", "both"])
def test_what_is_nested_without_end_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(SourceError, match=r"^x\.json: nested-too-deeply: expected at most 100 levels of lists and obj"):
        load_json(tmp_path / "x.json", "rows")
    (tmp_path / "x.jsonl").write_text(f'{{"id": 1, "highlight": {text}}}\n{{"a": 3}}')
    fault, row = (line.value for line in json_lines(tmp_path / "x.jsonl"))
    assert isinstance(fault, Fault)
    assert (fault.reason, row) == ("nested-too-deeply", {"a": 3})


def test_a_hundred_levels_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[" * 100 + "]" * 100)
    value: Any = load_json(tmp_path / "x.json", "rows")
    for _ in range(99):
        (value,) = value
    assert value == []
