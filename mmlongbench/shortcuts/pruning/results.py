"""What pruning decides, as typed values: drops of questions, and what they do to each finding."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

PruneVerdict: TypeAlias = Literal["mended", "reduced", "not mended"]
"""`mended`: without the drops, less than 5 points are left, by both learners, and nothing certain. `reduced`: less is
left than before, but more than this. `not mended`: drops do not help, and none is made for this finding."""


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Drop(_Value):
    """A question that is left out."""

    id: str
    """The id of the question."""
    kind: str
    """The finding that it is dropped for: the one that the drop reduces most."""
    reason: str
    """Why, in words, with the strength of the finding; the erratum has it as its source."""


class Effect(_Value):
    """What drops do to one finding. All numbers are excesses above chance, as shares."""

    kind: str
    """The kind of the finding."""
    before: float
    """The excess of all questions, by the learner of the probe."""
    after: float | None
    """The excess of the questions that are left; None if no drops were tried."""
    other_before: float | None
    """The excess of all questions by the other learner; None if the share is counted."""
    other_after: float | None
    """The excess of the questions that are left by the other learner; None if the share is counted or no drops were
    tried."""
    drops: int
    """How many questions are dropped for this finding."""
    verdict: PruneVerdict
    """Whether the drops mend it."""
    advice: str
    """What would mend it; empty if the drops do."""


class Pruned(_Value):
    """The drops of one dataset, and the name of the set that is left."""

    dataset: str
    """The name of the dataset."""
    name: str
    """The name of the dataset without the dropped questions."""
    drawn_as: str
    """The name that draws use as a key, so that the questions that are left keep their contexts."""
    sample: int | None
    """The size of the sample without the dropped questions; None if the dataset is not a sample."""
    questions: int
    """The number of its questions."""
    drops: tuple[Drop, ...]
    """The questions to drop, in the order in which they were chosen."""
    effects: tuple[Effect, ...]
    """What this does to each finding that is a leak; empty if questions are dropped because models solve them."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know, such as a leak that only the questions that are left have."""
