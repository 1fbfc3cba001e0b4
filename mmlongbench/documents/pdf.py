"""Opens PDFs with PyMuPDF, reads the sizes, texts and words of their pages, and draws them.

A PDF may be hostile, so the functions that take a path run in a process with limits, and also raise the errors of
`confined`. MuPDF is not thread-safe: one process reads one document at a time.
"""

import hashlib
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mmlongbench.documents.confined import begin_page, confined
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import DPI, dpi_of, run
from mmlongbench.errors import Fault, MMLongBenchError, SourceError

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf import Document, Page

PageWord: TypeAlias = tuple[float, float, float, float, str, float, float]
"""A word and its box: x0, y0, x1, y1, the word, and the width and height of its page, in points."""

POINTS_PER_INCH = 72
_REPLACE = "replace the file, or exclude the document"
_LEAVE_OUT = "mend the document, or take it out of the sources, and build into a new folder"
_LETTERS = 40  # a page with fewer letters has no useful text; it is compared with others by its pixels
_KEY_DPI = 36
_INK = 16  # the least difference between the lightest and the darkest pixel under a text that can be seen
_SMALLEST = 2.0
"""The size of the smallest letters, in points, that count as text; one is four pixels high at the usual 144 DPI."""
_NO_MEMORY = re.compile(
    r"alloc \(|(not enough|insufficient) memory|failed to allocate|exceeds system limits", re.IGNORECASE
)
"""What MuPDF and its decoders say when they get no more memory."""
_CUT = "premature end of data in flate filter"
_LOST = re.compile(
    "padding truncated image|premature end of (file in jpeg|data in (run length|lzw)|lzw)|read error; treating"
    "|library error: (zlib|jpeg|failed to decode jpx|cannot decode jbig2)|(jbig2dec|openjpeg) error|.*2d faxd"
    r"|jbig2dec warning: (failed|unknown segment|.*\(NYI)"
    "|content stream is not a stream|cannot load content stream part|unknown filter name|image (is )?too large"
    "|syntax error: (syntax error|cannot find (XObject|Shading|Pattern) |no XObject subtype|Failed to read JPX)"
    "|Ignoring error during interpretation|too many syntax errors",
    re.IGNORECASE,
)
"""The warnings of MuPDF that say that a page is not drawn whole. Others say that something was repaired, or is drawn in
another font or colour. A stream that ends too early may only lack its checksum."""
_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
_MOST_UNREADABLE = 0.1


@confined(tuple)
def page_sizes(path: Path, dpi: int, limits: Limits) -> Iterator[tuple[int, int]]:
    """Yield (width, height) in pixels of each page as rendered at a DPI, from the page rectangles alone."""
    sizes, zoom = [], dpi / POINTS_PER_INCH
    with open_pdf(path, limits) as document:
        import pymupdf

        for number in range(document.page_count):
            # All pages have the time of one. Finding a page is quick, but a hostile tree of pages with very many levels
            # makes each one take a second.
            begin_page(number, has_own_time=False)
            with _named(path, "unreadable-page", "a page that can be loaded", f"page {number + 1}"):
                box = (document.load_page(number).rect * pymupdf.Matrix(zoom, zoom)).irect
                sizes.append((int(box.width), int(box.height)))
    for number, (width, height) in enumerate(sizes):
        is_flat = 0 < min(width, height) <= max(width, height) <= limits.side
        if not is_flat or width * height > limits.pixels:
            bound = f"sides of 1 to {limits.side} pixels and an area of {limits.pixels} at {dpi} DPI"
            found = f"{width} × {height}"
            todo = "raise limits.side or limits.pixels in the manifest if the page is meant to be so"
            raise SourceError(Fault("size-of-a-page", bound, found, path.name, f"page {number + 1}", todo=todo))
    yield from sizes


@confined()
def page_words(path: Path, limits: Limits) -> Iterator[list[PageWord]]:
    """Yield the words of each page, as a list. The box of a word is where the word is on the page before rotation."""
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with at_page(path, number, "a page whose words can be read"):
                page = document.load_page(number)
                width, height = float(page.cropbox.width), float(page.cropbox.height)
                if width <= 0 or height <= 0:
                    raise ValueError(f"a page of {width} × {height} points")
                words = [(*word[:5], width, height) for word in page.get_text("words")]
            yield words


