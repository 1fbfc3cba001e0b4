"""Checks a question and its document before the question is asked."""

import mmlongbench.task as mt
from builders.docvqa.answers import count_words
from builders.docvqa.options import DocVQAOptions
from builders.docvqa.rows import DocumentQuestion


def check_answer(row: DocumentQuestion, options: DocVQAOptions) -> None:
    """Refuse a long-form answer (Rejected): a string or a list with more words than the options allow."""
    bound, how = options.max_answer_words, options.answer_words
    if row.answer_format not in ("String", "List") or (words := count_words(row.answer, how)) <= bound:
        return
    if row.answer_format == "String":
        expected, found = f"at most {bound} words", f"{row.answer[0]!r}"
    elif how == "whole":
        expected, found = f"at most {bound} words in all elements together", f"{words} in {list(row.answer)!r}"
    else:
        expected = f"at most {bound} words in each element"
        found = repr(max(row.answer, key=lambda value: len(value.split())))
    raise mt.Rejected(mt.Fault("long-form-answer", expected, found, field="answer"))


def pages_asked(row: DocumentQuestion, document: mt.Document, options: DocVQAOptions) -> tuple[mt.Page, ...]:
    """Return the pages of the document that may be shown for a question.

    Raises:
        Rejected: an answer page or the window is not in the document; an answer page is not in the window; only
            answer pages are to be shown, and there are none.

    """
    count = len(document.pages)
    if row.pages and row.pages[-1] >= count:
        expected, found = f"pages from 1 to {count} of {document.id}", f"page {row.pages[-1] + 1}"
        raise mt.Rejected(mt.Fault("answer-page-out-of-range", expected, found, field=row.pages_field))
    if options.context == "oracle":
        if not row.pages:
            raise mt.Rejected(mt.Fault("no-answer-pages", "pages to show alone", "none", field=row.pages_field))
        return tuple(document.pages[page] for page in row.pages)
    if options.span == "document" or row.window is None:
        return document.pages
    first, last = row.window
    if last >= count:
        expected, found = f"a window within pages 1 to {count} of {document.id}", f"{first + 1} to {last + 1}"
        raise mt.Rejected(mt.Fault("window-out-of-range", expected, found, field="start_end_idx"))
    if row.pages and not first <= row.pages[0] <= row.pages[-1] <= last:
        expected, found = f"pages from {first + 1} to {last + 1}", f"page {row.pages[0] + 1} to {row.pages[-1] + 1}"
        raise mt.Rejected(mt.Fault("answer-page-outside-window", expected, found, field=row.pages_field))
    return document.pages[first : last + 1]


def span_of(row: DocumentQuestion, document: mt.Document, options: DocVQAOptions) -> str:
    """Return the range of pages that a question is about, from 0, such as `41-70`."""
    is_window = options.span == "window" and row.window is not None
    first, last = row.window if is_window and row.window else (0, len(document.pages) - 1)
    return f"{first}-{last}"


def evidence_keys(row: DocumentQuestion, document: mt.Document) -> frozenset[str]:
    """Return the keys of the answer pages that are not blank."""
    return frozenset(key for page, key in enumerate(document.keys) if page in row.pages and key)
