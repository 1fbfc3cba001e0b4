"""What a manifest may set of document questions."""

from typing import Literal

from pydantic import Field, model_validator

import mmlongbench as mm

PageLabel = Literal["none", "index", "printed"]


class DocVQAOptions(mm.Options):
    """What a manifest may set."""

    page_label: PageLabel = "none"
    """Whether a page's line names its number: not (the public loader today), from 0 (the paper's figure), from 1."""
    max_answer_words: int = Field(default=5, ge=1)
    """A string answer or list element of more words is long-form, and rejected."""
    span: Literal["window", "document"] = "window"
    """Where a question is about a window of its document (LongDocURL), whether only that is shown."""
    context: Literal["padded", "natural", "oracle"] = "padded"
    """The document among others, the document alone, or its answer pages alone."""
    pages_as: Literal["image", "text"] = "image"
    """Whether pages are shown as images or as the text that the PDF holds."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """As text: the very pages that images would have room for, or as many as the text has."""

    @model_validator(mode="after")
    def _labels(self) -> "DocVQAOptions":
        if self.pages_as == "text" and self.page_label != "none":
            raise ValueError("page_label: pages of text are always labelled; leave it out")
        return self
