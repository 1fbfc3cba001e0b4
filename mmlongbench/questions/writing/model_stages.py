"""The stages that ask models: `drafts`, `edits`, and the checks of questions; and the table of all checks."""

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mmlongbench.answers import NOT_ANSWERABLE
from mmlongbench.draws import Draws
from mmlongbench.models.calls import fence
from mmlongbench.questions.writing.answers import agrees, same_answer, words
from mmlongbench.questions.writing.asking import (
    Answered,
    Checklist,
    Desk,
    Drafted,
    Edited,
    Further,
    Graded,
    Guessed,
    NoAnswer,
    Request,
    family,
    material,
    shown_answer,
    wording,
)
from mmlongbench.questions.writing.lines import (
    Candidate,
    Judged,
    Kind,
    Slot,
    held,
    listed,
    passed,
    rejected,
    revised,
)
from mmlongbench.questions.writing.text_checks import decontaminated, static

TEMPERATURE = 1.0  # the temperature of drafts; checks have 0
FORMATS = {"Integer": "Integer (a whole number)", "Float": "Float (a number with decimals or %)"}
"""Formats as authors are told them, where the name is not enough."""
READERS = 2  # how many models are asked in turn for a checklist, a guess or an answer, and both in the round trip
SMALL = 20  # the largest whole number that is easily guessed
GUESSES, RIGHT = 3, 2  # how often an easily guessed answer is asked for, and must be right to count
OTHER_PAGES = 5  # how many of the best other pages the probe of necessity shows (k of M-LongDoc)
BLOCK = 20  # the maximum number of pages that are shown together of a whole document
RANKED = 10  # how many of the best pages are shown together, besides the blocks
SHOWN = 5  # how many pages a model reads in the round trip: the evidence and the best others
JUDGES = 3  # the members of the committee, of different families (M-LongDoc)
MIN_GRADE = 4.0  # the smallest mean grade
SPREAD = 2  # the difference of grades from which people decide
ITEMS = (  # the reason of a rejection, the verdict, and the model's reason, in the order of the paper
    ("checklist-type", "has_the_type", "type_reason"),
    ("checklist-need", "needs_the_content", "need_reason"),
    ("checklist-clear", "is_clear_and_answerable", "clear_reason"),
    ("checklist-difficulty", "is_of_reasonable_difficulty", "difficulty_reason"),
)
_KIND_OF_SOURCE: dict[str, Kind] = {"Table": "table", "Chart": "figure", "Figure": "figure", "Layout": "layout"}
_OPENINGS = re.compile(  # what some models say before a question; nothing else is stripped
    r"^(here(?:'s| is) (?:a|the|one)[^:?]{0,80}:|(?:sure|certainly|of course)[^:?]{0,60}[:!.]|question\s*\d*\s*:)\s*",
    re.IGNORECASE,
)


def draft(slot: Slot, desk: Desk) -> Judged:
    """Return the draft of a slot. Its pages are still as the author gives them; `static` puts them right."""
    shown = slot.pages
    target = "at least two of these pages together"
    if slot.kind != "cross":
        page, last = slot.pages[0], len(desk.library.documents[slot.doc].pages)
        shown = tuple(range(max(page - 1, 1), min(page + 1, last) + 1))
        target = f"Page {page}"
    demand, format = wording(f"demand_{slot.kind}"), FORMATS.get(slot.format, slot.format)
    instruction = wording("draft", target=target, demand=demand, format=format)
    pages, title = desk.library.shown(slot.doc, shown), fence("title", slot.doc)
    draft = desk.ask(Request("drafts", slot.author, instruction, title, Drafted, pages, slot.number, TEMPERATURE))
    if isinstance(draft, NoAnswer):
        return rejected(slot.id, draft.reason, draft.detail)
    question, is_stripped = without_opening(draft.question)
    return passed(
        Candidate(
            slot=slot.id,
            doc=slot.doc,
            kind=slot.kind,
            author=slot.author,
            question=question,
            answer=tuple(draft.answers),
            answer_format="String",
            declared=draft.answer_format[:40],
            pages=tuple(draft.evidence_pages),
            about=shown,
            sources=tuple(dict.fromkeys(draft.sources)),
            quote=draft.quote[:500],
            is_computed=draft.is_computed,
            repairs=("preamble-stripped",) if is_stripped else (),
        )
    )


