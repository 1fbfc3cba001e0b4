"""The verdicts of judges, and the rules that find them in the text of a reply. These are pure functions.

The public code reads replies with regular expressions; these rules do the same in one pass. The rule for each verdict
has two forms. The literal form (`is_literal`, or `public_…` in the name) reads replies as the public code does; if that
code finds nothing and does not ask again, the judge is not asked again here either. The other form is this project's:
impossible numbers are refused, and the judge is asked again.

Every rule raises `Unusable` if it finds no verdict.
"""

import json
import math
import re
from contextlib import suppress
from typing import Annotated, Literal, TypeAlias, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mmlongbench.models.calls import quoted
from mmlongbench.models.replies import Unusable

GRADES = range(1, 6)
"""The grades of a committee."""
_JSON_MARK = "[JSON]:"
_SCORE_LINE = re.compile(r"\[Score\]:\s*(\d+)\s*points?")
_INTEGER = re.compile(r"\d+")
_GRADE = re.compile(
    r"(-?\d+(?:[.,]\d+)?)"
    r"(?:(?:\s*+(?:points?|stars?))?+\s*+\(?+\s*+(?:/|out of|of)\s*+(?:the\s*+|a possible\s*+)?+(\d+))?"
)
"""Matches a number, and the highest grade if it follows, as in 4/5 or 4 (out of 5)."""
_SCALE = re.compile(
    rf"(?<![\d.,]){GRADES[0]}\s*+(?:\([^()\d]{{1,40}}\)\s*+)?+(?:to|and|through|-|–)\s*+{GRADES[-1]}(?![\d.,]*\d)"
    rf"|(?<![\d.,]){GRADES[0]}\s*+=[^\n]{{1,160}}?\b{GRADES[-1]}\s*+="
    rf"|(?<![\d.,]){GRADES[-1]}[- ]point\b"
)
"""Matches the scale itself, as in "on a scale of 1 to 5", "1 = worst, 5 = best" or "on a 5-point scale"."""
_EMPHASIS = str.maketrans("", "", "*_")
_MAX_DIGITS = 9
"""The maximum digits of an integer; a longer one is outside every scale."""
_MAX_NUMBERS = 1000
"""The maximum number of entries of `supported_key_points` that are kept."""
Count: TypeAlias = Annotated[float, Field(ge=0)]
"""A count; a judge may count in halves."""
_EXTRACTED = Literal["Integer", "Float", "String", "List", "Not answerable", "Fail to answer"]


