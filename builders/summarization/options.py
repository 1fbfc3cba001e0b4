"""The options that a manifest may set for summaries."""

from typing import Literal

from pydantic import Field

import mmlongbench.task as mt
from builders.summarization.rows import Kind


class SummaryOptions(mt.Options):
    """The options that a manifest may set."""

    kind: Kind = "report"
    """What is summarized: one `report`, whose own summary pages are removed, or the documents of a `case`."""
    reference: Literal["short", "long", "tiny"] = "short"
    """Which summary of a case is the reference; a case without this summary is rejected."""
    share: float = Field(default=0.2, gt=0, le=1)
    """A page with more than this share of the summary's word 5-grams is a summary page; after the first pages, such a
    page is a leak, and the report is rejected."""
    first_pages: int = Field(default=6, ge=1)
    """How many pages at the beginning may be summary pages."""
    without_summary_page: Literal["reject", "keep"] = "reject"
    """What happens to a report in which no summary page is found."""
    pages_as: Literal["image", "text"] = "image"
    """Whether pages are shown as images or as the text that the PDF has."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """Which pages are shown if `pages_as` is `text`. `same_pages`: the pages that would fit as images; the full prompt
    is also counted with images. `budget`: as many pages as fit as text; the full prompt is also counted with texts."""

    @property
    def packs_text(self) -> bool:
        """Whether pages are chosen by the length of their text."""
        return self.pages_as == "text" and self.text_fill == "budget"
