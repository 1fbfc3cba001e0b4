"""The addresses under which a model is given the images of a release: paths, URLs, or the bytes themselves."""

import io
import math
import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from mmlongbench.documents.pixels import header_size, opened, released_bytes, shrunk, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.io.printable import without_password
from mmlongbench.messages import Size, data_uri

FORMS = ("path", "file-url", "data-uri")
"""The forms of an address; any other form is the beginning of a URL."""
MAX_BYTES = 256 * 1024 * 1024  # the maximum size of an image file that is sent
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://\S+")
_MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}


class ImageUrls:
    """Returns the address of each image below a folder. The bytes of an image are the file's own, unless the image has
    more pixels than `max_pixels`.
    """

    def __init__(self, root: Path, form: str = "path", max_pixels: int | None = None) -> None:
        """Choose the form of the addresses.

        Args:
            root: the folder of the images.
            form: `path` for absolute paths, `file-url` for `file://` URLs, `data-uri` for the bytes in base64, or the
                URL at which the content of the folder is served, such as `http://127.0.0.1:8080/mmlb_image`.
            max_pixels: the maximum width × height of an image; a larger image is made smaller. Only a `data-uri` can
                hold a smaller image than the file does.

        Raises:
            ReleaseError: the form is not known, or cannot hold smaller images.

        """
        if form not in FORMS:
            shown = without_password(form)
            try:
                parts = urlsplit(form)
            except ValueError:  # such as http://[abc
                parts = urlsplit("")
            if not (_PREFIX.fullmatch(form) and parts.scheme):
                url = "a URL such as http://127.0.0.1:8080"
                raise ReleaseError(f"images {shown!r}: expected {', '.join(FORMS)}, or {url}")
            if "@" in parts.netloc:
                raise ReleaseError(f"images {shown!r}: has a user or a password, which every message would contain")
        if max_pixels is not None and form != "data-uri":
            raise ReleaseError(f"max_pixels: images as {form} are files, which are not changed; use data-uri")
        if max_pixels is not None and (type(max_pixels) is not int or max_pixels < 1):
            raise ReleaseError(f"max_pixels {max_pixels!r}: expected a whole number of pixels, at least 1")
        self.form = form
        self.shrunk: dict[str, tuple[Size, Size]] = {}
        """The images that were made smaller, by path: (the size of the file, the size that is sent)."""
        self._root = root.absolute()
        self._resolved = root.resolve()
        self._max_pixels = max_pixels
        self._there: set[str] = set()

    def __call__(self, path: str) -> str:
        """Return the address of an image; raises ReleaseError if it is missing, broken, or outside the folder."""
        file = self._root / path
        if path not in self._there:
            pure = PurePosixPath(path)
            if pure.is_absolute() or ".." in pure.parts or not file.resolve().is_relative_to(self._resolved):
                raise ReleaseError(f"image {path!r}: the path leaves the folder of images")
            if not file.is_file():
                raise ReleaseError(f"image {path!r}: is missing; see `mmlongbench verify`")
            self._there.add(path)
        if self.form == "path":
            return str(file)
        if self.form == "file-url":
            return f"file://{quote(os.fsencode(file))}"
        if self.form != "data-uri":
            return f"{self.form.rstrip('/')}/{quote(os.fsencode(path))}"
        try:
            data = read_regular(file, MAX_BYTES)
            if self._max_pixels is not None and math.prod(size := header_size(file)) > self._max_pixels:
                self.shrunk[path] = (size, fitting_size(size, self._max_pixels))
                data = released_bytes(data, self.shrunk[path][1])
            with opened(io.BytesIO(data)) as picture:
                return data_uri(_MEDIA_TYPES[str(picture.format)], data)
        except unreadable() as error:
            raise ReleaseError(f"image {path!r}: cannot be read: {type(error).__name__}: {error}"[:200]) from error


def fitting_size(size: Size, most: int) -> Size:
    """Return the largest size of the same shape with at most `most` pixels.

    >>> fitting_size((1224, 1584), 1_000_000)
    (878, 1136)
    """
    scale = math.sqrt(most / (size[0] * size[1]))
    width, height = shrunk(size, scale)
    while width * height > most:  # rounding may add a row or a column
        scale *= 0.999
        width, height = shrunk(size, scale)
        if (width, height) == (1, 1):
            break
    return width, height
