"""The row that every reader of document questions makes for the builder, and the options of both.

Fields are cleaned, and answers are normalised in the same way for all sources.

Each repair has a name; a value that cannot be repaired is a fault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

import mmlongbench.task as mt
from builders.common import is_unicode, not_unicode
from mmlongbench.task import (
    ANSWER_FORMATS,
    NOT_ANSWERABLE,
    AnswerFormat,
    Fault,
    Row,
    escape_markers,
    is_not_answerable,
    literal_list,
    number_format,
)

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


NO_REFERENCE = ("",)
"""The answer of a question without a reference answer; only a judge that sees the document can score such questions."""
MAX_FACET = 100
"""The maximum number of characters of a value by which reports break scores down."""


class DocumentQuestion(Row):
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
    answer_format: AnswerFormat
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
        """Whether the source gives an answer to compare with."""
        return self.answer != NO_REFERENCE


def clean(
    id: str,
    doc: str,
    question: object,
    answer: object,
    declared: object,
    pages: object,
    repairs: tuple[str, ...] = (),
    **more: object,
) -> DocumentQuestion | Fault:
    """Return the row of a question, with an answer, a format and pages that agree; or what is wrong with the question.

    Args:
        id: the released id.
        doc: the document's id.
        question: the text.
        answer: a text or a JSON value.
        declared: the answer's format, by the name that the source uses for it.
        pages: the answer pages, from 1: a list of integers, or such a list as text.
        repairs: the repairs that were already made to the row.
        more: further fields of the row, such as `pages_field`.

    """
    field = str(more.get("pages_field", "evidence_pages"))
    if not isinstance(question, str) or not question.strip():
        return Fault(
            "empty-question",
            "a question",
            repr(question)[:80],
            field="question",
            todo="write a question, or remove the row",
        )
    if answer is None or answer != answer:
        return Fault(
            "empty-answer", "an answer", repr(answer), field="answer", todo="write the answer, or Not answerable"
        )
    cleaned, found = normalise(answer, str(declared)), page_numbers(pages, field)
    if isinstance(cleaned, Fault):
        return cleaned
    if fault := not_unicode("".join(cleaned.values), "answer"):  # a literal can contain a surrogate as an escape
        return fault
    if cleaned.format == "None":
        mended = cleaned.repairs if found == ((), ()) else (*cleaned.repairs, "pages-of-unanswerable-dropped")
        found = ((), ())
    elif isinstance(found, Fault):
        return found
    elif not found[0]:
        return Fault(
            "no-answer-pages",
            "at least one page",
            repr(pages)[:80],
            field=field,
            todo="write the pages that hold the answer, or the answer Not answerable",
        )
    else:
        mended = (*cleaned.repairs, *found[1])
    own = {key: escape_markers(value) if isinstance(value, str) else value for key, value in more.items()}
    fields = {
        "id": id,
        "doc": doc,
        "question": escape_markers(question),
        "answer": tuple(map(escape_markers, cleaned.values)),
        "answer_format": cleaned.format,
        "pages": found[0],
    }
    return DocumentQuestion.model_validate({**own, **fields, "repairs": (*mended, *repairs)})


def open_question(
    id: str,
    doc: str,
    question: str,
    answer: object,
    pages: tuple[tuple[int, ...], tuple[str, ...]] | Fault,
    **more: object,
) -> DocumentQuestion | Fault:
    """Return the row of a question that asks for an explanation; its answer is a text, and may be empty.

    Args:
        id: the released id.
        doc: the document's id.
        question: the text.
        answer: the reference answer; an empty text if there is none.
        pages: the result of `page_numbers`.
        more: further fields of the row, such as `doc_type`.

    """
    if not question.strip():
        return Fault("empty-question", "a question", repr(question)[:80], field="question", todo="write a question")
    if not isinstance(answer, str):
        expected, todo = "a text, which may be empty", "write the answer, or an empty text"
        return Fault("missing-or-mistyped-field", expected, repr(answer)[:80], field="answer", todo=todo)
    if fault := not_unicode(answer, "answer"):
        return fault
    if isinstance(pages, Fault):
        return pages
    numbers, repairs = pages
    if not numbers:
        expected, todo = "at least one page", "write the pages that hold the answer"
        return Fault("no-answer-pages", expected, "none", field="evidence_pages", todo=todo)
    fields = {
        "id": id,
        "doc": doc,
        "question": escape_markers(question),
        "answer": (escape_markers(answer.strip()),),
        "answer_format": "String",
        "pages": numbers,
        "repairs": repairs,
    }
    return DocumentQuestion.model_validate({**more, **fields})


def page_numbers(value: object, field: str) -> tuple[tuple[int, ...], tuple[str, ...]] | Fault:
    """Return (page numbers, names of repairs), or a `Fault` if the value is not valid. The page numbers in `value`
    count from 1; the returned ones count from 0 and are ascending.

    >>> page_numbers("[3, 5]", "pages"), page_numbers(["4"], "pages")
    (((2, 4), ()), ((3,), ('answer-pages-as-text',)))
    """
    values = literal_list(value) if isinstance(value, str) else value
    if not isinstance(values, list):
        return _no_pages(value, field)
    texts = [page for page in values if isinstance(page, str) and page.strip().isdecimal() and len(page) < 9]
    whole = [page for page in values if isinstance(page, int) and not isinstance(page, bool)]
    if len(texts) + len(whole) < len(values):
        return _no_pages(value, field)
    numbers = sorted({*whole, *map(int, texts)})
    if numbers and numbers[0] < 1:
        return Fault(
            "answer-page-out-of-range", "pages from 1", f"page {numbers[0]}", field=field, todo="count the pages from 1"
        )
    return tuple(page - 1 for page in numbers), ("answer-pages-as-text",) if texts else ()


def _no_pages(value: object, field: str) -> Fault:
    expected, todo = "a list of integers such as [3, 5]", "write whole numbers, counted from 1"
    return Fault("answer-pages-not-a-list", expected, repr(value)[:80], field=field, todo=todo)


def strings_of(raw: Mapping[str, object], fields: Sequence[str]) -> dict[str, str] | Fault:
    """Return fields that must hold text, or the fault of the first one that holds no valid text."""
    strings: dict[str, str] = {}
    for field in fields:
        value = raw.get(field)
        if not isinstance(value, str):
            found = type(value).__name__ if field in raw else "nothing"
            return Fault("missing-or-mistyped-field", "a string", found, field=field, todo="write a text there")
        if fault := not_unicode(value, field):
            return fault
        strings[field] = value
    return strings


def texts_in(value: object) -> tuple[str, ...]:
    """Return the elements of a list as texts, without those that cannot be encoded; empty for any other value."""
    texts = map(str, value) if isinstance(value, list) else ()
    return tuple(escape_markers(text) for text in texts if is_unicode(text))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer whose format and text agree."""

    format: AnswerFormat
    values: tuple[str, ...]
    """The elements if the format is `List`; one string for any other format."""
    repairs: tuple[str, ...] = ()


