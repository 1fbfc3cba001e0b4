"""Answers of written questions: their words, their normal form, and whether two agree, as every probe decides it."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import TypeAlias

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
    single_blanks,
)

MAX_WORDS = 5  # the maximum number of words of a text, or of an element of a list; more need a model to score
MAX_CHARACTERS = 80  # the maximum number of characters of a text, or of an element of a list: five long words
GRAMMAR = (  # words that are left out where questions are compared
    "a an and are as at be by do does did for from had has have how in is it its many much of on or that the their "
    "there this to was were what when where which who whose why with"
)
_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_NUMBER_AND_UNIT = re.compile(r"[^\d.+-]*([+-]?\d[\d,]*(?:\.\d+)?)\s*(.*)")
Fault: TypeAlias = tuple[str, str]  # why an answer cannot be used: the reason, and what was found


@dataclass(frozen=True, slots=True)
class Normal:
    """An answer whose format and texts agree."""

    format: AnswerFormat
    values: tuple[str, ...]
    repairs: tuple[str, ...] = ()


def words(text: str) -> str:
    """Return the words of a text in lower case, with a blank before and after each, and numbers without commas.

    >>> words("Total: 3,927 Barge-loads")
    ' total 3927 barge loads '
    """
    plain = _COMMA.sub("", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(_WORDS.findall(plain))} "


def content_words(question: str) -> frozenset[str]:
    """Return the words of a question that are not grammar.

    >>> sorted(content_words("Who is the keeper of Quarl Bay?"))
    ['bay', 'keeper', 'quarl']
    """
    return frozenset(words(question).split()) - {*GRAMMAR.split()}


def normal(values: Sequence[str], declared: str) -> Normal | Fault:
    """Return an answer in its normal form; a repair has a name, and what cannot be repaired is a fault.

    >>> normal(["['red', 'blue']"], "String").values, normal([], "List")[0]
    (('red', 'blue'), 'empty-answer')
    """
    kind = ANSWER_FORMATS.get(declared.strip().capitalize())
    if kind is None:
        return "unknown-answer-format", declared[:40]
    texts = tuple(map(single_blanks, values))
    inner = flat_list(texts[0]) if len(texts) == 1 else None
    if inner is not None or len(texts) > 1 or kind == "List":
        texts = tuple(map(single_blanks, inner)) if inner is not None else texts
        if not texts or not all(texts):
            return "empty-answer", "a list without elements, or with an empty one"
        return _of_length(Normal("List", texts, () if kind == "List" else (f"{kind.lower()}-to-list",)))
    text = texts[0] if texts else ""
    if is_not_answerable(text):
        return Normal("None", (NOT_ANSWERABLE,), () if kind == "None" else (f"{kind.lower()}-to-none",))
    if not text:
        return "empty-answer", "no text"
    if kind == "None":
        return "answer-of-format-none", text[:80]
    actual = number_format(text, "$£€")
    if (kind == "Integer" and actual != "Integer") or (kind == "Float" and actual == "String"):
        return _of_length(Normal(actual, (text,), (f"{kind.lower()}-to-{actual.lower()}",)))
    return _of_length(Normal(kind, (text,)))


def _of_length(answer: Normal) -> Normal | Fault:
    longest = max(answer.values, key=lambda value: len(value.split()))
    if len(longest.split()) > MAX_WORDS:
        return "long-form-answer", f"{len(longest.split())} words: {longest[:80]}"
    longest = max(answer.values, key=len)
    if len(longest) > MAX_CHARACTERS:
        return "long-form-answer", f"{len(longest)} characters: {longest[:80]}"
    return answer


def agrees(gold: Sequence[str], said: Sequence[str], format: AnswerFormat) -> bool:
    """Return whether an answer is the right one: `1066 ships` is 1,066, 0.125 is 12.5%, Route 66 is not Route 61."""
    if not said or not all(text.strip() for text in said):
        return False
    if format != "List" and len(said) != 1:
        return False
    if format in ("Integer", "Float"):
        wanted, given = _number(gold[0]), _number(said[0])
        if wanted is None or given is None:
            return words(gold[0]) == words(said[0])
        if format == "Integer":
            return wanted == given
        factors = (1, 100, 0.01) if ("%" in gold[0]) != ("%" in said[0]) else (1,)
        return any(isclose(wanted * factor, given, rel_tol=0.01, abs_tol=1e-9) for factor in factors)
    if format != "List":
        return _is_same_text(gold[0], said[0])
    if Counter(map(words, gold)) == Counter(map(words, said)):
        return True
    left = list(said)
    for element in gold:
        match = next((other for other in left if _is_same_text(element, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def same_answer(one: Sequence[str], other: Sequence[str], format: AnswerFormat) -> bool:
    """Return whether two answers that are not gold agree with each other."""
    return agrees(one, other, format) or agrees(other, one, format)


def _number(text: str) -> float | None:
    found = _NUMBER_AND_UNIT.fullmatch(text.strip())
    try:
        return float(found[1].replace(",", "")) if found else None
    except ValueError:
        return None


def _is_same_text(gold: str, said: str) -> bool:
    if words(gold) == words(said):
        return True
    if Counter(_DIGITS.findall(_COMMA.sub("", gold))) != Counter(_DIGITS.findall(_COMMA.sub("", said))):
        return False
    plain = cleaned(gold)
    return not is_exact(plain) and anls(plain, cleaned(said)) > 0
