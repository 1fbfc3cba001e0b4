"""The row that every reader of document questions makes for the builder, and how it is made: fields are cleaned, and
answers are normalised in the same way for all sources.

Each repair has a name; a value that cannot be repaired is a fault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from builders.common.fields import is_unicode, not_unicode
from builders.docvqa.options import AnswerWords
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
