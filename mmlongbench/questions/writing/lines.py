"""Lines of the files between stages, and what a stage can say about a question."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from mmlongbench.answers import AnswerFormat
from mmlongbench.questions.table import Line

Kind: TypeAlias = Literal["text", "table", "figure", "layout", "cross", "unanswerable"]
"""What a question is about: one kind of content on one page, several pages, or something that is not there."""
Outcome: TypeAlias = Literal["passed", "revised", "held", "rejected", "pending"]
"""What a stage says about a question.

`revised`: it goes on, with other fields, such as fewer evidence pages; `held`: it goes on, but people decide whether it
is in the table; `pending`: a call failed, so the stage said nothing, and the next run asks again.
"""
GOES_ON: frozenset[Outcome] = frozenset(("passed", "revised", "held"))


class Called(Line):
    key: str  # hash of everything that the call depends on; the file of answers has the reply under it
    model: str
    reply: str  # SHA-256 of the reply
    input_tokens: int
    output_tokens: int


class DocumentLine(Line):
    """A document, and why nothing is asked about it if nothing is."""

    doc: str  # the name of the file without its ending; it is also the title that models are told
    sha256: str
    pages: int
    doc_type: str = ""
    published: str = ""  # as the table of documents says it, such as 2024-05-31; empty if unknown
    reason: str = ""  # why the document is left out; empty if it is used
    detail: str = ""


class PageLine(Line):
    """A page: what is on it, whether it is worth asking about, and why."""

    doc: str
    page: int  # from 1
    key: str  # hash of the page's content; empty for a blank page
    kinds: tuple[str, ...]
    worth: float  # from 0 (nothing is asked) to 1
    why: tuple[str, ...]  # the reasons, with the numbers behind them
    asked: str = ""  # the model that looked at the page; empty if the layer of the PDF alone is known
    calls: tuple[Called, ...] = ()


class QuotaLine(Line):
    doc: str
    kind: Kind
    wanted: int
    least: int  # the minimum of MMLongBench-Doc for the document's type
    slots: int  # more than `wanted`, because drafts fail
    why_fewer: str = ""  # why there are fewer slots than wanted questions; empty if there are enough


class Slot(Line):
    """A place for one question, drawn before any call."""

    id: str
    doc: str
    kind: Kind
    format: AnswerFormat  # to aim at
    pages: tuple[int, ...]  # the page to ask about, or the window of pages of a cross-page question, from 1
    author: str  # the model that writes
    number: int  # among the slots of its page and kind; the seed of the draft


class Candidate(Line):
    """A question on its way through the stages."""

    slot: str
    doc: str
    kind: Kind
    author: str
    question: str
    answer: tuple[str, ...]  # the elements of a list, otherwise one text
    answer_format: AnswerFormat
    declared: str = ""  # the format as the author names it
    pages: tuple[int, ...]  # evidence pages, from 1, ascending; empty if there is no answer
    about: tuple[int, ...]  # the pages that the author was shown, from 1
    sources: tuple[str, ...] = ()
    quote: str = ""  # the words of the document that hold the answer, as the author quotes them
    is_computed: bool = False  # whether the answer is counted or computed instead of read
    grounding: str = ""  # `located`: the answer is in the text of an evidence page; `derived`: it is computed
    alternatives: tuple[int, ...] = ()  # other pages that alone give the answer
    parent: str = ""  # the slot of the answerable question of which an unanswerable one is a minimal edit
    was: str = ""  # the words of the parent that the edit replaces
    now: str = ""
    flags: tuple[str, ...] = ()  # why people decide about it before it may be in the table
    repairs: tuple[str, ...] = ()  # what was changed since the draft, by name

    @property
    def is_answerable(self) -> bool:
        return self.answer_format != "None"


class Judged(Line):
    """What one stage says about one question, and the question after it."""

    slot: str
    outcome: Outcome
    reason: str = ""  # a slug by which outcomes are counted; mostly empty if it passed
    detail: str = ""
    candidate: Candidate | None = None  # as it goes on; None if it does not
    calls: tuple[Called, ...] = ()


def passed(candidate: Candidate, detail: str = "", reason: str = "") -> Judged:
    return Judged(slot=candidate.slot, outcome="passed", reason=reason, detail=detail, candidate=candidate)


def revised(candidate: Candidate, reason: str, detail: str, **changes: object) -> Judged:
    after = candidate.model_copy(update={**changes, "repairs": (*candidate.repairs, reason)})
    return Judged(slot=candidate.slot, outcome="revised", reason=reason, detail=detail, candidate=after)


def held(candidate: Candidate, reason: str, detail: str) -> Judged:
    after = candidate.model_copy(update={"flags": (*candidate.flags, reason)})
    return Judged(slot=candidate.slot, outcome="held", reason=reason, detail=detail, candidate=after)


def rejected(slot: str, reason: str, detail: str) -> Judged:
    return Judged(slot=slot, outcome="rejected", reason=reason, detail=" ".join(detail.split())[:300])


def listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
