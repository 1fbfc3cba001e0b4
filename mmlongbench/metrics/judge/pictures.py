"""Pictures that a judge is shown: files of a release, sent within bounds."""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.documents.pixels import opened, unreadable

MAX_SIDE = 2048
"""Pixels; a larger picture is shrunk."""
MAX_BYTES = 8 * 1024 * 1024
"""Of a picture that is sent as it is."""
_MAX_PIXELS = 64 * 1024 * 1024
_KINDS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""What judges take as it is."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture file, known by its bytes."""

    path: Path
    sha256: str

    def encoded(self) -> tuple[str, bytes]:
        """Media type and bytes, as they are sent: the file's own where every judge takes them."""
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
    """A picture by its file, or None where it cannot be shown."""
    try:
        data = path.read_bytes()
        with opened(io.BytesIO(data)) as picture:
            if picture.size[0] * picture.size[1] > _MAX_PIXELS:
                return None
            picture.load()
    except unreadable():
        return None
    return Picture(path, hashlib.sha256(data).hexdigest())
