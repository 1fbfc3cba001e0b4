"""What the name and the header of an image file tell, as numbers: its form, its quantisation tables, its chroma
subsampling and its EXIF tags. No pixel is decoded.
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from mmlongbench.documents.pixels import opened, unreadable
from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError
from mmlongbench.release.example_cost import ImageSizes

if TYPE_CHECKING:
    from PIL import Image

_BITS = 8
"""How many bits of a hash stand for a text: equal texts have equal bits."""
NAME = (
    *("length of the name", "digits in the name", "number in the name", "letters in the ending", "folders"),
    *("letters of the name",) * _BITS,
    *("letters of the folders",) * _BITS,
)
FILE = ("bytes", "bytes per pixel", "format", "colour mode")
META = ("EXIF bytes", "other metadata", "dots per inch", "a progressive file")
SIZE = ("width", "height", "pixels", "width by height")
QUANTISATION = (
    *("quantisation of brightness", "quantisation of colour", "quantisation of fine detail", "quantisation tables"),
    "chroma subsampling",
    *("values of the quantisation tables",) * _BITS,
)
_TAGS = {
    **{"ImageDescription": 270, "Make": 271, "Model": 272, "Orientation": 274, "XResolution": 282},
    **{"ResolutionUnit": 296, "Software": 305, "DateTime": 306, "Artist": 315, "HostComputer": 316},
    **{"YCbCrPositioning": 531, "Copyright": 33432, "GPS": 34853},
}
"""The tags of a picture as a whole."""
_CAMERA = {
    **{"ExposureTime": 33434, "FNumber": 33437, "ISO": 34855, "ExifVersion": 36864, "DateTimeOriginal": 36867},
    **{"Flash": 37385, "FocalLength": 37386, "MakerNote": 37500, "UserComment": 37510, "ColorSpace": 40961},
    **{"PixelXDimension": 40962, "LensModel": 42036},
}
"""The tags of the directory that cameras write."""
_DIRECTORY = 0x8769
TAGS = ("EXIF tags", *(f"EXIF {name}" for name in (*_TAGS, *_CAMERA)))
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")
MODES = ("RGB", "L", "P", "RGBA", "CMYK", "1", "LA")
_ABSENT = -1.0
_NUMBER = re.compile(r"\d{1,15}")


class ImageFacts:
    """The facts in the headers of a release's images; each header is read once."""

    def __init__(self, root: Path) -> None:
        """Read images below this folder."""
        self._root = root
        self._sizes = ImageSizes(root)
        self._known: dict[str, Mapping[str, tuple[float, ...]]] = {}

    def of(self, path: str) -> Mapping[str, tuple[float, ...]]:
        """Return the numbers of `FILE` (`file`), `META` (`meta`), `SIZE` (`size`), `QUANTISATION` (`tables`) and `TAGS`
        (`tags`) of an image.
        """
        if path not in self._known:
            width, height = self._sizes[path]
            size = (width, height, width * height, width / height)
            self._known[path] = {"size": size, **_header(self._root / path, width * height)}
        return self._known[path]


def _header(path: Path, pixels: int) -> Mapping[str, tuple[float, ...]]:
    size = path.stat().st_size
    try:
        with opened(path) as picture:
            info, tables = picture.info, of_tables(picture)
            kind, mode = _place(picture.format, FORMATS), _place(picture.mode, MODES)
    except unreadable() as error:
        raise ReleaseError(f"image {path.name!r}: cannot be read: {type(error).__name__}") from error
    exif, dpi = info.get("exif", b""), info.get("dpi")
    others = sum(1 for key in info if key not in ("exif", "dpi", "jfif", "jfif_version", "jfif_unit", "jfif_density"))
    dots = dpi[0] if isinstance(dpi, tuple) and dpi else 0  # a text may be named dpi; a fraction may be 0 by 0
    dots = float(dots) if isinstance(dots, Real) and math.isfinite(dots) else 0.0
    return {
        "file": (float(size), size / max(1, pixels), float(kind), float(mode)),
        "meta": (float(len(exif)), float(others), dots, float(bool(info.get("progressive")))),
        "tables": tables,
        "tags": of_tags(exif),
    }


