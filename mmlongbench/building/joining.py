"""Shows a document as joined images: each image takes the place of a page (`TaskSpec.join_pages`)."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from mmlongbench.documents.joined_pages import JoinPages, layout
from mmlongbench.task.sources import Document, Page


def joined(document: Document, join: JoinPages) -> Document:
    """Return a document whose pages are joined images; none is missing, because an image shows the pages that exist."""
    groups = join.groups(len(document.pages))
    shown = tuple(tuple(document.pages[place] for place in group) for group in groups)
    single = tuple(tuple(document.keys[place] for place in group) for group in groups) if document.keys else ()
    keys = tuple(_key(each) for each in single)
    pages = tuple(_image(document, number, each, join) for number, each in enumerate(shown))
    return replace(document, pages=pages, keys=keys, missing=(), joined=shown, joined_keys=single)


def _image(document: Document, number: int, pages: Sequence[Page], join: JoinPages) -> Page:
    folder, _, _ = pages[0].path.rpartition("/")
    width, height = layout([(page.width, page.height) for page in pages], join.pixels).size
    return Page(number, f"{folder}/{join.file_name(document.name, number)}", width, height)


def _key(keys: Sequence[str]) -> str:
    """Return the key of a joined image; empty if all its pages are blank."""
    return hashlib.sha256(" ".join(keys).encode()).hexdigest()[:16] if any(keys) else ""