class PageRead(NamedTuple):
    """What is read of a page before anything is chosen."""

    key: str
    """A hash of its words or, if it has few letters, of its pixels; empty for a blank page."""
    text: str
    lost: str = ""
    """Why MuPDF does not show all of the page, in its own words; empty if it does."""
    is_text_hidden: bool = False
    """Whether the layer has text that cannot be seen, which is not in `text`."""


@confined(lambda page: PageRead(*page))
def read_pages(path: Path, limits: Limits, *, ocr: bool = False) -> Iterator[PageRead]:
    """Yield what is read of each page. With `ocr`, `tesseract` reads the text of pages that have few letters.

    Raises:
        SourceError: the document or a page cannot be read, or `tesseract` fails at a page.
        ReaderDiedError: `tesseract` takes too long at a page.
        BuildError: `ocr` is asked for, and `tesseract` is not installed.

    """
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with at_page(path, number, "a page that can be read"):
                page, read = read_page(document, number)
            if ocr and not has_words(read.text):
                with at_page(path, number, "a page that tesseract can read", "unrecognised-page"):
                    picture = page.get_pixmap(dpi=DPI, alpha=False).tobytes("png")
                    text = run(picture, f"{path.name}, page {number + 1}", limits.seconds_a_page)
                read = read._replace(text=text)
            yield read


def read_page(document: "Document", number: int) -> tuple["Page", PageRead]:
    """Return a page, by its number from 0, and what is read of it."""
    import pymupdf

    pymupdf.TOOLS.mupdf_warnings()  # forgets the last one, which would only be counted on the next page
    page = document.load_page(number)
    # the text without what cannot be seen
    layer, at = page.get_textpage(flags=pymupdf.TEXTFLAGS_TEXT), 0
    lines = str(page.get_text(textpage=layer)).split("\n")
    unseen = blank_unseen(page, page.get_text("dict", textpage=layer)["blocks"]) if any(lines) else []
    for line, seen in unseen:
        if line in lines[at:]:
            at = lines.index(line, at)
            lines[at : at + 1] = [seen] if seen.strip() else []
    text = readable("\n".join(lines))
    words = " ".join(text.casefold().split())
    if has_words(words):
        key = _key("words", words.encode("utf-8", "replace"))
    else:
        pixels = page.get_pixmap(dpi=_KEY_DPI, colorspace="GRAY", alpha=False)
        samples = pixels.samples  # one byte each; PyMuPDF's own `is_unicolor` takes a third of a second
        is_blank = samples == samples[:1] * len(samples)
        key = "" if is_blank else _key(f"{pixels.width} {pixels.height}", samples)
    # the page was drawn, for the text or for the key, so MuPDF has warned of all that it cannot draw
    return page, PageRead(key, text, _lost(document, page), bool(unseen))


def _key(kind: str, data: bytes) -> str:
    return hashlib.sha256(kind.encode() + b"\0" + data).hexdigest()[:16]


def _lost(document: "Document", page: "Page") -> str:
    """Return the warning of MuPDF that says that a page is not drawn whole; empty if there is none."""
    import pymupdf

    said = str(pymupdf.TOOLS.mupdf_warnings()).splitlines()
    if any(map(_NO_MEMORY.search, said)):
        raise MemoryError  # the page is whole where there is more memory
    lost = next((line for line in said if _LOST.match(line)), "")
    if not lost and _CUT in said:
        # the data end before their end, or only lack the checksum after them, as many writers leave it out
        for xref in (*page.get_contents(), *(form[0] for form in page.get_xobjects())):
            if document.xref_get_key(xref, "Filter")[1].strip("[]/ ") == "FlateDecode":
                unpacked = zlib.decompressobj(-zlib.MAX_WBITS)  # without the two bytes before the data
                with suppress(zlib.error):
                    unpacked.decompress((document.xref_stream_raw(xref) or b"")[2:])
                lost = lost if unpacked.eof else _CUT
    if lost:
        pymupdf.TOOLS.store_shrink(100)  # a broken picture that is kept is drawn on other pages without a warning
    return lost


