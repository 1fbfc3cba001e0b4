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

    def __post_init__(self) -> None:
        """Check that the right answer is offered, and that all answers are of one kind.

        Raises:
            ValueError: a record has no such answer, or offers texts beside images.

        """
        if not isinstance(self.right, int) or not 0 <= self.right < len(self.offered):
            raise ValueError(f"the right answer is {self.right!r}, expected a place from 0 to {len(self.offered) - 1}")
        if len({isinstance(each, str) for each in self.offered}) > 1:
            raise ValueError("offers texts beside images, expected one kind")

    @property
    def chance(self) -> float:
        """The probability that a guess is right."""
        return 1 / len(self.offered)
