"""Photographs of a source as images of a release: sizes from headers after rotation, safe names, bytes on request."""

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mmlongbench.documents.names import safe_name
from mmlongbench.errors import Fault, Rejected

if TYPE_CHECKING:
    from PIL import Image

ORIENTATION = 0x0112
"""The EXIF tag; 2 to 8 turn or mirror a picture, 5 to 8 stand it on its side."""
_SAFE = re.compile(r"[^\x00-\x1f\x7f/\\\"<>:|?*\ud800-\udfff\s.-][^\x00-\x1f\x7f/\\\"<>:|?*\ud800-\udfff]*")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a source as an image of the release."""

    path: str
    """Below `mmlb_image/`."""
    width: int
    height: int
    source: Path
    is_renamed: bool
    """Whether its name could not be kept: the public loader drops names with a double quote."""
    scale: float = 1.0
    """Its long side in the release / in the source."""


class Pictures:
    """The pictures of a dataset, found when asked for; each header is read once."""

    def __init__(
        self, folder: str, find: Callable[[str], Path | None], most_pixels: int, longest: int | None = None
    ) -> None:
        """`find` gives a picture's file by the name a row has for it; `folder` is its place in the release.

        With `longest`, a picture whose long side has more pixels is shrunk to it.
        """
        self._folder = folder
        self._find = find
        self._most_pixels = most_pixels
        self._longest = longest
        self._known: dict[str, Picture] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        """(width, height) by released path, of the pictures asked for so far."""
        self.origins: dict[str, str] = {}
        """The source's name of each, by released path."""

    def __getitem__(self, name: str) -> Picture:
        """A picture by the source's name.

        Raises:
            Rejected: it is missing, cannot be read, or is too large; the reject says which.

        """
        if name not in self._known:
            picture = self._read(name)
            other = self.origins.setdefault(picture.path, name)
            if other != name:
                expected, found = "names that differ in the release", f"{other!r} is {picture.path} already"
                raise Rejected(Fault("two-images-of-one-name", expected, found, field="image"))
            self._known[name] = picture
            self.sizes[picture.path] = (picture.width, picture.height)
        return self._known[name]

    def _read(self, name: str) -> Picture:
        path = self._find(name)
        if path is None:
            raise Rejected(Fault("missing-image", f"a picture {name!r} among the sources", "none", field="image"))
        try:
            width, height = header_size(path)
        except unreadable() as error:
            raise Rejected(_broken(path, error)) from error
        if width * height > self._most_pixels or min(width, height) < 1:
            bound = f"1 to {self._most_pixels} pixels"
            raise Rejected(Fault("size-of-an-image", bound, f"{width} × {height}", path.name))
        folders, released = map(file_name, PurePosixPath(name).parts[:-1]), file_name(path.name)
        scale = min(1.0, (self._longest or max(width, height)) / max(width, height))
        size = (width, height) if scale == 1 else shrunk((width, height), scale)
        return Picture("/".join((self._folder, *folders, released)), *size, path, released != path.name, scale)


def shrunk(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """(width, height) at a scale, each rounded half up, at least 1.

    >>> shrunk((2048, 1001), 0.5)
    (1024, 501)
    """
    return max(1, math.floor(size[0] * scale + 0.5)), max(1, math.floor(size[1] * scale + 0.5))


def file_name(name: str) -> str:
    """The name of a picture's file in the release: its own where every loader can take it.

    >>> file_name("oven_00000012.jpg"), file_name('a "b".JPG')
    ('oven_00000012.jpg', 'a_b-b243abbfda5ce798.JPG')
    """
    if _SAFE.fullmatch(name) and len(name.encode()) <= 200 and "<" not in name:
        return name
    pure = PurePosixPath(name)
    ending = pure.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,5}", pure.suffix) else ""
    head, _, digits = safe_name(name).rpartition("-")
    return f"{head.removesuffix(ending).rstrip('._-') or 'image'}-{digits}{ending}"


def header_size(path: Path) -> tuple[int, int]:
    """(width, height) after EXIF rotation, from the header alone; raises one of `unreadable()`."""
    with _opened(path) as picture:
        width, height = picture.size
        return (height, width) if 5 <= picture.getexif().get(ORIENTATION, 1) <= 8 else (width, height)


@contextmanager
def _opened(file: Path | io.BytesIO) -> "Iterator[Image.Image]":
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


def released_bytes(picture: Picture) -> bytes:
    """A picture's own bytes; those of the upright picture if it depends on its EXIF orientation, shrunk if so planned.

    Raises:
        Rejected: its pixels cannot be decoded.

    """
    data = picture.source.read_bytes()
    try:
        with _opened(io.BytesIO(data)) as opened:
            opened.load()
            if picture.scale == 1 and opened.getexif().get(ORIENTATION, 1) not in range(2, 9):
                return data
            return _written(opened, (picture.width, picture.height))
    except unreadable() as error:
        raise Rejected(_broken(picture.source, error)) from error


def _written(opened: "Image.Image", size: tuple[int, int]) -> bytes:
    """The upright picture at a size, in its own format."""
    from PIL import Image, ImageOps

    form, upright = opened.format, ImageOps.exif_transpose(opened)
    if upright.size != size:
        direct = upright.convert("RGB") if upright.mode == "P" and "transparency" not in upright.info else upright
        smooth = direct.convert("RGBA") if direct.mode == "P" else direct
        upright = smooth.resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    upright.save(buffer, form, **({"quality": 95} if form == "JPEG" else {}))
    return buffer.getvalue()


def _broken(path: Path, error: Exception) -> Fault:
    found = str(error).replace(f"{path.parent}/", "").splitlines()
    return Fault("broken-image", "a picture that can be opened and decoded", next(iter(found), ""), path.name)
