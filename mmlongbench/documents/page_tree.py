"""Checks whether the page tree of a PDF is too deep or too large. MuPDF searches the tree anew for each page, which can
take very long.
"""

import re
from typing import TYPE_CHECKING

from mmlongbench.errors import Fault

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf_types import Document

MAX_LEVELS = 100
"""The maximum depth of the tree. If a page is a hundred thousand levels deep, MuPDF takes seconds to find it."""
_REFERENCE = re.compile(r"(\d{1,9}) \d+ R")


def tree_fault(document: "Document", most_pages: int) -> Fault | None:
    """Return what is wrong with the tree of an open document, or None. A node that occurs twice counts once."""
    most = 4 * most_pages + MAX_LEVELS
    level = _references(document.xref_get_key(document.pdf_catalog(), "Pages")[1])
    seen, depth = set(level), 0
    while level:
        below = (kid for node in level for kid in _references(_kids(document, node)))
        level = [kid for kid in dict.fromkeys(below) if kid not in seen]
        seen.update(level)
        depth += 1
        if depth > MAX_LEVELS:
            expected = f"at most {MAX_LEVELS} levels in the page tree"
            return Fault("nested-page-tree", expected, "more", todo="print the document to a new file")
        if len(seen) > most:
            return Fault(
                "pages-of-a-document", f"at most {most} nodes in the page tree", "more", todo="raise limits.pages"
            )
    return None


def _references(text: str) -> list[int]:
    return list(map(int, _REFERENCE.findall(text)))


def _kids(document: "Document", node: int) -> str:
    """Return the children of a node as they are written in the PDF."""
    if not 0 < node < document.xref_length():
        return ""
    kind, text = document.xref_get_key(node, "Kids")
    return str(document.xref_object(int(text.split()[0]))) if kind == "xref" else str(text)
