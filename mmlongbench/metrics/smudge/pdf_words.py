"""The words of a PDF's pages and their boxes, in the order of PyMuPDF's blocks and lines."""

from collections.abc import Iterator
from pathlib import Path

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import page_words
from mmlongbench.metrics.smudge.words import Word


def pdf_words(path: Path, limits: Limits) -> Iterator[Word]:
    """Yield every word of a PDF.

    Raises:
        SourceError: the PDF, or one of its pages, cannot be read within limits.
        PageLimitError: a page takes too much time or memory.

    """
    for number, words in enumerate(page_words(path, limits)):
        for x0, y0, x1, y1, text, width, height in words:
            yield Word(number, text, (x0 / width, y0 / height, x1 / width, y1 / height))