def normalise(value: object, declared: str) -> Answer | Fault:
    """Return the answer, with a text and a format that agree. Return a `Fault` if the value or the declared format is
    not valid. The value is a text or any other value of JSON.

    >>> normalise("21%", "Int")
    Answer(format='String', values=('21%',), repairs=('integer-to-string',))
    >>> normalise("['red', 'blue']", "Str")
    Answer(format='List', values=('red', 'blue'), repairs=('string-to-list',))
    >>> normalise(5.0, "Integer"), normalise([1, "x"], "List").values
    (Answer(format='Integer', values=('5',), repairs=()), ('1', 'x'))
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | list) or value != value:
        return Fault(
            "missing-or-mistyped-field",
            "a text, a number or a list",
            repr(value)[:80],
            field="answer",
            todo="write the answer so",
        )
    if declared not in ANSWER_FORMATS:
        expected = f"one of {', '.join(ANSWER_FORMATS)}"
        return Fault(
            "unknown-answer-format",
            expected,
            repr(declared)[:80],
            field="answer_format",
            todo="write one of them, or leave it empty if the table is your own",
        )
    kind = ANSWER_FORMATS[declared]
    if isinstance(value, list):
        return _listed(value, kind)
    is_whole = isinstance(value, float) and value.is_integer() and kind == "Integer"
    return _of_text(str(int(value) if is_whole else value).strip(), kind)


def _of_text(text: str, kind: AnswerFormat) -> Answer | Fault:
    if is_not_answerable(text):
        return Answer("None", (NOT_ANSWERABLE,), () if kind == "None" else (f"{kind.lower()}-to-none",))
    if kind == "None":
        return Fault(
            "answer-of-format-none",
            f"{NOT_ANSWERABLE!r}",
            repr(text),
            field="answer",
            todo="correct the answer or its format",
        )
    if not text:
        return Fault("empty-answer", "an answer", "nothing", field="answer", todo="write the answer, or Not answerable")
    if kind in ("List", "String") or literal_list(text) is not None:
        return _list_or_string(text, kind)
    if kind == "Integer" and number_format(text) != "Integer":
        return Answer("String", (text,), ("integer-to-string",))
    if kind == "Float" and number_format(text) == "String":
        return Answer("String", (text,), ("float-to-string",))
    return Answer(kind, (text,))


def _list_or_string(text: str, kind: AnswerFormat) -> Answer | Fault:
    """Return a List if the text is written as a list, otherwise a String, whatever format was declared."""
    values = literal_list(text)
    if values is None:
        return Answer("String", (text,), ("list-to-string",) if kind == "List" else ())
    return _listed(values, kind)


def _listed(values: Sequence[object], kind: AnswerFormat) -> Answer | Fault:
    elements = tuple(str(value).strip() if isinstance(value, str | int | float) else "" for value in values)
    if not elements or not all(elements):
        expected = "a list of at least one string or number, none empty"
        return Fault("list-answer", expected, repr(values)[:120], field="answer", todo="correct the list")
    return Answer("List", elements, () if kind == "List" else (f"{kind.lower()}-to-list",))


def format_of(value: object) -> str:
    """Return the format of an answer whose source declares no format.

    >>> [format_of(each) for each in ("1,066", "12.5%", "Tern Rock", "2019-04-01", "['a', 'b']", "Not answerable", 3)]
    ['Integer', 'Float', 'String', 'String', 'List', 'None', 'Integer']
    """
    text = str(value).strip()
    if isinstance(value, list) or literal_list(text) is not None:
        return "List"
    if is_not_answerable(text):
        return "None"
    return number_format(text)


def count_words(values: Sequence[str], how: AnswerWords) -> int:
    """Return the number of words (parts between blanks) of an answer. If `how` is `whole`, the words of all elements
    are counted together. If not, only the element with the most words is counted.

    >>> count_words(("New York", "Rome"), "whole"), count_words(("New York", "Rome"), "per_element")
    (3, 2)
    """
    counts = [len(value.split()) for value in values]
    return sum(counts) if how == "whole" else max(counts)
