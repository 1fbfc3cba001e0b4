"""The row that every reader of document questions makes for the builder, and the cleaning of a raw row."""

from collections.abc import Mapping, Sequence

from builders.common.fields import is_unicode, not_unicode
from builders.docvqa.answers import AnswerFormat, literal_list, normalise
from mmlongbench.task import Fault, Row, escape_markers


class DocumentQuestion(Row):
    """One question about one document."""

    doc: str
    """The document's id."""
    doc_type: str = ""
    question_type: str = ""
    """The type of the question in the source's words, if it has any."""
    question: str
    answer: tuple[str, ...]
    """The elements if the format is `List`; one string for any other format."""
    answer_format: AnswerFormat
    pages: tuple[int, ...]
    """The answer pages, from 0, ascending; empty if the question is not answerable."""
    pages_field: str = "evidence_pages"
    """The name of the field with the pages in the source, for rejects."""
    window: tuple[int, int] | None = None
    """The first and last page that the question is about, from 0; None: the whole document."""
    sources: tuple[str, ...] = ()
    """Where the answer is found, in the source's words: text, table, chart …"""


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
        return Fault("empty-question", "a question", repr(question)[:80], field="question")
    if answer is None or answer != answer:
        return Fault("empty-answer", "an answer", repr(answer), field="answer")
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
        return Fault("no-answer-pages", "at least one page", repr(pages)[:80], field=field)
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


def page_numbers(value: object, field: str) -> tuple[tuple[int, ...], tuple[str, ...]] | Fault:
    """Return (page numbers, names of repairs), or a `Fault` if the value is not valid. The page numbers in `value`
    count from 1; the returned ones count from 0 and are ascending.

    >>> page_numbers("[3, 5]", "pages"), page_numbers(["4"], "pages")
    (((2, 4), ()), ((3,), ('answer-pages-as-text',)))
    """
    values = literal_list(value) if isinstance(value, str) else value
    if not isinstance(values, list):
        expected = "a list of integers such as [3, 5]"
        return Fault("answer-pages-not-a-list", expected, repr(value)[:80], field=field)
    texts = [page for page in values if isinstance(page, str) and page.strip().isdecimal() and len(page) < 9]
    whole = [page for page in values if isinstance(page, int) and not isinstance(page, bool)]
    if len(texts) + len(whole) < len(values):
        expected = "a list of integers such as [3, 5]"
        return Fault("answer-pages-not-a-list", expected, repr(value)[:80], field=field)
    numbers = sorted({*whole, *map(int, texts)})
    if numbers and numbers[0] < 1:
        return Fault("answer-page-out-of-range", "pages from 1", f"page {numbers[0]}", field=field)
    return tuple(page - 1 for page in numbers), ("answer-pages-as-text",) if texts else ()


def strings_of(raw: Mapping[str, object], fields: Sequence[str]) -> dict[str, str] | Fault:
    """Return fields that must hold text, or the fault of the first one that holds no valid text."""
    strings: dict[str, str] = {}
    for field in fields:
        value = raw.get(field)
        if not isinstance(value, str):
            found = type(value).__name__ if field in raw else "nothing"
            return Fault("missing-or-mistyped-field", "a string", found, field=field)
        if fault := not_unicode(value, field):
            return fault
        strings[field] = value
    return strings


def texts_in(value: object) -> tuple[str, ...]:
    """Return the elements of a list as texts, without those that cannot be encoded; empty for any other value."""
    texts = map(str, value) if isinstance(value, list) else ()
    return tuple(escape_markers(text) for text in texts if is_unicode(text))
