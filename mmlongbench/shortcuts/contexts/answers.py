"""The scored answers of models to the examples of a release, by context. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Given: TypeAlias = tuple[str, str]
"""A model, and the context that it was given."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What a guess can reach at one question."""

    options: int
    """The number of answers that the question offers; 0 if the answer is free."""
    chance: float
    """The probability that a guess among them is right; 0 if the answer is free."""
    gold: str
    """The answer in one form, so that questions with equal answers are found."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One example of a release, with the scores of all models in all contexts."""

    dataset: str
    length: int
    """The length of the file, in tokens."""
    id: str
    """The id of the question, the same at every length and placement."""
    cluster: str
    """The id of the thing that the question is about; empty if it has none."""
    facets: Mapping[str, tuple[str, ...]]
    """The groups of the example, by facet."""
    guess: Guess
    scores: Mapping[Given, Mapping[int, float]]
    """The score of each sample, by the number of the sample."""
    blind: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """A hash of each answer without context, by model and sample, if the model has several samples."""

    def mean(self, given: Given) -> float | None:
        """Return the mean over the samples; None if there is no score."""
        found = self.scores.get(given)
        return sum(found.values()) / len(found) if found else None


@dataclass(frozen=True, slots=True)
class Answers:
    """All examples that a model answered in some context."""

    examples: tuple[Asked, ...]
    """The examples in the order of the files."""
    given: tuple[Given, ...]
    """The models and contexts, sorted by model; the released prompt comes first."""
    notes: tuple[str, ...] = field(default=())
    """Sentences about predictions that were left out."""
