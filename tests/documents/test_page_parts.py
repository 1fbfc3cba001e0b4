"""Pages as texts and crops: what is a crop, what is not, where it stands, and hostile pages."""

import io
from pathlib import Path
from typing import Any

import needs
import pymupdf
import pytest
from hostile_pdfs import page as hostile_page
from hostile_pdfs import paths, stream
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_parts import MAX_CROPS, WHOLE_PAGE, Line, area, crop_pages, cut, is_contents, page_parts
from mmlongbench.documents.pdf import page_sizes

LIMITS = Limits()
PROSE = "The harbour was dredged in spring, and the barges went out with the tide every morning. "


def parts(document: Any, tmp_path: Path, dpi: int = 72) -> list[dict[str, Any]]:
    """The pages of a drawn document as texts and crops; each crop is drawn, and is as large as planned."""
    path = tmp_path / "drawn.pdf"
    path.write_bytes(document if isinstance(document, bytes) else document.tobytes())
    found = list(page_parts(path, dpi, LIMITS))
    asked = [(number, crop["box"]) for number, page in enumerate(found) for crop in page["crops"]]
    planned = [tuple(crop["size"]) for page in found for crop in page["crops"]]
    drawn = list(crop_pages(path, asked, dpi, 90, LIMITS))
    assert [size for _, size, _ in drawn] == planned
    for _, size, data in drawn:
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == size
            low, high = picture.convert("L").getextrema()
            assert low != high
    assert all(len(page["texts"]) == len(page["crops"]) + 1 for page in found)
    return found


def written(document: Any, *, below: float = 60) -> Any:
    """A page with a paragraph."""
    page = document.new_page(width=595, height=842)
    page.insert_textbox((60, below, 535, below + 90), PROSE * 4, fontsize=10)
    return page


def chart(page: Any, x: float = 100, y: float = 250) -> None:
    """Bars on an axis, with their names below and a caption."""
    for number, height in enumerate((40, 90, 65, 120)):
        page.draw_rect((x + 60 * number, y + 130 - height, x + 60 * number + 40, y + 130), fill=(0.2, 0.3, 0.7))
        page.insert_text((x + 60 * number, y + 144), f"Quay {number}", fontsize=9)
    page.draw_line((x - 10, y + 130), (x + 240, y + 130))
    page.draw_line((x - 10, y), (x - 10, y + 130))
    page.insert_text((x, y + 170), "Figure 3: Barges by quay", fontsize=10)


def photograph() -> bytes:
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((200, 150)).save(buffer, "PNG")
    return buffer.getvalue()


def kinds(page: dict[str, Any]) -> list[str]:
    return [crop["kind"] for crop in page["crops"]]


def test_a_chart_is_one_crop_with_its_labels_and_its_words_are_not_repeated(tmp_path: Path) -> None:
    document = pymupdf.open()
    chart(written(document))
    (page,) = parts(document, tmp_path)
    assert [page] == parts(document, tmp_path)
    assert kinds(page) == ["figure"]
    x0, y0, x1, y1 = page["crops"][0]["box"]
    assert x0 <= 90
    assert y0 <= 262
    assert x1 >= 320
    assert 394 <= y1 <= 412
    before, after = page["texts"]
    assert before.startswith("The harbour was dredged")
    assert after == "Figure 3: Barges by quay"
    assert "Quay" not in before


@pytest.mark.parametrize(
    "places",
    [
        [(40, 400), (95, 320), (110, 302), (110, 503)],
        pytest.param([(40, 400), (250, 400), (110, 306), (110, 496), (330, 310)], marks=pytest.mark.rare),
    ],
)
def test_a_line_that_the_edge_of_a_figure_cuts_is_in_the_text(places: list[tuple[int, int]], tmp_path: Path) -> None:
    document = pymupdf.open()
    for number, (x, y) in enumerate(places):
        page, down = written(document), 3 * number
        page.insert_image((100, 300 + down, 400, 500 + down), stream=photograph(), keep_proportion=False)
        page.insert_text(
            (x, y + down), "Wharfage paid at the quays of the northern basin", fontsize=11, color=(1, 0, 0)
        )
    pages = parts(document, tmp_path)
    assert [kinds(found) for found in pages] == [["figure"]] * len(places)
    assert [lost_words(document.load_page(number), found) for number, found in enumerate(pages)] == [[]] * len(places)
    assert "Wharfage" in "".join(pages[0]["texts"])


