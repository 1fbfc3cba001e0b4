"""What a manifest may set of document questions."""

from typing import Literal

from pydantic import Field, model_validator

import mmlongbench as mm

PageLabel = Literal["none", "index", "printed"]
AnswerWords = Literal["whole", "per_element"]
UnanswerableAnchor = Literal["best_match", "middle"]


class DocVQAOptions(mm.Options):
    """What a manifest may set."""

    page_label: PageLabel = "none"
    """Whether a page's line names its number: not (the public loader today), from 0 (the paper's figure), from 1."""
    max_answer_words: int = Field(default=5, ge=1)
    """A string or list answer of more words (parts between blanks) is long-form, and rejected."""
    answer_words: AnswerWords = "whole"
    """How the words of a list are counted: `whole`, all its elements together; `per_element`, its longest element."""
    span: Literal["document", "window"] = "document"
    """Where a source gives a window of its document with a question (LongDocURL): all pages, or those of the window."""
    unanswerable_anchor: UnanswerableAnchor = "best_match"
    """The page that a document without an answer is cut around. `best_match`: the page that BM25 finds for the
    question among those that may be shown, the first of equal ones, or a drawn page where none shares a word with it
    (scans); `middle`: the middle page, which lets a reader tell such questions from others."""
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
