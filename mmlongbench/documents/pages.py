"""Sizes, texts, keys and images of a document's pages, whether the document is a PDF or a list of image files."""

import hashlib
import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import Ocr, read_page, scale_of
from mmlongbench.documents.page_parts import WHOLE_PAGE
from mmlongbench.documents.pdf import PageRead
from mmlongbench.documents.pdf_reader import (
    crop_pages,
    page_parts,
    page_sizes,
    page_text,
    pages_to_read,
    read_pages,
    render_pages,
)
from mmlongbench.documents.pixels import ending_of, header_size, opened, released_bytes, shrunk, unreadable
from mmlongbench.errors import BuildError, Fault, SourceError

if TYPE_CHECKING:
    from PIL import Image

_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}


@dataclass(frozen=True, slots=True)
class PageImages:
    """The image files of a document's pages, in reading order."""

    files: tuple[Path, ...]
    """The image of each page, in order; pages of `missing` have none."""
    names: tuple[str, ...] = ()
    """The file names of the pages in the release, for loaders that do not expect the usual names
    `<document>_page<N>.jpg`; empty: the pages have the usual names."""
    dpi: int | None = None
    """The resolution at which the pages were rendered; None if it is not known. A context shows pages of one DPI
    only."""
    missing: tuple[int, ...] = ()
    """The numbers, from 0 and ascending, of pages of the document of which the source has no image. No context shows
    them, and the other pages keep their numbers."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of each page in `files`, from 0."""
        lacking = frozenset(self.missing)
        return tuple(number for number in range(len(self.files) + len(lacking)) if number not in lacking)


def image_sizes(document: PageImages, limits: Limits) -> list[tuple[int, int]]:
    """Return (width, height) in pixels of each page, after EXIF rotation, from headers alone.

    Raises:
        SourceError: a file is missing or too large, or is no picture.

    """
    if not 1 <= len(document.files) <= limits.pages:
        bound = f"1 to {limits.pages} pages"
        raise SourceError(Fault("pages-of-a-document", bound, str(len(document.files)), todo="raise limits.pages"))
    return [_size(file, limits) for file in document.files]


def oversized_page(file: Path, max_bytes: int) -> Fault | None:
    """Return a fault if a page's file is too large to be read; None if it is small enough, or does not exist."""
    if not file.is_file() or (size := file.stat().st_size) <= max_bytes:
        return None
    return Fault("size-of-a-page", f"at most {max_bytes} bytes", str(size), file.name, todo="raise limits.bytes")


def _size(file: Path, limits: Limits) -> tuple[int, int]:
    try:
        if fault := oversized_page(file, limits.bytes):
            raise SourceError(fault)
        width, height = header_size(file)
    except unreadable() as error:
        raise SourceError(_broken(file, error)) from error
    if not 0 < min(width, height) <= max(width, height) <= limits.side or width * height > limits.pixels:
        bound = f"sides of 1 to {limits.side} pixels and an area of {limits.pixels}"
        raise SourceError(
            Fault(
                "size-of-a-page",
                bound,
                f"{width} × {height}",
                file.name,
                todo="make the picture smaller, raise limits.pixels, or exclude the document",
            )
        )
    return width, height


def image_keys(document: PageImages) -> Iterator[str]:
    """Yield a key of each page's content: a hash of the page's file, or an empty text for a blank page.

    Raises:
        SourceError: a page cannot be decoded.

    """
    for file in document.files:
        try:
            data = file.read_bytes()
            with opened(io.BytesIO(data)) as picture:
                picture.load()
                is_blank = all(low == high for low, high in _extrema(picture.convert("RGB")))
        except unreadable() as error:
            raise SourceError(_broken(file, error)) from error
        yield "" if is_blank else hashlib.sha256(data).hexdigest()[:16]


def _extrema(picture: "Image.Image") -> Sequence[tuple[int, int]]:
    found: Sequence[tuple[int, int]] = picture.getextrema()  # type: ignore[assignment]  # one pair a band
    return found


