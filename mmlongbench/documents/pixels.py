"""The pixels of one picture: its size from the header, its bytes as released, what it looks like."""

import io
import itertools
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from PIL import Image

ORIENTATION = 0x0112
"""The EXIF tag; 2 to 8 turn or mirror a picture, 5 to 8 stand it on its side."""
_SIDE = 16
"""Of the grid that a likeness compares."""
ALIKE = 24
"""Of the 256 bits of two likenesses, so many may differ (measured: a re-encoded, shrunk or slightly cropped copy)."""


class PictureFile(Protocol):
    """A picture's file: a path, or a cell of a table."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def read_bytes(self) -> bytes:
        """All of it."""
        ...


def header_size(file: PictureFile) -> tuple[int, int]:
    """(width, height) in pixels after EXIF rotation, from the header alone; raises one of `unreadable()`."""
    with opened(file if isinstance(file, Path) else io.BytesIO(file.read_bytes())) as picture:
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and picture.format != "MPO":  # a phone's MPO holds one scene twice
            raise ValueError(f"{frames} frames: an animated picture, or one of several pages")
        width, height = picture.size
        return (height, width) if 5 <= picture.getexif().get(ORIENTATION, 1) <= 8 else (width, height)


@contextmanager
def opened(file: Path | io.BytesIO) -> "Iterator[Image.Image]":
    """A picture, without Pillow's warning from half of its limit on: what may be large is said by `limits.pixels`."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = Image.open(file)
    with picture:
        yield picture


def unreadable() -> tuple[type[Exception], ...]:
    """What a file that is no fit picture may raise when it is opened or decoded."""
    from PIL import Image

    return (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning)


def shrunk(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """(width, height) at a scale, each rounded half up, at least 1.

    >>> shrunk((2048, 1001), 0.5)
    (1024, 501)
    """
    return max(1, math.floor(size[0] * scale + 0.5)), max(1, math.floor(size[1] * scale + 0.5))


def released_bytes(data: bytes, size: tuple[int, int]) -> bytes:
    """The bytes of a picture as released: its own, where every reader sees the same upright picture of this size in it.

    A picture that depends on its EXIF orientation, of another size, in CMYK or of 16 bits is written anew, in its own
    format. Raises one of `unreadable()`.
    """
    with opened(io.BytesIO(data)) as picture:
        picture.load()
        if picture.size == size and picture.getexif().get(ORIENTATION, 1) not in range(2, 9) and _is_plain(picture):
            return data
        form = "JPEG" if picture.format == "MPO" else picture.format
        buffer = io.BytesIO()
        _resized(_plain(_upright(picture)), size).save(buffer, form, **({"quality": 95} if form == "JPEG" else {}))
        return buffer.getvalue()


def ending_of(data: bytes) -> str:
    """The ending of a picture's file by its first bytes; `.jpg` where they tell nothing."""
    kinds = {b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp", b"II*": ".tif", b"MM\0": ".tif"}
    return next((ending for start, ending in kinds.items() if data.startswith(start)), ".jpg")


def likeness(data: bytes) -> int:
    """What a picture looks like, in 256 bits: whether each cell of a 16 × 16 grid is brighter than its left neighbour.

    Whole numbers throughout (a difference hash), so it is the same everywhere. Raises one of `unreadable()`.
    """
    from PIL import Image

    with opened(io.BytesIO(data)) as picture:
        picture.load()
        grey = _plain(_upright(picture)).convert("L").resize((_SIDE + 1, _SIDE), Image.Resampling.BOX)
        cells = grey.tobytes()
    rows = (cells[start : start + _SIDE + 1] for start in range(0, len(cells), _SIDE + 1))
    bits = "".join("1" if right > left else "0" for row in rows for left, right in itertools.pairwise(row))
    return int(bits, 2)


def are_alike(one: int, other: int) -> bool:
    """Whether two likenesses are of one picture, or of near-duplicates."""
    return (one ^ other).bit_count() <= ALIKE


def _upright(picture: "Image.Image") -> "Image.Image":
    from PIL import ImageOps

    return ImageOps.exif_transpose(picture)


def _is_plain(picture: "Image.Image") -> bool:
    return picture.mode in ("1", "L", "LA", "P", "PA", "RGB", "RGBA")


def _plain(picture: "Image.Image") -> "Image.Image":
    """The picture in a mode of 8 bits that every reader takes alike."""
    from PIL import Image

    if _is_plain(picture):
        return picture
    if picture.mode.startswith("I"):  # 16 bits: `convert` would clip instead of scaling
        import numpy as np

        levels = np.clip(np.asarray(picture).astype(np.int64), 0, 65_535)
        return Image.fromarray((levels >> 8).astype(np.uint8))
    if picture.mode == "F":
        raise ValueError("pixels that are fractions")
    return picture.convert("RGB")


def _resized(picture: "Image.Image", size: tuple[int, int]) -> "Image.Image":
    from PIL import Image

    if picture.size == size:
        return picture
    direct = picture.convert("RGB") if picture.mode == "P" and "transparency" not in picture.info else picture
    smooth = direct.convert("RGBA") if direct.mode in ("P", "PA") else direct
    return smooth.resize(size, Image.Resampling.LANCZOS)
