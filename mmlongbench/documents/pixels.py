"""The pixels of one picture: its size from the header, its bytes as released, and what it looks like.

How a picture is read is decided here alone, so that header, pixels, copies and audit agree: it is turned by its EXIF
orientation (of a PNG, by its eXIf chunk; a broken one counts as none), and what is transparent is white.
"""

import io
import math
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

from mmlongbench.documents.limits import MAX_PIXELS

if TYPE_CHECKING:
    from PIL import Image

ORIENTATION = 0x0112
"""The EXIF tag of the orientation. The values 2 to 8 rotate or mirror a picture; the values 5 to 8 also swap width and
height."""
_SIDE = 16  # the number of cells along each side of the grid of a `likeness`
ALIKE = 2.5
"""The largest mean difference, in levels of 255, of two pictures that count as near-duplicates. The mean difference is
below 1 for re-encoded and shrunk copies, up to 3 for copies that were cropped by 3 %, and at least 3.7, mostly tens,
for other pictures (measured on 60 small objects on white, sky and noise)."""
_HEAD = 2048  # the bytes that are read at the beginning of a picture
_MAX_EXIF = 1024 * 1024  # the bytes of an EXIF chunk that are read
_KEPT = ("icc_profile", "gamma", "dpi", "transparency")
"""What a picture that is written anew keeps beside its pixels."""
OTHER_FORMATS = {"avif": "AVIF", "avis": "AVIF", **dict.fromkeys(("heic", "heix", "heim", "heis", "mif1"), "HEIC")}
"""Formats of pictures that few readers open, by the brand in their first bytes."""
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""The formats that are opened. Pillow can save each of them, and reads them without another program (as EPS needs)."""

_SAME_ENDINGS = {".jpeg": ".jpg", ".jpe": ".jpg", ".jfif": ".jpg", ".tiff": ".tif"}
_ENDS = {".jpg": b"\xff\xd9", ".png": b"IEND\xaeB`\x82", ".gif": b";"}
"""The last bytes of complete pictures, by format."""
PICTURE_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
"""The endings of picture files of these formats, in small letters."""


class PictureFile(Protocol):
    """The file of a picture: a path, or a cell of a table."""

    @property
    def name(self) -> str:
        """The name in messages."""

    def read_bytes(self) -> bytes:
        """Return all bytes of the file."""


@runtime_checkable
class PictureInFile(PictureFile, Protocol):
    """A picture that is a part of a file, such as a cell of a table."""

    @property
    def file(self) -> Path:
        """The file that has it; its source, licence and origin are those of the picture."""


def header_size(file: PictureFile) -> tuple[int, int]:
    """Return (width, height) in pixels after EXIF rotation, from the header alone; raises one of `unreadable()`."""
    with file.open("rb") if isinstance(file, Path) else io.BytesIO(file.read_bytes()) as data:
        return header(data)[0]


def header(data: BinaryIO) -> tuple[tuple[int, int], int]:
    """Return a pair: (width, height) after EXIF rotation, and the EXIF orientation. Raises one of `unreadable()`."""
    if size := _size_of_plain_jpeg(data.read(_HEAD)):
        return size, 1
    with opened(data) as picture:
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and picture.format != "MPO":  # an MPO of a phone has one scene twice
            raise ValueError(f"{frames} frames: an animated picture, or one of several pages")
        width, height = picture.size
        turned = _turn(picture)
        is_swapped = turned >= 5 and picture.format != "TIFF"  # Pillow states the size of a TIFF as it is turned
        return ((height, width) if is_swapped else (width, height)), turned


def _size_of_plain_jpeg(head: bytes) -> tuple[int, int] | None:
    """Return the size of a JPEG whose header has no metadata and nothing odd; None for any other file. Pillow, which
    takes five times as long, gives the same size (tested).
    """
    size, at = None, 2
    while head.startswith(b"\xff\xd8") and at + 10 < len(head) and head[at] == 0xFF:
        kind, length = head[at + 1], int.from_bytes(head[at + 2 : at + 4])
        if kind == 0xDA:  # pixels follow
            return size if 2 <= length <= len(head) - at - 2 else None
        # JFIF without a preview; Huffman tables, restarts, a comment
        is_plain = (kind == 0xE0 and length == 16) or (kind in (0xC4, 0xDD, 0xFE) and length >= 2)
        if kind == 0xDB:  # quantization tables of 8 bits
            is_plain = length % 65 == 2 and max(head[at + 4 : at + 2 + length : 65], default=0) < 16
        elif kind in (0xC0, 0xC1, 0xC2) and size is None:  # a frame, in grey or YCbCr
            bits, height, width, layers = struct.unpack_from(">BHHB", head, at + 4)
            size, is_size = (width, height), 0 < width * height <= MAX_PIXELS
            is_plain = is_size and bits == 8 and layers in (1, 3) and length == 8 + 3 * layers
        if not is_plain:
            return None
        at += 2 + length
    return None


@contextmanager
def opened(file: Path | BinaryIO) -> "Iterator[Image.Image]":
    """Open a picture without Pillow's warnings, which are not needed: limits refuse a large picture, and a broken one
    raises an error.
    """
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            picture = Image.open(file, formats=FORMATS)
        except UnidentifiedImageError as error:
            with file.open("rb") if isinstance(file, Path) else nullcontext(file) as read:
                read.seek(0)
                head = read.read(32)
            kind = OTHER_FORMATS.get(head[8:12].decode("latin-1")) if head[4:8] == b"ftyp" else None
            found = f"a picture in {kind}: convert it to JPEG or PNG" if kind else f"none of {', '.join(FORMATS)}"
            raise UnidentifiedImageError(found) from error
        with picture:
            yield picture


def _turn(picture: "Image.Image") -> int:
    """Return the orientation by which a picture is turned, 1 to 8, from its header; 1 for none or a broken one."""
    try:
        return _orientation(_png_exif(picture) if picture.format == "PNG" else picture.getexif())
    except unreadable():
        return 1


def _orientation(exif: Mapping[int, object]) -> int:
    orientation = exif.get(ORIENTATION, 1)
    return orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1


def _png_exif(picture: "Image.Image") -> Mapping[int, object]:
    """Return the EXIF data of a PNG from its chunks; Pillow would decode all pixels to find them."""
    from PIL import Image

    exif, file = Image.Exif(), getattr(picture, "fp", None)
    if file is None:
        return exif
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        if kind == b"eXIf":
            exif.load(file.read(min(length, _MAX_EXIF)))
            return exif
        file.seek(length + 4, io.SEEK_CUR)
    return exif


def unreadable() -> tuple[type[Exception], ...]:
    """Return the errors that opening or decoding an unusable picture may raise."""
    from PIL import Image

    decoders = (OSError, ValueError, TypeError, SyntaxError, EOFError)  # TypeError: a TIFF without its size
    parsers = (struct.error, zlib.error, LookupError, ArithmeticError)  # from broken EXIF data and broken GIFs
    return (*decoders, *parsers, Image.DecompressionBombError, Image.DecompressionBombWarning)


def shrunk(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """Return width and height multiplied by `scale`; each is rounded half up and is at least 1.

    >>> shrunk((2048, 1001), 0.5)
    (1024, 501)
    """
    return max(1, math.floor(size[0] * scale + 0.5)), max(1, math.floor(size[1] * scale + 0.5))


def released_bytes(data: bytes, size: tuple[int, int]) -> bytes:
    """Return the bytes of a picture as released: its own bytes if every reader shows them upright and in this size.

    A picture that depends on its orientation, has another size, is transparent, is in CMYK or has 16 bits is written
    anew in its own format. Raises one of `unreadable()`.
    """
    with opened(io.BytesIO(data)) as picture:
        turned = _turn(picture)
        shown = _shown(picture)
        try:
            is_upright = turned == 1 == _orientation(picture.getexif())  # only some readers find one in XMP, say
        except unreadable():
            is_upright = False  # a reader may stumble over it
        if shown.size == size and _is_plain(picture) and is_upright and not _is_transparent(shown):
            return data
        form = "JPEG" if picture.format == "MPO" else picture.format
        buffer = io.BytesIO()
        flat = _on_white(shown) if _is_transparent(shown) else shown
        bare = _resized(flat, size).copy()
        bare.info = {name: value for name, value in bare.info.items() if name in _KEPT}
        bare.save(buffer, form, **({"quality": 95} if form in ("JPEG", "WEBP") else {}))
        return buffer.getvalue()


def jpeg_bytes(data: bytes, size: tuple[int, int]) -> bytes:
    """Return a picture as JPEG in RGB, in this size and upright, without metadata; what is transparent becomes white.

    Raises one of `unreadable()`.
    """
    with opened(io.BytesIO(data)) as picture:
        buffer = io.BytesIO()
        resized = _resized(_on_white(_shown(picture)), size)
        resized.save(buffer, "JPEG", quality=95, exif=b"", icc_profile=None, comment=b"")
        return buffer.getvalue()


def ending_of(data: bytes) -> str:
    """Return the file ending of a picture from its first bytes; `.jpg` if they are unknown."""
    kinds = {b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp", b"II*": ".tif", b"MM\0": ".tif"}
    kinds[b"II+"] = ".tif"  # a BigTIFF
    return next((ending for start, ending in kinds.items() if data.startswith(start)), ".jpg")


def oddities(file: BinaryIO, name: str) -> tuple[str, ...]:
    """Return what is odd about a picture of this name that every reader can open, in words that follow `with an image`.

    Only its first and last bytes are read, so extra bytes that look like an end are not noticed.
    """
    file.seek(0)
    head = file.read(12)
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    kind, ending = ending_of(head), PurePath(name).suffix.lower()
    ends_well = tail.endswith(_ENDS.get(kind, b""))
    if kind == ".webp":
        ends_well = size - 8 - int.from_bytes(head[4:8], "little") in (0, 1)
    is_misnamed = ending and _SAME_ENDINGS.get(ending, ending) != kind
    names_another = ("whose ending names another format",) if is_misnamed else ()
    return (*names_another, *(() if ends_well else ("with bytes after its end, or without its end",)))


def likeness(data: bytes) -> bytes:
    """Return what a picture looks like: the mean colours of a 16 × 16 grid, in 768 bytes. Raises an error of
    `unreadable()`.
    """
    from PIL import Image

    with opened(io.BytesIO(data)) as picture:
        return _on_white(_shown(picture)).resize((_SIDE, _SIDE), Image.Resampling.BOX).tobytes()


def decoded(data: bytes, side: int) -> "Image.Image":
    """Return a picture as every reader shows it, in RGB on white; a large JPEG is smaller, with sides of at least
    `side` pixels. Raises an error of `unreadable()`.
    """
    with opened(io.BytesIO(data)) as picture:
        picture.draft("RGB", (side, side))  # decoding at a smaller size is faster
        return _on_white(_shown(picture))


def thumbnail(data: bytes, side: int, most: int) -> bytes:
    """Return a picture as JPEG that fits a square of `side` pixels, as every reader shows it; a smaller picture keeps
    its size. Raises one of `unreadable()`, also if more than `most` pixels would be decoded.
    """
    from PIL import Image

    with opened(io.BytesIO(data)) as picture:
        picture.draft("RGB", (2 * side, 2 * side))  # a JPEG is decoded at a smaller size, which is faster
        if picture.size[0] * picture.size[1] > most:
            raise ValueError(f"more than {most:,} pixels")
        small = _on_white(_shown(picture))
        small.thumbnail((side, side), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        small.save(buffer, "JPEG", quality=82)
        return buffer.getvalue()


def is_like_any(one: bytes, others: Sequence[bytes]) -> bool:
    """Return whether a picture is the same as one of the others, or nearly the same, given the `likeness` of each
    picture.

    The mean difference of two grids decides. A hash of brighter and darker cells would not work: on plain backgrounds,
    such as sky, its bits are all alike or all noise.
    """
    import numpy as np

    if not others:
        return False
    grids = np.frombuffer(b"".join(others), np.uint8).reshape(len(others), -1).astype(np.int16)
    off = np.abs(grids - np.frombuffer(one, np.uint8).astype(np.int16)).sum(axis=1)
    return bool((off <= ALIKE * len(one)).any())


def _shown(picture: "Image.Image") -> "Image.Image":
    """Return the pixels of an opened picture, upright and in 8 bits."""
    from PIL import Image

    turned, turns = _turn(picture), Image.Transpose
    picture.load()
    if turned != 1 and picture.format != "TIFF":  # Pillow turns a TIFF while it loads it
        by = {2: turns.FLIP_LEFT_RIGHT, 3: turns.ROTATE_180, 4: turns.FLIP_TOP_BOTTOM, 5: turns.TRANSPOSE}
        by |= {6: turns.ROTATE_270, 7: turns.TRANSVERSE, 8: turns.ROTATE_90}
        picture = picture.transpose(by[turned])
    return _plain(picture)


def _is_transparent(picture: "Image.Image") -> bool:
    """Whether a pixel is not opaque, so that readers show it differently."""
    if picture.mode not in ("LA", "PA", "RGBA") and "transparency" not in picture.info:
        return False
    alpha = picture.convert("RGBA").getchannel("A")
    return alpha.histogram()[255] < alpha.width * alpha.height


def _on_white(picture: "Image.Image") -> "Image.Image":
    """Return a picture in RGB; what is transparent becomes white."""
    from PIL import Image

    if picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info:
        shown = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown)
    return picture.convert("RGB")


def _is_plain(picture: "Image.Image") -> bool:
    return picture.mode in ("1", "L", "LA", "P", "PA", "RGB", "RGBA")


def _plain(picture: "Image.Image") -> "Image.Image":
    """Return the picture in a mode of 8 bits that every reader shows in the same way."""
    from PIL import Image

    if _is_plain(picture):
        return picture
    if picture.mode.startswith("I"):  # with 16 bits `convert` would clip instead of scaling
        import numpy as np

        levels = np.clip(np.asarray(picture).astype(np.int64), 0, 65_535)
        grey = (levels >> 8).astype(np.uint8)
        if isinstance(clear := picture.info.get("transparency"), int):
            grey[levels == clear] = 255  # the level that stands for nothing is white
        return Image.fromarray(grey)
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