def lost_words(page: Any, found: dict[str, Any]) -> list[str]:
    """The words of a page that are neither in its texts nor whole in a crop; a box of a word has blank at its top and
    bottom.
    """
    told = " ".join(found["texts"]).split()
    boxes = [crop["box"] for crop in found["crops"]]
    lost = []
    for x0, y0, x1, y1, word, *_ in page.get_text("words"):
        high = y1 - y0
        ink = x0 + 1, y0 + 0.25 * high, x1 - 1, y1 - 0.2 * high
        is_seen = any(b[0] <= ink[0] and b[1] <= ink[1] and ink[2] <= b[2] and ink[3] <= b[3] for b in boxes)
        if word not in told and not is_seen:
            lost.append(word)
    return lost


def test_the_words_of_a_table_stand_before_its_crop(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = written(document)
    for row, cells in enumerate(
        [("Port", "2017", "2018"), *((f"Port {n}", f"{n * 37}", f"{n * 91}") for n in range(1, 7))]
    ):
        for column, cell in enumerate(cells):
            page.insert_text((80 + 140 * column, 220 + 18 * row), cell, fontsize=10)
        page.draw_line((70, 225 + 18 * row), (500, 225 + 18 * row))
    page.insert_textbox((60, 420, 535, 520), PROSE * 4, fontsize=10)
    (found,) = parts(document, tmp_path)
    assert kinds(found) == ["table"]
    assert found["texts"][0].endswith("546")
    assert found["texts"][1].startswith("The harbour")


@pytest.mark.parametrize(
    ("numbers", "is_listing"),
    [((3, 4, 4, 9, 12), True), ((3, 4, 4, 9), False), ((3, 9, 4, 4, 12), False), ((3,) * 5, False)],
    ids=["rising", "four", "out of order", "equal"],
)
def test_a_table_of_contents_is_no_table(numbers: tuple[int, ...], is_listing: bool) -> None:
    rows = ((10.0 + 20 * row, f"Chapter {'.' * 9} {number}") for row, number in enumerate(numbers))
    lines = [Line((10.0, top, 200.0, top + 10), text, row) for row, (top, text) in enumerate(rows)]
    assert is_contents((0.0, 0.0, 300.0, 300.0), lines) == is_listing


def test_text_that_cannot_be_seen_is_in_no_text(tmp_path: Path) -> None:
    document = pymupdf.open()
    written(document).insert_text((60, 400), "WHITE on white", color=(1, 1, 1))
    (page,) = parts(document, tmp_path)
    assert page["texts"][0].startswith("The harbour was dredged")
    assert "WHITE" not in page["texts"][0]


def test_a_page_without_text_is_one_crop_and_a_blank_page_none(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_image((0, 0, 595, 842), stream=photograph())
    document.new_page()
    scan, blank = parts(document, tmp_path)
    assert (kinds(scan), scan["texts"]) == (["page"], ["", ""])
    assert (kinds(blank), blank["texts"]) == ([], [""])


@pytest.mark.parametrize("strips", [1, 4])
def test_a_page_that_is_a_picture_with_little_text_is_one_crop(strips: int, tmp_path: Path) -> None:
    document = pymupdf.open()
    for number in range(4):
        page, buffer = document.new_page(width=720, height=540), io.BytesIO()
        Image.linear_gradient("L").rotate(90 * number).resize((60 + number, 80)).save(buffer, "PNG")
        for strip in range(strips):
            high = 540 / strips
            box = (0, strip * high, 720, (strip + 1) * high)
            page.insert_image(box, stream=buffer.getvalue(), keep_proportion=False)
        page.insert_text((40, 520), "Dues of the four quays in the year 2019, in thousands of pounds", fontsize=14)
        if number == 3:
            page.insert_textbox((40, 40, 680, 300), PROSE * 9, fontsize=14)
    pages = parts(document, tmp_path)
    assert [kinds(page) for page in pages] == [["page"], ["page"], ["page"], []]
    assert pages[0]["texts"] == ["", ""]
    assert pages[3]["texts"][0].count("harbour") == 9


def test_backgrounds_frames_rules_bullets_and_headers_are_no_crops(tmp_path: Path) -> None:
    document = pymupdf.open()
    for _ in range(4):
        page = document.new_page(width=595, height=842)
        page.insert_image((0, 0, 595, 842), stream=photograph())
        page.draw_rect((50, 100, 545, 260), color=(0, 0, 0))
        page.insert_textbox((60, 110, 535, 250), PROSE * 6, fontsize=10)
        page.draw_line((50, 60), (545, 60), width=1)
        page.draw_rect((60, 300, 66, 306), fill=(1, 0, 0))
        page.insert_image((400, 650, 520, 740), stream=photograph())
    assert [kinds(page) for page in parts(document, tmp_path)] == [[]] * 4


def test_a_crop_of_a_rotated_page_is_where_the_page_shows_it(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = written(document)
    page.insert_image((100, 500, 300, 650), stream=photograph())
    page.set_rotation(90)
    (found,) = parts(document, tmp_path)
    assert kinds(found) == ["figure"]
    x0, y0, x1, y1 = found["crops"][0]["box"]
    assert (x0, y0, x1, y1) == pytest.approx((842 - 650, 100, 842 - 500, 300), abs=6)


OTHER_TURNS = ((180, True), (270, True), (90, False), (180, False))


@pytest.mark.parametrize(
    ("turned", "is_inherited"),
    [(90, True), (270, False), *(pytest.param(*each, marks=pytest.mark.rare) for each in OTHER_TURNS)],
)
def test_a_crop_of_a_rotated_page_with_a_crop_box_shows_what_the_page_shows(
    turned: int, is_inherited: bool, tmp_path: Path
) -> None:
    document = pymupdf.open()
    page = document.new_page(width=600, height=800)
    page.insert_text((120, 30), "Secret tariff that stands outside of what is seen of this page", fontsize=9)
    page.draw_rect((410, 5, 560, 90), fill=(0.9, 0.3, 0.4))
    page.insert_text((120, 220), "The harbour was dredged in spring, and barges left with the tide", fontsize=9)
    page.insert_image((150, 300, 400, 500), stream=photograph(), keep_proportion=False)
    page.set_rotation(turned)
    holder = int(document.xref_get_key(page.xref, "Parent")[1].split()[0]) if is_inherited else page.xref
    document.xref_set_key(holder, "CropBox", "[100 120 500 700]")
    (found,) = parts(pymupdf.open(stream=document.tobytes()), tmp_path)
    assert kinds(found) == ["figure"]
    assert "".join(found["texts"]) == "The harbour was dredged in spring, and barges left with the tide"
    left, top, right, bottom = 50, 200, 300, 400  # on the page as it is before it is turned: 400 × 580 points
    expected = {
        90: (580 - bottom, left, 580 - top, right),
        180: (400 - right, 580 - bottom, 400 - left, 580 - top),
        270: (top, 400 - right, bottom, 400 - left),
    }
    assert found["crops"][0]["box"] == pytest.approx(expected[turned], abs=6)


fractions = st.floats(0, 0.3)


@pytest.mark.rare
@given(
    turned=st.sampled_from([0, 90, 180, 270]),
    size=st.tuples(st.floats(200, 900), st.floats(200, 900)),
    corner=st.tuples(st.floats(-300, 300), st.floats(-300, 300)),
    cut_off=st.none() | st.tuples(fractions, fractions, fractions, fractions),
)
@example(turned=90, size=(200.0, 200.0), corner=(0.0, 0.0), cut_off=(0.0, 0.0, 0.0, 0.0))
@settings(max_examples=40)
def test_a_page_is_drawn_as_a_crop_as_it_is_drawn_as_a_page(
    turned: int,
    size: tuple[float, float],
    corner: tuple[float, float],
    cut_off: tuple[float, float, float, float] | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    document = pymupdf.open()
    page = document.new_page(width=size[0], height=size[1])
    page.draw_rect((20, 20, 30, 30), fill=(0, 0, 0))
    x, y = corner
    squares = "".join(f"{step / 10} 0 0.5 rg {x + 20 * step} {y + 18 * step} 9 9 re f " for step in range(1, 10))
    document.update_stream(page.get_contents()[0], squares.encode())
    sides = (x, y, x + size[0], y + size[1])
    document.xref_set_key(page.xref, "MediaBox", "[{} {} {} {}]".format(*sides))
    document.xref_set_key(page.xref, "Rotate", f"{turned}")
    if cut_off:
        a, b, c, d = (share * size[at % 2] for at, share in enumerate(cut_off))
        box = sides[0] + a - 9, sides[1] + b - 9, sides[2] - c + 9, sides[3] - d + 9
        document.xref_set_key(page.xref, "CropBox", "[{} {} {} {}]".format(*box))
    path = tmp_path_factory.mktemp("turned") / "page.pdf"
    path.write_bytes(document.tobytes())
    with pymupdf.open(path) as written_page:
        pixels = written_page.load_page(0).get_pixmap(dpi=72, alpha=False)
    (found,) = list(page_parts(path, 72, LIMITS))
    assume(found["crops"])  # the crop box may leave out all squares
    ((_, drawn_size, data),) = crop_pages(path, [(0, found["crops"][0]["box"])], 72, 100, LIMITS)
    assert drawn_size == tuple(found["crops"][0]["size"])
    assert drawn_size == pytest.approx((pixels.width, pixels.height), abs=1)
    width, height = (min(sides) for sides in zip(drawn_size, (pixels.width, pixels.height), strict=True))
    page_as_shown = Image.frombytes("RGB", (pixels.width, pixels.height), pixels.samples).crop((0, 0, width, height))
    with Image.open(io.BytesIO(data)) as drawn:
        differs = ImageChops.difference(drawn.crop((0, 0, width, height)), page_as_shown).convert("L")
    assert sum(differs.histogram()[90:]) <= 0.01 * width * height


def test_crops_do_not_leave_the_page_and_do_not_overlap(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = written(document)
    page.insert_image((450, 300, 700, 480), stream=photograph(), keep_proportion=False)
    page.insert_image((-400, 300, -20, 480), stream=photograph())
    page.insert_image((100, 500, 300, 650), stream=photograph())
    page.insert_image((120, 520, 200, 600), stream=photograph())
    page.draw_rect((300, 700, 300, 760), color=(1, 0, 0))
    (found,) = parts(document, tmp_path)
    boxes = [crop["box"] for crop in found["crops"]]
    assert len(boxes) == 2
    assert all(0 <= x0 < x1 <= 595 and 0 <= y0 < y1 <= 842 for x0, y0, x1, y1 in boxes)


@pytest.mark.parametrize("dpi", [72, *(pytest.param(dpi, marks=pytest.mark.rare) for dpi in (100, 144, 150))])
def test_a_crop_at_the_edge_of_a_page_of_odd_size_is_as_large_as_planned(dpi: int, tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=595.3, height=841.6)
    page.insert_textbox((60, 60, 535, 150), PROSE * 4, fontsize=10)
    page.insert_image((300.2, 600.7, 600, 850), stream=photograph(), keep_proportion=False)
    (found,) = parts(document, tmp_path, dpi)
    assert found["crops"][0]["box"][2:] == [596, 842]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(paths(10_000), marks=pytest.mark.rare),
        pytest.param(
            hostile_page(stream("BT /F 9 Tf 9 9 Td (nothing) Tj ET " + "0 0 0 0 re f " * 10_000)),
            marks=pytest.mark.rare,
        ),
        pytest.param(
            hostile_page(stream(" ".join(f"{n % 90 * 7} {n // 90 * 7} 2 2 re f" for n in range(10_000)))),
            marks=pytest.mark.rare,
        ),
        hostile_page(stream("9e9 9e9 9e9 9e9 re f -9e9 -9e9 1 1 re f 1 0 0 1 1e20 0 cm 0 0 9 9 re f")),
    ],
    ids=["lines", "nothing painted", "dots", "far away"],
)
def test_thousands_of_drawings_give_few_crops(data: bytes, tmp_path: Path) -> None:
    (found,) = parts(data, tmp_path)
    assert len(found["crops"]) <= 1 <= MAX_CROPS


# Real PDFs


REAL = ("2303.05039v2", "0e94b4197b10", "avalaunchpre")
"""A paper in two columns with tables and charts, slides with text, and slides that are pictures."""


@pytest.mark.rare
@pytest.mark.parametrize("name", REAL)
def test_crops_are_on_their_pages_apart_and_as_large_as_planned(name: str) -> None:
    (path,) = needs.shared("real", "mmlongbench-doc", "documents").glob(f"{name}*")
    pages = list(page_parts(path, 100, LIMITS))
    sizes = list(page_sizes(path, 100, LIMITS))
    assert len(pages) == len(sizes)
    assert any(page["crops"] for page in pages)
    for page, (width, height) in zip(pages, sizes, strict=True):
        whole = (0, 0, width * 0.72 + 1, height * 0.72 + 1)
        boxes = [tuple(crop["box"]) for crop in page["crops"]]
        assert len(boxes) <= MAX_CROPS
        assert all(cut(box, whole) == box for box in boxes)
        if page["crops"][:1] and page["crops"][0]["kind"] == WHOLE_PAGE:
            assert page["crops"][0]["size"] == [width, height]
        for at, box in enumerate(boxes):
            assert all(area(cut(box, other)) <= 0.3 * area(box) for other in boxes[at + 1 :])
    asked = [(number, crop["box"]) for number, page in enumerate(pages) for crop in page["crops"]][:20]
    planned = [tuple(crop["size"]) for page in pages for crop in page["crops"]][:20]
    drawn = list(crop_pages(path, asked, 100, 90, LIMITS))
    assert [size for _, size, _ in drawn] == planned
    for _, size, data in drawn:
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == size


@pytest.mark.rare
def test_words_beside_and_under_a_photograph_of_half_a_page_are_in_the_text(tmp_path: Path) -> None:
    with pymupdf.open(next(needs.shared("real", "mmlongbench-doc", "documents").glob("GPL-Graduate*"))) as document:
        document.select([12])
        document.save(tmp_path / "page.pdf")
    (page,) = list(page_parts(tmp_path / "page.pdf", 96, LIMITS))
    text = " ".join("\n".join(page["texts"]).split())
    assert "PROFESSIONAL DEVELOPMENT PROGRAMMES AND COURSES" in text
    assert "Advanced Diploma in Primary Art Education" in text
