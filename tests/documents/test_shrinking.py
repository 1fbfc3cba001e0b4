"""Pictures above a task's longest side: planned from the header, written at the planned size, in their own format."""

import io
from pathlib import Path

import pytest
from PIL import Image

from mmlongbench.documents.pictures import Pictures

FORMS = [("JPEG", "RGB"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "P"), ("PNG", "1"), ("PNG", "I;16"), ("PNG", "LA")]


def found(folder: Path, longest: int | None = 100) -> Pictures:
    return Pictures("mm-niah", lambda name: folder / name, 10**7, longest)


@pytest.mark.parametrize(("form", "mode"), FORMS)
def test_a_large_picture_is_written_at_its_planned_size_in_its_own_format(tmp_path: Path, form: str, mode: str) -> None:
    Image.new(mode, (333, 170)).save(tmp_path / "a.img", form)
    picture = found(tmp_path)["a.img"]
    assert (picture.width, picture.height) == (100, 51)
    assert picture.scale == pytest.approx(100 / 333)
    with Image.open(io.BytesIO(picture.released())) as written:
        assert (written.size, written.format) == ((100, 51), form)
    assert picture.released() == picture.released()


def test_a_turned_picture_is_shrunk_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (200, 100)).save(tmp_path / "a.jpg", exif=exif)
    picture = found(tmp_path)["a.jpg"]
    assert (picture.width, picture.height) == (50, 100)
    with Image.open(io.BytesIO(picture.released())) as written:
        assert written.size == (50, 100)
        assert written.getexif().get(0x0112, 1) == 1


def test_a_picture_within_the_bound_keeps_its_bytes(tmp_path: Path) -> None:
    Image.new("RGB", (100, 40)).save(tmp_path / "a.png")
    picture = found(tmp_path)["a.png"]
    assert picture.scale == 1
    assert picture.released() == (tmp_path / "a.png").read_bytes()


def test_a_line_of_pixels_keeps_one_pixel_across(tmp_path: Path) -> None:
    Image.new("L", (5000, 1)).save(tmp_path / "a.png")
    picture = found(tmp_path)["a.png"]
    assert (picture.width, picture.height) == (100, 1)


def test_the_folders_of_a_name_are_kept(tmp_path: Path) -> None:
    (tmp_path / "train2017").mkdir()
    Image.new("L", (5, 5)).save(tmp_path / "train2017" / "a.png")
    assert found(tmp_path)["train2017/a.png"].path == "mm-niah/train2017/a.png"
