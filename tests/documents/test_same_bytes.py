"""Pictures that rows ask about are recognised by their bytes, not by their names."""

from pathlib import Path

import pytest
from PIL import Image

import mmlongbench.task as mt
from mmlongbench.documents.pictures import Pictures


class Cell:
    """A picture that is no file of its own."""

    name = "cell 3"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_bytes(self) -> bytes:
        return self._data


def picture(path: Path, tone: int) -> Path:
    Image.new("RGB", (40, 40), (tone, 0, 0)).save(path)
    return path


def test_a_picture_is_known_by_its_bytes_and_not_by_its_size(tmp_path: Path) -> None:
    one, other = tmp_path / "one.png", tmp_path / "other.png"
    one.write_bytes(b"0123456789")
    other.write_bytes(b"9876543210")
    found = mt.PictureBytes([one])
    assert one in found
    assert Cell(b"0123456789") in found
    assert other not in found
    assert Cell(b"9876543210") not in found
    assert tmp_path / "gone.png" not in found


def test_only_pictures_of_a_known_size_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = picture(tmp_path / "small.png", 1), tmp_path / "large.bmp"
    Image.new("RGB", (90, 90)).save(large)
    found = mt.PictureBytes([small, tmp_path / "gone.png"])
    read: list[str] = []
    whole = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        read.append(path.name)
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert large not in found
    assert read == []
    assert small in found


def test_images_know_the_pictures_of_all_rows_under_any_name(tmp_path: Path) -> None:
    asked, web = picture(tmp_path / "asked.png", 9), picture(tmp_path / "web.png", 8)
    (tmp_path / "copy.png").write_bytes(asked.read_bytes())
    pictures = Pictures("x", lambda name: file if (file := tmp_path / name).is_file() else None, 10**6)
    images = mt.Images(pictures, asked=iter(["asked.png", "gone.png", "./asked.png"]))
    assert images.is_asked(images["copy.png"])
    assert images.is_asked(images["asked.png"])
    assert not images.is_asked(images[web.name])


def test_images_without_such_rows_know_none(tmp_path: Path) -> None:
    picture(tmp_path / "web.png", 8)
    images = mt.Images(Pictures("x", lambda name: tmp_path / name, 10**6))
    found = images["web.png"]
    assert not images.is_asked(found)
