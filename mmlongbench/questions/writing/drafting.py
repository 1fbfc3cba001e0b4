"""The stage `drafts`: an author writes the question of a slot; or changes one qualifier of a verified question."""

import re
from collections.abc import Sequence

from mmlongbench.answers import NOT_ANSWERABLE
from mmlongbench.draws import Draws
from mmlongbench.questions.writing.asking import NoAnswer, Request
from mmlongbench.questions.writing.context import Context, passed, rejected
from mmlongbench.questions.writing.forms import Drafted, Edited
from mmlongbench.questions.writing.lines import Candidate, Judged, Slot
from mmlongbench.questions.writing.wordings import EDIT, answered, draft, titled

TEMPERATURE = 1.0
"""The temperature of drafts; everything that checks has 0."""
_OPENINGS = re.compile(
    r"^(here(?:'s| is) (?:a|the|one)[^:?]{0,80}:|(?:sure|certainly|of course)[^:?]{0,60}[:!.]|question\s*\d*\s*:)\s*",
    re.IGNORECASE,
)
"""Matches what some models say before a question; nothing else is stripped."""


def write(slot: Slot, context: Context) -> Judged:
    """Return the draft of a slot; the pages are still as the author gives them, see `statics`."""
    document = context.library.documents[slot.doc]
    about = slot.pages
    if slot.kind != "cross":
        about = tuple(page for page in range(slot.pages[0] - 1, slot.pages[0] + 2) if 1 <= page <= len(document.pages))
    request = Request(
        "drafts",
        slot.author,
        draft(slot),
        titled(slot.doc),
        Drafted,
        context.library.shown(slot.doc, about),
        slot.number,
        TEMPERATURE,
    )
    found = context.ask(request)
    if isinstance(found, NoAnswer):
        return rejected(slot.id, found.reason, found.detail)
    question, stripped = without_opening(found.question)
    return passed(
        Candidate(
            slot=slot.id,
            doc=slot.doc,
            kind=slot.kind,
            author=slot.author,
            question=question,
            answer=tuple(found.answers),
            answer_format="String",
            declared=found.answer_format[:40],
            pages=tuple(found.evidence_pages),
            about=about,
            sources=tuple(dict.fromkeys(found.sources)),
            quote=found.quote[:500],
            is_computed=found.is_computed,
            repairs=("preamble-stripped",) if stripped else (),
        )
    )


def without_opening(question: str) -> tuple[str, bool]:
    """Return a question without what a model says before it, and whether anything was stripped.

    >>> without_opening("Here's a challenging question: What is its draught?")
    ('What is its draught?', True)
    """
    plain = " ".join(question.split())
    short = _OPENINGS.sub("", plain, count=1)
    return (short, True) if short != plain and short else (plain, False)


def parents(slots: Sequence[Slot], verified: Sequence[Candidate], seed: int) -> dict[str, Candidate]:
    """Return the verified question that each unanswerable slot edits, by slot. Each is edited once; slots that find
    none are not among the keys.
    """
    found: dict[str, Candidate] = {}
    for doc in sorted({slot.doc for slot in slots}):
        own = [each for each in verified if each.doc == doc and not each.flags]
        drawn = Draws((seed, doc, "parents")).order("parents", own, lambda each: each.slot)
        found |= dict(zip((slot.id for slot in slots if slot.doc == doc), drawn, strict=False))
    return found


def edit(slot: Slot, parent: Candidate | None, context: Context) -> Judged:
    """Return an unanswerable question: a verified one with one other qualifier."""
    if parent is None:
        return rejected(slot.id, "no-verified-question", "all verified questions of the document are edited already")
    shown = context.library.shown(slot.doc, parent.pages)
    request = Request("edits", slot.author, EDIT, answered(parent), Edited, shown, slot.number, TEMPERATURE)
    found = context.ask(request)
    if isinstance(found, NoAnswer):
        return rejected(slot.id, found.reason, found.detail)
    question, _ = without_opening(found.question)
    return passed(
        Candidate(
            slot=slot.id,
            doc=slot.doc,
            kind="unanswerable",
            author=slot.author,
            question=question,
            answer=(NOT_ANSWERABLE,),
            answer_format="None",
            pages=(),
            about=parent.pages,
            parent=parent.slot,
            was=parent.question,
        )
    )
