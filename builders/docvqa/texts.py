"""What a record says of pages as text."""

from collections.abc import Sequence
from typing import Any

import mmlongbench as mm
from builders.common import pages
from builders.docvqa.rows import DocumentQuestion


def text_fields(row: DocumentQuestion, units: Sequence[mm.Unit]) -> dict[str, Any]:
    """The texts of the shown pages, and whether an answer page holds any; true where a question has no answer page."""
    answers = [u.data["text"] for u in units if u.role == "own" and u.data["index"] in row.pages]
    return {**pages.text_fields(units), "evidence_has_text": not answers or any(answers)}
