"""The words of a PDF's pages and their boxes, in the order of PyMuPDF's blocks and lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmlongbench.documents.pdf import Limits, open_pdf
from mmlongbench.errors import Fault, SourceError
from mmlongbench.scoring.smudge.words import Word


def pdf_words(path: Path, limits: Limits) -> Iterator[Word]:
    """Every word of a PDF.

    Raises:
        SourceError: it cannot be read within limits, or one of its pages cannot.

    """
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            for x0, y0, x1, y1, text, width, height in _page(document, number, path.name):
                yield Word(number, text, (x0 / width, y0 / height, x1 / width, y1 / height))


def _page(document: Any, number: int, name: str) -> list[tuple[Any, ...]]:  # noqa: ANN401  (PyMuPDF has no types)
    """Words with their boxes as the page stands before it is turned, and the page's size then."""
    try:
        page = document.load_page(number)
        width, height = float(page.cropbox.width), float(page.cropbox.height)
        if width <= 0 or height <= 0:
            raise ValueError(f"a page of {width} × {height} points")
        return [(*word[:5], width, height) for word in page.get_text("words")]
    except MemoryError:  # the machine's fault
        raise
    except Exception as error:  # a hostile PDF makes MuPDF raise what it likes
        found = next(iter(str(error).splitlines()), "") or type(error).__name__
        fault = Fault("unreadable-page", "a page whose words can be read", found, name, f"page {number}")
        raise SourceError(fault) from error
