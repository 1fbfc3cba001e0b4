"""Answers: their normal form, and whether two answers agree. One function decides this for every probe."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose

from mmlongbench.answers import (
    ANSWER_FORMATS,
    NOT_ANSWERABLE,
    AnswerFormat,
    anls,
    cleaned,
    flat_list,
    is_exact,
    is_not_answerable,
    number_format,
)

MAX_WORDS = 5
"""The maximum number of words of a text, or of an element of a list; more need a model to score."""
MAX_CHARACTERS = 80
"""The maximum number of characters of a text, or of an element of a list: five long words."""
_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_NUMBER_AND_UNIT = re.compile(r"[^\d.+-]*([+-]?\d[\d,]*(?:\.\d+)?)\s*(.*)")


@dataclass(frozen=True, slots=True)
class Normal:
    """An answer whose format and texts agree."""

    format: AnswerFormat
    values: tuple[str, ...]
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Faulty:
    """Why an answer cannot be used."""

    reason: str
    detail: str


def words(text: str) -> str:
    """Return the words of a text in lower case, with a blank before and after each, and numbers without commas.

    >>> words("Total: 3,927 Barge-loads")
    ' total 3927 barge loads '
    """
    plain = _COMMA.sub("", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(_WORDS.findall(plain))} "


def normal(values: Sequence[str], declared: str) -> Normal | Faulty:
    """Return an answer in its normal form; a repair has a name, and what cannot be repaired is a fault.

    >>> normal(["21%"], "Integer")
    Normal(format='Float', values=('21%',), repairs=('integer-to-float',))
    >>> normal(["['red', 'blue']"], "String").values, normal([], "List").reason
    (('red', 'blue'), 'empty-answer')
    """
    kind = ANSWER_FORMATS.get(declared.strip().capitalize())
    if kind is None:
        return Faulty("unknown-answer-format", declared[:40])
    texts = tuple(" ".join(text.split()) for text in values)
    if len(texts) == 1 and (inner := flat_list(texts[0])) is not None:
        texts = tuple(" ".join(text.split()) for text in inner)
        kind, repairs = "List", () if kind == "List" else (f"{kind.lower()}-to-list",)
        return _of_list(texts, repairs)
    if len(texts) > 1 or kind == "List":
        return _of_list(texts, () if kind == "List" else (f"{kind.lower()}-to-list",))
    return _of_text(texts[0] if texts else "", kind)


def _of_list(texts: tuple[str, ...], repairs: tuple[str, ...]) -> Normal | Faulty:
    if not texts or not all(texts):
        return Faulty("empty-answer", "a list without elements, or with an empty one")
    return _of_length(Normal("List", texts, repairs))


def _of_text(text: str, kind: AnswerFormat) -> Normal | Faulty:
    if is_not_answerable(text):
        return Normal("None", (NOT_ANSWERABLE,), () if kind == "None" else (f"{kind.lower()}-to-none",))
    if not text:
        return Faulty("empty-answer", "no text")
    if kind == "None":
        return Faulty("answer-of-format-none", text[:80])
    found = number_format(text, "$£€")
    if kind == "Integer" and found != "Integer":
        return _of_length(Normal(found, (text,), (f"integer-to-{found.lower()}",)))
    if kind == "Float" and found == "String":
        return _of_length(Normal("String", (text,), ("float-to-string",)))
    return _of_length(Normal(kind, (text,)))


def _of_length(answer: Normal) -> Normal | Faulty:
    longest = max(answer.values, key=lambda value: len(value.split()))
    if len(longest.split()) > MAX_WORDS:
        return Faulty("long-form-answer", f"{len(longest.split())} words: {longest[:80]}")
    longest = max(answer.values, key=len)
    if len(longest) > MAX_CHARACTERS:
        return Faulty("long-form-answer", f"{len(longest)} characters: {longest[:80]}")
    return answer


def agrees(gold: Sequence[str], said: Sequence[str], format: AnswerFormat) -> bool:
    """Return whether an answer is the gold answer.

    >>> agrees(["1,066"], ["1066 ships"], "Integer"), agrees(["12.5%"], ["0.125"], "Float")
    (True, True)
    >>> agrees(["Route 61"], ["Route 66"], "String"), agrees(["a", "b"], ["b", "a"], "List")
    (False, True)
    """
    if not said or not all(text.strip() for text in said):
        return False
    if format == "List":
        return len(gold) == len(said) and _same_elements(gold, said)
    if len(said) != 1:
        return False
    if format == "Integer":
        return _same_number(gold[0], said[0], is_float=False)
    if format == "Float":
        return _same_number(gold[0], said[0], is_float=True)
    return _same_text(gold[0], said[0])


def _same_elements(gold: Sequence[str], said: Sequence[str]) -> bool:
    """Return whether two lists have the same elements in any order."""
    plain_gold, plain_said = Counter(map(words, gold)), Counter(map(words, said))
    if plain_gold == plain_said:
        return True
    left = list(said)
    for element in gold:
        match = next((other for other in left if _same_text(element, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _same_number(gold: str, said: str, *, is_float: bool) -> bool:
    one, other = _number(gold), _number(said)
    if one is None or other is None:
        return words(gold) == words(said)
    if not is_float:
        return one == other
    factors = (1, 100, 0.01) if ("%" in gold) != ("%" in said) else (1,)
    return any(isclose(one * factor, other, rel_tol=0.01, abs_tol=1e-9) for factor in factors)


def _number(text: str) -> float | None:
    found = _NUMBER_AND_UNIT.fullmatch(text.strip())
    try:
        return float(found[1].replace(",", "")) if found else None
    except ValueError:
        return None


def _same_text(gold: str, said: str) -> bool:
    """Return whether two texts agree: by similarity, but digits must be the same."""
    if words(gold) == words(said):
        return True
    if Counter(_DIGITS.findall(_COMMA.sub("", gold))) != Counter(_DIGITS.findall(_COMMA.sub("", said))):
        return False
    plain = cleaned(gold)
    return not is_exact(plain) and anls(plain, cleaned(said)) > 0


def same_answer(one: Sequence[str], other: Sequence[str], format: AnswerFormat) -> bool:
    """Return whether two answers that are not gold agree with each other."""
    return agrees(one, other, format) or agrees(other, one, format)
