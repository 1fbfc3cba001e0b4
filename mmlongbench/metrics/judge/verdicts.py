"""What judges answer: the forms, and how one is found in a judge's words. Strict: no value is turned into another type.

There may be prose before it or a code fence around it. The last object counts, since what stands before it may be
quoted; if that is no verdict, or a broken one stands behind or around it, there is none, whatever is quoted.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

MAX_CHARACTERS = 200_000
"""Of an answer; one that is longer is not looked at."""
_MAX_BROKEN = 1000
"""Braces that open no object."""
Count: TypeAlias = Annotated[float, Field(ge=0)]
"""A judge may count in halves."""
_EXTRACTED = Literal["Integer", "Float", "String", "List", "Not answerable", "Fail to answer"]


class Verdict(BaseModel):
    """What every verdict has."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Reasoned(Verdict):
    """A verdict that gives its reason first."""

    reason: str


class Mark(Verdict):
    """How right a short answer is."""

    score: float = Field(ge=0, le=1)
    has_verdict: bool = True
    """Whether the reply says so; where it does not, the public code counts 0."""
    reason: str = ""


class ListCounts(Verdict):
    """How much of a list is there."""

    student_answer_count: Count
    """Items in the answer."""
    covered_count: Count
    """Items of the reference that are in the answer."""
    has_verdict: bool = True
    """See `Mark`."""
    reason: str = ""


class Grade(Reasoned):
    """How correct an answer is."""

    score: int = Field(ge=1, le=5)


class Fluency(Verdict):
    """Whether a text can be read."""

    fluency: float = Field(ge=0, le=1)


class KeyPoints(Verdict):
    """How many key points a summary has."""

    recall: Count
    supported_key_points: tuple[int, ...] = ()
    """Their numbers, where the reply gives them; the score does not depend on them."""
    reason: str = ""


class Sentences(Verdict):
    """How many sentences of a summary another one supports."""

    precision: Count
    sentence_count: Count
    """As the judge counts them."""
    reason: str = ""


class Claims(Verdict):
    """A text taken apart."""

    claims: tuple[str, ...] = Field(min_length=1, max_length=500)

    @field_validator("claims")
    @classmethod
    def _say_something(cls, claims: tuple[str, ...]) -> tuple[str, ...]:
        if not all(claim.strip() for claim in claims):
            raise ValueError("a claim is empty")
        return tuple(" ".join(claim.split()) for claim in claims)


class Extract(Verdict):
    """The answer that a response comes to."""

    format: _EXTRACTED
    answer: tuple[str, ...]
    """The elements of a List, else one text; none where there is no answer."""

    @model_validator(mode="after")
    def _fits(self) -> "Extract":
        if self.format in ("Integer", "Float", "String") and len(self.answer) != 1:
            raise ValueError(f"answer has {len(self.answer)} texts, a {self.format} is one")
        return self

    @property
    def text(self) -> str:
        """As rules score it: a List is JSON."""
        if self.format in ("Not answerable", "Fail to answer"):
            return self.format
        return json.dumps(self.answer, ensure_ascii=False) if self.format == "List" else self.answer[0]


V = TypeVar("V", bound=Verdict)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Words that hold no verdict."""

    fault: str
    """What is wrong, in our words: a judge is told so."""
    words: str = ""
    """Theirs, the beginning."""
    is_final: bool = False
    """Whether the call is not made again, since the public code does not ask again either."""

    def __str__(self) -> str:
        return f"{self.fault} in {self.words}" if self.words else self.fault


class NoVerdict(Exception):
    """A rule found no verdict in the words of a judge."""

    def __init__(self, fault: str, words: str, *, is_final: bool = False) -> None:
        """Keep what is wrong, in this project's words, and the beginning of the judge's."""
        super().__init__(fault)
        self.unusable = Unusable(fault, quoted(words) if words.strip() else "", is_final)


def shape(verdict: type[Verdict]) -> dict[str, Any]:
    """The JSON schema of a verdict, without its descriptions: a docstring is no part of a question."""
    schema = verdict.model_json_schema()
    schema.pop("description", None)
    return schema


def read_verdict(words: str, verdict: type[V]) -> V | Unusable:
    """The verdict in a judge's words, the last if there are several."""
    if len(words) > MAX_CHARACTERS:
        return Unusable(f"an answer of {len(words):,} characters, {MAX_CHARACTERS:,} are read")
    if not words.strip():
        return Unusable("an empty answer")
    value = _last_object(words)
    if isinstance(value, str):
        return Unusable(value, quoted(words))
    try:
        said = json.dumps(value)
    except RecursionError:  # to write an object takes a little more depth than to read it
        return Unusable("a JSON object that is nested too deeply", quoted(words))
    try:
        return verdict.model_validate_json(said)
    except ValidationError as error:
        first = error.errors()[0]
        is_ours = first["type"] != "extra_forbidden"  # else the place is a name that the judge made up
        place = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] and is_ours else ""
        return Unusable(f"{place}{first['msg']}", quoted(said))


def restored_verdict(kept: str, verdict: type[V]) -> V | Unusable:
    """Return a verdict that was written as JSON, or why it is none."""
    try:
        return verdict.model_validate_json(kept)
    except ValidationError as error:
        return Unusable(error.errors()[0]["msg"])


def _last_object(words: str) -> dict[str, Any] | str:
    """The last object that stands in words, none inside another; or why there is none to rely on.

    >>> _last_object('Not {"a": 1}, but {"a": 2}.'), _last_object('{"a": 1} {"a": "cut o')
    ({'a': 2}, 'braces behind or around the last JSON object')
    """
    decoder, found, end = json.JSONDecoder(), None, 0
    start, broken, unclosed = words.find("{"), 0, 0
    while start >= 0:
        try:
            found, after = decoder.raw_decode(words, start)
        except (ValueError, RecursionError):
            broken, after = broken + 1, start + 1
        else:
            unclosed += words.count("{", end, start) - words.count("}", end, start)
            end = after
        if broken > _MAX_BROKEN:
            return f"more than {_MAX_BROKEN:,} braces that open no JSON object"
        start = words.find("{", after)
    if found is None:
        return "no JSON object"
    is_last = "{" not in words[end:] and "}" not in words[end:]
    return found if is_last and not unclosed else "braces behind or around the last JSON object"


def quoted(words: str) -> str:
    """Return the beginning of a judge's words, in one line."""
    shown = " ".join(words[:400].split())
    return repr(shown if len(shown) <= 80 else f"{shown[:79]}…")
