"""A candidate: a question before its checks, with everything that the checks need."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mmlongbench.questions.layer.facts import Fact
from mmlongbench.questions.layer.page import Box
from mmlongbench.questions.question import Source


@dataclass(frozen=True)
class Mark:
    """Words on a page that a candidate rests on."""

    page: int
    """The number of the page, from 1."""
    text: str
    """The words as they are printed."""
    box: Box
    """Where they are."""
    role: str
    """`answer`, `operand`, `row`, `column`, `title`, `caption` or `heading`."""


@dataclass(frozen=True)
class Candidate:
    """A question before its checks."""

    kind: str
    """What is asked for, such as `table-value`."""
    question: str
    """The question."""
    answer: str | tuple[str, ...]
    """The answer, or the elements of a list."""
    pages: tuple[int, ...]
    """The pages that are needed for the answer, from 1; for a question without an answer, those of its original."""
    sources: tuple[Source, ...]
    """Where the answer is found."""
    marks: tuple[Mark, ...]
    """The words that it rests on."""
    phrases: tuple[tuple[str, ...], ...]
    """Groups of phrases: a page that has all phrases of a group might answer the question. One group for each fact."""
    accepted: tuple[str, ...] = ()
    """Other right answers."""
    derived: str = ""
    """How the answer follows from the marks that are operands; empty if it stands on the page."""
    absent: str = ""
    """For a question without an answer: the changed words, which no page has beside the others."""
    edit: str = ""
    """What was changed, such as `2019 → 2014`."""
    original: str = ""
    """The question of which it is an edit."""
    slots: tuple[str, ...] = ()
    """What at most one chosen question may use, such as a row of a table."""
    facts: tuple[Fact, ...] = field(default=(), compare=False)
    """The facts that it rests on."""
    notes: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Further facts by name."""
    elsewhere: tuple[tuple[str, ...], ...] = ()
    """Groups of phrases for pages of other documents; empty if `phrases` decide there, too."""
