"""How an image file was written: its quantisation tables, chroma subsampling and EXIF tags, as numbers. No pixel is
decoded.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from mmlongbench.documents.pixels import unreadable
from mmlongbench.draws import digest

if TYPE_CHECKING:
    from PIL import Image

_BITS = 8
"""How many bits of a hash stand for the tables: equal tables have equal bits."""
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
_ABSENT = -1.0


def of_tables(picture: "Image.Image") -> tuple[float, ...]:
    """Return the numbers of `QUANTISATION` of an open picture; zeros for one without quantisation tables."""
    from PIL.JpegImagePlugin import JpegImageFile

    tables: Mapping[int, Sequence[int]] = picture.quantization if isinstance(picture, JpegImageFile) else {}
    if not tables:
        return (0.0,) * len(QUANTISATION)
    rows = [list(tables[number]) for number in sorted(tables)]
    bright, colour = rows[0], rows[min(1, len(rows) - 1)]
    fine = float(np.mean(bright[len(bright) // 2 :])) / max(1.0, float(np.mean(bright)))
    means = float(np.mean(bright)), float(np.mean(colour)), fine, float(len(rows))
    return *means, _subsampling(picture), *_bits(str(rows))


def _subsampling(picture: "Image.Image") -> float:
    """Return 0 for 4:4:4, 1 for 4:2:2, 2 for 4:2:0, and -1 if it is unknown or there is none."""
    from PIL.JpegImagePlugin import JpegImageFile, get_sampling

    return float(get_sampling(picture)) if isinstance(picture, JpegImageFile) else _ABSENT


def of_tags(exif: object) -> tuple[float, ...]:
    """Return the numbers of `TAGS` of EXIF data, as a file has them. An absent tag is -1, a number is itself, and
    another value is a number between 1 and 2 that only equal values share.
    """
    from PIL import Image

    if not isinstance(exif, bytes) or not exif:
        return (0.0, *(_ABSENT for _ in TAGS[1:]))
    found, whole, camera = Image.Exif(), dict[int, object](), dict[int, object]()
    with warnings.catch_warnings(), suppress(*unreadable()):  # what is broken counts as absent
        warnings.simplefilter("ignore")
        found.load(exif)
        whole, camera = dict(found), dict(found.get_ifd(_DIRECTORY))
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


def _bits(text: str) -> Iterator[float]:
    letters = digest("quantisation", text)
    return (float(letters[0] >> bit & 1) for bit in range(_BITS))
