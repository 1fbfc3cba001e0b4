"""Questions about documents whose pages are joined to larger images: an image takes the place of a page.

An image that shows an answer page is an answer page as a whole. So all numbers of pages in a record count images, and
two more fields have the pages of the document.
"""

from collections.abc import Sequence

import mmlongbench.task as mt
from builders.docvqa.options import DocVQAOptions
from builders.docvqa.rows import DocumentQuestion


def join_pages(options: DocVQAOptions) -> mt.JoinPages | None:
    """Return how the pages of documents are joined; None if they are not."""
    return mt.JoinPages(options.joined, options.joined_pixels) if options.pages_as == "joined" else None


def about_images(row: DocumentQuestion, document: mt.Document) -> DocumentQuestion:
    """Return a question whose answer pages are the images that show them, counted from 0; a question about a document
    that is not joined stays as it is.

    Raises:
        Rejected: an answer page is not in the document, or the source has no image of it.

    """
    if not document.joined:
        return row
    shown = {page.index: number for number, pages in enumerate(document.joined) for page in pages}
    if lacking := [page for page in row.pages if page not in shown]:
        expected, found = f"a page of {document.id} of which there is an image", f"page {lacking[0] + 1}"
        todo = "correct the number; pages count from 1"
        raise mt.Rejected(mt.Fault("answer-page-out-of-range", expected, found, field=row.pages_field, todo=todo))
    return row.model_copy(update={"pages": tuple(sorted({shown[page] for page in row.pages})), "window": None})


def joined_fields(row: DocumentQuestion, units: Sequence[mt.Unit]) -> dict[str, object]:
    """Return the fields of a record about joined pages; `row` is the question as the source has it."""
    return {
        "joined_page_list": [str(unit.data["joined"]) for unit in units],
        "document_page_list": list(row.pages),
    }


def pages_in(document: mt.Document, image: int) -> str:
    """Return the first and the last page that an image shows, from 0, such as `4-7`."""
    pages = document.joined[image]
    return f"{pages[0].index}-{pages[-1].index}"
