"""Changed pictures, PDFs and sources of passages are read, or refused by name."""

import io
import json
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutated import changed_bytes, changed_file, fuzzing, refusal_or_none
from PIL import Image

from mmlongbench.corpus import Article
from mmlongbench.corpus.articles import fit
from mmlongbench.corpus.cutting import cut
from mmlongbench.corpus.sources import find_source
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import page_keys, page_sizes, page_text, render_pages
from mmlongbench.documents.pictures import Pictures
from mmlongbench.documents.pixels import opened
from mmlongbench.errors import Fault
from mmlongbench.io.json_lines import json_line_at, json_lines, load_json

LIMITS = Limits(bytes=1_000_000, pages=9, side=2_000, pixels=1_000_000)


def pictures() -> dict[str, bytes]:
    """Small pictures of every format that is opened."""
    exif = Image.Exif()
    exif[0x0112] = 6
    drawn = Image.linear_gradient("L").resize((12, 10)).convert("RGB")
    found = {}
    for form in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"):
        file = io.BytesIO()
        drawn.save(file, form, **({} if form in ("GIF", "BMP") else {"exif": exif}))
        found[form] = file.getvalue()
    return found


PICTURES = pictures()


@pytest.mark.parametrize("form", PICTURES)
def test_a_changed_picture_is_read_or_refused(form: str, tmp_path: Path) -> None:
    path = tmp_path / "x"

    @fuzzing(examples=25)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        path.write_bytes(changed_bytes(data.draw, PICTURES[form]))
        with refusal_or_none("x"):
            picture = Pictures("x", lambda _: path, LIMITS.pixels, longest=50)["x"]
            assert len(picture.likeness()) == 768
            with opened(io.BytesIO(picture.released())) as released:
                assert released.size == (picture.width, picture.height)

    run()


@pytest.mark.parametrize("form", PICTURES)
def test_a_picture_that_is_not_changed_is_read(form: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(PICTURES[form])
    assert len(Pictures("x", lambda _: tmp_path / "x", LIMITS.pixels, longest=50)["x"].likeness()) == 768


def drawn_pdf() -> bytes:
    document = pymupdf.open()
    for number in range(3):
        document.new_page(width=100, height=80).insert_text((9, 30), f"This is page {number}.")
    data: bytes = document.tobytes(no_new_id=True)
    return data


def test_a_changed_pdf_is_read_or_refused(tmp_path: Path) -> None:
    whole, path = drawn_pdf(), tmp_path / "x.pdf"

    @fuzzing(examples=25)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        path.write_bytes(changed_bytes(data.draw, whole))
        with refusal_or_none("x"):
            sizes = page_sizes(path, 72, LIMITS)
            assert len([*page_text(path, LIMITS)]) == len([*page_keys(path, LIMITS)]) == len(sizes)
            assert [size for _, size, _ in render_pages(path, range(len(sizes)), 72, 50, LIMITS)] == sizes

    run()


def test_a_pdf_that_is_not_changed_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(drawn_pdf())
    assert page_sizes(tmp_path / "x.pdf", 72, LIMITS) == [(100, 80)] * 3
    assert [text.strip() for text in page_text(tmp_path / "x.pdf", LIMITS)] == [f"This is page {n}." for n in range(3)]


ARTICLES: list[dict[str, Any]] = [
    {"id": "1", "title": "Ash", "text": "An ash is a tree.\n\nIt is hard."},
    {"_id": "2", "wikipedia_title": "Oak", "text": ["Oak", "An oak is a tree.", "Section::::Wood.", "It is hard."]},
    {"wikipedia_id": "3", "title": "Elm", "contents": "Elm\nAn elm is a tree."},
]


def passages(format: str) -> tuple[str, bytes]:
    """(name, content) of a source of passages."""
    if format == "tsv":
        return "x.tsv", b'id\ttext\ttitle\n1\t"An ash ""is"" a tree."\tAsh\n2\tOak.\tOak\n'
    return "x.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in ARTICLES)


@pytest.mark.parametrize(("format", "number"), [("jsonl", 3), ("kilt", 3), ("tsv", 2)])
def test_passages_that_are_not_changed_are_articles(format: str, number: int, tmp_path: Path) -> None:
    name, whole = passages(format)
    (tmp_path / name).write_bytes(whole)
    found = list(fit(find_source(str(tmp_path / name), format).articles()))
    assert sum(isinstance(each, Article) for each in found) > 0
    assert len(found) == number


@pytest.mark.parametrize("format", ["jsonl", "kilt", "tsv"])
def test_changed_passages_are_articles_or_faults(format: str, tmp_path: Path) -> None:
    name, whole = passages(format)
    path = tmp_path / name

    @fuzzing(examples=25)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        path.write_bytes(whole)
        path.write_bytes(changed_file(data.draw, path))
        with refusal_or_none("x"):
            for found in fit(find_source(str(path), format).articles()):
                assert isinstance(found, Article | Fault)
                text = [str(found)] if isinstance(found, Fault) else [piece.text for piece in cut(found)]
                assert text

    run()


@fuzzing(examples=60)
@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b"{", b"}", b'"a"', b":", b"1", b"\n", b"[", b"]"])).map(b"".join)
)
def test_any_bytes_are_lines_of_objects_or_faults(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "x.jsonl"
    path.write_bytes(data)
    for line in json_lines(path):
        assert json_line_at(path, line.offset) == line.value or line.value != line.value
        assert isinstance(line.value, dict | Fault)
    with refusal_or_none("x.jsonl"):
        load_json(path, "JSON")
