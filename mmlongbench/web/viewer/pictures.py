"""The images of a release as a browser gets them: small copies that are made when asked for and kept, and whole files.
What is sent as an image is one by its bytes, whatever its name says.
"""

import threading
from pathlib import Path, PurePosixPath

from mmlongbench.documents.pixels import thumbnail, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular, write_whole
from mmlongbench.web.viewer.viewed import cache_folder, key_of

SIDE = 256
"""The longer side of a small copy, in pixels."""
LARGE_SIDE = 1400
"""The longer side of a copy that can be read, as the files of a site have them."""
_MAX_PIXELS = 36_000_000
"""The most pixels of a picture that is decoded."""
_MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of a file that is decoded or sent."""
_KINDS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_AT_ONCE = threading.Semaphore(2)
"""At most two pictures are decoded at a time, which bounds memory."""


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
        why = "is missing" if is_inside else "the path leaves the folder of images"
        raise ReleaseError(f"image {path!r:.120}: {why}")
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
        return read_regular(kept, _MAX_BYTES)
    except (OSError, ValueError):
        with _AT_ONCE:
            try:
                data = thumbnail(read_regular(file, _MAX_BYTES), side, _MAX_PIXELS)
            except unreadable() as error:
                raise ReleaseError(f"image {file.name!r:.120}: cannot be shown: {str(error)[:120]}") from error
        write_whole(kept, [data])
        return data


def whole_file(root: Path, path: str) -> tuple[Path, str]:
    """Return the file and the media type of an image: JPEG, PNG, GIF or WebP by its first bytes.

    Raises:
        ReleaseError: the image is missing, too large, or of another kind.

    """
    file = image_file(root, path)
    with file.open("rb") as opened:
        head = opened.read(16)
    kind = next((kind for start, kind in _KINDS.items() if head.startswith(start)), "")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind:
        raise ReleaseError(f"image {path!r:.120}: no JPEG, PNG, GIF or WebP by its first bytes")
    if file.stat().st_size > _MAX_BYTES:
        raise ReleaseError(f"image {path!r:.120}: more than {_MAX_BYTES:,} bytes")
    return file, kind


def fitted(size: tuple[int, int], side: int = SIDE) -> tuple[int, int]:
    """Return the size of an image that is made to fit a square.

    >>> fitted((1224, 1584)), fitted((100, 50))
    ((198, 256), (100, 50))
    """
    width, height = size
    scale = min(1.0, side / max(width, height, 1))
    return max(1, round(width * scale)), max(1, round(height * scale))
