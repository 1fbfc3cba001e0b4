"""Reads PDFs in a process with limits, page by page.

Each function does what the one of this name in its module does, and also raises the errors of `confined.confined`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path

from mmlongbench.documents import page_facts as facts
from mmlongbench.documents import page_parts as parts
from mmlongbench.documents import pdf
from mmlongbench.documents.confined import confined
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import PageRead
from mmlongbench.errors import BuildError, SourceError

page_crops = confined(facts.page_crops)
page_facts = confined(facts.page_facts)
page_layers = confined(facts.page_layers)
page_parts = confined(parts.page_parts)
page_words = confined(pdf.page_words)
pages_to_read = confined(pdf.pages_to_read)


def page_sizes(path: Path, dpi: int, limits: Limits) -> list[tuple[int, int]]:
    """Return the sizes that `pdf.page_sizes` yields."""
    return [(width, height) for width, height in confined(pdf.page_sizes)(path, dpi, limits)]


def read_pages(path: Path, limits: Limits, *, ocr: bool = False) -> Iterator[PageRead]:
    """See `pdf.read_pages`."""
    return starmap(PageRead, confined(pdf.read_pages)(path, limits, ocr=ocr))


def render_pages(
    path: Path, numbers: Sequence[int], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Do what `pdf.render_pages` does.

    Raises:
        BuildError: a page cannot be rendered. The release needs the page, because the document passed the checks.

    """
    return _needed(confined(pdf.render_pages)(path, numbers, dpi, quality, _wider(limits)))


def crop_pages(
    path: Path, crops: Sequence[tuple[int, Sequence[float]]], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Do what `page_parts.crop_pages` does.

    Raises:
        BuildError: a page cannot be drawn. The release needs it, because the document passed the checks.

    """
    return _needed(confined(parts.crop_pages)(path, crops, dpi, quality, _wider(limits)))


def _wider(limits: Limits) -> Limits:
    """Return limits for pages that were drawn within limits before, at a resolution that may have been lower."""
    return replace(limits, seconds_a_page=100 * limits.seconds_a_page, memory=2 * limits.memory)


def _needed(drawn: Iterator[tuple[int, tuple[int, int], bytes]]) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    try:
        yield from drawn
    except SourceError as error:
        raise BuildError(str(error)) from error