def parents(slots: Sequence[Slot], verified: Sequence[Candidate], seed: int) -> dict[str, Candidate]:
    """Return the verified question that each unanswerable slot edits, by slot. Each is edited once; slots that find
    none are not among the keys.
    """
    chosen: dict[str, Candidate] = {}
    for doc in sorted({slot.doc for slot in slots}):
        own = [candidate for candidate in verified if candidate.doc == doc and not candidate.flags]
        drawn = Draws((seed, doc, "parents")).order("parents", own, lambda candidate: candidate.slot)
        chosen |= dict(zip((slot.id for slot in slots if slot.doc == doc), drawn, strict=False))
    return chosen


def edit(slot: Slot, parent: Candidate | None, desk: Desk) -> Judged:
    if parent is None:
        return rejected(slot.id, "no-verified-question", "all verified questions of the document are edited already")
    asked, pages = material(parent, with_answer=True), desk.library.shown(parent.doc, parent.pages)
    request = Request("edits", slot.author, wording("edit"), asked, Edited, pages, slot.number, TEMPERATURE)
    edited = desk.ask(request)
    if isinstance(edited, NoAnswer):
        return rejected(slot.id, edited.reason, edited.detail)
    return passed(
        Candidate(
            slot=slot.id,
            doc=slot.doc,
            kind="unanswerable",
            author=slot.author,
            question=without_opening(edited.question)[0],
            answer=(NOT_ANSWERABLE,),
            answer_format="None",
            pages=(),
            about=parent.pages,
            parent=parent.slot,
            was=parent.question,
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


def is_right(candidate: Candidate, reply: Answered | Guessed | NoAnswer) -> bool:
    if isinstance(reply, NoAnswer) or (isinstance(reply, Answered) and not reply.is_answerable):
        return False
    return agrees(candidate.answer, reply.answers, candidate.answer_format)


def _in_words(reply: Answered | NoAnswer) -> str:
    if isinstance(reply, NoAnswer):
        return f"no usable reply ({reply.reason})"
    return repr(shown_answer(reply.answers)[:80]) if reply.is_answerable and reply.answers else "no answer"


def without_document(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether a model gives the answer from the title and the question alone. One that is easily guessed must be
    guessed twice in three samples.
    """
    text = words(candidate.answer[0]).strip()
    is_small = candidate.answer_format == "Integer" and text.isdecimal() and len(text) <= 3 and int(text) <= SMALL
    is_easy = is_small or text in ("yes", "no", "true", "false") or " or " in candidate.question.casefold()
    samples, most, temperature = (GUESSES, RIGHT, 1.0) if is_easy else (1, 1, 0.0)
    failure = "no model of another family"
    for model in desk.readers(candidate, "no-document")[:READERS]:
        right, usable, last = 0, 0, ""
        for sample in range(samples):
            guess = desk.ask(
                Request("no-document", model, wording("guess"), material(candidate), Guessed, (), sample, temperature)
            )
            if isinstance(guess, NoAnswer):
                failure = guess.detail
                usable += guess.reason == "refusal"  # a model that does not guess does not know
                continue
            usable, last = usable + 1, shown_answer(guess.answers or [""])
            right += is_right(candidate, guess)
        if right >= most:
            detail = f"{model} gives {last!r}, {right} of {samples} times"
            return rejected(candidate.slot, "answerable-without-document", detail)
        if usable == samples:
            return passed(candidate, f"{model} does not give it")
    return held(candidate, "unchecked-without-document", failure)


def checklist(candidate: Candidate, desk: Desk) -> Judged:
    """Return the first item of M-LongDoc's checklist that a question fails; without four verdicts it never passes.

    The paper asked the author itself, and people still rejected 19 % of what it let pass.
    """
    instruction = wording("checklist", target=wording(f"target_{candidate.kind}"))
    pages = sorted({*candidate.about, *candidate.pages})
    failure = NoAnswer("invalid-reply", "no model of another family")
    for model in desk.readers(candidate, "checklist")[:READERS]:
        verdicts = desk.ask_about(candidate, "checklist", model, instruction, Checklist, pages)
        if isinstance(verdicts, NoAnswer):
            failure = verdicts
            continue
        for reason, verdict, why in ITEMS:
            if not getattr(verdicts, verdict):
                return rejected(candidate.slot, reason, f"{model}: {getattr(verdicts, why)}")
        return passed(candidate, f"{model}: all four items hold")
    return rejected(candidate.slot, failure.reason, f"the checklist has no verdict: {failure.detail}")


def sufficiency(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether one of two models gives the answer from the evidence pages alone. Models read pictures badly, so a
    question about a figure is not rejected for it, but held for people.
    """
    said = []
    for model in desk.readers(candidate, "sufficiency")[:READERS]:
        reply = desk.answer(candidate, "sufficiency", model, candidate.pages)
        if is_right(candidate, reply):
            return passed(candidate, f"{model} gives it")
        said.append(f"{model} gives {_in_words(reply)}")
    if candidate.kind in ("figure", "layout"):
        return held(candidate, "evidence-insufficient", "; ".join(said))
    return rejected(candidate.slot, "evidence-insufficient", "; ".join(said))


def wrong_document(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether another document of the same type gives the answer, at the same places."""
    documents, doc_type = desk.library.documents, desk.document(candidate).line.doc_type
    names = sorted(name for name in documents if name != candidate.doc)
    names = [name for name in names if documents[name].line.doc_type == doc_type] or names
    if not names:
        return passed(candidate, "there is no other document")
    other = Draws((desk.settings.seed, candidate.slot, "wrong-document")).order("document", names)[0]
    pages = sorted({min(page, len(documents[other].pages)) for page in candidate.pages})
    model = desk.readers(candidate, "wrong-document")[0]
    reply = desk.answer(candidate, "wrong-document", model, pages, other)
    if is_right(candidate, reply):
        return rejected(candidate.slot, "document-independent", f"{model} gives it from {other}, page {listed(pages)}")
    if isinstance(reply, Answered) and reply.is_answerable and reply.answers:
        detail = f"{model} gives {_in_words(reply)} from {other}: the question does not say which document it means"
        if desk.settings.strict_anchor:
            return rejected(candidate.slot, "anchor-weak", detail)
        return passed(candidate, detail, "anchor-weak")
    return passed(candidate, f"{model} finds no answer in {other}")


def necessity(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether other pages give the answer, too; these are recorded, and the question stays.

    Pages with the content of an evidence page are not shown, because they are known to give it.
    """
    document = desk.document(candidate)
    keys = {document.pages[page - 1].key for page in candidate.pages} - {""}
    equal = [n for n, page in enumerate(document.pages, 1) if page.key in keys and n not in candidate.pages]
    ranked = desk.library.ranked(candidate.doc, candidate.question, [*candidate.pages, *equal])
    pages = sorted(ranked[:OTHER_PAGES])
    alternatives = equal if len(candidate.pages) == 1 else []
    detail = f"page {listed(equal)} is the same page" if alternatives else ""
    model = desk.readers(candidate, "necessity")[0]
    reply = desk.answer(candidate, "necessity", model, pages) if pages else None
    if isinstance(reply, Answered) and is_right(candidate, reply):
        named = sorted({page for page in reply.pages if page in pages}) or pages
        if not is_right(candidate, desk.answer(candidate, "necessity", model, named)):
            detail = f"{model} gives it from other pages, but not from {listed(named)} alone"
            return held(candidate, "evidence-elsewhere", detail)
        alternatives, detail = [*alternatives, *named], f"{model} gives it from page {listed(named)}"
    if alternatives:
        return revised(candidate, "evidence-elsewhere", detail, alternatives=tuple(sorted({*alternatives})))
    return passed(candidate, f"{model} does not give it from page {listed(pages)}" if pages else "no other page")


def each_page(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether each of several evidence pages is needed; one that is not leaves the list."""
    model, pages, kind = desk.readers(candidate, "each-page")[0], list(candidate.pages), candidate.kind
    for page in candidate.pages:
        rest = [other for other in pages if other != page]
        if rest and is_right(candidate, desk.answer(candidate, "each-page", model, rest)):
            pages = rest
    if len(pages) == len(candidate.pages):
        return passed(candidate, f"{model} needs all {len(pages)} pages")
    if len(pages) == 1:
        kind = _KIND_OF_SOURCE.get(candidate.sources[0], "text") if candidate.sources else "text"
    detail = f"{model} gives it from page {listed(pages)} alone"
    return revised(candidate, "shortcut", detail, pages=tuple(pages), kind=kind)


def whole_document(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether the whole document contradicts a question that is about all of it, block after block.

    Unanswerable questions are asked of every page, because 14 of 106 errors in MMLongBench-Doc are such questions that
    have an answer; questions that count or list are asked for what is missing (16 of 106). A second model must agree.
    """
    return (_completeness if candidate.is_answerable else _unanswerable)(candidate, desk)


def _unanswerable(candidate: Candidate, desk: Desk) -> Judged:
    count, doubts, unread = len(desk.document(candidate).pages), list[str](), ""
    blocks = list(page_blocks(count))
    if count > BLOCK:
        blocks.append(tuple(sorted(desk.library.ranked(candidate.doc, candidate.question)[:RANKED])))
    for pages in blocks:
        replies = (
            (model, desk.answer(candidate, "whole-document", model, pages))
            for model in desk.readers(candidate, "whole-document")
        )
        usable = ((model, reply) for model, reply in replies if isinstance(reply, Answered))
        model, reply = next(usable, ("", None))
        if reply is None:
            unread = unread or f"{pages[0]} to {pages[-1]}"
        if reply is None or not _is_firm(reply):
            continue
        _, second = next(usable, ("", None))
        if second is None or _is_firm(second):
            where = listed(reply.pages) or f"{pages[0]} to {pages[-1]}"
            detail = f"page {where}: {'; '.join(reply.answers)[:120]}"
            return rejected(candidate.slot, "answerable-after-all", detail)
        doubts.append(model)
    if doubts:
        return held(candidate, "answerable-after-all", f"{doubts[0]} gives an answer, the other model does not")
    if unread:
        return held(candidate, "unchecked-whole-document", f"no usable reply about pages {unread}")
    return passed(candidate, "no answer is found on any page")


def _is_firm(reply: Answered) -> bool:
    return reply.is_answerable and any(map(str.strip, reply.answers))


def _completeness(candidate: Candidate, desk: Desk) -> Judged:
    known = {words(value) for value in candidate.answer}
    models = desk.readers(candidate, "whole-document")

    def missing(model: str, pages: tuple[int, ...]) -> list[str] | None:
        reply = desk.ask_about(candidate, "whole-document", model, wording("further"), Further, pages)
        if isinstance(reply, NoAnswer):
            return None
        return [item for item in reply.items if words(item).strip() and words(item) not in known]

    doubts, doubter, unread = list[str](), "", ""
    for pages in page_blocks(len(desk.document(candidate).pages)):
        replies = ((model, missing(model, pages)) for model in models)
        usable = ((model, items) for model, items in replies if items is not None)  # no model is asked twice
        model, more = next(usable, ("", None))
        if more is None:
            unread = unread or f"{pages[0]} to {pages[-1]}"
        if not more:
            continue
        _, second = next(usable, ("", None))
        if second is None or {*map(words, more)} & {*map(words, second)}:
            detail = f"page {pages[0]} to {pages[-1]}: {'; '.join(more)[:120]}"
            return rejected(candidate.slot, "incomplete-answer", detail)
        doubts, doubter = [*doubts, *more], doubter or model
    if doubts:
        return held(candidate, "incomplete-answer", f"{doubter} alone names {'; '.join(doubts)[:120]}")
    if unread:
        return held(candidate, "unchecked-whole-document", f"no usable reply about pages {unread}")
    return passed(candidate, f"{models[0]} finds nothing that is missing")


def page_blocks(pages: int) -> Iterator[tuple[int, ...]]:
    """Yield the pages of a document, from 1, in blocks of nearly the same size.

    >>> [(block[0], block[-1]) for block in page_blocks(45)]
    [(1, 15), (16, 30), (31, 45)]
    """
    count = -(-pages // BLOCK)
    for number in range(count):
        yield tuple(range(number * pages // count + 1, (number + 1) * pages // count + 1))


def round_trip(candidate: Candidate, desk: Desk) -> Judged:
    """Return whether models answer a question rightly from its evidence among other pages: two of three votes, of which
    the author's answer is one.

    The author's answer is never replaced by a vote. Where models agree against it, or do not agree at all, people
    decide. Only questions that models answer pass by themselves, which selects towards easy ones; the report says how
    much.
    """
    others = desk.library.ranked(candidate.doc, candidate.question, candidate.pages)
    pages = sorted([*candidate.pages, *others[: max(0, SHOWN - len(candidate.pages))]])
    models = desk.readers(candidate, "round-trip")[:READERS]
    replies = [desk.answer(candidate, "round-trip", model, pages) for model in models]
    right, said, firm = 0, [], []
    for model, reply in zip(models, replies, strict=True):
        right += is_right(candidate, reply)
        if isinstance(reply, NoAnswer):
            said.append(f"{model}: {reply.reason}")
        elif reply.is_answerable:
            firm.append(reply.answers)
            said.append(f"{model}: {shown_answer(reply.answers)[:80] if reply.answers else 'no answer'}")
        else:
            said.append(f"{model}: no answer")
    if right:
        detail = f"{right} of {len(models)} models agree: {'; '.join(said)}"
        return passed(candidate, detail, "all" if right == len(models) else "some")
    if len(firm) >= 2 and same_answer(firm[0], firm[1], candidate.answer_format):
        return held(candidate, "answers-disagree", "; ".join(said))
    return held(candidate, "ambiguous", "; ".join(said))


def grades(candidate: Candidate, desk: Desk) -> Judged:
    readers = desk.readers(candidate, "grades")
    families = len({family(model) for model in readers})  # the first readers are of different families
    given: dict[str, int] = {}
    failures = 0
    for model in readers[: min(JUDGES, families)]:
        reply = desk.ask_about(candidate, "grades", model, wording("grade"), Graded, candidate.pages)
        if isinstance(reply, NoAnswer):
            failures += 1
        else:
            given[model] = reply.grade
    if not given:
        return rejected(candidate.slot, "invalid-reply", "no member of the committee gave a grade")
    mean, spread = statistics.fmean(given.values()), max(given.values()) - min(given.values())
    said = listed([f"{model} {grade}" for model, grade in sorted(given.items())])
    detail = f"mean {mean:.2f}, spread {spread}: {said}{f'; {failures} without a grade' if failures else ''}"
    if spread >= SPREAD:
        return held(candidate, "judges-contradict", detail)
    return passed(candidate, detail) if mean >= MIN_GRADE else rejected(candidate.slot, "low-grade", detail)


For: TypeAlias = Literal["all", "answerable", "several pages", "about all"]
"""Which questions a check is for: all; those with an answer; those with several evidence pages; those that are about
the whole document (no answer, counts, lists). Other questions pass it."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    is_for: For
    passes: float  # the share of questions that is expected to go on, to estimate calls before they are made
    what: str  # what it finds out
    judge: Callable[[Candidate, Desk], Judged] | None = None  # None: it compares questions with each other


CHECKS: Sequence[Check] = (
    # our choice
    Check(
        "static", "all", 0.90, "form, pages, format, wording, and where the answer stands in the text; no model", static
    ),
    # M-LongDoc's release: 40 of 2,520 are near-duplicates
    Check("duplicates", "all", 0.98, "whether a smaller slot of the document asks the same; no model"),
    # our choice
    Check(
        "decontamination",
        "all",
        1.0,
        "whether a named benchmark has the question or its page; no model",
        decontaminated,
    ),
    # MMLongBench-Doc, section 3.3
    Check("no-document", "answerable", 0.92, "whether a model knows the answer without the document", without_document),
    # M-LongDoc, section 2.2
    Check(
        "checklist",
        "answerable",
        0.801,
        "M-LongDoc's four items, by a model of another family than the author's",
        checklist,
    ),
    # MMLongBench-Doc, section 5.1
    Check("sufficiency", "answerable", 0.90, "whether the evidence pages alone give the answer", sufficiency),
    # MMLongBench, B.5
    Check("wrong-document", "answerable", 0.98, "whether another document gives the answer", wrong_document),
    # M-LongDoc, section 4.1
    Check(
        "necessity", "answerable", 1.0, "whether other pages give the answer, too; the evidence is revised", necessity
    ),
    # MMLongBench-Doc, A.4
    Check(
        "each-page",
        "several pages",
        1.0,
        "whether each of several evidence pages is needed; the evidence is revised",
        each_page,
    ),
    # two corrections of MMLongBench-Doc
    Check(
        "whole-document",
        "about all",
        0.95,
        "whether any page answers an unanswerable question, or adds to a count or a list",
        whole_document,
    ),
    # MMLongBench-Doc, section 3.3
    Check("round-trip", "answerable", 1.0, "whether two models agree with the answer among other pages", round_trip),
    # M-LongDoc, section 2.3
    Check("grades", "answerable", 0.95, "what a committee of three other families grades", grades),
)
"""The checks in their order. The comment of each says where the check, or its share of passes, comes from."""
