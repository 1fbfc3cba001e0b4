"""The stage `static`: what can be decided without a model. The first failing check ends a question."""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from mmlongbench.questions.writing.answers import Faulty, normal, words
from mmlongbench.questions.writing.context import Context, passed, rejected, revised
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.grounding import is_located, missing_numbers, pages_with, rows_that_fit
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.quotas import MAX_EVIDENCE

LENGTH = (4, 60)
"""The smallest and the largest number of words of a question."""
_CONTENT = "image|images|table|tables|figure|figures|chart|charts|graph|diagram|picture|photo|map|excerpt|passage|text"
_DEICTIC = re.compile(
    rf"\b(this|these|the (?:given|provided|following|above|below|shown)) (?:page|pages|document's page|{_CONTENT})\b"
    rf"|\bthe (?:{_CONTENT}) (?:above|below|shown|provided|here)\b"
    rf"|\b(?:in|on|from|of) the (?:{_CONTENT}|page|pages)(?=[\s?,.]*(?:$|\?|,|\bwhat\b|\bwhich\b|\bhow\b|\bis\b))"
    r"|\b(?:shown|provided|depicted|pictured) (?:here|above|below)\b",
    re.IGNORECASE,
)
"""Matches words that point at a page which the reader does not have before them."""
_META = re.compile(
    r"\bfile ?name\b|\b(how many|number of|total) pages\b.*\b(document|pdf|file)\b|\bpdf (file|metadata)\b",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(
    r"^(?:here(?:'s| is| are)\b|(?:sure|certainly|okay|ok|great|absolutely)\b(?: thing)?[,.!:]|as requested\b"
    r"|based on the (?:provided|given)\b)",
    re.IGNORECASE,
)
_QUESTIONS = re.compile(r"\?\s+\S.*\?\s*$", re.DOTALL)


def check(candidate: Candidate, context: Context) -> Judged:
    """Return what is wrong with a draft, or the draft with its answer in normal form and its pages in order."""
    return check_draft(candidate, context) if candidate.kind != "unanswerable" else check_edit(candidate, context)


def check_draft(candidate: Candidate, context: Context) -> Judged:
    """Return what is wrong with the draft of an answerable question."""
    document = context.document(candidate)
    placed = _placed(candidate, document)
    if isinstance(placed, Judged):
        return placed
    answer = normal(candidate.answer, candidate.declared)
    if isinstance(answer, Faulty):
        return rejected(candidate.slot, answer.reason, answer.detail)
    if answer.format == "None":
        return rejected(candidate.slot, "answer-of-format-none", "the author says that the question has no answer")
    found = placed.model_copy(
        update={"answer": answer.values, "answer_format": answer.format, "repairs": (*placed.repairs, *answer.repairs)}
    )
    if fault := wording_fault(found):
        return rejected(found.slot, *fault)
    return _grounded(found, document)


def _placed(candidate: Candidate, document: ReadDocument) -> Candidate | Judged:
    """Return a draft with pages that it was shown. A printed page number counts as the label of the page."""
    labels = {document.printed(page): page for page in candidate.about}
    pages, repairs = [], list(candidate.repairs)
    for page in dict.fromkeys(candidate.pages):
        if page in candidate.about:
            pages.append(page)
        elif page in labels:
            pages.append(labels[page])
            repairs.append("printed-page-number")
        elif 1 <= page <= len(document.pages):
            return rejected(candidate.slot, "page-not-shown", f"page {page}, shown were {_listed(candidate.about)}")
        else:
            return rejected(candidate.slot, "page-out-of-range", f"page {page} of {len(document.pages)}")
    if not pages:
        return rejected(candidate.slot, "page-not-shown", "no evidence page")
    if len(pages) > MAX_EVIDENCE:
        return rejected(candidate.slot, "too-many-pages", f"{len(pages)} evidence pages, at most {MAX_EVIDENCE}")
    return candidate.model_copy(update={"pages": tuple(sorted(set(pages))), "repairs": tuple(dict.fromkeys(repairs))})


def _opening(candidate: Candidate) -> str:
    return candidate.question[:60] if _PREAMBLE.match(candidate.question) else ""


def _several(candidate: Candidate) -> str:
    return candidate.question[:120] if _QUESTIONS.search(candidate.question) else ""


def _answer_in_question(candidate: Candidate) -> str:
    """Return an answer that is a run of words of the question; a single word or a short number may be by chance."""
    said = words(candidate.question)
    for value in candidate.answer:
        plain = words(value)
        is_telling = len(plain.split()) >= 2 or sum(map(str.isdigit, plain)) >= 3
        if is_telling and plain in said:
            return value
    return ""


def _pointing(candidate: Candidate) -> str:
    found = _DEICTIC.search(candidate.question)
    return found[0] if found else ""


def _about_the_file(candidate: Candidate) -> str:
    found = _META.search(candidate.question)
    return found[0] if found else ""


def _length(candidate: Candidate) -> str:
    count = len(candidate.question.split())
    return "" if LENGTH[0] <= count <= LENGTH[1] else f"{count} words, {LENGTH[0]} to {LENGTH[1]} are allowed"


_FAULTS: Sequence[tuple[str, Callable[[Candidate], str]]] = (
    ("preamble", _opening),
    ("several-questions", _several),
    ("answer-in-question", _answer_in_question),
    ("deictic", _pointing),
    ("document-meta", _about_the_file),
    ("length", _length),
)
"""The faults of the words of a question, in the order in which they are looked for."""


def wording_fault(candidate: Candidate) -> tuple[str, str] | None:
    """Return the reason and the detail of the first fault in the words of a question; None if there is none."""
    found = ((reason, fault(candidate)) for reason, fault in _FAULTS)
    return next(((reason, detail) for reason, detail in found if detail), None)


def _grounded(candidate: Candidate, document: ReadDocument) -> Judged:
    """Return a question whose answer is on its pages; where the pages have no text, nothing is known."""
    if candidate.kind == "table" and len(rows := rows_that_fit(candidate.question, document, candidate.pages)) > 1:
        return rejected(candidate.slot, "qualifier-missing", f"{len(rows)} rows of the table fit the question")
    if candidate.kind in ("figure", "layout") or not all(map(document.has_text, candidate.pages)):
        return passed(candidate)
    if candidate.is_computed:
        if missing := missing_numbers(candidate.quote, document, candidate.pages):
            return rejected(
                candidate.slot, "ungrounded", f"numbers of the quotation are on no page: {_listed(missing)}"
            )
        return passed(candidate.model_copy(update={"grounding": "derived"}))
    if is_located(candidate.answer, document, candidate.pages):
        return passed(candidate.model_copy(update={"grounding": "located"}))
    elsewhere = pages_with(candidate.answer, document)
    if len(elsewhere) == 1 and len(candidate.pages) == 1:
        detail = f"the answer is not on page {candidate.pages[0]}, but on page {elsewhere[0]}"
        return revised(candidate, "evidence-page-elsewhere", detail, pages=tuple(elsewhere), grounding="located")
    return rejected(candidate.slot, "ungrounded", f"the answer is not on page {_listed(candidate.pages)}")


def check_edit(candidate: Candidate, context: Context) -> Judged:
    """Return what is wrong with an unanswerable question: it must differ from its parent in one qualifier that the
    document does not have.
    """
    was, now = words(candidate.was).split(), words(candidate.question).split()
    changes = [each for each in SequenceMatcher(None, was, now, autojunk=False).get_opcodes() if each[0] != "equal"]
    if len(changes) != 1 or changes[0][0] != "replace":
        return rejected(candidate.slot, "not-a-minimal-edit", f"{len(changes)} changes of its parent's words")
    _, low, high, first, last = changes[0]
    before, after = " ".join(was[low:high]), " ".join(now[first:last])
    if fault := wording_fault(candidate):
        return rejected(candidate.slot, *fault)
    document = context.document(candidate)
    if there := [page for page, text in enumerate(document.texts, 1) if f" {after} " in text]:
        return rejected(candidate.slot, "qualifier-in-document", f"{after!r} is on page {_listed(there[:5])}")
    return passed(candidate.model_copy(update={"was": before, "now": after}))


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
