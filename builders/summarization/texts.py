"""Pages as text: told in place of their images, and named where a PDF holds none."""

from collections.abc import Sequence
from typing import Any

import mmlongbench as mm
from builders.summarization.templates import page_number, text_unit


def told(documents: mm.Documents, page: mm.Unit) -> mm.Unit:
    """A page as the text that its PDF holds."""
    return text_unit(page, documents.page_text(page.data["document"], page_number(page.id)))


def text_fields(pages: Sequence[mm.Unit]) -> dict[str, Any]:
    """What a record says of the text of its pages."""
    texts = [str(page.data["text"]) for page in pages]
    without = ", ".join(str(place) for place, text in enumerate(texts) if not text)
    return {"page_text_list": texts, "pages_without_text": without}
