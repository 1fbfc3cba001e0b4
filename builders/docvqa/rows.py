"""The row that every reader of document questions makes for the builder, and the options of both.

Fields are cleaned, and answers and their formats are made to agree, in the same way for all sources. Each repair has a
name; a value that cannot be repaired rejects its question.
"""

import json
from collections.abc import Container, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, model_validator

import mmlongbench.task as mt
from builders.common import is_unicode, not_unicode, refused

PageLabel = Literal["none", "index", "printed"]
_RETRIEVED = ("retrieved", "gold_and_distractors")
_USED_BY = {
    "scope": ("context", _RETRIEVED),
    "page_order": ("context", _RETRIEVED),
    "top_k": ("context", ("retrieved",)),
    "gold_pages": ("context", ("retrieved",)),
    "distractors": ("context", ("gold_and_distractors",)),
    "joined": ("pages_as", ("joined",)),
    "joined_pixels": ("pages_as", ("joined",)),
    "text_fill": ("pages_as", ("text", "image")),
}
"""The options that only some values of another option use: the other option, and these values."""


class DocVQAOptions(mt.Options):
    """The options that a manifest may set."""

    page_label: PageLabel = "none"
    """Whether the line before a page has the page's number. `none`: it has no number, as in the public loader today.
    `index`: the number counts from 0, as in the paper's figure. `printed`: it counts from 1."""
    answer_form: Literal["short", "long"] = "short"
    """What the prompt asks for. `short`: a phrase or a sentence. `long`: an explanation of at most 200 words, as for
    M-LongDoc; 512 tokens are kept free, questions need no reference answer, and the metric is `judge-committee`."""
    max_answer_words: int | None = Field(default=None, ge=1)
    """The maximum number of words (parts between blanks) of a string or a list answer. A longer answer is long-form,
    and its question is rejected. The manifests of the paper's datasets set 5, which is the paper's rule. None: there is
    no limit; answers of more than five words are in the group `answer length: long`, and token F1 does not score
    them."""
    answer_words: Literal["whole", "per_element"] = "per_element"
    """How the words of a list are counted: `per_element` counts only the element with the most words, `whole` all
    elements together. Which of them the paper used is not known; the page of the manifests says what is."""
    span: Literal["document", "window"] = "document"
    """Which pages may be shown if the source gives a window of the document with each question (LongDocURL): those of
    the whole `document`, or those of the `window`."""
    unanswerable_anchor: Literal["best_match", "middle"] = "best_match"
    """The page around which a document is cut if the question has no answer. `best_match`: the page that BM25 ranks
    first for the question, among the pages that may be shown; of equally good pages, the first. If no page shares a
    word with the question, as in scans, the page is drawn. `middle`: the middle page, by which a model can recognise
    such questions."""
    context: Literal["padded", "natural", "oracle", "retrieved", "gold_and_distractors"] = "padded"
    """What a context shows. `padded`: the document among other documents. `natural`: the document alone. `oracle`: only
    the answer pages. `retrieved`: the pages that a retriever ranks first (see `page_retrieval` of the dataset).
    `gold_and_distractors`: the answer pages among the pages that a retriever ranks first besides them. With the scope
    `dataset`, an answer page may be the only page of the document that the question names."""
    scope: Literal["document", "dataset"] = "document"
    """Which pages a retriever ranks: those of the question's `document`, or those of all documents of the dataset."""
    top_k: int | None = Field(default=None, ge=1, le=mt.advanced.MAX_RANKED)
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
    joined_pixels: int = Field(default=mt.advanced.MAX_JOINED_PIXELS, ge=100_000, le=64_000_000)
    """How many pixels a joined image has at most; its pages are shrunk until they fit. The default is the most that the
    paper's count of image tokens distinguishes (16,384 tokens)."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """Which pages are shown if `pages_as` is `text`. `same_pages`: the pages that would fit as images. `budget`: as
    many pages as fit as text."""

    @model_validator(mode="after")
    def _fit_together(self) -> "DocVQAOptions":
        for name, (other, values) in _USED_BY.items():
            if name in self.model_fields_set and (value := getattr(self, other)) not in values:
                raise ValueError(f"{name}: {other} {value} does not use it; it is for {' and '.join(values)}")
        if self.pages_as in ("text", "interleaved") and self.page_label != "none":
            raise ValueError("page_label: pages of text are always labelled; leave it out")
        if self.pages_as == "joined" and (self.page_label != "none" or self.span == "window"):
            raise ValueError("page_label, span: pages that are joined have no labels and no windows; leave them out")
        if self.is_retrieved and self.span == "window":
            raise ValueError(f"span: context {self.context} ranks the pages of whole documents; leave span out")
        is_as_found = self.context == "retrieved" and self.gold_pages == "as_found"
        if self.page_order == "rank" and self.is_retrieved and not is_as_found:
            raise ValueError(
                "page_order: rank shows an answer page that was put in behind all others, so its place would tell it; "
                "use context: retrieved with gold_pages: as_found, or page_order: page"
            )
        least, most = self.distractors
        if not 0 <= least <= most <= mt.advanced.MAX_RANKED:
            raise ValueError(f"distractors: expected two numbers from 0 to {mt.advanced.MAX_RANKED}, the smaller first")
        return self

    @property
    def is_retrieved(self) -> bool:
        """Whether a retriever ranks pages."""
        return self.context in _RETRIEVED

    @property
    def renders_text(self) -> bool:
        """Whether pages are chosen as images, and the prompt shows their texts."""
        return self.pages_as == "text" and self.text_fill == "same_pages"


NO_REFERENCE = ("",)
"""The answer of a question without a reference answer; only a judge that sees the document can score such questions."""
MAX_FACET = 100
"""The maximum number of characters of a value by which reports break scores down."""


class DocumentQuestion(mt.Row):
    """One question about one document."""

    doc: str
    """The document's id."""
    doc_type: str = ""
    """The type of the document in the source's words; empty if unknown."""
    question_type: str = ""
    """The type of the question in the source's words, if it has any."""
    question: str
    """The question."""
    answer: tuple[str, ...]
    """The elements if the format is `List`; one string for any other format, which is empty if the source gives no
    reference answer."""
    answer_format: mt.metrics.AnswerFormat
    """The format of the answer; `None` if the question is not answerable."""
    pages: tuple[int, ...]
    """The answer pages, from 0, ascending; empty if the question is not answerable."""
    pages_field: str = "evidence_pages"
    """The name of the field with the pages in the source, for rejects."""
    window: tuple[int, int] | None = None
    """The first and last page that the question is about, from 0; None: the whole document."""
    sources: tuple[str, ...] = ()
    """Where the answer is found, in the source's words: text, table, chart …"""
    accepted: tuple[str, ...] = ()
    """Other answers that are right, besides `answer`."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """The further columns of the row, by name; `options.facets` names those that are used."""
    label_width: Literal[15, "distinct"] = 15
    """See the option `label_width`, which has precedence."""

    @property
    def has_reference(self) -> bool:
        return self.answer != NO_REFERENCE


def clean(
    raw: mt.readers.RawRow,
    doc: str,
    declared: str | None,
    pages: object,
    repairs: tuple[str, ...] = (),
    **more: Any,  # noqa: ANN401  (fields of many types)
) -> DocumentQuestion:
    """Return the row of a question, which is a text in `raw`, with an answer, a format and pages that agree.

    The format of the answer is `declared` by the name that the source uses for it; None: the question asks for an
    explanation, and the answer is a text, which may be empty. The answer pages are numbers from 1, or such a list as
    text. `repairs` were already made to the row; `more` are further fields of it, such as `pages_field`.

    Raises:
        Rejected: a value cannot be repaired.

    """
    question, answer = raw.fields["question"], raw.fields.get("answer")
    field = more.get("pages_field", "evidence_pages")
    if not question.strip():
        todo = "write a question, or remove the row"
        raise refused("empty-question", "a question", repr(question)[:80], "question", todo)
    if declared is not None:
        form, values, mended = normalise(answer, declared)
    elif isinstance(answer, str):
        form, values, mended = "String", (answer.strip(),), ()
    else:
        expected, todo = "a text, which may be empty", "write the answer, or an empty text"
        raise refused("missing-or-mistyped-field", expected, repr(answer)[:80], "answer", todo)
    if fault := not_unicode("".join(values), "answer"):  # a literal can contain a surrogate as an escape
        raise mt.Rejected(fault)
    numbers: tuple[int, ...] = ()
    if form == "None":
        is_empty = (mt.metrics.literal_list(pages) if isinstance(pages, str) else pages) == []
        mended += () if is_empty else ("pages-of-unanswerable-dropped",)
    else:
        numbers, page_repairs = page_numbers(pages, field)
        mended += page_repairs
        if not numbers:
            # An explanation is never `Not answerable`.
            found, todo = ("none", "") if declared is None else (repr(pages)[:80], ", or the answer Not answerable")
            todo = f"write the pages that hold the answer{todo}"
            raise refused("no-answer-pages", "at least one page", found, field, todo)
    more = {key: mt.escape_markers(value) if isinstance(value, str) else value for key, value in more.items()}
    return DocumentQuestion(
        **more,
        id=raw.id,
        doc=doc,
        question=mt.escape_markers(question),
        answer=tuple(map(mt.escape_markers, values)),
        answer_format=form,
        pages=numbers,
        repairs=(*mended, *repairs),
    )


def page_numbers(value: object, field: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return (page numbers, names of repairs). The page numbers in `value` count from 1; the returned ones count from 0
    and are ascending.

    >>> page_numbers("[3, 5]", "pages"), page_numbers(["4"], "pages")
    (((2, 4), ()), ((3,), ('answer-pages-as-text',)))
    """
    values = mt.metrics.literal_list(value) if isinstance(value, str) else value
    values = values if isinstance(values, list) else [None]
    texts = [page for page in values if isinstance(page, str) and page.strip().isdecimal() and len(page) < 9]
    whole = [page for page in values if type(page) is int]
    if len(texts) + len(whole) < len(values):
        expected, todo = "a list of integers such as [3, 5]", "write whole numbers, counted from 1"
        raise refused("answer-pages-not-a-list", expected, repr(value)[:80], field, todo)
    numbers = sorted({*whole, *map(int, texts)})
    if numbers and numbers[0] < 1:
        found = f"page {numbers[0]}"
        raise refused("answer-page-out-of-range", "pages from 1", found, field, "count the pages from 1")
    return tuple(page - 1 for page in numbers), ("answer-pages-as-text",) if texts else ()


