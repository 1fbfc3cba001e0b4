"""The fields of a record about pages as text."""

from collections.abc import Sequence

import mmlongbench.task as mt
from builders.common import pages
from builders.docvqa.rows import DocumentQuestion


def text_fields(row: DocumentQuestion, units: Sequence[mt.Unit]) -> dict[str, object]:
    """Return the fields with the texts of the shown pages, and the field `evidence_has_text`, which says whether at
    least one shown answer page has text. It is also true if no answer page is shown.
    """
    answers = [u.data["text"] for u in units if u.role == "own" and u.data["index"] in row.pages]
    return {**pages.text_fields(units), "evidence_has_text": not answers or any(answers)}
