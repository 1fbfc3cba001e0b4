"""The stage `whole-document`: what must hold for a whole document is asked of the whole document, block after block.

Unanswerable questions are asked of every page, because 14 of 106 errors in MMLongBench-Doc are such questions that have
an answer; questions that count or list are asked for what is missing (16 of 106).
"""

import re
from collections.abc import Iterator

from mmlongbench.questions.writing.answers import words
from mmlongbench.questions.writing.asking import NoAnswer, Request
from mmlongbench.questions.writing.context import Context, held, passed, rejected
from mmlongbench.questions.writing.documents import blocks
from mmlongbench.questions.writing.forms import Answered, Further
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.wordings import FURTHER, answered

BLOCK = 20
"""The maximum number of pages of a block."""
RANKED = 10
"""How many of the best pages are shown together, besides the blocks."""
_COUNTS = re.compile(r"\bhow many\b|\bnumber of\b|\bcount\b|\bhow often\b", re.IGNORECASE)


def is_about_all(candidate: Candidate) -> bool:
    """Return whether a question is about the whole document: it has no answer, counts, or lists."""
    counts = candidate.answer_format == "Integer" and candidate.is_computed and bool(_COUNTS.search(candidate.question))
    return not candidate.is_answerable or candidate.answer_format == "List" or counts


def check(candidate: Candidate, context: Context) -> Judged:
    """Return whether the whole document contradicts a question that is about all of it."""
    if not is_about_all(candidate):
        return passed(candidate, "it is about its evidence pages")
    return _completeness(candidate, context) if candidate.is_answerable else _unanswerable(candidate, context)


def shown_blocks(candidate: Candidate, context: Context) -> Iterator[tuple[int, ...]]:
    """Yield the pages of each call: blocks of the whole document, then the best pages if there are several blocks."""
    found = list(blocks(len(context.document(candidate).pages), BLOCK))
    yield from found
    if len(found) > 1 and not candidate.is_answerable:
        yield tuple(sorted(context.rankings.ranked(candidate.doc, candidate.question)[:RANKED]))


def _unanswerable(candidate: Candidate, context: Context) -> Judged:
    """Return whether some pages answer a question that should have no answer; a second model must agree. If no model
    gives a usable reply about some pages, they are not checked.
    """
    doubts, unread = list[str](), ""
    for pages in shown_blocks(candidate, context):
        readers = iter(context.readers(candidate, "whole-document"))
        first, found = _usable(candidate, context, readers, pages)
        if found is None:
            unread = unread or f"{pages[0]} to {pages[-1]}"
        if found is None or not _is_firm(found):
            continue
        _, again = _usable(candidate, context, readers, pages)
        if again is None or _is_firm(again):
            where = ", ".join(map(str, found.pages)) or f"{pages[0]} to {pages[-1]}"
            return rejected(candidate.slot, "answerable-after-all", f"page {where}: {'; '.join(found.answers)[:120]}")
        doubts.append(first)
    if doubts:
        return held(candidate, "answerable-after-all", f"{doubts[0]} gives an answer, the other model does not")
    if unread:
        return held(candidate, "unchecked-whole-document", f"no usable reply about pages {unread}")
    return passed(candidate, "no answer is found on any page")


def _usable(
    candidate: Candidate, context: Context, readers: Iterator[str], pages: tuple[int, ...]
) -> tuple[str, Answered | None]:
    """Return the first usable answer of the next readers, with its reader; None if there is none."""
    for reader in readers:
        found = context.answer("whole-document", reader, candidate, pages)
        if isinstance(found, Answered):
            return reader, found
    return "", None


def _is_firm(found: Answered) -> bool:
    return found.is_answerable and any(map(str.strip, found.answers))


def _completeness(candidate: Candidate, context: Context) -> Judged:
    """Return whether some pages have more than an answer counts or lists; a second model must agree."""
    first, *second = context.readers(candidate, "whole-document")
    doubts, unread = list[str](), ""
    for pages in shown_blocks(candidate, context):
        more = _missing(candidate, context, first, pages)
        if more is None:
            more = _missing(candidate, context, second[0], pages) if second else None
            unread = unread or (f"{pages[0]} to {pages[-1]}" if more is None else "")
        if not more:
            continue
        again = _missing(candidate, context, second[0], pages) if second else more
        if {*map(words, more)} & {*map(words, more if again is None else again)}:
            return rejected(
                candidate.slot, "incomplete-answer", f"page {pages[0]} to {pages[-1]}: {'; '.join(more)[:120]}"
            )
        doubts += more
    if doubts:
        return held(candidate, "incomplete-answer", f"{first} alone names {'; '.join(doubts)[:120]}")
    if unread:
        return held(candidate, "unchecked-whole-document", f"no usable reply about pages {unread}")
    return passed(candidate, f"{first} finds nothing that is missing")


def _missing(candidate: Candidate, context: Context, model: str, pages: tuple[int, ...]) -> list[str] | None:
    shown = context.library.shown(candidate.doc, pages)
    found = context.ask(Request("whole-document", model, FURTHER, answered(candidate), Further, shown))
    if isinstance(found, NoAnswer):
        return None
    known = {words(value) for value in candidate.answer}
    return [item for item in found.items if words(item).strip() and words(item) not in known]
