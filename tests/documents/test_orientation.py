"""Sizes are those of the upright picture, from the header alone, whatever the format and wherever its EXIF stands."""

import io
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from mmlongbench.documents.pixels import header_size, released_bytes

WIDE = (60, 40)


def saved(path: Path, form: str, orientation: int | None) -> Path:
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    Image.effect_noise(WIDE, 30).save(path, form, **({"exif": exif} if orientation is not None else {}))
    return path


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(("orientation", "size"), [(None, WIDE), (1, WIDE), (3, WIDE), (6, (40, 60)), (8, (40, 60))])
def test_a_turned_picture_has_its_sides_turned(
    tmp_path: Path, form: str, orientation: int | None, size: tuple[int, int]
) -> None:
    path = saved(tmp_path / "picture", form, orientation)
    assert header_size(path) == size
    with Image.open(io.BytesIO(released_bytes(path.read_bytes(), size))) as released:
        assert released.size == size


def test_the_exif_of_a_png_may_stand_behind_its_pixels_and_they_are_not_decoded(tmp_path: Path) -> None:
    data = saved(tmp_path / "picture.png", "PNG", 6).read_bytes()
    chunks, at = [], 8
    while at < len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    behind = [chunk for chunk in chunks if chunk[0] not in (b"eXIf", b"IEND")]
    behind = [(kind, b"no pixels" if kind == b"IDAT" else body) for kind, body in behind]
    order = [*behind, *(chunk for chunk in chunks if chunk[0] == b"eXIf"), (b"IEND", b"")]
    parts = (struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in order)
    (tmp_path / "behind.png").write_bytes(data[:8] + b"".join(parts))
    assert header_size(tmp_path / "behind.png") == (40, 60)
