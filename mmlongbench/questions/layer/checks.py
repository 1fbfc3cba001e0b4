"""The checks of candidates, in the order in which they are run. The first one that fails makes a reject.

`words`: the form of question and answer. `ink`: the words are rendered. `again`: a second path gives the same answer.
`unique`: no other page of the document answers it. `absent`: for questions without an answer, no page answers them.
`padding`: no page of another document of the folder answers it (`padding.py`).
`rendered`: OCR reads the same words in the picture of the page (`rendered.py`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from mmlongbench.questions.layer.again import answer_again
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.index import normal
from mmlongbench.questions.layer.kinds.wording import names_page

MAX_QUESTION_WORDS = 75
"""A longer question is left out; MMLongBench-Doc's longest one has 60."""
MAX_ANSWER_WORDS = 5
"""MMLongBench leaves out longer answers; titles of sections may have more."""


class Failed(NamedTuple):
    """Why a candidate failed."""

    stage: str
    """The check."""
    reason: str
    """A slug, by which rejects are counted."""
    found: str
    """What was found."""
    expected: str
    """What was expected."""


def first_failed(document: Document, candidate: Candidate) -> Failed | None:
    """Return the first check that a candidate fails; None if it passes all that need no picture."""
    for check in CHECKS:
        if failed := check(document, candidate):
            return failed
    return None


def _words(document: Document, candidate: Candidate) -> Failed | None:
    answers = [candidate.answer] if isinstance(candidate.answer, str) else candidate.answer
    count = len(candidate.question.split())
    if count > MAX_QUESTION_WORDS:
        return Failed("words", "question-too-long", f"{count} words", f"at most {MAX_QUESTION_WORDS}")
    bound = MAX_ANSWER_WORDS + 3 * (candidate.kind == "heading-title")
    if longest := next((each for each in answers if len(each.split()) > bound), ""):
        return Failed("words", "long-form-answer", longest, f"at most {bound} words")
    asked = f" {normal(candidate.question)} "
    for answer in answers if not candidate.absent and candidate.kind != "table-largest" else ():
        form = normal(answer)
        is_telling = len(form.split()) >= 2 or sum(map(str.isdigit, form)) >= 3 or len(form) >= 8
        if is_telling and f" {form} " in asked:
            return Failed("words", "answer-in-question", answer, "a question without its answer")
    return None


def _ink(document: Document, candidate: Candidate) -> Failed | None:
    unseen = [mark for mark in candidate.marks if not _is_seen(document, mark.page, mark.box)]
    if unseen:
        return Failed(
            "ink", "words-not-rendered", f"page {unseen[0].page}: {unseen[0].text}", "ink where the words are"
        )
    return None


def _is_seen(document: Document, page: int, box: Sequence[float]) -> bool:
    from mmlongbench.questions.layer.page import Box

    words = document.pages[page - 1].words_in(Box(*box), 0.5)
    return bool(words) and all(word.has_ink or not any(map(str.isalnum, word.text)) for word in words)


def _again(document: Document, candidate: Candidate) -> Failed | None:
    if candidate.absent:
        return None
    numbers = candidate.notes.get("subsections", "").split()
    if [int(number.rpartition(".")[2]) for number in numbers] != list(range(1, len(numbers) + 1)):
        return Failed("again", "numbers-with-a-gap", ", ".join(numbers), "numbers that run on from 1")
    answer = answer_again(document, candidate)
    if answer != candidate.answer:
        return Failed("again", "second-path-differs", repr(answer), repr(candidate.answer))
    return None


def _unique(document: Document, candidate: Candidate) -> Failed | None:
    if document.unread and not candidate.absent and any(not place for _, place in places(document, candidate)):
        return _unread("unique", document.unread, "pages that can be read, or OCR that reads them")
    if found := sorted(_others(document, candidate) - set(alternatives(document, candidate))):
        listed = ", ".join(map(str, found[:5]))
        return Failed("unique", "also-on-another-page", f"page {listed}", f"only page {candidate.pages[0]}")
    return None


def alternatives(document: Document, candidate: Candidate) -> tuple[int, ...]:
    """Return the other pages that may answer a question too and do not make it ambiguous: tables of contents, and pages
    that speak about a numbered table.
    """
    others = _others(document, candidate)
    numbered = all(fact.table.title.by == "number" for fact in candidate.facts)
    return tuple(sorted(others if candidate.facts and numbered else others & document.contents))


def _others(document: Document, candidate: Candidate) -> set[int]:
    """Return the pages, besides those of the candidate, that have all the words that the question rests on."""
    if candidate.absent:
        return set()
    groups = [group for group, place in places(document, candidate) if not place]
    return {page for group in groups for page in document.index.pages_with(*group)} - set(candidate.pages)


def places(document: Document, candidate: Candidate) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each group of phrases of a candidate with the page by which the question names its table, 0 if it does not:
    where a page is named, no other page of the document can be meant.
    """
    named = [fact.page if names_page(document, fact) else 0 for fact in candidate.facts]
    for number, group in enumerate(candidate.phrases):
        yield group, named[number] if number < len(named) else 0


def places_elsewhere(document: Document, candidate: Candidate) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return groups of phrases with which a page of another document might answer, and the number that the page must
    have; 0 if any page might.

    The label of a page has its number, so a table that has no other name can only be meant on a page with this number.
    """
    if not candidate.facts:
        return tuple((group, 0) for group in candidate.elsewhere or candidate.phrases)
    fact = candidate.facts[-1] if candidate.absent else None
    found = []
    for number, group in enumerate(candidate.elsewhere or candidate.phrases):
        own = fact or candidate.facts[min(number, len(candidate.facts) - 1)]
        found.append((group, 0 if own.table.title.words else own.page))
    return tuple(found)


def _absent(document: Document, candidate: Candidate) -> Failed | None:
    if not candidate.absent:
        return None
    if document.unread:
        return _unread("absent", document.unread, "pages that can be read, or OCR that reads them")
    for phrases in candidate.phrases:
        if found := document.index.pages_with(*phrases):
            return Failed("absent", "answerable-after-all", f"page {found[0]}: {', '.join(phrases)}", "on no page")
    near = set(candidate.pages).union(*(document.parts_of(fact.table) for fact in candidate.facts))
    if beside := [page for page in document.index.pages_with(candidate.absent) if page in near]:
        return Failed("absent", "changed-words-beside", f"page {beside[0]}: {candidate.absent}", "on none of its pages")
    return None


def _unread(stage: str, pages: Collection[int], expected: str) -> Failed:
    listed = ", ".join(map(str, sorted(pages)[:5]))
    return Failed(stage, "page-not-readable", f"{len(pages)} pages without words, such as page {listed}", expected)


CHECKS: Sequence[Callable[[Document, Candidate], Failed | None]] = (_words, _ink, _again, _unique, _absent)
"""The checks that need the document alone."""
