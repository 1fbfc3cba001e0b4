"""What a reader could notice about a unit without understanding it: the name and the header of its image file, the form
of its text, its place and its neighbours. No pixel is decoded.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path, PurePosixPath

import numpy as np

from mmlongbench.documents.pixels import opened, unreadable
from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError
from mmlongbench.release.example_cost import ImageSizes
from mmlongbench.shortcuts.encoding import of_tables, of_tags
from mmlongbench.shortcuts.measured import Floats
from mmlongbench.shortcuts.reading import ShownUnit

_BITS = 8
"""How many bits of a hash stand for the letters of a name: equal letters have equal bits."""
NAME = (
    *("length of the name", "digits in the name", "number in the name", "letters in the ending", "folders"),
    *("letters of the name",) * _BITS,
    *("letters of the folders",) * _BITS,
)
FILE = ("bytes", "bytes per pixel", "format", "colour mode")
META = ("EXIF bytes", "other metadata", "dots per inch", "a progressive file")
SIZE = ("width", "height", "pixels", "width by height")
TEXT = ("characters", "words", "punctuation", "digits", "capitals", "line breaks", "a full stop at its end")
PLACE = ("place", "distance from the middle", "first", "last")
NEIGHBOURS = ("an image before it", "an image after it", "a neighbour of another role", "distance to an equal title")
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")
_MODES = ("RGB", "L", "P", "RGBA", "CMYK", "1", "LA")
_LARGEST = 1e15
"""The largest number that is compared; sums of squares of larger ones could be infinite."""
_NUMBER = re.compile(r"\d{1,15}")


class ImageFacts:
    """The facts in the headers of a release's images; each header is read once."""

    def __init__(self, root: Path) -> None:
        """Read images below this folder."""
        self._root = root
        self._sizes = ImageSizes(root)
        self._known: dict[str, Mapping[str, tuple[float, ...]]] = {}

    def of(self, path: str) -> Mapping[str, tuple[float, ...]]:
        """Return the numbers of `FILE`, `META`, `SIZE`, `QUANTISATION` and `TAGS` of an image.

        Raises:
            ReleaseError: the image is missing or cannot be read.

        """
        if path not in self._known:
            width, height = self._sizes[path]
            self._known[path] = {
                "size": (width, height, width * height, width / height),
                **_header(self._root / path, width * height),
            }
        return self._known[path]


def _header(path: Path, pixels: int) -> Mapping[str, tuple[float, ...]]:
    size = path.stat().st_size
    try:
        with opened(path) as picture:
            info, tables = picture.info, of_tables(picture)
            kind, mode = _place(picture.format, _FORMATS), _place(picture.mode, _MODES)
    except unreadable() as error:
        raise ReleaseError(f"image {path.name!r}: cannot be read: {type(error).__name__}") from error
    exif = info.get("exif", b"")
    others = sum(1 for key in info if key not in ("exif", "dpi", "jfif", "jfif_version", "jfif_unit", "jfif_density"))
    file = (size, size / max(1, pixels), kind, mode)
    meta = (len(exif), others, _dots(info.get("dpi")), float(bool(info.get("progressive"))))
    return {
        "file": tuple(map(float, file)),
        "meta": tuple(map(float, meta)),
        "tables": tables,
        "tags": of_tags(exif),
    }


def _dots(found: object) -> float:
    """Return the dots per inch; 0 if there are none, such as those of a text that is named dpi, or 0 divided by 0."""
    dots = found[0] if isinstance(found, tuple) and found else 0
    return float(dots) if isinstance(dots, Real) and math.isfinite(dots) else 0.0


def _place(name: str | None, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)


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
    of_form = float(len(pure.stem)), float(digits), last, float(len(pure.suffix) - 1), float(len(pure.parts) - 1)
    return *of_form, *_bits(pure.stem), *_bits(pure.parent.as_posix())


def _bits(name: str) -> Iterator[float]:
    letters = digest("letters of a name", "".join(letter for letter in name if not letter.isdigit()))
    return (float(letters[0] >> bit & 1) for bit in range(_BITS))


def of_text(text: str) -> tuple[float, ...]:
    """Return the numbers of `TEXT`; punctuation, digits and capitals are shares of the characters."""
    n, letters = max(1, len(text)), Counter(text)
    marks = sum(times for each, times in letters.items() if not each.isalnum() and not each.isspace())
    digits = sum(times for each, times in letters.items() if each.isdigit())
    capitals = sum(times for each, times in letters.items() if each.isupper())
    ends = float(text.rstrip().endswith("."))
    return float(len(text)), float(len(text.split())), marks / n, digits / n, capitals / n, letters["\n"] / n, ends


def of_place(place: int, n: int) -> tuple[float, ...]:
    """Return the numbers of `PLACE` of the unit at a place among n.

    >>> of_place(0, 5)
    (0.0, 0.5, 1.0, 0.0)
    """
    at = place / max(1, n - 1)
    return at, abs(at - 0.5), float(place == 0), float(place == n - 1)


def of_neighbours(units: Sequence[ShownUnit], places: Sequence[int]) -> list[tuple[float, ...]]:
    """Return the numbers of `NEIGHBOURS` of the units at some places. For the first and the last unit, which lack a
    neighbour, the other neighbour counts twice, since places are tried apart.

    Roles are compared only if gold has the role of other units, as a page of the evidence has. A gold with a role of
    its own would differ from the rest without any leak: it stands beside others, and others stand beside it.
    """
    has_roles = not any(units[place].is_gold and not units[place].is_evidence for place in places)
    titled: dict[str, list[int]] = {}
    for place, unit in enumerate(units):
        if title := _title(unit):
            titled.setdefault(title, []).append(place)
    rows: list[tuple[float, ...]] = []
    for place in places:
        others = [units[at] for at in (place - 1, place + 1) if 0 <= at < len(units)] or [units[place]]
        before, after = others[0], others[-1]
        equal = (abs(other - place) for other in titled.get(_title(units[place]), ()) if other != place)
        beside = float(bool(before.image)), float(bool(after.image)), float(has_roles and before.role != after.role)
        rows.append((*beside, float(min(equal, default=len(units)))))
    return rows


def _title(unit: ShownUnit) -> str:
    return unit.text.strip().split("\n", 1)[0] if not unit.image else ""


def table(rows: Iterator[tuple[float, ...]] | Sequence[tuple[float, ...]]) -> Floats:
    """Return rows of numbers as one array. Headers and texts may have infinite numbers, and values that are no number:
    they are replaced by the largest number that is compared, and by 0.
    """
    found = np.array(list(rows), dtype=np.float64)
    return np.clip(np.nan_to_num(found, nan=0.0), -_LARGEST, _LARGEST)


def written(name: str, value: float) -> str:
    """Return the value of a feature as a person reads it.

    >>> written("format", 0.0), written("bytes", 48213.0), written("punctuation", 0.0312)
    ('JPEG', '48,213', '0.0312')
    """
    names = {"format": _FORMATS, "colour mode": _MODES}.get(name)
    if names:
        return names[int(value)] if value < len(names) else "another"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"