def _place(name: str | None, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)


def of_tables(picture: "Image.Image") -> tuple[float, ...]:
    """Return the numbers of `QUANTISATION` of an open picture; zeros for one without quantisation tables."""
    from PIL.JpegImagePlugin import JpegImageFile, get_sampling

    if not isinstance(picture, JpegImageFile) or not picture.quantization:
        return (0.0,) * len(QUANTISATION)
    rows = [list(picture.quantization[number]) for number in sorted(picture.quantization)]
    bright, colour = rows[0], rows[min(1, len(rows) - 1)]
    fine = float(np.mean(bright[len(bright) // 2 :])) / max(1.0, float(np.mean(bright)))
    means = float(np.mean(bright)), float(np.mean(colour)), fine, float(len(rows))
    # 0 for 4:4:4, 1 for 4:2:2, 2 for 4:2:0, and -1 if it is unknown
    return *means, float(get_sampling(picture)), *_bits("quantisation", str(rows))


def of_tags(exif: object) -> tuple[float, ...]:
    """Return the numbers of `TAGS` of EXIF data, as a file has them. An absent tag is -1, a number is itself, and
    another value is a number between 1 and 2 that only equal values share.
    """
    from PIL import Image

    if not isinstance(exif, bytes) or not exif:
        return (0.0, *(_ABSENT for _ in TAGS[1:]))
    tags, whole, camera = Image.Exif(), dict[int, object](), dict[int, object]()
    with warnings.catch_warnings(), suppress(*unreadable()):  # what is broken counts as absent
        warnings.simplefilter("ignore")
        tags.load(exif)
        whole, camera = dict(tags), dict(tags.get_ifd(_DIRECTORY))
    values = [*(whole.get(tag) for tag in _TAGS.values()), *(camera.get(tag) for tag in _CAMERA.values())]
    return float(len(whole) + len(camera)), *map(_number, values)


def _number(value: object) -> float:
    """Return the value of a tag as a number.

    >>> _number(None), _number(6), _number("Canon") == _number("Canon") != _number("Nikon")
    (-1.0, 6.0, True)
    """
    if value is None:
        return _ABSENT
    if isinstance(value, Real):
        try:
            number = float(value)
        except (ArithmeticError, ValueError):  # a fraction of 0 and 0
            return _ABSENT
        return number if math.isfinite(number) else _ABSENT
    return 1.0 + int.from_bytes(digest("EXIF", repr(value))[:4], "big") / 2**32


def of_name(path: str) -> tuple[float, ...]:
    """Return the numbers of `NAME` of a path. Letters are compared without the digits between them, so that `gold_1`
    and `gold_2` have the same ones.

    >>> of_name("vh/train2017/000000001836.jpg")[:5]
    (12.0, 12.0, 1836.0, 3.0, 2.0)
    >>> of_name("vh/gold_12.jpg")[5:13] == of_name("vh/gold_7.jpg")[5:13] != of_name("vh/other_7.jpg")[5:13]
    True
    """
    pure = PurePosixPath(path)
    numbers = _NUMBER.findall(pure.stem)
    last = float(numbers[-1]) if numbers else -1.0
    digits = sum(letter.isdigit() for letter in pure.stem)
    form = float(len(pure.stem)), float(digits), last, float(len(pure.suffix) - 1), float(len(pure.parts) - 1)
    letters = ("".join(c for c in name if not c.isdigit()) for name in (pure.stem, pure.parent.as_posix()))
    return *form, *(bit for name in letters for bit in _bits("letters of a name", name))


def _bits(kind: str, text: str) -> Iterator[float]:
    first = digest(kind, text)[0]
    return (float(first >> bit & 1) for bit in range(_BITS))
