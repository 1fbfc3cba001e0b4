"""The checks without a model: `static`, `duplicates` and `decontamination`."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from mmlongbench.documents.page_facts import is_number
from mmlongbench.likeness import is_same_wording
from mmlongbench.questions.writing.answers import content_words, normal, same_answer, words
from mmlongbench.questions.writing.asking import Desk
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.lines import Candidate, Judged, listed, passed, rejected, revised
from mmlongbench.questions.writing.quotas import MAX_EVIDENCE

LENGTH = (4, 60)  # the smallest and the largest number of words of a question
MIN_TEXT = 40  # the characters of words from which a page has a text layer
CLOSE = 0.9  # the smallest similarity of a run of words that counts as the answer
COMMON = 0.6  # the share of the shorter question's words in common with one of the same answer and pages
COMMON_WITH_BENCHMARK = 0.9  # the share of the longer question's words that makes it a question of a benchmark

_CONTENT = "image|images|table|tables|figure|figures|chart|charts|graph|diagram|picture|photo|map|excerpt|passage|text"
_DEICTIC = re.compile(  # words that point at a page which the reader does not have before them
    rf"\b(this|these|the (?:given|provided|following|above|below|shown)) (?:page|pages|document's page|{_CONTENT})\b"
    rf"|\bthe (?:{_CONTENT}) (?:above|below|shown|provided|here)\b"
    rf"|\b(?:in|on|from|of) the (?:{_CONTENT}|page|pages)(?=[\s?,.]*(?:$|\?|,|\bwhat\b|\bwhich\b|\bhow\b|\bis\b))"
    r"|\b(?:shown|provided|depicted|pictured) (?:here|above|below)\b",
    re.IGNORECASE,
)
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
_NUMBERS = re.compile(r"\d+")


def static(candidate: Candidate, desk: Desk) -> Judged:
    """Return what is wrong with a question, or the question with its answer in normal form and its pages in order."""
    document = desk.document(candidate)
    if candidate.kind == "unanswerable":
        return _check_edit(candidate, document)

    # A printed page number counts as the label of the page.
    labels = {document.printed(page): page for page in candidate.about}
    pages, repairs = [], list(candidate.repairs)
    for page in dict.fromkeys(candidate.pages):
        if page in candidate.about:
            pages.append(page)
        elif page in labels:
            pages.append(labels[page])
            repairs.append("printed-page-number")
        elif 1 <= page <= len(document.pages):
            return rejected(candidate.slot, "page-not-shown", f"page {page}, shown were {listed(candidate.about)}")
        else:
            return rejected(candidate.slot, "page-out-of-range", f"page {page} of {len(document.pages)}")
    if not pages:
        return rejected(candidate.slot, "page-not-shown", "no evidence page")
    if len(pages) > MAX_EVIDENCE:
        return rejected(candidate.slot, "too-many-pages", f"{len(pages)} evidence pages, at most {MAX_EVIDENCE}")

    answer = normal(candidate.answer, candidate.declared)
    if isinstance(answer, tuple):
        return rejected(candidate.slot, *answer)
    if answer.format == "None":
        return rejected(candidate.slot, "answer-of-format-none", "the author says that the question has no answer")
    repairs = [*dict.fromkeys(repairs), *answer.repairs]
    changes = {"pages": tuple(sorted(set(pages))), "answer": answer.values, "answer_format": answer.format}
    candidate = candidate.model_copy(update={**changes, "repairs": tuple(repairs)})
    if fault := wording_fault(candidate.question, candidate.answer):
        return rejected(candidate.slot, *fault)
    return _grounded(candidate, document)


def wording_fault(question: str, answer: Sequence[str]) -> tuple[str, str] | None:
    """Return the reason and the detail of the first fault in the words of a question; None if there is none."""
    if _PREAMBLE.match(question):
        return "preamble", question[:60]
    if _QUESTIONS.search(question):
        return "several-questions", question[:120]
    for value in answer:
        plain = words(value)  # a single word or a short number may be in the question by chance
        is_telling = len(plain.split()) >= 2 or sum(map(str.isdigit, plain)) >= 3
        if is_telling and plain in words(question):
            return "answer-in-question", value
    if pointing := _DEICTIC.search(question):
        return "deictic", pointing[0]
    if about_file := _META.search(question):
        return "document-meta", about_file[0]
    low, high = LENGTH
    if not low <= (count := len(question.split())) <= high:
        return "length", f"{count} words, {low} to {high} are allowed"
    return None


def _grounded(candidate: Candidate, document: ReadDocument) -> Judged:
    """Return a question whose answer is on its pages; where the pages have no text, nothing is known."""
    slot, pages, text = candidate.slot, candidate.pages, "".join(document.texts[page - 1] for page in candidate.pages)
    if candidate.kind == "table" and len(rows := _rows_that_fit(candidate.question, document, pages)) > 1:
        return rejected(slot, "qualifier-missing", f"{len(rows)} rows of the table fit the question")
    if candidate.kind in ("figure", "layout") or any(len(document.texts[page - 1]) <= MIN_TEXT for page in pages):
        return passed(candidate)
    if candidate.is_computed:
        if missing := [number for number in _NUMBERS.findall(words(candidate.quote)) if f" {number} " not in text]:
            return rejected(slot, "ungrounded", f"numbers of the quotation are on no page: {listed(missing)}")
        return passed(candidate.model_copy(update={"grounding": "derived"}))
    answer = [words(value) for value in candidate.answer]
    if all(is_on(value, text) for value in answer):
        return passed(candidate.model_copy(update={"grounding": "located"}))
    elsewhere = [n for n, text in enumerate(document.texts, 1) if all(is_on(value, text) for value in answer)]
    if len(elsewhere) == 1 and len(pages) == 1:
        detail = f"the answer is not on page {pages[0]}, but on page {elsewhere[0]}"
        return revised(candidate, "evidence-page-elsewhere", detail, pages=tuple(elsewhere), grounding="located")
    return rejected(slot, "ungrounded", f"the answer is not on page {listed(pages)}")


def is_on(value: str, text: str) -> bool:
    """Return whether an answer is a run of words of a text (both as `answers.words` gives them), or nearly so.

    >>> is_on(words("harbour master"), words("The harbor master said 12")), is_on(" 12 ", " 1234 ")
    (True, False)
    """
    if value in text:
        return True
    wanted = value.split()
    if not wanted or _NUMBERS.search(value) or len(value) < 8:
        return False
    there, joined = text.split(), " ".join(wanted)
    for at in range(len(there) - len(wanted) + 1):
        run = " ".join(there[at : at + len(wanted)])
        if abs(len(run) - len(joined)) <= 2 and SequenceMatcher(None, joined, run).ratio() >= CLOSE:
            return True
    return False


def _rows_that_fit(question: str, document: ReadDocument, pages: Sequence[int]) -> list[str]:
    """Return the headings of table rows that a question may mean: rows of one label, which the question names, under
    headings that it does not tell apart. One row, or none, is no trouble.
    """
    asked = words(question)
    headings: dict[str, list[str]] = {}
    for page in pages:
        heading = ""
        for row in document.pages[page - 1].rows:
            label = words(row[0])
            if len(row) == 1:
                heading = label
            elif len(label) > 4 and not is_number(row[0]) and label in asked and any(map(is_number, row[1:])):
                headings.setdefault(label, []).append(heading)
    repeated = [label for label, under in headings.items() if len(under) > 1]
    if not repeated:
        return []
    under = headings[max(repeated, key=len)]
    if len(set(under)) < len(under):
        return under
    # The question tells them apart if it has a word that only one of the headings has.
    times = Counter(word for heading in under for word in set(heading.split()))
    named = [heading for heading in under if any(times[word] == 1 and f" {word} " in asked for word in heading.split())]
    return [] if len(named) == 1 else under


def _check_edit(candidate: Candidate, document: ReadDocument) -> Judged:
    """An edit differs from its parent in one qualifier, such as a year, and the document does not have the new one."""
    was, now = words(candidate.was).split(), words(candidate.question).split()
    changes = [edit for edit in SequenceMatcher(None, was, now, autojunk=False).get_opcodes() if edit[0] != "equal"]
    if len(changes) != 1 or changes[0][0] != "replace":
        return rejected(candidate.slot, "not-a-minimal-edit", f"{len(changes)} changes of its parent's words")
    _, low, high, first, last = changes[0]
    before, after = " ".join(was[low:high]), " ".join(now[first:last])
    if fault := wording_fault(candidate.question, candidate.answer):
        return rejected(candidate.slot, *fault)
    if there := [page for page, text in enumerate(document.texts, 1) if f" {after} " in text]:
        return rejected(candidate.slot, "qualifier-in-document", f"{after!r} is on page {listed(there[:5])}")
    return passed(candidate.model_copy(update={"was": before, "now": after}))


def duplicates(candidates: Sequence[Candidate]) -> list[Judged]:
    """Return, for each question, whether an earlier slot of its document asks the same. The smaller slot stays."""
    kept: dict[tuple[str, bool], list[Candidate]] = {}
    lines = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.slot):
        others = kept.setdefault((candidate.doc, candidate.is_answerable), [])
        for other in others:
            if reason := _same(candidate, other):
                lines[candidate.slot] = rejected(candidate.slot, reason, f"{other.slot}: {other.question[:160]}")
                break
        else:
            others.append(candidate)
            lines[candidate.slot] = passed(candidate)
    return [lines[candidate.slot] for candidate in candidates]


def _same(candidate: Candidate, other: Candidate) -> str:
    if words(candidate.question) == words(other.question):
        return "duplicate"
    ours, theirs = content_words(candidate.question), content_words(other.question)
    if set(filter(str.isdecimal, ours)) != set(filter(str.isdecimal, theirs)):
        return ""  # cells of one table, years of one series
    if not candidate.is_answerable:
        return "near-duplicate" if candidate.parent == other.parent else ""
    format = candidate.answer_format
    if format != other.answer_format or not same_answer(candidate.answer, other.answer, format):
        return ""
    common = len(ours & theirs) / max(1, min(len(ours), len(theirs)))
    is_near = candidate.pages == other.pages and common >= COMMON
    return "near-duplicate" if is_near or is_same_wording(candidate.question, other.question) else ""


def decontaminated(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether a benchmark has a page or the words of a question: all of them, the same 13 in a row, 80 % of the
    runs of three, or 90 % of those that are not grammar.
    """
    document, ours = desk.document(candidate), content_words(candidate.question)
    for benchmark in desk.library.benchmarks:
        for page in candidate.pages or candidate.about:
            if where := benchmark.keys.get(document.pages[page - 1].key):
                return rejected(candidate.slot, "benchmark-page", f"page {page} is in {benchmark.name}, in {where}")
        for place, question in benchmark.alike(candidate.question):
            theirs = content_words(question)
            common = len(ours & theirs) / max(1, len(ours), len(theirs))
            is_same = common >= COMMON_WITH_BENCHMARK
            if is_same or words(question) == words(candidate.question) or is_same_wording(question, candidate.question):
                return rejected(candidate.slot, "benchmark-question", f"{benchmark.name}: {place}: {question[:160]}")
    return passed(candidate)
