"""The lines of the files between stages. Every line that one stage writes and another reads has a type here."""

from typing import Literal, TypeAlias

from mmlongbench.answers import AnswerFormat
from mmlongbench.questions.question import Line

Kind: TypeAlias = Literal["text", "table", "figure", "layout", "cross", "unanswerable"]
"""What a question is about: one kind of content on one page, several pages, or something that is not there."""
Outcome: TypeAlias = Literal["passed", "revised", "held", "rejected", "pending"]
"""What a stage says about a question.

`revised`: it goes on, with other fields, such as fewer evidence pages; `held`: it goes on, but people decide whether it
is in the table; `pending`: a call failed, so the stage said nothing, and the next run asks again.
"""
GOES_ON: frozenset[Outcome] = frozenset(("passed", "revised", "held"))


class PageLine(Line):
    """A page: what is on it, whether it is worth asking about, and why."""

    doc: str
    page: int
    """The number of the page, from 1."""
    key: str
    """A hash of the page's content; empty for a blank page."""
    kinds: tuple[str, ...]
    """What the layer of the PDF or, after it, a model says is on the page."""
    worth: float
    """From 0 (nothing is asked) to 1."""
    why: tuple[str, ...]
    """The reasons, with the numbers behind them."""
    asked: str = ""
    """The model that said what is on the page; empty if the layer of the PDF alone says it."""
    calls: tuple["Called", ...] = ()


class DocumentLine(Line):
    """A document, and why nothing is asked about it if nothing is."""

    doc: str
    sha256: str
    pages: int
    doc_type: str = ""
    published: str = ""
    """The date of publication (2024-05-31) as the table of documents says it; empty if unknown."""
    reason: str = ""
    """Why the document is left out; empty if it is used."""
    detail: str = ""


class QuotaLine(Line):
    """How many questions of a kind are wanted of a document."""

    doc: str
    kind: Kind
    wanted: int
    """The number to reach."""
    least: int
    """The minimum of MMLongBench-Doc for the document's type."""
    slots: int
    """How many slots there are for it, as many more as drafts are expected to fail."""
    why_fewer: str = ""
    """Why there are fewer slots than wanted questions; empty if there are enough."""


class Slot(Line):
    """A place for one question, drawn before any call."""

    id: str
    doc: str
    kind: Kind
    format: AnswerFormat
    """The format of the answer to aim at."""
    pages: tuple[int, ...]
    """The page to ask about, or the window of pages of a cross-page question, from 1."""
    author: str
    """The model that writes it."""
    number: int
    """The number among the slots of its page and kind; the seed of the draft."""


class Called(Line):
    """One answered call to a model."""

    key: str
    """The hash of everything that the call depends on; the file of answers has the reply under it."""
    model: str
    reply: str
    """The SHA-256 of the reply."""
    input_tokens: int
    output_tokens: int


class Candidate(Line):
    """A question on its way through the stages."""

    slot: str
    doc: str
    kind: Kind
    author: str
    question: str
    answer: tuple[str, ...]
    """The elements of a list, otherwise one text."""
    answer_format: AnswerFormat
    declared: str = ""
    """The format as the author names it."""
    pages: tuple[int, ...]
    """The evidence pages, from 1, ascending; empty if there is no answer."""
    about: tuple[int, ...]
    """The pages that the author was shown, from 1."""
    sources: tuple[str, ...] = ()
    """Where the answer is: text, table, chart, figure, layout."""
    quote: str = ""
    """The words of the document that hold the answer, as the author quotes them."""
    is_computed: bool = False
    """Whether the answer is counted or computed instead of read."""
    grounding: str = ""
    """`located`: the answer is in the text of an evidence page; `derived`: it is computed; empty: not known."""
    alternatives: tuple[int, ...] = ()
    """Other pages that alone give the answer."""
    parent: str = ""
    """The slot of the answerable question of which an unanswerable one is a minimal edit."""
    was: str = ""
    """The words of the parent that the edit replaces."""
    now: str = ""
    """The words in their place."""
    flags: tuple[str, ...] = ()
    """Why people should look at it; a question with a flag is not in the table before they have."""
    repairs: tuple[str, ...] = ()
    """What was changed since the draft, by name."""

    @property
    def is_answerable(self) -> bool:
        """Return whether the document answers the question."""
        return self.answer_format != "None"


class Judged(Line):
    """What one stage says about one question, and the question after it."""

    slot: str
    outcome: Outcome
    reason: str = ""
    """A slug by which outcomes are counted (see `stages.REASONS`); empty if the question passed."""
    detail: str = ""
    """What was found, in words."""
    candidate: Candidate | None = None
    """The question as it goes on; None if it does not."""
    calls: tuple[Called, ...] = ()
    """The calls that the stage made for it, in their order."""
