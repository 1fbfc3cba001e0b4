"""PDFs: read as MuPDF renders them or refused with a named fault; their pages as keys, texts, and pictures for OCR."""

import hashlib
import io
import os
import pickle
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import unwrap
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pymupdf
import pytest
from hostile_pdfs import CATALOGUE, LETTER
from hostile_pdfs import pdf as made_pdf
from ocr_programs import StandIn, programs_of
from PIL import Image
from question_world import Doc
from tiny import draw_pdf

from mmlongbench.documents import hairlines, ocr, pdf
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import page_facts
from mmlongbench.documents.pages import KeptTexts, PageImages, images_to_read, read_pages_of, texts_of
from mmlongbench.documents.pdf import open_pdf, pages_to_read
from mmlongbench.errors import Fault, ReaderDiedError, SourceError
from mmlongbench.questions.writing.pages import grid_rows, kind_of

LIMITS = Limits(bytes=1_000_000, pages=20, side=16_384)
LETTER_AT_144 = (1224, 1584)


# in this process, where tests can make MuPDF fail
read_pages, render_pages = unwrap(pdf.read_pages), unwrap(pdf.render_pages)


def page_sizes(path: Path, dpi: int, limits: Limits) -> list[tuple[int, int]]:
    return list(unwrap(pdf.page_sizes)(path, dpi, limits))


def page_text(path: Path, limits: Limits) -> list[str]:
    return [page.text for page in read_pages(path, limits)]


def page_tree(kids: str, count: int, **more: str) -> bytes:
    others = {int(name.removeprefix("object")): text for name, text in more.items()}
    return made_pdf({1: CATALOGUE, 2: f"<</Type/Pages/Kids[{kids}]/Count {count}>>", **others})


def one_page(entries: str, **more: str) -> bytes:
    return page_tree("3 0 R", 1, object3=f"<</Type/Page/Parent 2 0 R{entries}>>", **more)


def stream(content: str, entries: str = "") -> str:
    return f"<</Length {len(content)}{entries}>>stream\n{content}\nendstream"


def drawn_pdf(pages: int = 3, **options: Any) -> bytes:
    """A well-made PDF, as PyMuPDF writes it."""
    document = pymupdf.open()
    for number in range(pages):
        document.new_page(width=612, height=792).insert_text((72, 72), f"This is page {number}. " * 5)
    data: bytes = document.tobytes(**options)
    return data


def refused(path: Path, limits: Limits = LIMITS) -> Fault:
    with pytest.raises(SourceError) as caught:
        page_sizes(path, 144, limits)
    fault = caught.value.fault
    assert fault.file == path.name
    assert fault.expected
    assert fault.found
    assert str(path.parent) not in str(fault)
    assert pickle.loads(pickle.dumps(caught.value)).fault == fault
    return fault


def planned_and_rendered(tmp_path: Path, data: bytes) -> list[tuple[int, int]]:
    """The planned sizes, once they were found to be those of the JPEGs."""
    path = tmp_path / "x.pdf"
    path.write_bytes(data)
    planned = page_sizes(path, 144, LIMITS)
    rendered = list(render_pages(path, range(len(planned)), 144, 90, LIMITS))
    assert [size for _, size, _ in rendered] == planned
    for _, size, jpeg in rendered:
        with Image.open(io.BytesIO(jpeg)) as picture:
            assert picture.size == size
    assert len(page_text(path, LIMITS)) == len(planned)
    return planned


def png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "PNG")
    return file.getvalue()


