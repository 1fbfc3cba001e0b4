"""A document, which is a PDF or a list of image files: the sizes, texts, keys, parts and images of its pages.

Of image files, sizes come from headers, and pages are released unchanged or as JPEG. A document that cannot be read is
a SourceError; a page that cannot be drawn for a release, which needs it, is a BuildError.
"""

import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import Ocr, read_page, scale_of
from mmlongbench.documents.page_parts import WHOLE_PAGE, crop_pages, page_parts
from mmlongbench.documents.pdf import PageRead, oversized, page_sizes, pages_to_read, read_pages, render_pages
from mmlongbench.documents.pixels import ending_of, header_size, opened, released_bytes, shrunk, unreadable
from mmlongbench.errors import BuildError, Fault, SourceError

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


Pages: TypeAlias = Path | PageImages


# --- sizes ------------------------------------------------------------------------------------------------------------


def sizes_of(document: Pages, dpi: int, limits: Limits) -> list[tuple[int, int]]:
    """Return (width, height) in pixels of each page as released, without decoding any. The size of an image file is
    that after EXIF rotation.
    """
    if not isinstance(document, PageImages):
        return list(page_sizes(document, dpi, limits))
    if not 1 <= len(document.files) <= limits.pages:
        bound = f"1 to {limits.pages} pages"
        raise SourceError(Fault("pages-of-a-document", bound, str(len(document.files)), todo="raise limits.pages"))
    sizes = []
    for file in document.files:
        with _named(file):
            if fault := oversized(file, limits.bytes, "size-of-a-page"):
                raise SourceError(fault)
            width, height = header_size(file)
        if not 0 < min(width, height) <= max(width, height) <= limits.side or width * height > limits.pixels:
            bound = f"sides of 1 to {limits.side} pixels and an area of {limits.pixels}"
            todo = "make the picture smaller, raise limits.pixels, or exclude the document"
            raise SourceError(Fault("size-of-a-page", bound, f"{width} × {height}", file.name, todo=todo))
        sizes.append((width, height))
    return sizes


# --- keys and texts ---------------------------------------------------------------------------------------------------


class _PageText(BaseModel):
    """A line of a file of texts that OCR has read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    page: int
    """The number of the page, from 0."""
    text: str


class KeptTexts:
    """The texts of a document that OCR has read."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file, if there is one; without a path, texts are kept in memory only. A line that was cut off when a
        process was killed is left out.
        """
        self._path = path
        self.texts: dict[int, str] = {}
        for line in path.read_bytes().splitlines() if path and path.exists() else ():
            try:
                known = _PageText.model_validate_json(line)
            except ValidationError:
                continue
            self.texts[known.page] = known.text

    def add(self, page: int, text: str) -> None:
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


def read_pages_of(
    document: Pages, limits: Limits, *, keys: bool = True, ocr: Ocr = False, kept: KeptTexts | None = None
) -> Iterator[PageRead]:
    """Yield what is read of each page. Equal pages have the same key, also in different documents. The text of an image
    file is empty unless OCR reads all pages; the file is not opened if `keys` is false.

    Raises:
        SourceError: the document cannot be read, or a page takes too much time or memory.
        ReaderDiedError: OCR fails at a page.

    """
    if not isinstance(document, PageImages):
        pages = read_pages(document, limits, ocr=ocr is True)
    else:
        pages = (PageRead(_image_key(file) if keys else "", "") for file in document.files)
    if ocr != "all":
        return pages
    texts = zip(list(pages), _recognised(document, limits, kept or KeptTexts()), strict=True)
    return (page._replace(text=text) for page, text in texts)


def texts_of(document: Pages, limits: Limits, *, ocr: Ocr = False, kept: KeptTexts | None = None) -> Iterator[str]:
    """Yield the text of each page, as `read_pages_of` reads it."""
    return (page.text for page in read_pages_of(document, limits, keys=False, ocr=ocr, kept=kept))


def _image_key(file: Path) -> str:
    """Return a hash of the file of a page, or an empty text for a blank page."""
    with _named(file):
        data = file.read_bytes()
        with opened(io.BytesIO(data)) as picture:
            picture.load()
            is_blank = all(low == high for low, high in picture.convert("RGB").getextrema())  # type: ignore[misc]
    return "" if is_blank else hashlib.sha256(data).hexdigest()[:16]


def _recognised(document: Pages, limits: Limits, kept: KeptTexts) -> Iterator[str]:
    """Yield the text that OCR reads on each page; texts that are kept are not read again."""
    known = kept.texts
    if isinstance(document, PageImages):
        pictures = images_to_read(document, list(known))
    else:
        pictures = ((number, data) for number, _, data in pages_to_read(document, list(known), limits))
    for number, picture in pictures:
        if number not in known:
            name = document.files[number].name if isinstance(document, PageImages) else document.name
            kept.add(number, read_page(picture, f"{name}, page {number + 1}", limits.seconds_a_page))
        yield known[number]


def images_to_read(document: PageImages, known: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield (page number, PNG bytes) of each page for OCR; pages in `known` are not opened. If the resolution of the
    pages is known, they are enlarged to that of OCR, because `tesseract` reads small letters badly.
    """
    from PIL import Image

    left_out = set(known)
    for number, file in enumerate(document.files):
        if number in left_out:
            yield number, b""
            continue
        with _named(file):
            size = header_size(file)
            scale = scale_of(size, document.dpi)
            wanted, buffer = shrunk(size, scale), io.BytesIO()
            with opened(io.BytesIO(released_bytes(file.read_bytes(), size))) as picture:
                picture.load()
                layer = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
                layer = layer if wanted == size else layer.resize(wanted, Image.Resampling.LANCZOS)
                ground = Image.new("RGB", wanted, "white")
                ground.paste(layer, mask=layer.getchannel("A") if layer.mode == "RGBA" else None)
                dpi = {"dpi": (document.dpi * scale, document.dpi * scale)} if document.dpi else {}
                ground.save(buffer, "PNG", compress_level=1, **dpi)
        yield number, buffer.getvalue()


