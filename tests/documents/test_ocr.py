"""OCR of pages: the pictures that it gets are bounded, and small ones are enlarged."""

import io
from pathlib import Path

import pymupdf
import pytest
from ocr_programs import require_tesseract
from PIL import Image

from mmlongbench.documents import ocr
from mmlongbench.documents.kept_texts import KeptTexts
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_images import PageImages, images_to_read
from mmlongbench.documents.page_store import keys_and_texts_of, texts_of
from mmlongbench.documents.pdf import page_sizes, pages_to_read
from mmlongbench.errors import ReaderDiedError, SourceError

LIMITS = Limits()
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
    assert page_sizes(path, 72, LIMITS)
    ((number, (width, height), data),) = pages_to_read(path, [], LIMITS)
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
    assert [bool(data) for _, _, data in pages_to_read(path, [1], LIMITS)] == [True, False, True]


@pytest.mark.parametrize(
    ("size", "dpi", "read"),
    [
        ((60, 80), 72, (240, 320)),
        ((60, 80), None, (60, 80)),
        ((60, 80), 600, (60, 80)),
        ((6000, 5000), None, (4899, 4082)),
    ],
)
def test_images_of_a_known_low_resolution_are_enlarged(
    size: tuple[int, int], dpi: int | None, read: tuple[int, int], tmp_path: Path
) -> None:
    Image.new("RGB", size).save(tmp_path / "a.png")
    ((number, data),) = images_to_read(PageImages((tmp_path / "a.png",), dpi=dpi), {})
    with Image.open(io.BytesIO(data)) as picture:
        assert (number, picture.size, picture.mode) == (0, read, "RGB")
        assert [round(each) for each in picture.info.get("dpi", ())] == ([max(dpi, 288)] * 2 if dpi else [])


def test_transparent_parts_of_an_image_are_read_as_white(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "a.png")
    ((_, data),) = images_to_read(PageImages((tmp_path / "a.png",)), {})
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.getextrema() == ((255, 255),) * 3


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    Image.effect_noise((300, 300), 50).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match=r"a\.png: broken-page"):
        list(images_to_read(PageImages((tmp_path / "a.png",)), {}))


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


@pytest.mark.parametrize(("ci", "kind"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_tests_without_the_program_fail_in_ci_and_are_skipped_elsewhere(
    ci: str, kind: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(kind):
        require_tesseract()


def test_the_real_program_reads_a_page_always_alike(tmp_path: Path) -> None:
    require_tesseract()
    path, kept = tmp_path / "a.pdf", KeptTexts()
    with pymupdf.open() as document:
        document.new_page(width=400, height=100).insert_text((20, 40), WORDS)
        document.new_page(width=1, height=1)
        document.save(path)
    first = list(texts_of(path, LIMITS, ocr="all", kept=kept))
    assert first == [f"{WORDS}\n", ""]
    assert kept.texts == dict(enumerate(first))
    found = list(keys_and_texts_of(path, LIMITS, ocr="all"))
    assert ([text for _, text in found], [bool(key) for key, _ in found]) == (first, [True, False])


def test_what_is_no_picture_is_an_error_of_the_program() -> None:
    require_tesseract()
    with pytest.raises(ReaderDiedError, match=r"^x\.pdf, page 4: tesseract failed \(.+\); run the command again"):
        ocr.read_page(b"no picture", "x.pdf, page 4", 60)
