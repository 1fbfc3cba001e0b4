"""What a manifest may set of summaries."""

from typing import Literal

from pydantic import Field

import mmlongbench as mm
from builders.summarization.rows import Kind


class SummaryOptions(mm.Options):
    """What a manifest may set."""

    kind: Kind = "report"
    """One report whose own summary pages are taken out, or the documents of a case."""
    reference: Literal["short", "long", "tiny"] = "short"
    """Which summary of a case is the reference; a case without it is rejected."""
    share: float = Field(default=0.2, gt=0, le=1)
    """A page that covers more of the summary's word 5-grams holds it, or, beyond the first pages, gives it away."""
    first_pages: int = Field(default=6, ge=1)
    """Where a summary page may be."""
    without_summary_page: Literal["reject", "keep"] = "reject"
    """What becomes of a report in which no summary page is found."""
    pages_as: Literal["image", "text"] = "image"
    """Whether pages are shown as images or as the text that the PDF holds."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """As text: the very pages that images would have room for, or as many as the text has. The full prompt is that of
    the pages' images, or of their texts."""

    @property
    def packs_text(self) -> bool:
        """Whether pages are chosen by the length of their text."""
        return self.pages_as == "text" and self.text_fill == "budget"
