"""Addresses of images: the bytes of the files, escaped names, and files that are not what they seem."""

import base64
import io
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from mmlongbench.documents.image_urls import ImageUrls, fitting_size
from mmlongbench.errors import ReleaseError

NAME = "a b/50% é#1?.jpg"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with a JPEG whose name needs escapes, a PNG called .jpg, and files that are no images."""
    root = tmp_path / "mmlb_image"
    (root / "a b").mkdir(parents=True)
    Image.new("RGB", (30, 20), "red").save(root / NAME, "JPEG")
    Image.new("RGB", (8, 4), "blue").save(root / "png.jpg", "PNG")
    (root / "text.jpg").write_text("no image")
    (root / "empty.jpg").touch()
    (tmp_path / "secret.jpg").write_bytes((root / "png.jpg").read_bytes())
    (root / "out.jpg").symlink_to(tmp_path / "secret.jpg")
    return root


def test_a_path_is_absolute_and_a_url_is_escaped(images: Path) -> None:
    assert ImageUrls(images)(NAME) == str(images / NAME)
    url = ImageUrls(images, "file-url")(NAME)
    assert "#" not in url
    assert unquote(urlsplit(url).path) == str(images / NAME)
    assert ImageUrls(images, "http://host:80/x/")(NAME) == "http://host:80/x/a%20b/50%25%20%C3%A9%231%3F.jpg"


def test_a_data_uri_holds_the_bytes_of_the_file_and_the_type_of_its_content(images: Path) -> None:
    for name, kind in ((NAME, "image/jpeg"), ("png.jpg", "image/png")):
        head, data = ImageUrls(images, "data-uri")(name).split(",", 1)
        assert head == f"data:{kind};base64"
        assert base64.b64decode(data) == (images / name).read_bytes()


def test_only_an_image_over_the_bound_is_made_smaller_and_that_is_said(images: Path) -> None:
    urls = ImageUrls(images, "data-uri", max_pixels=150)
    small = base64.b64decode(urls(NAME).split(",", 1)[1])
    assert Image.open(io.BytesIO(small)).size == (15, 10)
    assert base64.b64decode(urls("png.jpg").split(",", 1)[1]) == (images / "png.jpg").read_bytes()
    assert urls.shrunk == {NAME: ((30, 20), (15, 10))}


@pytest.mark.parametrize("most", [1, 2, 7, 1_000, 1_000_000])
@pytest.mark.parametrize("size", [(1, 1), (5_000, 1), (1, 5_000), (1_224, 1_584), (30_000, 30_000)])
def test_a_fitting_size_is_within_the_bound(size: tuple[int, int], most: int) -> None:
    width, height = fitting_size(size, most)
    assert min(width, height) >= 1
    assert width * height <= most or size[0] * size[1] <= most


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("gone.jpg", "image 'gone.jpg': is missing"),
        ("../secret.jpg", "leaves the folder"),
        ("/etc/hostname", "leaves the folder"),
        ("out.jpg", "leaves the folder"),
        ("a b", "image 'a b': is missing"),
    ],
)
@pytest.mark.parametrize("form", ["path", "file-url", "data-uri", "http://host"])
def test_a_path_without_a_file_in_the_folder_is_refused_in_every_form(
    images: Path, form: str, path: str, said: str
) -> None:
    with pytest.raises(ReleaseError, match=said):
        ImageUrls(images, form)(path)


@pytest.mark.parametrize("path", ["text.jpg", "empty.jpg"])
def test_bytes_that_are_no_image_are_not_sent(images: Path, path: str) -> None:
    with pytest.raises(ReleaseError, match=f"image '{path}': cannot be read"):
        ImageUrls(images, "data-uri")(path)


def test_a_pipe_is_not_read(images: Path) -> None:
    os.mkfifo(images / "pipe.jpg")
    with pytest.raises(ReleaseError, match="is missing"):
        ImageUrls(images, "data-uri")("pipe.jpg")


@pytest.mark.parametrize(
    ("form", "most", "said"),
    [
        ("files", None, "images 'files': expected path, file-url, data-uri, or a URL"),
        ("", None, "images ''"),
        ("http://", None, "images 'http://'"),
        ("http://[abc", None, "expected path, file-url"),
        ("http://user:secret@host/x", None, "images '…@host/x': has a user or a password"),
        ("http//u:secret@x", None, "images '…@x': expected path"),
        ("file-url", 100, "use data-uri"),
        ("data-uri", 0, "max_pixels 0"),
        ("data-uri", True, "max_pixels True"),
    ],
)
def test_forms_that_cannot_be_made_are_refused(tmp_path: Path, form: str, most: int | None, said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        ImageUrls(tmp_path, form, most)
