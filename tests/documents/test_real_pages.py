"""Every page of the real PDFs: what is planned without rendering is what rendering gives."""

import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from PIL import Image

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import open_pdf, page_sizes, page_text, render_pages

pytestmark = pytest.mark.slow

LIMITS = Limits(bytes=64 * 1024 * 1024, pages=500, side=16_384)
UNCOUNTED = replace(LIMITS, operators=10**12, painted_pages=10**12)
"""What a page costs is counted with `LIMITS` at 144 DPI, and not once more for each resolution and for the text."""
FOLDER = Path(__file__).parents[2].parent / "shared/real/mmlongbench-doc/documents"
ABSENT = pytest.mark.skip(reason="shared/real/mmlongbench-doc/documents is absent")
PDFS = sorted(FOLDER.glob("*.pdf"))

each_document = pytest.mark.parametrize(
    "path", PDFS or [pytest.param(FOLDER, marks=ABSENT)], ids=lambda path: path.stem[:15]
)


@cache
def planned_sizes(path: Path, dpi: int) -> list[tuple[int, int]]:
    return page_sizes(path, dpi, LIMITS if dpi == 144 else UNCOUNTED)


def rendered_sizes(path: Path, dpi: int, numbers: list[int]) -> list[tuple[int, int]]:
    with open_pdf(path, LIMITS) as document:
        pixmaps = (document.load_page(number).get_pixmap(dpi=dpi, alpha=False) for number in numbers)
        return [(pixmap.width, pixmap.height) for pixmap in pixmaps]


def first_middle_last(count: int) -> list[int]:
    return sorted({0, count // 2, count - 1})


@pytest.mark.skipif(not PDFS, reason="shared/real/mmlongbench-doc/documents is absent")
def test_the_subset_is_whole() -> None:
    assert len(PDFS) == 26
    assert sum(len(planned_sizes(path, 144)) for path in PDFS) == 1035


@each_document
def test_every_page_is_as_large_at_144_dpi_as_planned(path: Path) -> None:
    planned = planned_sizes(path, 144)
    assert rendered_sizes(path, 144, list(range(len(planned)))) == planned


@each_document
@pytest.mark.parametrize("dpi", [72, 100])
def test_pages_are_as_large_at_other_resolutions_as_planned(path: Path, dpi: int) -> None:
    planned = planned_sizes(path, dpi)
    some = first_middle_last(len(planned))
    assert rendered_sizes(path, dpi, some) == [planned[number] for number in some]


@each_document
def test_pages_become_jpegs_of_the_planned_size(path: Path) -> None:
    planned = planned_sizes(path, 144)
    some = first_middle_last(len(planned))
    rendered = list(render_pages(path, some, 144, 90, LIMITS))
    assert [number for number, _, _ in rendered] == some
    for number, size, data in rendered:
        with Image.open(io.BytesIO(data)) as picture:
            assert (picture.format, picture.mode) == ("JPEG", "RGB")
            assert picture.size == size == planned[number]


@each_document
def test_there_is_one_text_a_page(path: Path) -> None:
    assert len(list(page_text(path, UNCOUNTED))) == len(planned_sizes(path, 72))
