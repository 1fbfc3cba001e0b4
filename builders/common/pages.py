"""Pages of documents as units: as images, or as the text that a PDF holds of them.

A page is known by its image's path below `mmlb_image/`: its folder is its document's, the name tells its number.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mmlongbench as mm

PAGE = re.compile(r"page(\d{1,6})\.\w+$")
"""The end of a page's path; its number, from 0, is the group."""


def find_number(path: str) -> int | None:
    """Return the number in a page's name, from 0; None where there is none.

    >>> find_number("multi-lexsum/31854/31854_page12.jpg"), find_number("31854/cover.jpg")
    (12, None)
    """
    found = PAGE.search(path)
    return int(found[1]) if found else None


def page_number(path: str) -> int:
    """Return the number in a page's name as `find_number` does.

    Raises:
        ValueError: there is none.

    """
    if (found := find_number(path)) is None:
        raise ValueError(f"{path}: expected a name that ends in page<N>")
    return found


def page_unit(path: str, index: int, role: mm.Role, place: tuple[int, ...], label: str) -> mm.Unit:
    """Return a page as an image, after a line that names its document.

    Args:
        path: of its image.
        index: its number, from 0.
        role: see `mm.Unit.role`.
        place: see `mm.Unit.place`.
        label: what stands behind the document's name, such as ` (page 3)`.

    """
    folder = path.split("/")[-2]
    return mm.Unit(path, role, mm.Image(path), place, _head(folder, label), group=folder, data={"index": index})


def text_unit(page: mm.Unit, text: str) -> mm.Unit:
    """Return the same page as text, named by its number."""
    head = _head(str(page.group), f" (page {page.data['index']})")
    return replace(page, body=f"\n{text}", head=head, data={**page.data, "text": text})


def with_text(documents: mm.Documents, page: mm.Unit) -> mm.Unit:
    """Return a page as the text that its PDF holds; its unit's data name the `document`."""
    return text_unit(page, documents.page_text(page.data["document"], page.data["index"]))


def text_fields(pages: Sequence[mm.Unit]) -> dict[str, Any]:
    """Return what a record says of the texts of its pages."""
    texts = [str(page.data["text"]) for page in pages]
    without = ", ".join(str(place) for place, text in enumerate(texts) if not text)
    return {"page_text_list": texts, "pages_without_text": without}


def _head(folder: str, label: str) -> str:
    return f"Document {mm.label(folder)}{label}: "
