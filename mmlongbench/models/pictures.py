"""Reads picture files, and makes the bytes that are sent to a model: in a format and a size that models accept."""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.documents.pixels import opened, unreadable

MAX_SIDE = 2048
"""The maximum width and height in pixels; a larger picture is shrunk."""
MAX_BYTES = 8 * 1024 * 1024
"""The maximum size of a picture that is sent unchanged."""
_MAX_PIXELS = 64 * 1024 * 1024
_KINDS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""The formats that models accept unchanged."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture file, identified by its bytes."""

    path: Path
    sha256: str

    def encoded(self) -> tuple[str, bytes]:
        """Return media type and bytes to send; the bytes are the file's own if every model accepts them."""
        data = self.path.read_bytes()
        with opened(io.BytesIO(data)) as picture:
            kind = _KINDS.get(str(picture.format))
            if kind and max(picture.size) <= MAX_SIDE and len(data) <= MAX_BYTES:
                return kind, data
            buffer, shown = io.BytesIO(), picture.convert("RGB")
            shown.thumbnail((MAX_SIDE, MAX_SIDE))
            shown.save(buffer, "JPEG", quality=90)
        return "image/jpeg", buffer.getvalue()


def picture_of(path: Path) -> Picture | None:
    """Return the picture in a file, or None if it is too large or cannot be decoded."""
    try:
        data = path.read_bytes()
        with opened(io.BytesIO(data)) as picture:
            if picture.size[0] * picture.size[1] > _MAX_PIXELS:
                return None
            picture.load()
    except unreadable():
        return None
    return Picture(path, hashlib.sha256(data).hexdigest())
