"""Pages as text: told in place of their images, and flagged where a PDF holds none."""

from collections.abc import Sequence
from typing import Any

import mmlongbench as mm
from builders.docvqa.rows import DocumentQuestion
from builders.docvqa.template import text_unit


def told(documents: mm.Documents, page: mm.Unit) -> mm.Unit:
    """A page as the text that its PDF holds."""
    return text_unit(page, documents.page_text(page.data["document"], page.data["index"]))


def text_fields(row: DocumentQuestion, units: Sequence[mm.Unit]) -> dict[str, Any]:
    """What a record says of the text of its pages."""
    texts = [str(unit.data["text"]) for unit in units]
    answers = [u.data["text"] for u in units if u.role == "own" and u.data["index"] in row.pages]
    return {
        "page_text_list": texts,
        "pages_without_text": ", ".join(str(place) for place, text in enumerate(texts) if not text),
        "evidence_has_text": not answers or any(answers),
    }
