"""The images of a release as a browser gets them: small copies that are made when asked for and kept, and whole files.
What is sent as an image is one by its bytes, whatever its name says.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mmlongbench.documents.pixels import thumbnail, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular, write_whole
from mmlongbench.web.viewer.places import cache_folder, key_of

SIDE = 256
"""The longer side of a small copy, in pixels."""
LARGE_SIDE = 1400
"""The longer side of a copy that can be read, as the files of a site have them."""
MAX_PIXELS = 36_000_000
"""The most pixels of a picture that is decoded."""
MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of a file that is decoded or sent."""
_PIECE = 256 * 1024
_KINDS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_AT_ONCE = threading.Semaphore(2)
"""At most two pictures are decoded at a time, which bounds memory."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A file that is sent."""

    media_type: str
    size: int
    pieces: Iterator[bytes]


def image_file(root: Path, path: str) -> Path:
    """Return the file of an image.

    Raises:
        ReleaseError: the path leaves the folder of images, also by a link, or there is no such file.

    """
    pure, file = PurePosixPath(path), root / path
    try:
        is_inside = not pure.is_absolute() and ".." not in pure.parts and file.resolve().is_relative_to(root.resolve())
        is_there = is_inside and file.is_file()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise ReleaseError(f"image {path!r:.120}: is missing") from error
    if not is_there:
        raise ReleaseError(
            f"image {path!r:.120}: {'is missing' if is_inside else 'the path leaves the folder of images'}"
        )
    return file


def small_copy(root: Path, path: str, side: int = SIDE) -> bytes:
    """Return a small copy of an image as JPEG; it is made once and kept in the cache.

    Raises:
        ReleaseError: the image is missing, cannot be decoded, or has too many pixels.

    """
    file = image_file(root, path)
    key = key_of([file], str(side))
    kept = cache_folder() / "images" / key[:2] / f"{key}.jpg"
    try:
        return read_regular(kept, MAX_BYTES)
    except (OSError, ValueError):
        with _AT_ONCE:
            data = _shrunk(file, side)
        write_whole(kept, [data])
        return data


def whole_file(root: Path, path: str) -> Sent:
    """Return an image as it is: JPEG, PNG, GIF or WebP by its first bytes; anything else is refused.

    Raises:
        ReleaseError: the image is missing, too large, or of another kind.

    """
    pieces = _pieces(image_file(root, path))
    head, size = next(pieces)  # from here on the file is closed with the generator, also if nothing more is asked for
    kind = media_type(head)
    if not kind or size > MAX_BYTES:
        said = f"more than {MAX_BYTES:,} bytes" if kind else "no JPEG, PNG, GIF or WebP by its first bytes"
        raise ReleaseError(f"image {path!r:.120}: {said}")
    return Sent(kind, size, (piece for piece, _ in pieces))


def _pieces(file: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the first bytes of a file, then all of it in pieces; each with the bytes that are left."""
    with file.open("rb") as opened:
        left = os.fstat(opened.fileno()).st_size
        yield opened.read(16), left
        opened.seek(0)
        while left > 0 and (piece := opened.read(min(_PIECE, left))):
            left -= len(piece)
            yield piece, left


def media_type(head: bytes) -> str:
    """Return the media type of an image by its first bytes; empty if it is none that a browser is sent.

    >>> media_type(b"<svg onload="), media_type(b"GIF89a....")
    ('', 'image/gif')
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _KINDS.items() if head.startswith(start)), "")


def fitted(size: tuple[int, int], side: int = SIDE) -> tuple[int, int]:
    """Return the size of an image that is made to fit a square.

    >>> fitted((1224, 1584)), fitted((100, 50))
    ((198, 256), (100, 50))
    """
    width, height = size
    scale = min(1.0, side / max(width, height, 1))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _shrunk(file: Path, side: int) -> bytes:
    try:
        return thumbnail(read_regular(file, MAX_BYTES), side, MAX_PIXELS)
    except unreadable() as error:
        raise ReleaseError(f"image {file.name!r:.120}: cannot be shown: {str(error)[:120]}") from error
