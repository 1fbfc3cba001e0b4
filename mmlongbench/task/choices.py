"""The answers that a question offers to choose from, as its builder says. Values only."""

from dataclasses import dataclass

from mmlongbench.prompt import Part


@dataclass(frozen=True, slots=True)
class Choices:
    """The answers that a question offers, and which of them is right."""

    offered: tuple[Part, ...]
    """The answers in the order in which the question shows them, as texts or images; for a question that is answered
    by yes or no, these two words in an order that is the same for all questions."""
    right: int
    """The place of the right answer among them, from 0."""

    @property
    def chance(self) -> float:
        """The probability that a guess is right."""
        return 1 / len(self.offered)