def blank_unseen(page: "Page", blocks: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Empty the spans of a page's text that leave no ink in the drawn page: white text on white, covered, transparent
    or tiny text, a font without glyphs. The layer of a scan has ink under it, from the picture. Return the lines with
    such spans, each before and after.
    """
    import numpy as np

    lines, changed = [line["spans"] for block in blocks for line in block.get("lines", ())], []
    if not lines:
        return []
    pixels = page.get_pixmap(dpi=POINTS_PER_INCH, alpha=False)
    colours = np.frombuffer(pixels.samples_mv, np.uint8).reshape(pixels.height, pixels.width, 3)
    colours = np.ascontiguousarray(colours.transpose(2, 0, 1))  # numpy is slow at the extremes of interleaved channels
    a, b, c, d, e, f = page.rotation_matrix  # a pixel is a point
    for spans in lines:
        before = "".join(span["text"] for span in spans)
        for span in spans:
            if not any(map(str.isalnum, span["text"])):  # some fonts have a sign for a blank
                continue
            x0, y0, x1, y1 = span["bbox"]
            left, right = sorted((a * x0 + c * y0 + e - pixels.x, a * x1 + c * y1 + e - pixels.x))
            top, bottom = sorted((b * x0 + d * y0 + f - pixels.y, b * x1 + d * y1 + f - pixels.y))
            under = colours[:, max(0, int(top)) : max(0, ceil(bottom)), max(0, int(left)) : max(0, ceil(right))]
            is_seen = under.size and (under.max((1, 2)) - under.min((1, 2))).max() >= _INK
            if span["size"] < _SMALLEST or not is_seen:
                span["text"] = ""
        after = "".join(span["text"] for span in spans)
        if after != before:
            changed.append((before, after))
    return changed


def readable(text: str) -> str:
    r"""Return the text of a layer without control characters and private-use glyphs, which no reader sees as a page
    shows them; empty if these are more than a tenth of it, since then the layer is none.

    >>> readable("Port\x00 Elleray\n"), readable("\uf041\uf042 \uf043\uf044 Elleray")
    ('Port Elleray\n', '')
    """
    kept = _UNREADABLE.sub("", text)
    lost = len(text) - len(kept)
    return "" if lost and lost > _MOST_UNREADABLE * sum(not sign.isspace() for sign in text) else kept


def has_words(text: str) -> bool:
    """Return whether a page's text is more than a stamp or a page number."""
    return sum(map(str.isalpha, text)) >= _LETTERS


@confined(is_needed=True)
def render_pages(
    path: Path, numbers: Sequence[int], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (page number, (width, height), JPEG bytes) of the chosen pages, numbered from 0."""
    with open_pdf(path, limits) as document:
        for number in numbers:
            with at_page(path, number, "a page that can be rendered", "unrenderable-page", _LEAVE_OUT):
                size, data = jpeg(document.load_page(number), dpi, quality)
            yield number, size, data


@confined()
def pages_to_read(path: Path, known: Sequence[int], limits: Limits) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (page number, (width, height), PNG bytes) of each page for OCR; pages in `known` are not drawn."""
    left_out = set(known)
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            if number in left_out:
                yield number, (0, 0), b""
                continue
            with at_page(path, number, "a page that can be drawn"):
                page = document.load_page(number)
                pixels = page.get_pixmap(dpi=dpi_of(page.rect.width, page.rect.height), alpha=False)
                data = pixels.tobytes("png")
            yield number, (pixels.width, pixels.height), data


def jpeg(page: "Page", dpi: int, quality: int, clip: object = None) -> tuple[tuple[int, int], bytes]:
    """Return the size in pixels and the JPEG of a page, or of a part of it.

    It is encoded by Pillow, which is faster than PyMuPDF's own writers; the pixels are copied once.
    """
    from PIL import Image

    from mmlongbench.documents.hairlines import drawn

    pixels = drawn(page, dpi, clip)
    size, buffer = (pixels.width, pixels.height), io.BytesIO()
    picture = Image.new("RGB", size, None)  # not filled first, as `frombuffer` does
    picture.frombytes(pixels.samples_mv)
    picture.save(buffer, "JPEG", quality=quality)
    return size, buffer.getvalue()


@contextmanager
def open_pdf(path: Path, limits: Limits) -> "Iterator[Document]":
    """Open a PDF after checking that it is one, and can be read; it is closed when the block ends."""
    from mmlongbench.documents.mupdf import pymupdf

    try:
        if not path.is_file():
            found = "a folder" if path.is_dir() else "no such file"
            raise _fault(path, "missing-document", "a PDF file", found, "add the file")
        if fault := oversized(path, limits.bytes):
            raise SourceError(fault)
        with path.open("rb") as file:
            head = file.read(1024)
            file.seek(max(0, path.stat().st_size - 2048))
            has_end = b"%%EOF" in file.read()
    except OSError as error:
        raise _fault(path, "unreadable-document", "a file that can be read", str(error.strerror)) from error
    if not head:
        raise _fault(path, "broken-document", "a PDF", "an empty file")
    if b"%PDF-" not in head:
        raise _fault(path, "not-a-pdf", "%PDF- within the first 1024 bytes", repr(head[:12]))
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    with _named(path, "broken-document", "a PDF that can be opened"):
        document: Document = pymupdf.open(path, filetype="pdf")
    with document:
        with _named(path, "broken-document", "a PDF whose pages can be counted"):
            pages = int(document.page_count)
        if document.needs_pass:
            crypt = [document.xref_get_key(-1, f"Encrypt/{key}")[1] for key in ("V", "StmF", "StrF")]
            if crypt[0] in ("4", "5") and {*crypt[1:]} <= {"/Identity", "null"}:
                found = "one whose attachments alone are encrypted"
                todo = "save it without encryption, or print it to PDF"
                raise _fault(path, "encrypted-attachments", "a PDF without encryption", found, todo)
            expected, todo = "a PDF that opens without a password", "save it without one"
            raise _fault(path, "encrypted-document", expected, "an encrypted one", todo)
        if document.is_repaired and not has_end:
            found, todo = "none, and a broken page table", "fetch it again"
            raise _fault(path, "truncated-document", "%%EOF at the end", found, todo)
        if pages < 1:
            raise _fault(path, "document-without-pages", "at least one page", "none")
        if pages > limits.pages:
            raise _fault(path, "pages-of-a-document", f"at most {limits.pages} pages", str(pages), "raise limits.pages")
        with _named(path, "broken-document", "a PDF whose catalogue can be read"):
            root = document.pdf_catalog()
            # a program of Adobe's makes the pages of a dynamic XFA form when it opens it
            is_form = document.xref_get_key(root, "AcroForm/XFA")[0] != "null" and (
                document.xref_get_key(root, "NeedsRendering")[1] == "true"
                or str(document.load_page(0).get_text()).lstrip().startswith("Please wait")
            )
        if is_form:
            found = "a dynamic XFA form, which has only the page “Please wait…”"
            raise _fault(path, "dynamic-xfa-form", "a PDF that has its pages", found, "print it to PDF first")
        yield document


@contextmanager
def at_page(
    path: Path, number: int, expected: str, reason: str = "unreadable-page", todo: str = _REPLACE
) -> Iterator[None]:
    """Begin to read a page, by its number from 0, and turn whatever it makes MuPDF raise into a SourceError with file
    and page.
    """
    begin_page(number)
    with _named(path, reason, expected, f"page {number + 1}", todo):
        yield


@contextmanager
def _named(path: Path, reason: str, expected: str, place: str = "", todo: str = _REPLACE) -> Iterator[None]:
    """Turn whatever a hostile PDF makes MuPDF raise into an error with file and page; MuPDF's errors have no common
    base.

    Raises:
        MemoryError: the process may not have more memory, or MuPDF has left something out for that.

    """
    from mmlongbench.documents.mupdf import pymupdf

    pymupdf.TOOLS.mupdf_warnings()  # forgets those of before
    try:
        yield
    except (MMLongBenchError, MemoryError):
        raise
    except Exception as error:
        found = next(iter(str(error).splitlines()), "") or type(error).__name__
        if _NO_MEMORY.search(found):
            raise MemoryError from error
        found = found.replace(f"{path.parent}/", "")
        raise SourceError(Fault(reason, expected, found, path.name, place, todo=todo)) from error
    if _NO_MEMORY.search(str(pymupdf.TOOLS.mupdf_warnings())):
        raise MemoryError


def oversized(path: Path, max_bytes: int, reason: str = "size-of-a-document") -> Fault | None:
    """Return a fault if a file is too large to be read; None if it is small enough, or does not exist."""
    if not path.is_file() or (size := path.stat().st_size) <= max_bytes:
        return None
    return Fault(reason, f"at most {max_bytes} bytes", str(size), path.name, todo="raise limits.bytes")


def _fault(path: Path, reason: str, expected: str, found: str, todo: str = _REPLACE) -> SourceError:
    return SourceError(Fault(reason, expected, found, path.name, todo=todo))
