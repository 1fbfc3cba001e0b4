"""The options that a manifest may set for document questions."""

from typing import Literal

from pydantic import Field, model_validator

import mmlongbench.task as mt

PageLabel = Literal["none", "index", "printed"]
AnswerWords = Literal["whole", "per_element"]
UnanswerableAnchor = Literal["best_match", "middle"]


class DocVQAOptions(mt.Options):
    """The options that a manifest may set."""

    page_label: PageLabel = "none"
    """The number of a page in the line before it: none (the public loader today), from 0 (the paper's figure), or from
    1."""
    max_answer_words: int = Field(default=5, ge=1)
    """The maximum words (parts between blanks) of a string or list answer; a longer one is long-form, and rejected."""
    answer_words: AnswerWords = "whole"
    """How the words of a list are counted: `whole` counts all elements together, `per_element` only the longest
    element."""
    span: Literal["document", "window"] = "document"
    """The pages to show if a source gives a window of the document with a question (LongDocURL): all pages, or the
    window."""
    unanswerable_anchor: UnanswerableAnchor = "best_match"
    """The page that a document is cut around if the question has no answer. `best_match`: the page that BM25 finds for
    the question among those that may be shown (the first of equal ones), or a drawn page if none shares a word with it
    (scans). `middle`: the middle page, by which readers can tell such questions from others."""
    context: Literal["padded", "natural", "oracle"] = "padded"
    """What a context shows: the document among others, the document alone, or its answer pages alone."""
    pages_as: Literal["image", "text"] = "image"
    """Whether pages are shown as images or as the text that the PDF has."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """For pages as text: show the pages that would fit as images, or as many pages as fit as text."""

    @model_validator(mode="after")
    def _labels(self) -> "DocVQAOptions":
        if self.pages_as == "text" and self.page_label != "none":
            raise ValueError("page_label: pages of text are always labelled; leave it out")
        return self
