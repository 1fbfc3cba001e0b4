"""Texts of the pages whose layer is not read: pages that are turned, have too many words, or are only pictures.

No table of such a page is read, but its words count where a question claims that no other page answers it. OCR reads
pictures of pages, where it is installed. Without OCR, a page that shows something and has no words is unread: nothing
can be claimed about it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import read_page
from mmlongbench.documents.pages import KeptTexts
from mmlongbench.documents.pdf import has_words, pages_to_read, read_pages
from mmlongbench.questions.layer.page import Page

_PICTURES = ("picture", "table", "formula")
"""The classes of the layout that may hold words that are drawn."""
_LARGE = 0.2
"""A page with few words is a picture if pictures take so large a share of it."""


class OtherTexts(NamedTuple):
    """What is known of the pages whose layer is not read."""

    texts: Mapping[int, str]
    """Their texts, by the number of the page, from 1."""
    unread: frozenset[int]
    """The pages that show something and have no text, if OCR reads nothing."""


def other_texts(path: Path, pages: Sequence[Page], limits: Limits, kept: Path | None) -> OtherTexts:
    """Return the texts of the pages whose layer is not read.

    Args:
        path: the PDF.
        pages: all its pages.
        limits: the limits of documents.
        kept: the file that keeps what OCR has read; None if OCR reads nothing.

    Raises:
        SourceError, ReaderDiedError, BuildError: as `read_pages` and `read_page`.

    """
    doubtful = {page.number for page in pages if is_doubtful(page)}
    if not doubtful:
        return OtherTexts({}, frozenset())
    texts, pictures = dict[int, str](), list[int]()
    for number, page in enumerate(read_pages(path, limits), 1):
        if number not in doubtful:
            continue
        texts[number] = " ".join(page.text.split())
        if page.key and not has_words(page.text):
            pictures.append(number)
    if kept is None:
        return OtherTexts(texts, frozenset(pictures))
    for number, text in _recognised(path, pictures, len(pages), limits, KeptTexts(kept)).items():
        texts[number] = f"{texts[number]} {text}".strip()
    return OtherTexts(texts, frozenset())


def is_doubtful(page: Page) -> bool:
    """Return whether the words of a page may not be all that it says: none or too many were read, or pictures take much
    of a page with few words.
    """
    raw = page.raw
    if raw.rotation or raw.is_crowded or not page.words:
        return True
    if has_words(page.text):
        return False
    shown = (region.box for region in page.regions if region.kind in _PICTURES)
    area = sum((box.x1 - box.x0) * (box.y1 - box.y0) for box in shown)
    return area > _LARGE * raw.size[0] * raw.size[1]


def _recognised(path: Path, wanted: Sequence[int], count: int, limits: Limits, kept: KeptTexts) -> dict[int, str]:
    """Return what OCR reads on some pages of a document with `count` pages; a page is read once."""
    left = [number for number in wanted if number - 1 not in kept.texts]
    known = [number - 1 for number in range(1, count + 1) if number not in left]
    for number, _, picture in pages_to_read(path, known, limits) if left else ():
        if number + 1 in left:
            text = read_page(picture, f"{path.name}, page {number + 1}", limits.seconds_a_page, "--seconds-a-page")
            kept.add(number, text)
    return {number: " ".join(kept.texts[number - 1].split()) for number in wanted}
