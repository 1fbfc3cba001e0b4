"""The page tree of a PDF, walked once from the top: whether MuPDF, which walks down to each page anew, gets through."""

import re
from typing import Any

from mmlongbench.errors import Fault

MAX_LEVELS = 100
"""A page under a hundred thousand levels takes MuPDF seconds, and so does each of its neighbours."""
_REFERENCE = re.compile(r"(\d{1,9}) \d+ R")


def tree_fault(document: Any, most_pages: int) -> Fault | None:  # noqa: ANN401  (PyMuPDF has no types)
    """What is wrong with the tree of an open document; a node that stands in it twice counts once."""
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


def _kids(document: Any, node: int) -> str:  # noqa: ANN401  (PyMuPDF has no types)
    """What lies below a node, as it is written."""
    if not 0 < node < document.xref_length():
        return ""
    kind, text = document.xref_get_key(node, "Kids")
    return str(document.xref_object(int(text.split()[0]))) if kind == "xref" else str(text)
