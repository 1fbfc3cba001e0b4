"""The options that a manifest may set for document questions."""

from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

import mmlongbench.task as mt

PageLabel = Literal["none", "index", "printed"]
AnswerWords = Literal["whole", "per_element"]
UnanswerableAnchor = Literal["best_match", "middle"]


class DocVQAOptions(mt.Options):
    """The options that a manifest may set."""

    page_label: PageLabel = "none"
    """Whether the line before a page has the page's number. `none`: it has no number, as in the public loader today.
    `index`: the number counts from 0, as in the paper's figure. `printed`: it counts from 1."""
    max_answer_words: int | None = Field(default=None, ge=1)
    """The maximum number of words (parts between blanks) of a string or a list answer. A longer answer is long-form,
    and its question is rejected. The manifests of the paper's datasets set 5, which is the paper's rule. None: there is
    no limit; answers of more than five words are in the group `answer length: long`, and token F1 does not score
    them."""
    answer_words: AnswerWords = "whole"
    """How the words of a list are counted: `whole` counts all elements together, `per_element` only the element
    with the most words."""
    span: Literal["document", "window"] = "document"
    """Which pages may be shown if the source gives a window of the document with each question (LongDocURL): those of
    the whole `document`, or those of the `window`."""
    unanswerable_anchor: UnanswerableAnchor = "best_match"
    """The page around which a document is cut if the question has no answer. `best_match`: the page that BM25 ranks
    first for the question, among the pages that may be shown; of equally good pages, the first. If no page shares a
    word with the question, as in scans, the page is drawn. `middle`: the middle page, by which a model can recognise
    such questions."""
    context: Literal["padded", "natural", "oracle"] = "padded"
    """What a context shows. `padded`: the document among other documents. `natural`: the document alone. `oracle`: only
    the answer pages."""
    label_width: Literal[15, "distinct"] | None = None
    """How much of its name a prompt shows of a document. `15`: the first 15 characters, as the public datasets have it;
    two documents with the same 15 characters never stand in one context. `distinct`: as many more as tell the document
    apart from all others of the source. None: `distinct` for the reader `own_documents`, `15` for all others."""
    facets: Annotated[tuple[str, ...], Strict(False)] = ()
    """Further columns of the table (reader `own_documents`) that records keep, and by which reports break scores
    down."""
    synthetic: Literal["", "layer", "model"] = ""
    """What made the questions, if no person did: the text `layer` of PDFs or a `model` (`mmlongbench questions`). Such
    a dataset is in no category, and so in no average with questions of people."""
    pages_as: Literal["image", "text"] = "image"
    """Whether pages are shown as images or as the text that the PDF has."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """Which pages are shown if `pages_as` is `text`. `same_pages`: the pages that would fit as images. `budget`: as
    many pages as fit as text."""

    @model_validator(mode="after")
    def _labels(self) -> "DocVQAOptions":
        if self.pages_as == "text" and self.page_label != "none":
            raise ValueError("page_label: pages of text are always labelled; leave it out")
        return self
