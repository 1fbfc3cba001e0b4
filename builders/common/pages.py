"""Pages of documents as units: as images, or as the text that a PDF has for them.

A page is identified by the path of its image below `mmlb_image/`: the folder belongs to one document, and the file name
has the number of the page.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import mmlongbench.task as mt

PAGE = re.compile(r"page(\d{1,6})\.\w+$")
"""Matches the end of the path of a page's image; the group is the number of the page, from 0."""


def find_number(path: str) -> int | None:
    """Return the number of a page, from 0, by the name of its image; None if the name has no number.

    >>> find_number("multi-lexsum/31854/31854_page12.jpg"), find_number("31854/cover.jpg")
    (12, None)
    """
    found = PAGE.search(path)
    return int(found[1]) if found else None


def page_number(path: str) -> int:
    """Return the number in a page's name, like `find_number`.

    Raises:
        ValueError: the name has no number.

    """
    if (found := find_number(path)) is None:
        raise ValueError(f"{path}: expected a name that ends in page<N>")
    return found


def page_unit(
    path: str, index: int, role: mt.Role, place: tuple[int, ...], label: str, document: str | None = None
) -> mt.Unit:
    """Return a page as an image, after a line that names its document.

    Args:
        path: the path of the page's image.
        index: the page's number, from 0.
        role: see `mt.Unit.role`.
        place: see `mt.Unit.place`.
        label: the text after the document's name, such as ` (page 3)`.
        document: what the line calls the document; None: the first characters of its name (`mt.label`).

    """
    folder = path.split("/")[-2]
    called = mt.label(folder) if document is None else document
    data = {"index": index, "label": called}
    return mt.Unit(path, mt.Image(path), place, role, _head(called, label), group=folder, data=data)


def text_unit(page: mt.Unit, text: str) -> mt.Unit:
    """Return a page as a text unit, with the number of the page before the text."""
    head = _head(page.data["label"], f" (page {page.data['index']})")
    return replace(page, body=f"\n{text}", head=head, data={**page.data, "text": text})


def parted_unit(page: mt.Unit, text: str, images: Sequence[str], **data: object) -> mt.Unit:
    """Return a page as a text with images in it, in place of the markers of the text; `data` is added to the unit's."""
    unit, pieces = text_unit(page, text), text.split(mt.MARKER)
    parts: list[mt.Part] = []
    for path, piece in zip(images, pieces[1:], strict=True):
        parts += [mt.Image(path), *([piece] if piece else [])]
    return replace(unit, body=f"\n{pieces[0]}", further=tuple(parts), data={**unit.data, **data})


def with_text(documents: mt.Documents, page: mt.Unit) -> mt.Unit:
    """Return a page as the text that its PDF has; `page.data["document"]` must be the id of its document."""
    return text_unit(page, documents.page_text(page.data["document"], page.data["index"]))


def text_fields(pages: Sequence[mt.Unit]) -> dict[str, object]:
    """Return two fields of a record: the texts of the pages, as a list; and the positions in this list, from 0, of the
    pages without text, as one string such as `0, 3`.
    """
    texts = [str(page.data["text"]) for page in pages]
    without = ", ".join(str(place) for place, text in enumerate(texts) if not text)
    return {"page_text_list": texts, "pages_without_text": without}


def _head(document: str, label: str) -> str:
    return f"Document {document}{label}: "