def image_pages(
    document: PageImages, paths: Sequence[str], numbers: Sequence[int], sizes: Sequence[tuple[int, int]], quality: int
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (page number, (width, height), bytes) of the chosen pages. If the ending of a page's path in the release
    does not fit the format of the page's file in the source, the page is encoded anew.

    Raises:
        BuildError: a page cannot be decoded any more, so its file has changed since the document was read.

    """
    files = dict(zip(document.numbers, document.files, strict=True))
    for number, path, size in zip(numbers, paths, sizes, strict=True):
        file = files[number]
        try:
            data = released_bytes(file.read_bytes(), size)
            form = _FORMATS.get(Path(path).suffix.lower(), "JPEG")
            yield number, size, data if _FORMATS.get(ending_of(data)) == form else _encoded(data, form, quality)
        except unreadable() as error:
            todo = "mend the document, or take it out of the sources, and build into a new folder"
            raise BuildError(f"{_broken(file, error)}; {todo}") from error


def images_to_read(document: PageImages, known: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """Yield (page number, PNG bytes) of each page for OCR; pages in `known` are not opened. If the resolution of the
    pages is known, they are enlarged to that of OCR, because `tesseract` reads small letters badly.

    Raises:
        SourceError: a page cannot be decoded.

    """
    for number, file in enumerate(document.files):
        try:
            yield number, b"" if number in known else _to_read(file, document.dpi)
        except unreadable() as error:
            raise SourceError(_broken(file, error)) from error


def _to_read(file: Path, dpi: int | None) -> bytes:
    from PIL import Image

    buffer, size = io.BytesIO(), header_size(file)
    with opened(io.BytesIO(released_bytes(file.read_bytes(), size))) as picture:
        picture.load()
        layer = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
        scale = scale_of(size, dpi)
        wanted = shrunk(size, scale)
        layer = layer if wanted == size else layer.resize(wanted, Image.Resampling.LANCZOS)
        ground = Image.new("RGB", wanted, "white")
        ground.paste(layer, mask=layer.getchannel("A") if layer.mode == "RGBA" else None)
        ground.save(buffer, "PNG", compress_level=1, **({"dpi": (dpi * scale, dpi * scale)} if dpi else {}))
    return buffer.getvalue()


def _encoded(data: bytes, form: str, quality: int) -> bytes:
    """Return a picture in another format, with transparent parts in white."""
    from PIL import Image

    buffer = io.BytesIO()
    with opened(io.BytesIO(data)) as picture:
        picture.load()
        layer = picture.convert("RGBA")
        ground = Image.new("RGBA", layer.size, "white")
        ground.alpha_composite(layer)
        ground.convert("RGB").save(buffer, form, quality=quality)
    return buffer.getvalue()


def _broken(file: Path, error: Exception) -> Fault:
    found = next(iter(str(error).replace(f"{file.parent}/", "").splitlines()), "")
    return Fault(
        "broken-page",
        "a picture that can be opened and decoded",
        found,
        file.name,
        todo="replace the picture, or exclude the document",
    )


class _PageText(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    page: int
    """The number of the page, from 0."""
    text: str


class KeptTexts:
    """The known texts of a document."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file, if there is one; without a path, texts are kept in memory only. A line that was cut off when a
        process was killed is left out.
        """
        self._path = path
        self.texts: dict[int, str] = {line.page: line.text for line in _lines(path)} if path else {}
        """The known texts, by the number of the page."""

    def add(self, page: int, text: str) -> None:
        """Keep the text of one more page."""
        self.texts[page] = text
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = _PageText(page=page, text=text).model_dump_json().encode() + b"\n"
        with self._path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line  # the last line was cut off
            file.write(line)


def _lines(path: Path) -> Iterator[_PageText]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield _PageText.model_validate_json(line)
        except ValidationError:
            continue


Pages: TypeAlias = Path | PageImages
"""The pages of a document: a PDF, or image files."""


def sizes_of(document: Pages, dpi: int, limits: Limits) -> list[tuple[int, int]]:
    """Return (width, height) in pixels of each page as released, without decoding any; raises SourceError."""
    return image_sizes(document, limits) if isinstance(document, PageImages) else page_sizes(document, dpi, limits)


def texts_of(document: Pages, limits: Limits, *, ocr: Ocr = False, kept: KeptTexts | None = None) -> Iterator[str]:
    """Yield the text of each page. If OCR does not read all pages, the text of an image file is empty.

    Raises:
        SourceError: the document cannot be read, or a page takes too much time or memory.
        ReaderDiedError: OCR fails at a page.

    """
    if ocr == "all":
        return _read_texts(document, limits, kept or KeptTexts())
    if isinstance(document, PageImages):
        return iter([""] * len(document.files))
    return page_text(document, limits, ocr=ocr)


def read_pages_of(
    document: Pages, limits: Limits, *, keys: bool = True, ocr: Ocr = False, kept: KeptTexts | None = None
) -> Iterator[PageRead]:
    """Yield what is read of each page; the document is read once, unless OCR reads all pages. Equal pages have the same
    key, also in different documents. Image files are not opened if `keys` is false.

    Raises:
        SourceError, ReaderDiedError: as `texts_of`.

    """
    if not isinstance(document, PageImages):
        pages = read_pages(document, limits, ocr=ocr is True)
    else:
        pages = (PageRead(key, "") for key in (image_keys(document) if keys else [""] * len(document.files)))
    if ocr != "all":
        return pages
    texts = zip(list(pages), texts_of(document, limits, ocr=ocr, kept=kept), strict=True)
    return (page._replace(text=text) for page, text in texts)


def _read_texts(document: Pages, limits: Limits, kept: KeptTexts) -> Iterator[str]:
    """Yield the text that OCR reads on each page; texts that are kept are not read again."""
    known = kept.texts
    for number, picture in _pictures(document, limits, list(known)):
        if number not in known:
            name = document.files[number].name if isinstance(document, PageImages) else document.name
            kept.add(number, read_page(picture, f"{name}, page {number + 1}", limits.seconds_a_page))
        yield known[number]


def _pictures(document: Pages, limits: Limits, known: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    if isinstance(document, PageImages):
        return images_to_read(document, known)
    return ((number, data) for number, _, data in pages_to_read(document, known, limits))


def images_of(
    document: Pages,
    paths: Sequence[str],
    numbers: Sequence[int],
    sizes: Sequence[tuple[int, int]],
    dpi: int,
    quality: int,
    limits: Limits,
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (page number, (width, height), bytes) of the pages in `numbers`, which count from 0; `paths` and `sizes`
    have one entry for each of these pages.

    Raises:
        BuildError: a page cannot be rendered or decoded.

    """
    if isinstance(document, PageImages):
        return image_pages(document, paths, numbers, sizes, quality)
    return render_pages(document, numbers, dpi, quality, limits)


def parts_of(
    document: Pages, sizes: Sequence[tuple[int, int]], dpi: int, limits: Limits
) -> Iterator[Mapping[str, Any]]:
    """Yield each page as texts with crops between them (see `page_parts.page_parts`). The page of an image file is a
    crop of the whole page.

    Raises:
        SourceError: a page cannot be read.

    """
    if not isinstance(document, PageImages):
        return page_parts(document, dpi, limits)
    return ({"texts": ["", ""], "crops": [_whole(size)]} for size in sizes)


def _whole(size: tuple[int, int]) -> dict[str, object]:
    return {"kind": WHOLE_PAGE, "box": [0, 0, *size], "size": list(size)}


def crops_of(
    document: Pages, crops: Sequence[tuple[int, Sequence[float]]], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (place in `crops`, (width, height), bytes) of each of `crops`: (page from 0, box in points).

    Raises:
        BuildError: a page cannot be drawn.

    """
    if isinstance(document, PageImages) or not crops:
        return iter(())
    return crop_pages(document, crops, dpi, quality, limits)