# --- images -----------------------------------------------------------------------------------------------------------


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
    have one entry for each of these pages. If the ending of a page's path in the release does not fit the format of the
    page's file in the source, the page is encoded anew.
    """
    if not isinstance(document, PageImages):
        yield from render_pages(document, numbers, dpi, quality, limits)
        return
    from PIL import Image

    files = dict(zip(document.numbers, document.files, strict=True))
    for number, path, size in zip(numbers, paths, sizes, strict=True):
        try:
            with _named(files[number]):
                data = released_bytes(files[number].read_bytes(), size)
                form = _FORMATS.get(Path(path).suffix.lower(), "JPEG")
                if _FORMATS.get(ending_of(data)) != form:
                    with opened(io.BytesIO(data)) as picture:
                        picture.load()
                        layer, buffer = picture.convert("RGBA"), io.BytesIO()
                        ground = Image.new("RGBA", layer.size, "white")  # for transparent parts
                        ground.alpha_composite(layer)
                        ground.convert("RGB").save(buffer, form, quality=quality)
                    data = buffer.getvalue()
        except SourceError as error:  # the file has changed since the document was read
            todo = "mend the document, or take it out of the sources, and build into a new folder"
            raise BuildError(f"{error}; {todo}") from error
        yield number, size, data


def parts_of(
    document: Pages, sizes: Sequence[tuple[int, int]], dpi: int, limits: Limits
) -> Iterator[Mapping[str, Any]]:
    """Yield each page as texts with crops between them (see `page_parts.page_parts`). The page of an image file is a
    crop of the whole page.
    """
    if not isinstance(document, PageImages):
        return page_parts(document, dpi, limits)
    whole = ({"kind": WHOLE_PAGE, "box": [0, 0, *size], "size": list(size)} for size in sizes)
    return ({"texts": ["", ""], "crops": [crop]} for crop in whole)


def crops_of(
    document: Pages, crops: Sequence[tuple[int, Sequence[float]]], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (place in `crops`, (width, height), bytes) of each of `crops`: (page from 0, box in points)."""
    if isinstance(document, PageImages) or not crops:
        return iter(())
    return crop_pages(document, crops, dpi, quality, limits)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Turn what an unusable picture raises into a SourceError with its file."""
    try:
        yield
    except unreadable() as error:
        found = next(iter(str(error).replace(f"{file.parent}/", "").splitlines()), "")
        todo, expected = "replace the picture, or exclude the document", "a picture that can be opened and decoded"
        raise SourceError(Fault("broken-page", expected, found, file.name, todo=todo)) from error
