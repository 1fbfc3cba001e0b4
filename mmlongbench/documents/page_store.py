"""Sizes, texts, keys and images of a document's pages, whether the document is a PDF or a list of image files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import Ocr, read_page
from mmlongbench.documents.page_images import PageImages, image_keys, image_pages, image_sizes, images_to_read
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
