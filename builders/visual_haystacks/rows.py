"""The row that every reader of photographs gives to the builder."""

from typing import Literal

from mmlongbench import Row


class PhotographQuestion(Row):
    """One question about a few photographs among many."""

    question: str
    answer: Literal["Yes", "No"]
    needles: tuple[str, ...]
    """The photographs that the question is about, as the source names them."""
    negatives: tuple[str, ...] = ()
    """The source's own photographs without the anchor object, taken before those of the pool."""
    anchor: str = ""
    """The object that tells a needle: no distractor from the pool shows it; empty: nothing is taken from the pool."""
