"""The row that every reader of photographs makes for the builder."""

from typing import Literal

from mmlongbench.task import Row


class PhotographQuestion(Row):
    """One question about a few photographs among many."""

    question: str
    """The question."""
    answer: Literal["Yes", "No"]
    """The answer."""
    needles: tuple[str, ...]
    """The photographs that the question is about, by their names in the source."""
    negatives: tuple[str, ...] = ()
    """The photographs without the anchor object that the source lists for this question. As distractors, they are taken
    before the photographs of the pool (see `Reader.shows`)."""
    anchor: str = ""
    """The object that identifies a needle. No distractor from the pool shows this object. If this text is empty,
    nothing is taken from the pool."""