class Verdict(BaseModel):
    """The base of all verdicts."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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


class Grade(Verdict):
    """How correct an answer is; the reason comes first."""

    reason: str
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


def no_verdict(fault: str, words: str, *, is_final: bool = False) -> Unusable:
    """Return the error for a reply without a verdict: the fault, and the beginning of the reply."""
    return Unusable(fault, quoted(words) if words.strip() else "", is_final=is_final)


def last_object(words: str, *, is_literal: bool) -> dict[str, object]:
    r"""Return the last `{…}` of a reply as an object; if it is no JSON, the object in the ```json fence.

    Each `{…}` ends at the next closing brace, also inside nested braces.

    Raises:
        Unusable: there are no braces, or the braces hold no JSON object. If there are no braces, the literal form does
            not ask again, because the public code leaves such an example out. If the braces hold no JSON object, both
            forms ask again: the public code stops with an error, and asks again in its next run.

    >>> last_object('It has 2. {"a": 1} or {"a": 2}', is_literal=True)
    {'a': 2}
    >>> last_object('```json\n{"a": {"b": 1}}\n```', is_literal=True)
    {'a': {'b': 1}}

    """
    found, start = "", words.find("{")
    while start >= 0 and (end := words.find("}", start)) >= 0:
        found, start = words[start : end + 1], words.find("{", end)
    if not found:
        raise no_verdict("no JSON object", words, is_final=is_literal)
    fenced = re.search(r"```json(.*)```", words, re.DOTALL)
    for text in (found, fenced[1] if fenced else ""):
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            if isinstance(value, dict):
                return value
    raise no_verdict("the last braces hold no JSON object", found)


def fluency_of(words: str, *, is_literal: bool) -> Fluency:
    """Return the fluency: 0 or 1; in the literal form also a number between them."""
    mark = _number(last_object(words, is_literal=is_literal), "fluency", 1.0)
    if not is_literal and mark not in (0, 1):
        raise no_verdict(f"fluency is {mark:g}, expected 0 or 1", words)
    return Fluency(fluency=mark)


def key_points_of(words: str, claims: int, *, is_literal: bool) -> KeyPoints:
    """Return how many key points a summary contains.

    This project's form requires a whole number, at most the number of claims.
    """
    found = last_object(words, is_literal=is_literal)
    count = _number(found, "recall")
    if not is_literal and (count > claims or not count.is_integer()):
        raise no_verdict(f"recall is {count:g}, expected a whole number up to {claims}", words)
    listed = found.get("supported_key_points")
    entries = listed if isinstance(listed, list) else []
    numbers = [entry for entry in entries if isinstance(entry, int) and not isinstance(entry, bool)]
    kept = tuple(number for number in numbers if abs(number) < 10**_MAX_DIGITS)[:_MAX_NUMBERS]
    return KeyPoints(recall=count, supported_key_points=kept, reason=_reason(words))


def sentences_of(words: str, *, is_literal: bool) -> Sentences:
    """Return how many sentences are supported, and how many there are, as the judge counts them."""
    found = last_object(words, is_literal=is_literal)
    supported, counted = _number(found, "precision"), _number(found, "sentence_count")
    if not is_literal and (supported > counted or not supported.is_integer() or not counted.is_integer()):
        fault = f"precision is {supported:g} of {counted:g} sentences, expected whole numbers, the first not above the"
        raise no_verdict(f"{fault} second", words)
    return Sentences(precision=supported, sentence_count=counted, reason=_reason(words))


def public_mark_of(words: str) -> Mark:
    """Return the score of a short answer as the public code reads it.

    The score is in the first line such as "[Score]: 1 point". Without such a line, it is in the JSON object; without
    such an object, it is 0.
    """
    line = _SCORE_LINE.search(words)
    found = _marked_object(words, ("answer_score",))
    score: object = _whole(line[1]) if line else found.get("answer_score", 0)
    if not _is_number(score) or not 0 <= score <= 1:
        raise no_verdict(f"the score is {quoted(str(score))}, the scale goes from 0 to 1", words, is_final=True)
    has_verdict = line is not None or "answer_score" in found
    return Mark(score=score, has_verdict=has_verdict, reason=_reason(words))


def public_counts_of(words: str) -> ListCounts:
    """Return the counts of a list as the public code reads them; if one is missing, both are 0."""
    names = ("student_answer_count", "covered_count")
    found = _marked_object(words, names)
    if not all(name in found for name in names):
        return ListCounts(student_answer_count=0, covered_count=0, has_verdict=False, reason=_reason(words))
    given, covered = (found[name] for name in names)
    if not _is_number(given) or not _is_number(covered):
        fault = f"the counts are {quoted(f'{given!r} and {covered!r}')}, expected numbers"
        raise no_verdict(fault, words, is_final=True)
    if covered > 0 and given <= 0:
        fault = f"{covered:g} items are covered by an answer of {given:g}, and the public code divides by that"
        raise no_verdict(fault, words, is_final=True)
    return ListCounts(student_answer_count=max(given, 0), covered_count=max(covered, 0), reason=_reason(words))


def mark_of(words: str) -> Mark:
    """Return the score of a short answer from the last JSON object; the last "[Score]: …", if any, must agree."""
    lines = _SCORE_LINE.findall(words)
    score = _number(last_object(words, is_literal=False), "answer_score", 1.0)
    if score not in (0, 1):
        raise no_verdict(f"answer_score is {score:g}, expected 0 or 1", words)
    if lines and _whole(lines[-1]) != score:
        raise no_verdict("the last score line and answer_score differ", words)
    return Mark(score=score, reason=_reason(words))


def counts_of(words: str, items: int) -> ListCounts:
    """Return the counts of a list: whole numbers, and at most as many covered items as the reference has."""
    found = last_object(words, is_literal=False)
    given, covered = _number(found, "student_answer_count"), _number(found, "covered_count", float(items))
    if not given.is_integer() or not covered.is_integer():
        raise no_verdict(f"the counts are {given:g} and {covered:g}, expected whole numbers", words)
    if covered and not given:
        raise no_verdict("covered_count is above 0, student_answer_count is 0", words)
    return ListCounts(student_answer_count=given, covered_count=covered, reason=_reason(words))


def last_grade(words: str, *, is_literal: bool) -> Grade:
    """Return the last number of a reply, if it is a grade.

    In the literal form this is the last integer, so both 4.5 and 4/5 give 5. In the other form a number that is not
    whole is not a grade; 4/5 and "4 on a scale of 1 to 5" both give 4.

    Raises:
        Unusable: there is no number, or the last one is no grade. The public code counts a missing number as -1, and
            uses any other number unchanged. Here both replies have no grade; in the literal form the judge is not asked
            again.

    >>> last_grade("I give it a 4.", is_literal=True).score
    4
    >>> last_grade("4/5", is_literal=True).score, last_grade("4/5", is_literal=False).score
    (5, 4)

    """
    grade = None
    if is_literal:
        if numbers := _INTEGER.findall(words):
            grade = _whole(numbers[-1])
    elif scores := _GRADE.findall(_SCALE.sub(" ", words.translate(_EMPHASIS))):  # without numbers that name the scale
        score, highest = scores[-1]
        is_grade = score.isdecimal() and highest in ("", str(GRADES[-1]))  # not -1, 4.5 or 8/10
        grade = _whole(score) if is_grade else 0
    if grade is None:
        raise no_verdict("no grade", words, is_final=is_literal)
    if grade not in GRADES:
        raise no_verdict(f"the last number is no grade from {GRADES[0]} to {GRADES[-1]}", words, is_final=is_literal)
    return Grade(reason="", score=grade)


def _marked_object(words: str, names: tuple[str, ...]) -> dict[str, object]:
    """Return the JSON object after the first `[JSON]:`. If none can be read there, return for each of the names the
    number that follows the name in quotes, if there is one.
    """
    mark = words.find(_JSON_MARK)
    start = words.find("{", mark) if mark >= 0 else -1
    if start >= 0:
        try:
            found: dict[str, object] = json.JSONDecoder().raw_decode(words, start)[0]
        except (ValueError, RecursionError):
            pass
        else:
            return found
    numbers = {name: re.search(rf'"{name}"\s*:\s*(-?\d+(?:\.\d+)?)', words) for name in names}
    return {name: float(number[1]) for name, number in numbers.items() if number}


def _number(found: dict[str, object], name: str, maximum: float = math.inf) -> float:
    """Return the number that a reply has under a name, from 0 to a maximum; strings and booleans are refused."""
    if name not in found:
        raise no_verdict(f"{name} is missing", json.dumps(found))
    value = found[name]
    if not _is_number(value):
        raise no_verdict(f"{name} is no number", json.dumps(found))
    if not 0 <= value <= maximum:
        bound = "0 or more" if maximum == math.inf else f"0 to {maximum:g}"
        raise no_verdict(f"{name} is {value:g}, expected {bound}", json.dumps(found))
    return float(value)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 10**_MAX_DIGITS


def _whole(digits: str) -> int:
    """Return an integer; one with more than `_MAX_DIGITS` digits is replaced by a number that is above every scale."""
    return int(digits) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS


def _reason(words: str) -> str:
    """Return a judge's text in one line of at most 300 characters."""
    shown = " ".join(words[:2000].split())
    return shown if len(shown) <= 300 else f"{shown[:299]}…"