def strings_of(raw: Mapping[str, object], *fields: str) -> list[str]:
    """Return fields that must hold valid text."""
    strings = []
    for field in fields:
        value = raw.get(field)
        if not isinstance(value, str):
            found = type(value).__name__ if field in raw else "nothing"
            raise refused("missing-or-mistyped-field", "a string", found, field, "write a text there")
        if fault := not_unicode(value, field):
            raise mt.Rejected(fault)
        strings.append(value)
    return strings


def texts_in(value: object) -> tuple[str, ...]:
    """Return the elements of a list as texts, without those that cannot be encoded; empty for any other value."""
    texts = map(str, value) if isinstance(value, list) else ()
    return tuple(mt.escape_markers(text) for text in texts if is_unicode(text))


def normalise(value: object, declared: str) -> tuple[mt.metrics.AnswerFormat, tuple[str, ...], tuple[str, ...]]:
    """Return an answer's format, its elements (one, if it is no list), and the repairs that make the two agree.

    >>> normalise("21%", "Int"), normalise("['red', 'blue']", "Str")
    (('String', ('21%',), ('integer-to-string',)), ('List', ('red', 'blue'), ('string-to-list',)))
    >>> normalise(5.0, "Integer"), normalise([1, "x"], "List")
    (('Integer', ('5',), ()), ('List', ('1', 'x'), ()))

    Raises:
        Rejected: the value is no text and no other answer of JSON, it is empty, or the format is unknown.

    """
    if value is None or value != value:
        raise refused("empty-answer", "an answer", repr(value), "answer", "write the answer, or Not answerable")
    if isinstance(value, bool) or not isinstance(value, str | int | float | list):
        expected, found = "a text, a number or a list", repr(value)[:80]
        raise refused("missing-or-mistyped-field", expected, found, "answer", "write the answer so")
    if declared not in mt.metrics.ANSWER_FORMATS:
        todo = "write one of them, or leave it empty if the table is your own"
        expected, found = f"one of {', '.join(mt.metrics.ANSWER_FORMATS)}", repr(declared)[:80]
        raise refused("unknown-answer-format", expected, found, "answer_format", todo)
    kind = mt.metrics.ANSWER_FORMATS[declared]
    is_whole = isinstance(value, float) and value.is_integer() and kind == "Integer"
    text = "" if isinstance(value, list) else str(int(value) if is_whole else value).strip()
    elements = value if isinstance(value, list) else mt.metrics.literal_list(text)
    form: mt.metrics.AnswerFormat = "String"
    values: tuple[str, ...] = (text,)
    if mt.metrics.is_not_answerable(text):
        form, values = "None", (mt.metrics.NOT_ANSWERABLE,)
    elif kind == "None" and not isinstance(value, list):
        todo = "correct the answer or its format"
        raise refused("answer-of-format-none", repr(mt.metrics.NOT_ANSWERABLE), repr(text), "answer", todo)
    elif elements is not None:
        form = "List"
        values = tuple(str(each).strip() if isinstance(each, str | int | float) else "" for each in elements)
        if not values or not all(values):
            expected = "a list of at least one string or number, none empty"
            raise refused("list-answer", expected, repr(elements)[:120], "answer", "correct the list")
    elif not text:
        raise refused("empty-answer", "an answer", "nothing", "answer", "write the answer, or Not answerable")
    elif kind in ("Integer", "Float") and mt.metrics.number_format(text) in ("Integer", kind):
        form = kind
    return form, values, () if form == kind else (f"{kind.lower()}-to-{form.lower()}",)


