"""The page store over PyMuPDF: page sizes without rendering, page text, and rendering to JPEG.

MuPDF is not thread-safe: one process, one document at a time. A PDF is hostile until it was opened within limits.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.errors import Fault, SourceError

POINTS_PER_INCH = 72


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may cost before it is refused."""

    bytes: int
    pages: int
    side: int
    """The longest side of a rendered page, in pixels."""


def page_sizes(path: Path, dpi: int, limits: Limits) -> list[tuple[int, int]]:
    """(width, height) in pixels of each page as rendered at a DPI, read from the page rectangles alone.

    Raises:
        SourceError: the file is missing, too large, no PDF, encrypted, truncated, without pages, or has a page that is
            too large.

    """
    with open_pdf(path, limits) as document:
        sizes = [_size(document, number, dpi) for number in range(document.page_count)]
    for number, (width, height) in enumerate(sizes):
        if not 0 < min(width, height) <= max(width, height) <= limits.side:
            bound, found = f"sides of 1 to {limits.side} pixels at {dpi} DPI", f"{width} × {height}"
            todo = "raise limits.side in the manifest if the page is meant to be so"
            raise SourceError(Fault("size-of-a-page", bound, found, path.name, f"page {number}", todo=todo))
    return sizes


def page_text(path: Path, limits: Limits) -> Iterator[str]:
    """The text of each page in reading order as PyMuPDF sees it."""
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            yield str(document.load_page(number).get_text())


def render_pages(
    path: Path, numbers: Sequence[int], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """(page number, (width, height), JPEG bytes) of the asked pages, numbered from 0."""
    with open_pdf(path, limits) as document:
        for number in numbers:
            yield (number, *_jpeg(document.load_page(number), dpi, quality))


@contextmanager
def open_pdf(path: Path, limits: Limits) -> Iterator[Any]:
    """A PDF that was found fit to be read; closed when the block ends."""
    import pymupdf

    if not path.is_file():
        raise _fault(path, "missing-document", "a PDF file", "no such file")
    if (size := path.stat().st_size) > limits.bytes:
        raise _fault(path, "size-of-a-document", f"at most {limits.bytes} bytes", str(size), "raise limits.bytes")
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    _check_head(path)
    try:
        document = pymupdf.open(path, filetype="pdf")
    except (RuntimeError, ValueError) as error:
        raise _fault(path, "broken-document", "a PDF that can be opened", str(error).splitlines()[0]) from error
    with document:
        _check(path, document, limits)
        yield document


def _check_head(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise _fault(path, "broken-document", "a PDF", "an empty file")
    if b"%PDF-" not in head:
        raise _fault(path, "not-a-pdf", "%PDF- within the first 1024 bytes", repr(head[:12]))


def _check(path: Path, document: Any, limits: Limits) -> None:  # noqa: ANN401  (PyMuPDF has no types)
    if document.needs_pass:
        raise _fault(path, "encrypted-document", "a PDF that opens without a password", "an encrypted one")
    if document.is_repaired and not _has_end(path):
        raise _fault(path, "truncated-document", "%%EOF at the end", "none, and a broken page table", "fetch it again")
    if document.page_count < 1:
        raise _fault(path, "document-without-pages", "at least one page", "none")
    if document.page_count > limits.pages:
        raise _fault(path, "pages-of-a-document", f"at most {limits.pages} pages", str(document.page_count))


def _has_end(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2048))
        return b"%%EOF" in file.read()


def _size(document: Any, number: int, dpi: int) -> tuple[int, int]:  # noqa: ANN401  (PyMuPDF has no types)
    import pymupdf

    zoom = dpi / POINTS_PER_INCH
    box = (document.load_page(number).rect * pymupdf.Matrix(zoom, zoom)).irect
    return int(box.width), int(box.height)


def _jpeg(page: Any, dpi: int, quality: int) -> tuple[tuple[int, int], bytes]:  # noqa: ANN401  (PyMuPDF has no types)
    """Pillow encodes: faster than PyMuPDF's own writers, and the pixels are lent, not copied, while they live."""
    from PIL import Image

    pixels = page.get_pixmap(dpi=dpi, alpha=False)
    size = (pixels.width, pixels.height)
    buffer = io.BytesIO()
    Image.frombuffer("RGB", size, pixels.samples_mv, "raw", "RGB", 0, 1).save(buffer, "JPEG", quality=quality)
    return size, buffer.getvalue()


def _fault(path: Path, reason: str, expected: str, found: str, todo: str = "") -> SourceError:
    return SourceError(Fault(reason, expected, found, path.name, todo=todo))
