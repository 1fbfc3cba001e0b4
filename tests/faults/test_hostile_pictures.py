"""Pictures outside the folder, or of impossible sizes: no reader returns one, and none is decoded."""

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_images import PageImages
from mmlongbench.documents.page_store import sizes_of
from mmlongbench.documents.pictures import Pictures
from mmlongbench.errors import Rejected, SourceError
from mmlongbench.io.folders import file_inside
from mmlongbench.manifest.registry import installed, reader_type
from mmlongbench.task.reader import Reader

READERS = [plugin.name for plugin in installed("reader") if not plugin.problem]
WITH_IMAGES = [name for name in READERS if reader_type(name).image is not Reader.image]
SIDE = 60_000
LIMITS = Limits(bytes=1_000_000, pages=9, side=16_384)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of pictures in which one is a picture; a picture outside."""
    folder = tmp_path / "images"
    (folder / "a").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(tmp_path / "outside.jpg")
    for inner in (folder, folder / "a"):
        Image.new("RGB", (9, 9)).save(inner / "real.jpg")
        (inner / "link.jpg").symlink_to(tmp_path / "outside.jpg")
        (inner / "loop.jpg").symlink_to(inner / "loop.jpg")
        (inner / "device.jpg").symlink_to("/dev/zero")
        os.mkfifo(inner / "pipe.jpg")
    return folder


HOSTILE: tuple[str, ...] = (
    "../outside.jpg",
    "../../etc/passwd",
    "/etc/passwd",
    "/dev/zero",
    "link.jpg",
    "link",
    "loop.jpg",
    "device.jpg",
)
HOSTILE += (
    "device",
    "pipe.jpg",
    "pipe",
    "a/link.jpg",
    "a/device.jpg",
    "a/pipe.jpg",
    "a/../../outside.jpg",
    "",
    ".",
    "..",
)
HOSTILE += (
    "a\0b",
    "x" * 5000,
    "\ud800",
    "\udcff",
    "a/",
    "//",
    "~/x",
    "file:///etc/passwd",
    "real.jpg/",
    "real.jpg/../..",
)


@pytest.mark.parametrize("name", WITH_IMAGES)
def test_no_reader_gives_a_picture_from_outside(name: str, images: Path) -> None:
    reader: Any = reader_type(name)()
    sources = dict.fromkeys((*reader.sources, *reader.optional_sources), images)
    prefixes = ("", "train/", "test/", "a/", f"{images}/", f"{images.parent}/", "obelics/")
    pictures = Pictures("x", lambda asked: reader.image(sources, asked), LIMITS.pixels)
    for asked in (f"{prefix}{hostile}" for prefix in prefixes for hostile in HOSTILE):
        try:
            found = pictures[asked]
        except (Rejected, SourceError):
            continue
        assert isinstance(found.source, Path)
        assert found.source.resolve() in (images / "real.jpg", images / "a" / "real.jpg")


@pytest.mark.parametrize("name", [name for name in WITH_IMAGES if name != "image_tables"])
def test_every_reader_gives_the_picture_that_is_one(name: str, images: Path) -> None:
    reader: Any = reader_type(name)()
    sources = dict.fromkeys((*reader.sources, *reader.optional_sources), images)
    pictures = Pictures("x", lambda asked: reader.image(sources, asked), LIMITS.pixels)
    found = pictures[{"infoseek": "real", "image_folders": "train/a/real.jpg"}.get(name, "real.jpg")]
    assert (found.width, found.height) == (9, 9)


def test_a_download_in_the_hubs_cache_may_be_links_to_its_own_blobs(tmp_path: Path) -> None:
    cache = tmp_path / "datasets--owner--name"
    snapshot = cache / "snapshots" / "5ca1ab1e" / "images"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()
    for blob in (cache / "blobs" / "1", tmp_path / "2"):
        blob.touch()
        (snapshot / f"{blob.name}.jpg").symlink_to(blob)
    assert file_inside(snapshot, "1.jpg") == snapshot / "1.jpg"
    assert file_inside(snapshot, "2.jpg") is None


def huge_png() -> bytes:
    """The header of a picture of 60,000 × 60,000 pixels, and a scrap of its pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize("name", [name for name in WITH_IMAGES if name != "image_tables"])
def test_a_picture_of_a_huge_header_is_a_reject_of_every_reader(name: str, tmp_path: Path) -> None:
    images = tmp_path / "images"
    (images / "a").mkdir(parents=True)
    for path in (images / "x.png", images / "a" / "x.png"):
        path.write_bytes(huge_png())
    reader: Any = reader_type(name)()
    sources = dict.fromkeys((*reader.sources, *reader.optional_sources), images)
    pictures = Pictures("x", lambda asked: reader.image(sources, asked), LIMITS.pixels)
    asked = {"infoseek": "x", "image_folders": "train/a/x.png"}.get(name, "x.png")
    with pytest.raises(Rejected, match=r"x\.png: broken-image: .*3600000000 pixels\) exceeds limit"):
        pictures[asked]


def test_a_page_of_a_huge_header_refuses_its_document(tmp_path: Path) -> None:
    (tmp_path / "deck-1-1024.png").write_bytes(huge_png())
    with pytest.raises(SourceError, match=r"^deck-1-1024\.png: broken-page: .*3600000000 pixels\) exceeds limit"):
        sizes_of(PageImages((tmp_path / "deck-1-1024.png",)), 144, LIMITS)


def test_a_picture_file_of_terabytes_is_not_hashed(tmp_path: Path) -> None:
    path = tmp_path / "x.bmp"
    Image.new("RGB", (9, 9)).save(path)
    os.truncate(path, 1 << 40)
    with pytest.raises(Rejected, match=r"^x\.bmp: size-of-an-image: expected at most 268435456 bytes, found 10995116"):
        Pictures("x", lambda _: path, LIMITS.pixels)["x.bmp"]


GIF = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00"


@pytest.mark.parametrize("data", [GIF + b"!", GIF + b"!\xf9\x00", GIF + b"!\xff\x0bNETSCAPE2.0\x00", GIF + b",\x00"])
def test_a_gif_that_ends_in_a_block_is_a_reject(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.gif").write_bytes(data)
    with pytest.raises(Rejected, match=r"^x\.gif: broken-image"):
        Pictures("x", lambda _: tmp_path / "x.gif", LIMITS.pixels)["x.gif"]