LETTER_PAGE = f"<</Type/Page/Parent 2 0 R{LETTER}>>"
BOUND = "sides of 1 to 16384 pixels and an area of 64000000 at 144 DPI"
PASSWORD, COUNTED = "a PDF that opens without a password", "a PDF whose pages can be counted"
PASSWORDS: tuple[dict[str, Any], ...] = ({"user_pw": "user"}, {"user_pw": "user", "owner_pw": "owner"})
REFUSED: dict[str, tuple[bytes, dict[str, str]]] = {
    **{
        kind: (data, {"reason": "not-a-pdf", "found": repr(data[:12])})
        for kind, data in {
            "html": b"<!DOCTYPE html><html><body>Not found</body></html>",
            "text": b"a text\n" * 500,
            "png": png(),
            "zip": b"PK\x03\x04" + bytes(100),
        }.items()
    },
    "empty": (b"", {"reason": "broken-document", "found": "an empty file"}),
    "head": (b"%PDF-1.7\n", {"reason": "broken-document"}),
    "head and end": (b"%PDF-1.7\n%%EOF\n", {"reason": "broken-document"}),
    "head and noise": (b"%PDF-1.7\n" + b"\xff\x00" * 5000, {"reason": "broken-document"}),
    **{
        f"{share} of it": (drawn_pdf(12)[: int(len(drawn_pdf(12)) * share)], {"reason": "-document"})
        for share in (0.2, 0.8, 0.99)
    },
    "half": (
        drawn_pdf(12)[: len(drawn_pdf(12)) // 2],
        {"reason": "truncated-document", "todo": "fetch it again"},
    ),
    **{
        f"{method}, {len(words)} passwords": (
            drawn_pdf(encryption=getattr(pymupdf, f"PDF_ENCRYPT_{method}"), **words),
            {"reason": "encrypted-document", "expected": PASSWORD},
        )
        for method in ("RC4_40", "AES_128", "AES_256")
        for words in PASSWORDS
    },
    "an unknown encryption": (
        one_page(LETTER).replace(b"trailer\n<<", b"trailer\n<</Encrypt<</Filter/Unknown/V 9>>"),
        {"reason": "broken-document"},
    ),
    "no kids": (page_tree("", 0, object3="null"), {"reason": "document-without-pages", "found": "none"}),
    "no page": (page_tree("3 0 R", 0, object3="null"), {"reason": "document-without-pages", "found": "none"}),
    "no catalogue": (made_pdf({1: "<</Type/Nothing>>"}), {"reason": "document-without-pages"}),
    **{
        f"{count} pages": (
            page_tree("3 0 R", count, object3=LETTER_PAGE),
            {"reason": "broken-document", "expected": COUNTED},
        )
        for count in (-1, 2_000_000_000)
    },
    **{
        f"kids {kids or 'none'}": (
            page_tree(kids, count, object3=LETTER_PAGE),
            {"reason": "unreadable-page", "place": f"page {page}"},
        )
        for kids, count, page in (("", 1, 1), ("2 0 R", 1, 1), ("3 0 R", 3, 2))
    },
    "too many pages": (
        drawn_pdf(21),
        {
            "reason": "pages-of-a-document",
            "expected": "at most 20 pages",
            "found": "21",
            "todo": "raise limits.pages",
        },
    ),
    "too many bytes": (
        bytes(1_000_001),
        {"reason": "size-of-a-document", "expected": "at most 1000000 bytes", "found": "1000001"},
    ),
    **{
        box: (
            one_page(box),
            {"reason": "size-of-a-page", "found": size, "place": "page 1", "expected": BOUND, "todo": "limits.side"},
        )
        for box, size in {
            "/MediaBox[0 0 25000 25000]": "50000 × 50000",
            "/MediaBox[0 0 612 25000]": "1224 × 50000",
            f"{LETTER}/UserUnit 100": "122400 × 158400",
            f"/MediaBox[0 0 1{'0' * 30} 10]": "16777216 × 20",
            "/MediaBox[-2147483647 0 2147483647 10]": "16777216 × 20",
        }.items()
    },
}
"""Bytes that are no usable document, and what their fault says."""


@pytest.mark.parametrize(("data", "facts"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_no_usable_document_is_refused_by_name(
    data: bytes, facts: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "x.pdf").write_bytes(data)
    fault = refused(tmp_path / "x.pdf")
    assert {name: fact for name, fact in facts.items() if fact not in str(getattr(fault, name))} == {}, fault


def test_a_missing_file_and_a_folder_are_refused_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "folder.pdf").mkdir()
    missing, folder = refused(tmp_path / "none.pdf"), refused(tmp_path / "folder.pdf")
    assert (missing.reason, missing.found) == ("missing-document", "no such file")
    assert (folder.reason, folder.found) == ("missing-document", "a folder")


def test_a_file_that_the_system_does_not_give_is_refused(tmp_path: Path) -> None:
    fault = refused(tmp_path / f"{'x' * 300}.pdf")
    assert (fault.reason, fault.found) == ("unreadable-document", "File name too long")


def test_a_name_that_is_not_utf8_is_read_or_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.pdf")
    path.write_bytes(drawn_pdf())
    assert refused(path).reason == "broken-document"


def test_the_longest_side_that_is_allowed_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(one_page("/MediaBox[0 0 8192 1]"))
    assert page_sizes(path, 144, LIMITS) == [(16_384, 2)]
    assert refused(path, Limits(1_000_000, 20, 16_383)).reason == "size-of-a-page"


# Strange pages: what is planned is what is rendered


FORM = stream("/A Do", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</A 5 0 R>>>>")
DRAWS_ITSELF = f"{LETTER}/Contents 4 0 R/Resources<</XObject<</A 5 0 R>>>>"
NO_BOXES = ("[0 0 0 0]", "[0 0 612 0]", "[0 0 NaN NaN]", "(words)", "[0 0 612]", "[null null null null]", "9 0 R")
CONTENTS = {
    "a filter that fails": stream("x" * 10, "/Filter/FlateDecode"),
    "an unknown filter": stream("x" * 10, "/Filter/Unknown"),
    "operators without end": stream("q q q q BT ET (((( 1 0 0 Do"),
    "a false length": "<</Length 999999999>>stream\nq",
    "no stream": CATALOGUE,
}
DRAWN: dict[str, tuple[bytes, list[tuple[int, int]]]] = {
    **{
        box: (one_page(box), [size])
        for box, size in {
            "/MediaBox[0 0 595.28 841.89]": (1191, 1684),
            f"{LETTER}/Rotate 90": (1584, 1224),
            f"{LETTER}/Rotate -180": (1224, 1584),
            f"{LETTER}/Rotate 270": (1584, 1224),
            f"{LETTER}/Rotate 99999999999": (1224, 1584),
            f"{LETTER}/CropBox[100 100 300 500]": (400, 800),
            f"{LETTER}/CropBox[100 100 300 500]/Rotate 90": (800, 400),
            f"{LETTER}/CropBox[1000 1000 3000 5000]": (1224, 1584),
            "/MediaBox[-100 -50 512 742]": (1224, 1584),
            "/MediaBox[-100.3 50.7 511.7 842.7]": (1224, 1584),
            "/MediaBox[612 792 0 0]": (1224, 1584),
            "/MediaBox[0 0 -612 -792]": (1224, 1584),
            f"{LETTER}/UserUnit 2": (2448, 3168),
            "/MediaBox[0 0 0.1 0.1]": (2, 2),
        }.items()
    },
    "no box": (one_page(""), [LETTER_AT_144]),
    **{box: (one_page(f"/MediaBox {box}"), [LETTER_AT_144]) for box in NO_BOXES},
    **{f"a page that is {kid}": (page_tree("3 0 R", 1, object3=kid), [LETTER_AT_144]) for kid in ("[1 2 3]", "null")},
    **{
        name: (one_page(f"{LETTER}/Contents 4 0 R", object4=content), [LETTER_AT_144])
        for name, content in CONTENTS.items()
    },
    "a form that draws itself": (one_page(DRAWS_ITSELF, object4=stream("/A Do"), object5=FORM), [LETTER_AT_144]),
    "a deep page tree": (
        page_tree(
            "3 0 R",
            1,
            **{f"object{n}": f"<</Type/Pages/Parent {n - 1} 0 R/Kids[{n + 1} 0 R]/Count 1>>" for n in range(3, 1003)},
            object1003=LETTER_PAGE,
        ),
        [LETTER_AT_144],
    ),
    "a broken table": (drawn_pdf().replace(b"startxref\n", b"startxref\n9"), [LETTER_AT_144] * 3),
    "an owner's password": (
        drawn_pdf(encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", permissions=0),
        [LETTER_AT_144] * 3,
    ),
}


@pytest.mark.parametrize(("data", "sizes"), DRAWN.values(), ids=DRAWN)
def test_a_strange_page_is_planned_as_rendered(data: bytes, sizes: list[tuple[int, int]], tmp_path: Path) -> None:
    assert planned_and_rendered(tmp_path, data) == sizes


# Pages that fail after their document was found fit


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, method: str, error: Exception) -> Iterator[None]:
    """MuPDF fails at a step, in a way of its own."""

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(pymupdf.Page, method, fail)
        yield


ERRORS = [
    pymupdf.mupdf.FzErrorLimit("too many things"),
    RuntimeError("code=2: too many things"),
    ValueError("too many things"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_page_that_fails_at_rendering_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(drawn_pdf())
    with failing(monkeypatch, "get_pixmap", error), pytest.raises(SourceError) as caught:
        list(render_pages(path, [2], 144, 90, LIMITS))
    message = str(caught.value)
    assert message.startswith("x.pdf, page 3: unrenderable-page: expected a page that can be rendered, found ")
    assert "too many things" in message
    assert message.endswith("mend the document, or take it out of the sources, and build into a new folder")
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), SourceError)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_page_whose_text_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(drawn_pdf())
    with failing(monkeypatch, "get_text", error), pytest.raises(SourceError, match=r"x\.pdf, page 1: unreadable-page"):
        page_text(path, LIMITS)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("code=2: malloc (1048576 bytes) failed")])
def test_want_of_memory_is_no_damage_of_a_page(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(drawn_pdf())
    with failing(monkeypatch, "get_text", error), pytest.raises(MemoryError):
        page_text(path, LIMITS)


def test_a_page_that_is_not_there_stops_the_build(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(drawn_pdf())
    with pytest.raises(SourceError, match=r"x\.pdf, page 8: unrenderable-page"):
        list(render_pages(path, [7], 144, 90, LIMITS))


def test_a_page_that_is_too_long_for_a_jpeg_stops_the_build(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(one_page("/MediaBox[0 0 70000 1]"))
    with pytest.raises(SourceError, match=r"x\.pdf, page 1: unrenderable-page"):
        list(render_pages(path, [0], 72, 90, Limits(1_000_000, 20, 100_000)))


def test_an_error_of_the_caller_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(drawn_pdf())
    with pytest.raises(RuntimeError, match="mine"), open_pdf(path, LIMITS):
        raise RuntimeError("mine")


# Pages


def test_a_relative_path_is_read_from_where_the_process_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, folder in enumerate(("one", "two"), 1):
        (tmp_path / folder).mkdir()
        draw_pdf(tmp_path / folder / "a.pdf", number)
    for folder, pages in (("one", 1), ("two", 2)):
        monkeypatch.chdir(tmp_path / folder)
        assert len([*pdf.page_sizes(Path("a.pdf"), 72, Limits())]) == pages


SENTENCE = "A page of more than forty letters is told from others by its words."


def test_keys_and_texts_are_the_same_read_at_once_or_apart(tmp_path: Path) -> None:
    with pymupdf.open() as document:
        for text in (SENTENCE, "stamp", "", SENTENCE):
            document.new_page(width=400, height=200).insert_text((20, 40), text)
        document.save(tmp_path / "four.pdf")
    found = list(read_pages_of(tmp_path / "four.pdf", Limits()))
    assert [page.key for page in found] == [page.key for page in pdf.read_pages(tmp_path / "four.pdf", Limits())]
    assert [page.text for page in found] == list(texts_of(tmp_path / "four.pdf", Limits()))
    assert [bool(page.key) for page in found] == [True, True, False, True]
    assert found[0] == found[3] != found[1]
    assert SENTENCE in found[0].text
    assert not any(page.lost or page.is_text_hidden for page in found)


def test_images_of_pages_have_keys_and_no_text(tmp_path: Path) -> None:
    draw_pdf(tmp_path / "ash.pdf", 2)
    files = []
    with pymupdf.open(tmp_path / "ash.pdf") as document:
        for number, page in enumerate(document):
            files.append(tmp_path / f"{number}.png")
            page.get_pixmap(dpi=72).save(files[-1])
    pages = PageImages(tuple(files))
    found = list(read_pages_of(pages, Limits()))
    assert [page.text for page in found] == ["", ""]
    assert len({page.key for page in found}) == 2
    assert [page.key for page in read_pages_of(pages, Limits(), keys=False)] == ["", ""]


def test_tables_and_figures_are_seen_without_a_network(tmp_path: Path) -> None:
    doc, path = Doc("harbours-a", 2), tmp_path / "harbours-a.pdf"
    doc.draw(path)
    pages = list(page_facts(path, Limits()))
    assert [page.key for page in pages] == [page.key for page in pdf.read_pages(path, Limits())]
    value = str(doc.value(2, "Winter", "Barges", doc.years[0]))
    assert ["Winter"] in pages[1].rows
    assert grid_rows(pages[1].rows) >= 4
    assert {*kind_of(pages[1], 2)[0]} == {"table", "figure", "text"}
    assert ["Barges", value] == next(row for row in reversed(pages[1].rows) if row[0] == "Barges")[:2]
    assert (pages[0].width, pages[0].height, pages[0].raster) == (420, 595, 0)
    assert pages[0].drawings < 100 <= pages[1].drawings


def test_a_page_under_a_picture_is_a_scan(tmp_path: Path) -> None:
    Image.new("RGB", (60, 80), "white").save(tmp_path / "page.png")
    with pymupdf.open() as document:
        page = document.new_page(width=300, height=400)
        page.insert_image(pymupdf.Rect(-50, -50, 350, 450), filename=str(tmp_path / "page.png"))
        document.save(tmp_path / "scan.pdf")
    facts = list(page_facts(tmp_path / "scan.pdf", Limits()))
    assert facts[0].raster == 1
    assert kind_of(facts[0], 2)[0] == ("scan",)


# OCR


WORDS = "Seven grey seals lay on the north pier."


@pytest.mark.parametrize(
    ("points", "dpi"),
    [((612, 792), 288), ((792, 1224), 288), ((1920, 1080), 223), ((4000, 4000), 80), ((14000, 9), 84)],
)
def test_large_pages_are_read_at_a_lower_resolution(points: tuple[int, int], dpi: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    with pymupdf.open() as document:
        document.new_page(width=points[0], height=points[1])
        document.save(path)
    assert page_sizes(path, 72, Limits())
    ((number, (width, height), data),) = pages_to_read(path, [], Limits())
    assert (number, ocr.dpi_of(*points)) == (0, dpi)
    assert width * height <= ocr.MAX_PIXELS * 1.01
    assert max(width, height) <= ocr.MAX_SIDE + 1
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size == (width, height)
        assert round(picture.info["dpi"][0]) == dpi


def test_known_pages_are_not_drawn(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    with pymupdf.open() as document:
        for _ in range(3):
            document.new_page(width=100, height=50)
        document.save(path)
    assert [bool(data) for _, _, data in pages_to_read(path, [1], Limits())] == [True, False, True]


@pytest.mark.parametrize(
    ("size", "dpi", "read"),
    [
        ((60, 80), 72, (240, 320)),
        ((60, 80), None, (60, 80)),
        ((60, 80), 600, (60, 80)),
        ((600, 500), None, (490, 408)),
    ],
)
def test_images_of_a_known_low_resolution_are_enlarged(
    size: tuple[int, int], dpi: int | None, read: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "MAX_PIXELS", 200_000)
    Image.new("RGB", size).save(tmp_path / "a.png")
    ((number, data),) = images_to_read(PageImages((tmp_path / "a.png",), dpi=dpi), [])
    with Image.open(io.BytesIO(data)) as picture:
        assert (number, picture.size, picture.mode) == (0, read, "RGB")
        assert [round(each) for each in picture.info.get("dpi", ())] == ([max(dpi, 288)] * 2 if dpi else [])


def test_transparent_parts_of_an_image_are_read_as_white(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "a.png")
    ((_, data),) = images_to_read(PageImages((tmp_path / "a.png",)), [])
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.getextrema() == ((255, 255),) * 3


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    Image.effect_noise((300, 300), 50).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match=r"a\.png: broken-page"):
        list(images_to_read(PageImages((tmp_path / "a.png",)), []))


def test_texts_are_kept_page_by_page_and_cut_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ocr" / "a.jsonl"
    kept = KeptTexts(path)
    assert kept.texts == {}
    kept.add(0, "é\n\ud7ff")
    with path.open("ab") as file:
        file.write(b'{"page":1,"text":"cu')
    kept = KeptTexts(path)
    kept.add(2, "")
    assert KeptTexts(path).texts == {0: "é\n\ud7ff", 2: ""}
    path.write_bytes(path.read_bytes() + b"\0" * 20 + b'\n{"page":"3","text":""}\n[]\n')
    assert KeptTexts(path).texts == {0: "é\n\ud7ff", 2: ""}


def test_the_real_program_reads_a_page_always_alike(tmp_path: Path) -> None:
    needs.tesseract()
    path, kept = tmp_path / "a.pdf", KeptTexts()
    with pymupdf.open() as document:
        document.new_page(width=400, height=100).insert_text((20, 40), WORDS)
        document.new_page(width=1, height=1)
        document.save(path)
    first = list(texts_of(path, Limits(), ocr="all", kept=kept))
    assert first == [f"{WORDS}\n", ""]
    assert kept.texts == dict(enumerate(first))
    found = list(read_pages_of(path, Limits(), ocr="all"))
    assert ([page.text for page in found], [bool(page.key) for page in found]) == (first, [True, False])


def test_a_page_that_takes_the_program_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn(tmp_path / "bin")
    stand_in.after(0, f"exec {shutil.which('sleep')} 60")
    with (
        programs_of(stand_in.folder, monkeypatch, alone=True),
        pytest.raises(ReaderDiedError, match=r"^x\.pdf, page 4: tesseract takes longer than 0\.3 s"),
    ):
        ocr.read_page(b"", "x.pdf, page 4", 0.3)
    with (
        programs_of(stand_in.folder, monkeypatch, alone=True),
        pytest.raises(ReaderDiedError, match="or raise --seconds-a-page, and run the command again"),
    ):
        ocr.read_page(b"", "x.pdf, page 4", 0.3, "--seconds-a-page")


def test_what_is_no_picture_is_an_error_of_the_program() -> None:
    needs.tesseract()
    with pytest.raises(ReaderDiedError, match=r"^x\.pdf, page 4: tesseract failed \(.+\); run the command again"):
        ocr.read_page(b"no picture", "x.pdf, page 4", 60)


# Every page of the real PDFs: what is planned without rendering is what rendering gives


REAL_LIMITS = Limits(bytes=64 * 1024 * 1024, pages=500, side=16_384)
PDFS = sorted((needs.SHARED / "real/mmlongbench-doc/documents").glob("*.pdf"), key=lambda path: path.stat().st_size)
REAL = [pytest.param(path, marks=[pytest.mark.rare] if at else [], id=path.stem[:15]) for at, path in enumerate(PDFS)]
"""The smallest document is read for each change, and all of them now and then."""


@pytest.mark.parametrize("path", REAL or [pytest.param(None, id="absent")])
def test_every_page_of_a_real_document_is_as_planned(path: Path) -> None:
    needs.shared("real", "mmlongbench-doc", "documents")
    for dpi in (144, 72, 100):
        planned = page_sizes(path, dpi, REAL_LIMITS)
        some = sorted({0, len(planned) // 2, len(planned) - 1})
        with open_pdf(path, REAL_LIMITS) as document:
            for number in range(len(planned)) if dpi == 144 else some:
                pixels = document.load_page(number).get_pixmap(dpi=dpi, alpha=False)
                assert (pixels.width, pixels.height) == planned[number]
        if dpi == 144:
            rendered = list(render_pages(path, some, 144, 90, REAL_LIMITS))
            assert [(number, size) for number, size, _ in rendered] == [(number, planned[number]) for number in some]
            for _, size, data in rendered:
                with Image.open(io.BytesIO(data)) as picture:
                    assert (picture.format, picture.mode, picture.size) == ("JPEG", "RGB", size)
    assert len(page_text(path, REAL_LIMITS)) == len(planned)


@pytest.mark.rare
def test_the_real_documents_are_all_there() -> None:
    needs.shared("real", "mmlongbench-doc", "documents")
    assert len(PDFS) == 26
    assert sum(len(page_sizes(path, 72, REAL_LIMITS)) for path in PDFS) == 1035


# --- what is lost, hidden or thin -------------------------------------------------------------------------------------

PHOTO = Image.linear_gradient("L").resize((300, 150))
HELVETICA = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
HEAD, PICTURE = "BT /F1 18 Tf 60 700 Td (Harbour dues of Port Ellery) Tj ET\n", "q 450 0 0 225 60 180 cm /I Do Q\n"


def saved(form: str) -> bytes:
    file = io.BytesIO()
    PHOTO.save(file, form)
    return file.getvalue()


JPEG, JPX, FLATE = saved("JPEG"), saved("JPEG2000"), zlib.compress(PHOTO.tobytes())
NOISE = b"".join(hashlib.sha256(bytes([n])).digest() for n in range(60))


def photo(data: bytes, kind: str, height: int = 150, bits: int = 8, more: str = "") -> str:
    size = f"/Width 300/Height {height}/BitsPerComponent {bits}/ColorSpace/DeviceGray"
    return stream(data.decode("latin-1"), f"/Type/XObject/Subtype/Image{size}/Filter/{kind}{more}")


def content(data: bytes, kind: str = "FlateDecode") -> str:
    return stream(data.decode("latin-1"), f"/Filter/{kind}")


def shown_pdf(page: str, picture: str = "null", entries: str = LETTER, catalogue: str = "", **more: str) -> bytes:
    """A page with a font F1, a picture I and an invisible state G; `page` is its content, or the object that has it."""
    resources = "/Resources<</Font<</F1 5 0 R>>/XObject<</I 4 0 R>>/ExtGState<</G<</ca 0>>>>>>"
    drawn = page if page.startswith(("<<", "[", "null")) else stream(page)
    found = {3: f"<</Type/Page/Parent 2 0 R{entries}{resources}/Contents 6 0 R>>", 4: picture, 5: HELVETICA, 6: drawn}
    others = {int(name.removeprefix("object")): text for name, text in more.items()}
    pages = "3 0 R 7 0 R" if 7 in others else "3 0 R"
    tree = {1: f"<</Type/Catalog/Pages 2 0 R{catalogue}>>", 2: f"<</Type/Pages/Kids[{pages}]/Count {len(pages) // 5}>>"}
    return made_pdf({**tree, **found, **others})


FULL = zlib.compress(
    (HEAD + PICTURE + "".join(f"BT /F1 9 Tf 60 {n} Td (Quay {n * n}) Tj ET\n" for n in range(99))).encode()
)
SHOW, GOOD = HEAD + PICTURE, photo(JPEG, "DCTDecode")
BROKEN = FULL[:200] + b"\xff" * 40 + FULL[240:]
JBIG2 = struct.pack(">IBBBI", 0, 48, 0, 1, 19) + struct.pack(">IIIIBH", 300, 150, 0, 0, 0, 0)
LOST = {
    "a cut JPEG": shown_pdf(SHOW, photo(JPEG[: len(JPEG) // 2], "DCTDecode")),
    "a JPEG without its head": shown_pdf(SHOW, photo(b"\xff\xd8" + bytes(400), "DCTDecode")),
    "a cut picture": shown_pdf(SHOW, photo(FLATE[: len(FLATE) // 3], "FlateDecode")),
    "a picture of noise": shown_pdf(SHOW, photo(b"\x78\x9c" + NOISE, "FlateDecode")),
    "a cut JPX": shown_pdf(SHOW, photo(JPX[: len(JPX) // 4], "JPXDecode")),
    "a JPX without its head": shown_pdf(SHOW, photo(bytes(500), "JPXDecode")),
    "a segment of JBIG2 that nobody knows": shown_pdf(
        SHOW, photo(JBIG2 + struct.pack(">IBBBI3s", 1, 63, 0, 1, 3, b"abc"), "JBIG2Decode", bits=1)
    ),
    "a fax of noise": shown_pdf(SHOW, photo(NOISE, "CCITTFaxDecode", bits=1, more="/DecodeParms<</K -1/Columns 300>>")),
    "a filter that nobody knows": shown_pdf(SHOW, photo(JPEG, "FooDecode")),
    "no picture": shown_pdf(SHOW),
    "no picture of this name": shown_pdf(SHOW.replace("/I", "/J"), GOOD),
    "cut content": shown_pdf(content(FULL[: len(FULL) // 2]), GOOD),
    "damaged content": shown_pdf(content(BROKEN), GOOD),
    "content of a filter that nobody knows": shown_pdf(content(FULL, "FooDecode"), GOOD),
    "no content": shown_pdf("null", GOOD),
    "content of which a part is missing": shown_pdf("[8 0 R 9 0 R]", GOOD, object8=stream(HEAD)),
}
WHOLE = {
    "all": shown_pdf(content(FULL), GOOD),
    "a picture without its checksum": shown_pdf(SHOW, photo(FLATE[:-4], "FlateDecode")),
    "content without its checksum": shown_pdf(content(FULL[:-4]), GOOD),
    "content of a wrong checksum": shown_pdf(content(FULL[:-4] + b"abcd"), GOOD),
    "noise after the content": shown_pdf(content(FULL + b"noise"), GOOD),
    "a picture with more rows than are shown": shown_pdf(SHOW, photo(FLATE, "FlateDecode", height=140)),
    "operators that nobody knows": shown_pdf(f"{SHOW}foo 1 bar /GX gs Q Q 1 2 l S\n", GOOD),
}


@pytest.mark.parametrize(
    ("data", "is_lost"),
    [*((data, True) for data in LOST.values()), *((data, False) for data in WHOLE.values())],
    ids=[*LOST, *WHOLE],
)
def test_a_page_that_is_not_drawn_whole_is_known(data: bytes, is_lost: bool, tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(data)
    page_sizes(tmp_path / "x.pdf", 144, LIMITS)  # MuPDF does not repeat a warning that it gives here
    (page,) = read_pages(tmp_path / "x.pdf", LIMITS)
    assert bool(page.lost) == is_lost, page
    (page,) = pdf.read_pages(tmp_path / "x.pdf", LIMITS)
    assert bool(page.lost) == is_lost


def test_a_broken_picture_is_known_on_each_page_that_shows_it_and_on_no_other(tmp_path: Path) -> None:
    page = (
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 5 0 R>>/XObject<</I 4 0 R>>>>/Contents"
    )
    kids = {7: f"{page} 6 0 R>>", 8: f"{page} 9 0 R>>", 9: stream(HEAD), 3: f"{page} 6 0 R>>"}
    tree = {1: CATALOGUE, 2: "<</Type/Pages/Kids[3 0 R 8 0 R 7 0 R]/Count 3>>"}
    broken = photo(FLATE[: len(FLATE) // 3], "FlateDecode")
    (tmp_path / "x.pdf").write_bytes(made_pdf({**tree, **kids, 4: broken, 5: HELVETICA, 6: stream(SHOW)}))
    assert [bool(each.lost) for each in read_pages(tmp_path / "x.pdf", LIMITS)] == [True, False, True]


def test_memory_that_runs_out_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.pdf").write_bytes(WHOLE["all"])
    monkeypatch.setattr(pymupdf.TOOLS, "mupdf_warnings", lambda: "system error: malloc (16 bytes) failed")
    with pytest.raises(MemoryError):
        list(read_pages(tmp_path / "x.pdf", LIMITS))


def words_at(y: int, words: str, size: float = 12) -> str:
    return f"BT /F1 {size} Tf 60 {y} Td ({words}) Tj ET\n"


UNSEEN = {
    "white": f"1 g {words_at(600, 'WHITE')} 0 g\n",
    "covered": f"{words_at(560, 'COVERED')} .9 g 55 550 200 30 re f 0 g\n",
    "not painted": f"q BT 3 Tr ET {words_at(520, 'UNPAINTED')} BT 0 Tr ET Q\n",
    "tiny": words_at(480, "TINY", 0.3),
    "transparent": f"q /G gs {words_at(440, 'TRANSPARENT')} Q\n",
}
SEEN = words_at(740, "In 2013 the dues of the harbour of Port Ellery were 4711 crowns, as the book says.")


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("kind", UNSEEN)
def test_text_that_cannot_be_seen_is_no_text(kind: str, turned: int, tmp_path: Path) -> None:
    data = shown_pdf(SEEN + UNSEEN[kind] + words_at(300, "And so it ends."), entries=f"{LETTER}/Rotate {turned}")
    (tmp_path / "x.pdf").write_bytes(data)
    (page,) = read_pages(tmp_path / "x.pdf", LIMITS)
    assert page.text.split() == [*SEEN.split("(")[1].split(")")[0].split(), *["And", "so", "it", "ends."]]
    assert page.is_text_hidden
    assert [page.text] == page_text(tmp_path / "x.pdf", LIMITS)


def test_a_hidden_number_is_not_taken_out_of_another(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(shown_pdf(f"{SEEN} 1 g {words_at(600, '3')} 0 g {words_at(560, '3')}"))
    (page,) = read_pages(tmp_path / "x.pdf", LIMITS)
    assert page.text.split()[1] == "2013"
    assert page.text.split().count("3") == 1


def test_pale_text_and_the_layer_of_a_scan_are_text(tmp_path: Path) -> None:
    layer = "".join(f"BT 3 Tr /F1 12 Tf 60 {y} Td (The layer of a scan is read) Tj ET\n" for y in (200, 260, 320))
    pale = f".85 g {words_at(600, 'PALE')} 1 0 0 rg 60 500 200 40 re f 0 .51 0 rg {words_at(510, 'GREEN ON RED')}"
    (tmp_path / "x.pdf").write_bytes(shown_pdf(f"{PICTURE} q {layer} Q {pale}", GOOD))
    (page,) = read_pages(tmp_path / "x.pdf", LIMITS)
    assert page.text.count("The layer of a scan is read") == 3
    assert {"PALE", "GREEN"} <= {*page.text.split()}
    assert not page.is_text_hidden


def test_a_page_whose_text_cannot_be_seen_is_blank(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(shown_pdf(f"BT 3 Tr ET {SEEN}"))
    assert list(read_pages(tmp_path / "x.pdf", LIMITS)) == [pdf.PageRead("", "", "", True)]


WAIT = words_at(740, "Please wait... If this message is not replaced, your viewer cannot display the form.")


@pytest.mark.parametrize(
    ("page", "catalogue", "is_refused"),
    [
        (WAIT, "/NeedsRendering true/AcroForm<</Fields[]/XFA 8 0 R>>", True),
        (WAIT, "/AcroForm<</Fields[]/XFA 8 0 R>>", True),
        (SEEN, "/AcroForm<</Fields[]/XFA 8 0 R>>", False),  # its pages are there
        (WAIT, "", False),
    ],
)
def test_a_form_without_its_pages_is_refused(page: str, catalogue: str, is_refused: bool, tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(shown_pdf(page, catalogue=catalogue, object8=stream("<xdp/>")))
    if is_refused:
        fault = refused(tmp_path / "x.pdf")
        assert (fault.reason, fault.todo) == ("dynamic-xfa-form", "print it to PDF first")
    else:
        assert page_sizes(tmp_path / "x.pdf", 144, LIMITS) == [LETTER_AT_144]


@pytest.mark.parametrize(
    ("streams", "reason"), [("/Identity", "encrypted-attachments"), ("/StdCF", "encrypted-document")]
)
def test_attachments_alone_may_be_encrypted(streams: str, reason: str, tmp_path: Path) -> None:
    handler = "/CF<</StdCF<</CFM/AESV2/AuthEvent/EFOpen/Length 16>>>>/EFF/StdCF"
    more = f"/StmF{streams}/StrF{streams}{handler}"
    crypt = f"<</Filter/Standard/V 4/R 4/Length 128/P -4/O <{'01' * 32}>/U <{'02' * 32}>{more}>>"
    data = shown_pdf(SEEN, object8=crypt).replace(b"/Root 1 0 R", b"/Root 1 0 R/Encrypt 8 0 R/ID[<01><02>]")
    (tmp_path / "x.pdf").write_bytes(data)
    assert refused(tmp_path / "x.pdf").reason == reason


def levels(tmp_path: Path, page: str, dpi: int = 144) -> tuple[Any, ...]:
    """The grey levels of a page as it is released, and as MuPDF draws it."""
    (tmp_path / "x.pdf").write_bytes(shown_pdf(page))
    with open_pdf(tmp_path / "x.pdf", LIMITS) as document:
        found = [hairlines.drawn(document.load_page(0), dpi), document.load_page(0).get_pixmap(dpi=dpi, alpha=False)]
    return tuple(np.frombuffer(each.samples, np.uint8).reshape(each.height, each.width, 3)[..., 1] for each in found)


@pytest.mark.parametrize("dpi", [72, 144, 200])
@pytest.mark.parametrize(
    "line",
    [
        "60 600 400 0 re f",
        "60 600 400 .05 re f",
        "q 50 500 500 200 re W n 60 600 400 0 re f Q",
        "0 w 60 600 m 460 600 l S",
        ".1 w 60 600 m 460 600 l S",
    ],
)
def test_a_hairline_is_dark(line: str, dpi: int, tmp_path: Path) -> None:
    for page, side in ((line, 0), (f"0 1 -1 0 612 0 cm {line}", 1)):
        now, before = (each.min(axis=side) for each in levels(tmp_path, page, dpi))
        middle = slice(len(now) // 2, len(now) * 3 // 5)
        assert now[middle].max() < 130, page
        assert before[middle].min() > 160


def test_what_covers_or_clips_a_hairline_stays_and_its_colour_too(tmp_path: Path) -> None:
    cover = "1 1 .9 rg 300 590 100 20 re f"
    now, before = levels(tmp_path, f"q 60 590 300 20 re W n 60 600 400 0 re f 60 600 400 0 re f Q {cover}")
    assert (now[:, 2 * 310 : 2 * 470] == before[:, 2 * 310 : 2 * 470]).all()
    assert now[:, 2 * 70 : 2 * 290].min(axis=0).max() < 60
    now, _ = levels(tmp_path, ".5 g 60 600 400 0 re f 60 600 300 0 re f")
    assert 100 < now.min(axis=0)[800] < 150  # where it is drawn once


PLAIN = f"{SEEN} 1 w 60 600 400 200 re S .5 w 60 500 m 460 400 l S 60 300 400 1 re f 0 0 1 .2 re f 100 100 3 0 re f"


def test_a_page_without_hairlines_is_drawn_as_before_also_after_one_with_them(tmp_path: Path) -> None:
    for page in (PLAIN, "0 w 60 600 m 460 600 l S", PLAIN):
        now, before = levels(tmp_path, page)
        assert (now == before).all() == (page == PLAIN)
