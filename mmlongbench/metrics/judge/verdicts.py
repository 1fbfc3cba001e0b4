"""The verdicts of judges, checked strictly."""

import json
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mmlongbench.models.calls import Unusable
from mmlongbench.models.reading import quoted

Count: TypeAlias = Annotated[float, Field(ge=0)]
"""A count; a judge may count in halves."""
_EXTRACTED = Literal["Integer", "Float", "String", "List", "Not answerable", "Fail to answer"]


class Verdict(BaseModel):
    """The base of all verdicts."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Reasoned(Verdict):
    """A verdict that gives its reason first."""

    reason: str


class Mark(Verdict):
    """Whether a short answer is right."""

    score: float = Field(ge=0, le=1)
    has_verdict: bool = True
    """Whether the reply has a verdict; if not, the public code counts 0."""
    reason: str = ""


class ListCounts(Verdict):
    """How much of a list the answer contains."""

    student_answer_count: Count
    """The number of items in the answer."""
    covered_count: Count
    """The number of items of the reference that the answer contains."""
    has_verdict: bool = True
    """Whether the reply has a verdict (see `Mark`)."""
    reason: str = ""


class Grade(Reasoned):
    """How correct an answer is."""

    score: int = Field(ge=1, le=5)


class Fluency(Verdict):
    """Whether a text is readable."""

    fluency: float = Field(ge=0, le=1)


class KeyPoints(Verdict):
    """How many key points a summary contains."""

    recall: Count
    supported_key_points: tuple[int, ...] = ()
    """The numbers of these key points, if the reply gives them; the score does not depend on them."""
    reason: str = ""


class Sentences(Verdict):
    """How many sentences of a summary another summary supports."""

    precision: Count
    sentence_count: Count
    """The number of sentences, as the judge counts them."""
    reason: str = ""


class Claims(Verdict):
    """The claims of a text."""

    claims: tuple[str, ...] = Field(min_length=1, max_length=500)

    @field_validator("claims")
    @classmethod
    def _say_something(cls, claims: tuple[str, ...]) -> tuple[str, ...]:
        if not all(claim.strip() for claim in claims):
            raise ValueError("a claim is empty")
        return tuple(" ".join(claim.split()) for claim in claims)


class Extract(Verdict):
    """The final answer of a response."""

    format: _EXTRACTED
    answer: tuple[str, ...]
    """The elements of a List; one text for any other format; empty if there is no answer."""

    @model_validator(mode="after")
    def _fits(self) -> "Extract":
        if self.format in ("Integer", "Float", "String") and len(self.answer) != 1:
            raise ValueError(f"answer has {len(self.answer)} texts, a {self.format} is one")
        return self

    @property
    def text(self) -> str:
        """Return the answer in the form that the rules score: a List is JSON."""
        if self.format in ("Not answerable", "Fail to answer"):
            return self.format
        return json.dumps(self.answer, ensure_ascii=False) if self.format == "List" else self.answer[0]


V = TypeVar("V", bound=Verdict)


class NoVerdict(Exception):
    """A rule found no verdict in a judge's reply."""

    def __init__(self, fault: str, words: str, *, is_final: bool = False) -> None:
        """Keep the fault in this project's words, and the beginning of the judge's reply."""
        super().__init__(fault)
        self.unusable = Unusable(fault, quoted(words) if words.strip() else "", is_final)
