"""What the metadata inside a file say about rights: EXIF, IPTC and XMP of pictures, and the metadata of PDFs.

These are hints to show beside a stated licence. Nobody has checked them, and programs copy them from file to file.
"""

import html
import io
import re
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path

from mmlongbench.documents.confined import confined
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import open_pdf
from mmlongbench.documents.pixels import PictureFile, opened, unreadable
from mmlongbench.errors import ReaderDiedError, SourceError

MAX_HINT = 300  # the maximum characters of a hint
_EXIF = {315: "EXIF artist", 33432: "EXIF copyright"}
_IPTC = {(2, 80): "IPTC by-line", (2, 116): "IPTC copyright"}
_XMP = re.compile(
    rb"<(dc:rights|dc:creator|xmpRights:UsageTerms|xmpRights:WebStatement|cc:license)\b[^>]*>(.{0,4000}?)</\1>|"
    rb"\b(xmpRights:WebStatement|cc:license)=\"([^\"]{1,500})\"",
    re.DOTALL,
)
_MAX_XMP = 256 * 1024


def picture_hint(file: PictureFile) -> str:
    """Return what the metadata of a picture say about rights; empty if they say nothing, or cannot be read."""
    from PIL import ImageFile, IptcImagePlugin

    hints: list[tuple[str, str]] = []
    try:
        with opened(file if isinstance(file, Path) else io.BytesIO(file.read_bytes())) as picture:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about damaged metadata
                    exif = picture.getexif()
                    hints += [(name, str(exif.get(tag) or "")) for tag, name in _EXIF.items()]
                    iptc = IptcImagePlugin.getiptcinfo(picture) if isinstance(picture, ImageFile.ImageFile) else None
                    hints += [(name, _text((iptc or {}).get(tag))) for tag, name in _IPTC.items()]
            except (OSError, ValueError, TypeError, LookupError, AttributeError, SyntaxError, struct.error):
                hints.append(("metadata", "damaged"))
            xmp = picture.info.get("xmp") or picture.info.get("XML:com.adobe.xmp") or b""
            return _joined(hints + _of_xmp(xmp.encode() if isinstance(xmp, str) else bytes(xmp)))
    except unreadable():
        return ""


def _text(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _of_xmp(xmp: bytes) -> list[tuple[str, str]]:
    """Return what a packet of XMP says about rights; it is searched, not parsed, because it may be damaged."""
    found = []
    for match in _XMP.finditer(xmp[:_MAX_XMP]):
        name = (match[1] or match[3]).decode()
        text = re.sub(rb"<[^>]*>", b" ", match[2] or match[4] or b"")
        found.append((f"XMP {name}", html.unescape(text.decode("utf-8", "replace"))))
    return found


def pdf_hint(path: Path, limits: Limits) -> str:
    """Return what the metadata of a PDF say about rights and its author; empty if they say nothing, or cannot be
    read.
    """
    try:
        return "".join(_pdf_hints(path, limits))
    except (SourceError, ReaderDiedError):
        return ""


@confined()
def _pdf_hints(path: Path, limits: Limits) -> Iterator[str]:
    with open_pdf(path, limits) as document:
        said = [("PDF author", str((document.metadata or {}).get("author") or ""))]
        yield _joined(said + _of_xmp(document.get_xml_metadata().encode("utf-8", "replace")))


def _joined(found: list[tuple[str, str]]) -> str:
    """Return hints in one line, each once, without characters that cannot be seen."""
    said: dict[str, None] = {}
    for name, text in found:
        clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        if clean:
            said[f"{name}: {clean}"] = None
    return "; ".join(said)[:MAX_HINT]