# --- documents of page images -----------------------------------------------------------------------------------------

PAGES = "pages"
"""The name of the source that `Reader.extract` makes of pages in a table."""
_LIST = "documents.jsonl"


def first_five(texts: Sequence[str]) -> str:
    """Return the first five texts, with a sign that there are more."""
    return f"{', '.join(texts[:5])}{' …' if len(texts) > 5 else ''}"


def missing_pages(doc: str, numbers: Container[int], first: int, last: int, file: str, todo: str) -> mt.Fault | None:
    """Return the fault of a document without an image of each page from the first to the last; None if it has all."""
    missing = [str(number) for number in islice((n for n in range(first, last + 1) if n not in numbers), 6)]
    expected = f"pages {first} to {last} of {doc}"
    return mt.Fault("missing-pages", expected, f"no {first_five(missing)}", file, todo=todo) if missing else None


def write_list(folder: Path, documents: Mapping[str, list[str | None] | mt.Fault]) -> None:
    """Write which pages of documents `Reader.extract` wrote below a folder: their paths, None for a page that the
    source lacks; or the fault of the document.
    """
    pages = {doc: paths.fields() if isinstance(paths, mt.Fault) else paths for doc, paths in documents.items()}
    lines = (json.dumps({"doc": doc, "pages": listed}, ensure_ascii=False) for doc, listed in pages.items())
    (folder / _LIST).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def read_list(
    folder: Path, *, dpi: int | None = None, keeps_names: bool = False
) -> dict[str, mt.readers.PageImages | mt.Fault]:
    """Return the documents that `write_list` wrote; lines that are damaged are left out. With `keeps_names`, pages have
    the names of their files in a release, too.
    """
    documents: dict[str, mt.readers.PageImages | mt.Fault] = {}
    for _, _, line in mt.readers.json_lines(folder / _LIST):
        doc, pages = (None, None) if isinstance(line, mt.Fault) else (line.get("doc"), line.get("pages"))
        if isinstance(doc, str) and isinstance(pages, dict):
            documents[doc] = mt.Fault(**pages)
        elif isinstance(doc, str) and isinstance(pages, list):
            files = tuple(folder / page for page in pages if page)
            names = tuple(file.name for file in files) if keeps_names else ()
            missing = tuple(number for number, page in enumerate(pages) if not page)
            lacking = mt.Fault("missing-pages", "at least one page", "none", doc[:100], todo="add its pages")
            documents[doc] = mt.readers.PageImages(files, names, dpi, missing) if files else lacking
    return documents
