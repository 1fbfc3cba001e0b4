"""The pixels of one picture: its size from the header, its bytes as released, what it looks like."""

import io
import math
import struct
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from PIL import Image

ORIENTATION = 0x0112
"""The EXIF tag; 2 to 8 turn or mirror a picture, 5 to 8 stand it on its side."""
_SIDE = 16
"""Of the grid of a likeness, in cells."""
ALIKE = 2.5
"""Levels of 255 that near-duplicates differ by in the mean: re-encoded and shrunk copies by less than 1, copies cropped
by 3 % by up to 3, other pictures by 3.7 at least, mostly by tens (60 small objects on white, sky and noise)."""
_MAX_EXIF = 1024 * 1024
"""Bytes of an EXIF chunk that are read."""
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""What is opened: formats that can be written again, and none that hands its bytes to another program."""


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
    return header(file)[0]


def header(file: PictureFile) -> tuple[tuple[int, int], int]:
    """Return the (width, height) after EXIF rotation and the EXIF orientation; raises one of `unreadable()`."""
    with opened(file if isinstance(file, Path) else io.BytesIO(file.read_bytes())) as picture:
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and picture.format != "MPO":  # a phone's MPO holds one scene twice
            raise ValueError(f"{frames} frames: an animated picture, or one of several pages")
        width, height = picture.size
        turned = _png_orientation(picture) if picture.format == "PNG" else orientation(picture)
        return ((height, width) if turned >= 5 else (width, height)), turned


@contextmanager
def opened(file: Path | io.BytesIO) -> "Iterator[Image.Image]":
    """A picture, without Pillow's warnings: what is large is said by `limits.pixels`, what is broken by an error."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with Image.open(file, formats=FORMATS) as picture:
            yield picture


def orientation(picture: "Image.Image") -> int:
    """The EXIF orientation, 1 to 8; 1 where the tag is missing or says something else."""
    found = picture.getexif().get(ORIENTATION, 1)
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _png_orientation(picture: "Image.Image") -> int:
    """The orientation of a PNG by its chunks: Pillow would decode all pixels to look behind them."""
    from PIL import Image

    file = getattr(picture, "fp", None)
    if file is None:
        return 1
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        if kind == b"eXIf":
            exif = Image.Exif()
            exif.load(file.read(min(length, _MAX_EXIF)))
            found = exif.get(ORIENTATION, 1)
            return found if isinstance(found, int) and 1 <= found <= 8 else 1
        file.seek(length + 4, io.SEEK_CUR)
    return 1


def unreadable() -> tuple[type[Exception], ...]:
    """What a file that is no fit picture may raise when it is opened or decoded."""
    from PIL import Image

    decoders = (OSError, ValueError, TypeError, SyntaxError, EOFError)  # TypeError: a TIFF without its size
    parsers = (struct.error, zlib.error, LookupError, ArithmeticError)  # of broken EXIF, and of broken GIFs
    return (*decoders, *parsers, Image.DecompressionBombError, Image.DecompressionBombWarning)


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
        if picture.size == size and orientation(picture) == 1 and _is_plain(picture):
            return data
        form = "JPEG" if picture.format == "MPO" else picture.format
        buffer = io.BytesIO()
        _resized(_plain(_upright(picture)), size).save(buffer, form, **({"quality": 95} if form == "JPEG" else {}))
        return buffer.getvalue()


def ending_of(data: bytes) -> str:
    """The ending of a picture's file by its first bytes; `.jpg` where they tell nothing."""
    kinds = {b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp", b"II*": ".tif", b"MM\0": ".tif"}
    return next((ending for start, ending in kinds.items() if data.startswith(start)), ".jpg")


_SAME_ENDINGS = {".jpeg": ".jpg", ".jpe": ".jpg", ".jfif": ".jpg", ".tiff": ".tif"}
_ENDS = {".jpg": b"\xff\xd9", ".png": b"IEND\xaeB`\x82", ".gif": b";"}
"""The last bytes of pictures."""


def oddities(path: Path) -> tuple[str, ...]:
    """Return what is odd about a picture's file that every reader opens, in words that follow `with an image`.

    Only its first and last bytes are read, so that bytes after its end that look like an end are not found.
    """
    with path.open("rb") as file:
        head = file.read(12)
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - 8))
        tail = file.read()
    kind, said = ending_of(head), path.suffix.lower()
    ends_well = tail.endswith(_ENDS.get(kind, b""))
    if kind == ".webp":
        ends_well = size - 8 - int.from_bytes(head[4:8], "little") in (0, 1)
    found = []
    if said and _SAME_ENDINGS.get(said, said) != kind:
        found.append("whose ending names another format")
    if not ends_well:
        found.append("with bytes after its end, or without its end")
    return tuple(found)


def likeness(data: bytes) -> bytes:
    """What a picture looks like: the mean colours of a 16 × 16 grid, 768 bytes. Raises one of `unreadable()`."""
    from PIL import Image

    with opened(io.BytesIO(data)) as picture:
        picture.load()
        colours = _plain(_upright(picture)).convert("RGB")
        return colours.resize((_SIDE, _SIDE), Image.Resampling.BOX).tobytes()


def is_like_any(one: bytes, others: Sequence[bytes]) -> bool:
    """Whether a likeness is of the same picture as one of the others, or of a near-duplicate of it.

    The mean difference of two grids tells, where a hash of brighter and darker cells would not: on the flat grounds of
    skies and studios such bits are all alike, or all noise.
    """
    import numpy as np

    if not others:
        return False
    grids = np.frombuffer(b"".join(others), np.uint8).reshape(len(others), -1).astype(np.int16)
    off = np.abs(grids - np.frombuffer(one, np.uint8).astype(np.int16)).sum(axis=1)
    return bool((off <= ALIKE * len(one)).any())


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
