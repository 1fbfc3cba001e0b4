"""The options that a manifest may set for document questions."""

from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

import mmlongbench.task as mt

PageLabel = Literal["none", "index", "printed"]
AnswerWords = Literal["whole", "per_element"]
UnanswerableAnchor = Literal["best_match", "middle"]
AnswerForm = Literal["short", "long"]
Context = Literal["padded", "natural", "oracle", "retrieved", "gold_and_distractors"]
_OF_CONTEXT = {
    "scope": ("retrieved", "gold_and_distractors"),
    "page_order": ("retrieved", "gold_and_distractors"),
    "top_k": ("retrieved",),
    "gold_pages": ("retrieved",),
    "distractors": ("gold_and_distractors",),
}
"""The options that only some kinds of context use, by name."""
_AS_FOUND = ("retrieved", "as_found")


class DocVQAOptions(mt.Options):
    """The options that a manifest may set."""

    page_label: PageLabel = "none"
    """Whether the line before a page has the page's number. `none`: it has no number, as in the public loader today.
    `index`: the number counts from 0, as in the paper's figure. `printed`: it counts from 1."""
    answer_form: AnswerForm = "short"
    """What the prompt asks for. `short`: a phrase or a sentence. `long`: an explanation of at most 200 words, as for
    M-LongDoc; 512 tokens are kept free, questions need no reference answer, and the metric is `judge-committee`."""
    max_answer_words: int | None = Field(default=None, ge=1)
    """The maximum number of words (parts between blanks) of a string or a list answer. A longer answer is long-form,
    and its question is rejected. The manifests of the paper's datasets set 5, which is the paper's rule. None: there is
    no limit; answers of more than five words are in the group `answer length: long`, and token F1 does not score
    them."""
    answer_words: AnswerWords = "per_element"
    """How the words of a list are counted: `per_element` counts only the element with the most words, `whole` all
    elements together. Which of them the paper used is not known; the page of the manifests says what is."""
    span: Literal["document", "window"] = "document"
    """Which pages may be shown if the source gives a window of the document with each question (LongDocURL): those of
    the whole `document`, or those of the `window`."""
    unanswerable_anchor: UnanswerableAnchor = "best_match"
    """The page around which a document is cut if the question has no answer. `best_match`: the page that BM25 ranks
    first for the question, among the pages that may be shown; of equally good pages, the first. If no page shares a
    word with the question, as in scans, the page is drawn. `middle`: the middle page, by which a model can recognise
    such questions."""
    context: Context = "padded"
    """What a context shows. `padded`: the document among other documents. `natural`: the document alone. `oracle`: only
    the answer pages. `retrieved`: the pages that a retriever ranks first (see `page_retrieval` of the dataset).
    `gold_and_distractors`: the answer pages among the pages that a retriever ranks first besides them. With the scope
    `dataset`, an answer page may be the only page of the document that the question names."""
    scope: Literal["document", "dataset"] = "document"
    """Which pages a retriever ranks: those of the question's `document`, or those of all documents of the dataset."""
    top_k: int | None = Field(default=None, ge=1, le=mt.MAX_RANKED)
    """How many pages a context of the kind `retrieved` shows at most, or more if there are more answer pages that are
    put in. None: as many as fit."""
    gold_pages: Literal["put_in", "as_found"] = "put_in"
    """Whether a context of the kind `retrieved` shows the answer pages that the retriever did not rank high enough.
    `put_in`: every context shows all answer pages; with `top_k`, they replace the pages that were found last.
    `as_found`: an answer page is shown only if it was found."""
    page_order: Literal["page", "rank"] = "page"
    """The order of retrieved pages. `page`: that of their numbers; documents stand in a drawn order. `rank`: the best
    first. It is for contexts whose answer pages are shown `as_found`: an answer page that is put in would stand behind
    all others, so its place would tell it."""
    distractors: Annotated[tuple[int, int], Strict(False)] = (1, 10)
    """The least and the largest number of pages beside the answer pages in a context of the kind
    `gold_and_distractors`; the number is drawn for each question."""
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
    pages_as: Literal["image", "text", "interleaved", "joined"] = "image"
    """How pages are shown. `image`: as images. `text`: as the text that the PDF has. `interleaved`: as this text, in
    reading order, with crops of tables and figures in between, as M-LongDoc shows them; the lines that a figure
    shows whole are in its crop alone, those of a table also in the text, and a page without text is one crop.
    `joined`: as images of several pages, as MMLongBench-Doc shows a document to models that take few images."""
    joined: Literal[1, 5, 20] = 5
    """Into how many images the pages of each document are joined at most, if `pages_as` is `joined`. All images of a
    document but the last show the same number of consecutive pages. An image is taken or left out as a whole; one that
    shows an answer page is an answer page."""
    joined_pixels: int = Field(default=mt.MAX_JOINED_PIXELS, ge=100_000, le=64_000_000)
    """How many pixels a joined image has at most; its pages are shrunk until they fit. The default is the most that the
    paper's count of image tokens distinguishes (16,384 tokens)."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """Which pages are shown if `pages_as` is `text`. `same_pages`: the pages that would fit as images. `budget`: as
    many pages as fit as text."""

    @model_validator(mode="after")
    def _labels(self) -> "DocVQAOptions":
        if self.pages_as in ("text", "interleaved") and self.page_label != "none":
            raise ValueError("page_label: pages of text are always labelled; leave it out")
        if self.pages_as == "joined" and (self.page_label != "none" or self.span == "window"):
            raise ValueError("page_label, span: pages that are joined have no labels and no windows; leave them out")
        for name in ("joined", "joined_pixels"):
            if name in self.model_fields_set and self.pages_as != "joined":
                raise ValueError(f"{name}: only pages_as: joined uses it; leave it out")
        if "text_fill" in self.model_fields_set and self.pages_as in ("interleaved", "joined"):
            raise ValueError(f"text_fill: pages_as: {self.pages_as} does not use it; leave it out")
        return self

    @model_validator(mode="after")
    def _retrieval(self) -> "DocVQAOptions":
        for name, contexts in _OF_CONTEXT.items():
            if name in self.model_fields_set and self.context not in contexts:
                raise ValueError(f"{name}: context {self.context} does not use it; it is for {' and '.join(contexts)}")
        if self.is_retrieved and self.span == "window":
            raise ValueError(f"span: context {self.context} ranks the pages of whole documents; leave span out")
        if self.page_order == "rank" and self.is_retrieved and (self.context, self.gold_pages) != _AS_FOUND:
            raise ValueError(
                "page_order: rank shows an answer page that was put in behind all others, so its place would tell it; "
                "use context: retrieved with gold_pages: as_found, or page_order: page"
            )
        least, most = self.distractors
        if not 0 <= least <= most <= mt.MAX_RANKED:
            raise ValueError(f"distractors: expected two numbers from 0 to {mt.MAX_RANKED}, the smaller first")
        return self

    @property
    def is_retrieved(self) -> bool:
        """Whether a retriever ranks pages."""
        return self.context in ("retrieved", "gold_and_distractors")
