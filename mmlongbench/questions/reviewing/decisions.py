"""The typed values of a review: what an annotator may say about a question, and what follows from it."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from mmlongbench.questions.question import Line, Question

Label: TypeAlias = Literal["Retain", "Revise", "Remove"]
"""What an annotator decides about a question (MMLongBench-Doc, A.4)."""
LABELS: tuple[Label, ...] = ("Retain", "Revise", "Remove")
PROBLEMS: Mapping[str, str] = {
    "wrong-answer-or-pages": "the answer or its pages are wrong; usually Revise",
    "repetitive": "another question asks the same; usually Remove",
    "ambiguous": "several answers fit",
    "shortcut": "fewer pages than claimed are enough, or the document is not needed; usually Remove",
    "low-relevance": "it is not about what the document is about",
    "context-dependent": "it is understood only beside its page; usually Revise",
}
"""The six problems of MMLongBench-Doc (A.4)."""
FURTHER: Mapping[str, str] = {
    "incomplete": "the answer lacks something",
    "answerable-after-all": "the document answers a question that should have no answer",
    "defective": "the question makes no sense",
    "corpus-defect": "the PDF is broken, or another one",
}
"""Problems that later corrections of MMLongBench-Doc found."""


class Decision(Line):
    """What one annotator says about a question."""

    id: str
    annotator: str
    label: Label
    problem: str = ""
    """A key of `PROBLEMS` or `FURTHER`; empty for Retain."""
    comment: str = ""
    revision: "Revision | None" = None
    """The new fields of the question; None unless the label is Revise."""


class Revision(Line):
    """The new fields of a question; None where nothing changes."""

    question: str | None = None
    answer: tuple[str, ...] | None = None
    pages: tuple[int, ...] | None = None


class Settled(Line):
    """What a review says about a question in the end."""

    question: Question
    decisions: tuple[Decision, ...]
    """What the annotators said, in the order of their sheets."""
    final: Decision | None = None
    """The decision that counts; None if there is none yet."""
    needs: Literal["", "more", "third"] = ""
    """`more`: fewer annotators decided than should; `third`: two differ."""


Decision.model_rebuild()
