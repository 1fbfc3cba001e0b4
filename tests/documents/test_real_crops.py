"""Crops of real PDFs: they are on their pages, apart from each other, and as large as planned."""

import io
from pathlib import Path

import pymupdf
import pytest
from PIL import Image

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_parts import MAX_CROPS, WHOLE_PAGE, crop_pages, page_parts
from mmlongbench.documents.pdf import page_sizes
from mmlongbench.documents.regions import area, cut

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2].parent / "shared/real/mmlongbench-doc/documents"
ABSENT = pytest.mark.skip(reason="shared/real/mmlongbench-doc/documents is absent")
NAMES = ("2303.05039v2.pdf", "0e94b4197b10096b1f4c699701570fbf.pdf", "avalaunchpresentationsthatkickasteriskv3copy.pdf")
"""A paper in two columns with tables and charts, slides with text, and slides that are pictures."""
FOUND = [next(FOLDER.glob(f"{name[:12]}*"), FOLDER / name) for name in NAMES]


@pytest.mark.parametrize(
    "path", FOUND if FOLDER.is_dir() else [pytest.param(FOLDER, marks=ABSENT)], ids=lambda path: path.stem[:12]
)
def test_crops_are_on_their_pages_apart_and_as_large_as_planned(path: Path) -> None:
    limits = Limits()
    pages = [step for step in page_parts(path, 100, limits) if not isinstance(step, int)]
    sizes = page_sizes(path, 100, limits)
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
    drawn = list(crop_pages(path, asked, 100, 90, limits))
    assert [size for _, size, _ in drawn] == planned
    for _, size, data in drawn:
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == size


@pytest.mark.skipif(not FOLDER.is_dir(), reason="shared/real/mmlongbench-doc/documents is absent")
def test_words_beside_and_under_a_photograph_of_half_a_page_are_in_the_text(tmp_path: Path) -> None:
    with pymupdf.open(next(FOLDER.glob("GPL-Graduate*"))) as document:
        document.select([12])
        document.save(tmp_path / "page.pdf")
    (page,) = [step for step in page_parts(tmp_path / "page.pdf", 96, Limits()) if not isinstance(step, int)]
    text = " ".join("\n".join(page["texts"]).split())
    assert "PROFESSIONAL DEVELOPMENT PROGRAMMES AND COURSES" in text
    assert "Advanced Diploma in Primary Art Education" in text
