"""Sizes, texts, keys and images of a document's pages, whether the document is a PDF or a list of image files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_images import PageImages, image_keys, image_pages, image_sizes
from mmlongbench.documents.pdf_reader import (
    page_keys,
    page_keys_and_texts,
    page_sizes,
    page_text,
    render_pages,
)

Pages: TypeAlias = Path | PageImages
"""The pages of a document: a PDF, or image files."""


def sizes_of(document: Pages, dpi: int, limits: Limits) -> list[tuple[int, int]]:
    """Return (width, height) in pixels of each page as released, without decoding any; raises SourceError."""
    return image_sizes(document, limits) if isinstance(document, PageImages) else page_sizes(document, dpi, limits)


def texts_of(document: Pages, limits: Limits, *, ocr: bool = False) -> Iterator[str]:
    """Yield the text of each page, which is empty if the page is an image file. Raises SourceError."""
    if isinstance(document, PageImages):
        return iter([""] * len(document.files))
    return page_text(document, limits, ocr=ocr)


def keys_of(document: Pages, limits: Limits) -> Iterator[str]:
    """Yield a key of each page's content. Equal pages have the same key, also in different documents; a blank page has
    an empty key.

    Raises:
        SourceError: a page cannot be read.

    """
    return image_keys(document) if isinstance(document, PageImages) else page_keys(document, limits)


def keys_and_texts_of(document: Pages, limits: Limits, *, ocr: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each page, reading the document once (see `keys_of`, `texts_of`). Raises
    SourceError.
    """
    if isinstance(document, PageImages):
        return ((key, "") for key in image_keys(document))
    return page_keys_and_texts(document, limits, ocr=ocr)


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
