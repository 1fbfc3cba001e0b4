"""Scores answers that are names, choices (yes or no, a letter, a label), counts or summaries: the functions of the
public code. Every regular expression here looks at each character a bounded number of times, whatever the text.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Protocol

from mmlongbench.answers import flattened, missing, normalised, single_blanks, without_articles

_MAX_DIGITS = 4300
"""A number with more digits than this is not read, because it is not an answer."""
_LAST_YES_OR_NO = re.compile(r".*\b(yes|no)\b", re.DOTALL)
"""Finds the last yes or no: `.*` takes as much text as it can, so one pass is enough."""
_LAST_LETTER = re.compile(r".*\b([A-J])\b", re.DOTALL)
_LAST_NUMBER = re.compile(r".*\b(\d+)\b", re.DOTALL)
_LETTER_SAID = (re.compile(r"answer is \(?([A-J])"), re.compile(r"[aA]nswer:\s*([A-J])"))
_LABEL = re.compile(r"label:\s*(\d+)", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_NUMBERS_IN_BRACKETS = re.compile(r"\[[\d\s,]+\]")


def sub_em(prediction: str, answers: object) -> float:
    """Return 1 if any answer is part of the prediction, else 0; both are normalised. Answers may be lists of lists.

    As in the public code, an answer that is empty when normalised ("A") is part of every prediction.
    """
    said = normalised(prediction)
    return float(any(normalised(answer) in said for answer in flattened(answers)))


def yes_or_no(prediction: str) -> int | None:
    """Return 1 if the last "yes" or "no" of a text is "yes", and 0 if it is "no".

    If the text has neither word but is just a number, return this number. Any other text is a refusal; return None.

    >>> yes_or_no("Yes, there is a dog. No, wait"), yes_or_no("1"), yes_or_no("I think not")
    (0, 1, None)
    """
    text = without_articles(prediction.lower())
    if found := _LAST_YES_OR_NO.match(text):
        return int(found[1] == "yes")
    return _number(text) if text.isdecimal() else None


def binary_acc(prediction: str, answer: str, default: int | None = None) -> float:
    """Return 1 if the last "yes" or "no" of the prediction equals the answer, else 0.

    A refusal counts as the answer `default`; if `default` is None, a refusal is wrong. The public code takes 0, 1, 1
    and 0 in turn as the answers of refusals, so the score depends on the order of the examples.
    """
    said = yes_or_no(prediction)
    counted = default if said is None else said
    return float(counted is not None and counted == yes_or_no(answer))


def total_count(prediction: str) -> int | None:
    """Return the sum of the numbers in a list in brackets; without such a list, the sum of all numbers in the text.

    The list is the last one that has only whole numbers. If there is no such list, or this list is not JSON, the last
    part in brackets is the list. If that part is not JSON either, all numbers in the text are added. The result is then
    None if a number is too long to be read.

    >>> total_count("first [9], then [1, 2]"), total_count("[1, 'a', 2]"), total_count("1 and 2"), total_count("six")
    (3, 3, 3, 0)
    """
    text = without_articles(prediction.lower())
    of_numbers = deque((found[0] for found in _NUMBERS_IN_BRACKETS.finditer(text)), maxlen=1)
    last, start = "", text.find("[")  # each part goes from a "[" to the next "]", and the next begins after that
    while start >= 0 and (end := text.find("]", start)) >= 0:
        last = text[start : end + 1]
        start = text.find("[", end)
    for listed in (*of_numbers, last):
        values = _json_list(listed)
        if values is not None:
            return sum(whole for value in values if (whole := _whole(value)) is not None)
    numbers = [_number(digits) for digits in _DIGITS.findall(text)]
    return None if None in numbers else sum(filter(None, numbers))


def soft_acc(prediction: str, answer: Sequence[int]) -> float:
    """Return 1 if the total count equals the sum of the answer, else 0.

    The name comes from MM-NIAH, whose own metric compares position by position (see `position_accuracy`).
    """
    return float(total_count(prediction) == sum(answer))


def option_letter(prediction: str) -> int | None:
    """Return the place of the chosen option, from 0; None if no letter is found.

    The letter after "answer is" or "Answer:" counts. If there is none, the last capital from A to J that stands alone
    counts.

    >>> option_letter("The answer is (D)"), option_letter("C or D"), option_letter("answer: b")
    (3, 3, None)
    """
    text = single_blanks(prediction)
    said = next((found for pattern in _LETTER_SAID if (found := pattern.search(text))), None)
    found = said or _LAST_LETTER.match(text)
    return ord(found[1]) - ord("A") if found else None


def mc_acc(prediction: str, answer: int) -> float:
    """Return 1 if the chosen option is right, else 0; `answer` is the place of the right option, from 0."""
    return float(option_letter(prediction) == answer)


def class_label(prediction: str) -> int | None:
    r"""Return the number after the first "label:" that a number follows.

    If there is none, return the last number that stands alone; if there is none either, return the first digits in the
    text. Return None if the text has no digits or the number is too long to be read.

    >>> class_label("label: 3\nlabel: 0"), class_label("label 0 or 3"), class_label("x12y")
    (3, 3, 12)
    """
    text = single_blanks(prediction)
    found = _LABEL.search(text) or _LAST_NUMBER.match(text)
    digits = found[1] if found else (first[0] if (first := _DIGITS.search(text)) else "")
    return _number(digits) if digits else None


def cls_acc(prediction: str, answer: int) -> float:
    """Return 1 if the label equals the answer, else 0."""
    return float(class_label(prediction) == answer)


def _json_list(text: str) -> list[object] | None:
    try:
        values: object = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, or numbers that are too long, or lists that are nested too deeply
        return None
    return values if isinstance(values, list) else None


def _whole(value: Any) -> int | None:  # noqa: ANN401  (what JSON holds)
    """Return a value as a whole number, as `int` converts it; None if `int` raises an error."""
    try:
        return int(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _number(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MAX_DIGITS else None


_TYPES = ("rougeL", "rougeLsum")
MAX_SUMMARY = 50_000
"""The maximum characters of a prediction that are compared. The time grows with the product of the lengths of the
prediction and the reference. Public runs generate 384 tokens."""
_STEMS = 50_000
"""How many stems are kept in memory."""


class _Figures(Protocol):
    fmeasure: float
    recall: float


class Scorer(Protocol):
    """A scorer of the package rouge-score, which may not be installed."""

    def score(self, *, target: str, prediction: str) -> Mapping[str, _Figures]:
        """Return the figures by type, such as `rougeL`."""
        ...


def rouge_scorer() -> Scorer:
    """Return a scorer that gives the figures of the public code, and keeps the stems of words in memory.

    Raises:
        ScoringError: rouge-score is not installed.

    """
    try:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenize import tokenize
    except ImportError as error:
        raise missing("rouge-score", "metric rouge") from error
    stemmer = SimpleNamespace(stem=lru_cache(_STEMS)(PorterStemmer().stem))
    scorer: Scorer = RougeScorer(list(_TYPES), tokenizer=SimpleNamespace(tokenize=lambda text: tokenize(text, stemmer)))
    return scorer


def rouge(scorer: Scorer, prediction: str, answers: Iterable[str]) -> Mapping[str, float]:
    """Return F1 and recall of rougeL and rougeLsum, the four figures of the public code.

    Each figure is the best that the prediction reaches with any of the answers.
    """
    said = prediction[:MAX_SUMMARY]
    found = [scorer.score(target=answer, prediction=said) for answer in answers]
    best = {f"{kind}_f1": max((float(each[kind].fmeasure) for each in found), default=0.0) for kind in _TYPES}
    recall = {f"{kind}_recall": max((float(each[kind].recall) for each in found), default=0.0) for kind in _TYPES}
    return {**best, **recall}
