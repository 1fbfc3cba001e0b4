"""Photographs of a source as images of a release: sizes from headers after rotation, safe names, bytes on request."""

import io
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


class Pictures:
    """The pictures of a dataset, found when asked for; each header is read once."""

    def __init__(self, folder: str, find: Callable[[str], Path | None], most_pixels: int) -> None:
        """`find` gives a picture's file by the name a row has for it; `folder` is its place in the release."""
        self._folder = folder
        self._find = find
        self._most_pixels = most_pixels
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
        released = file_name(path.name)
        return Picture(f"{self._folder}/{released}", width, height, path, released != path.name)


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


def released_bytes(path: Path) -> bytes:
    """A picture's own bytes, or, if it depends on its EXIF orientation, those of the upright picture.

    Raises:
        Rejected: its pixels cannot be decoded.

    """
    from PIL import ImageOps

    data = path.read_bytes()
    try:
        with _opened(io.BytesIO(data)) as picture:
            picture.load()
            if picture.getexif().get(ORIENTATION, 1) not in range(2, 9):
                return data
            upright = ImageOps.exif_transpose(picture)
            buffer = io.BytesIO()
            upright.save(buffer, picture.format, **({"quality": 95} if picture.format == "JPEG" else {}))
            return buffer.getvalue()
    except unreadable() as error:
        raise Rejected(_broken(path, error)) from error


def _broken(path: Path, error: Exception) -> Fault:
    found = str(error).replace(f"{path.parent}/", "").splitlines()
    return Fault("broken-image", "a picture that can be opened and decoded", next(iter(found), ""), path.name)
