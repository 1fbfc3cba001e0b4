"""What the audit of contexts finds, as typed values: rows of a table, and the questions that are answered blind."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

FULL = ""
"""The name of the released prompt among contexts."""
BLIND = "none"
"""The context in which a model sees the question alone."""
NeedVerdict: TypeAlias = Literal["needs", "does not need", "undecided"]
"""`needs`: the score falls by more than 5 points, with 95 % confidence. `does not need`: it falls by less, with the
same confidence. `undecided`: there are too few questions to say either, or the model does not solve them."""
Part: TypeAlias = Literal["context", "images", "order"]
"""What a question may need."""


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ContextMean(_Value):
    """The mean score of a model in one context."""

    context: str
    """The context; empty for the released prompt."""
    mean: float
    """The mean, from 0 to 1, over the examples that have a score in this context."""
    low: float | None
    """The lower end of the 95 % interval; None if there are fewer than 5 clusters."""
    high: float | None
    """The upper end of this interval."""
    questions: int
    """The number of questions that have a score in this context."""


class Need(_Value):
    """Whether questions need the context, its images or its order."""

    part: Part
    """What the questions may need."""
    verdict: NeedVerdict
    """Whether they need it."""
    reason: str
    """Why nothing is decided; empty if it is."""
    smallest: float | None
    """The smallest fall of the score that these questions would show with a probability of 0.8; None if even a fall
    from 1 to 0 would not be shown."""
    needed: int | None
    """About how many questions would decide, if the fall is as found; None if it is decided, or if more questions do
    not help, since the model does not solve them."""


class Difference(_Value):
    """How much a model loses in another context, over the examples that have a score in both."""

    context: str
    """The other context, such as `none`."""
    full: float
    """The mean score of the released prompt."""
    other: float
    """The mean score in the other context."""
    mean: float
    """The mean of the differences full − other."""
    low: float | None
    """The lower end of the 95 % interval of the difference; None if there are fewer than 5 clusters."""
    high: float | None
    """The upper end of this interval."""
    examples: int
    """The number of examples that have a score in both contexts; a question with several placements or lengths has
    several examples."""
    questions: int
    """The number of these questions."""
    clusters: int
    """The number of documents, entities or needle pictures that these questions are about."""
    chance: float
    """The mean score of guesses among the answers that these questions offer; a question that offers none counts 0."""
    survival: float | None
    """(other − chance) / (full − chance): the share of the model's ability that is left; None if the score of the
    released prompt is not above chance with 95 % confidence."""
    survival_low: float | None
    """The lower end of the 95 % interval of `survival`."""
    survival_high: float | None
    """The upper end of this interval."""
    need: Need | None
    """What the difference says about the questions; None for contexts that no verdict is about."""


class ContextRow(_Value):
    """The scores of a model on a group of questions, in each context."""

    model: str
    """The name of the model."""
    dataset: str
    """The name of the dataset."""
    length: int | None
    """The length in tokens; None: all lengths together."""
    facet: str
    """The facet that the group is made by; empty: all questions."""
    value: str
    """The value of the facet; empty: all questions."""
    chance: float
    """The mean score of guesses among the offered answers, over all examples of the group that the model answered."""
    means: tuple[ContextMean, ...]
    """The mean of each context that the model was given; the released prompt is first."""
    differences: tuple[Difference, ...]
    """The differences between the released prompt and each other context; empty without the released prompt."""


class BlindQuestion(_Value):
    """A question that models answer without its context, more often than luck explains."""

    dataset: str
    """The name of the dataset."""
    id: str
    """The id of the question."""
    right: int
    """The number of answers without context that are right at every length and placement."""
    answers: int
    """The number of answers without context: models times samples."""
    independent: int
    """How many of these answers count: samples of a model that repeat its wrong answers say little new."""
    models: tuple[str, ...]
    """The models with a right answer."""
    chance: float
    """The probability that a guess is right: one divided by the number of offered answers or, if it is more, the share
    of the questions of the dataset that have the same answer."""
    luck: float
    """The probability that guesses are right as often among the independent answers; at most 0.01."""


class BlindCounts(_Value):
    """How many questions of a dataset are answered without the context."""

    dataset: str
    """The name of the dataset."""
    questions: int
    """The number of questions that were asked without their context."""
    right: int
    """The questions that every answer without context has right."""
    binary: int
    """The questions that offer at most two answers; a single one of them is never listed."""
    listed: int
    """The questions that are listed for pruning."""
    by_luck: float
    """How many would be listed on average if every answer were a guess."""


class ContextAudit(_Value):
    """What models answer in several contexts of a release."""

    models: tuple[str, ...]
    """The models, sorted by name."""
    contexts: tuple[str, ...]
    """The contexts, the released prompt (an empty name) first."""
    rows: tuple[ContextRow, ...]
    """A row for each dataset, model and group of questions."""
    blind: tuple[BlindQuestion, ...]
    """The questions to prune, by dataset; those with the least luck first."""
    blind_counts: tuple[BlindCounts, ...]
    """How many questions of each dataset are answered without the context."""
    notes: tuple[str, ...]
    """Sentences that a reader must know, such as predictions that were left out."""
