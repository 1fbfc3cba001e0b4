"""Finds in a model's output an answer that is a choice or a count: Yes or No, a letter, a label, numbers."""

import json
import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from mmlongbench.metrics.benchmark.texts import normalised, single_blanks, without_articles

_MAX_DIGITS = 4300
"""A number with more digits than this is not read, because it is not an answer."""
_LAST_YES_OR_NO = re.compile(r".*\b(yes|no)\b", re.DOTALL)
"""Matches the last yes or no: the beginning is greedy, so one pass is enough."""
_LAST_LETTER = re.compile(r".*\b([A-J])\b", re.DOTALL)
_LAST_NUMBER = re.compile(r".*\b(\d+)\b", re.DOTALL)
_LETTER_SAID = (re.compile(r"answer is \(?([A-J])"), re.compile(r"[aA]nswer:\s*([A-J])"))
_LABEL = re.compile(r"label:\s*(\d+)", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_NUMBERS_IN_BRACKETS = re.compile(r"\[[\d\s,]+\]")


def sub_em(prediction: str, answers: object) -> float:
    """Return whether any answer, normalised, is part of the normalised prediction; answers may be lists of lists.

    As in the public code, an answer that is empty when normalised ("A") is part of every prediction.
    """
    said = normalised(prediction)
    return float(any(normalised(answer) in said for answer in flattened(answers)))


def flattened(answers: object) -> Iterable[str]:
    """Yield every string of an answer, of a list of answers, or of a list of such lists; a number as a string."""
    if isinstance(answers, list | tuple):
        for answer in answers:
            yield from flattened(answer)
    else:
        yield str(answers)


def yes_or_no(prediction: str) -> int | None:
    """Return 1 if the last yes or no is Yes, and 0 if it is No.

    Without either word, a text that is just a number gives this number; any other text is a refusal and gives None.

    >>> yes_or_no("Yes, there is a dog. No, wait"), yes_or_no("1"), yes_or_no("I think not")
    (0, 1, None)
    """
    text = without_articles(prediction.lower())
    if found := _LAST_YES_OR_NO.match(text):
        return int(found[1] == "yes")
    return _number(text) if text.isdecimal() else None


def binary_acc(prediction: str, answer: str, default: int | None = None) -> float:
    """Return whether the last yes or no equals the answer. A refusal counts as the answer `default`; None is wrong.

    The public code takes 0, 1, 1, 0, … in turn as the answer of a refusal, so its score depends on the order of the
    file.
    """
    said = yes_or_no(prediction)
    counted = default if said is None else said
    return float(counted is not None and counted == yes_or_no(answer))


def total_count(prediction: str) -> int | None:
    """Return the sum of the last list that has only numbers, else of the numbers in the last brackets, else of all
    numbers in the text.

    >>> total_count("first [9], then [1, 2]"), total_count("[1, 'a', 2]"), total_count("1 and 2"), total_count("six")
    (3, 3, 3, 0)
    """
    text = without_articles(prediction.lower())
    of_numbers = deque((found[0] for found in _NUMBERS_IN_BRACKETS.finditer(text)), maxlen=1)
    for listed in (*of_numbers, _last_brackets(text)):
        values = _json_list(listed)
        if values is not None:
            return sum(whole for value in values if (whole := _whole(value)) is not None)
    return _sum_of_digits(text)


def soft_acc(prediction: str, answer: Sequence[int]) -> float:
    """Return whether the total count equals the answer; the name is from MM-NIAH, which compares position by
    position.
    """
    return float(total_count(prediction) == sum(answer))


def option_letter(prediction: str) -> int | None:
    """Return the place of the chosen option, from 0. Its letter is the one after "answer is" or "Answer:", else the
    last capital from A to J that stands alone.

    >>> option_letter("The answer is (D)"), option_letter("C or D"), option_letter("answer: b")
    (3, 3, None)
    """
    text = single_blanks(prediction)
    said = next((found for pattern in _LETTER_SAID if (found := pattern.search(text))), None)
    found = said or _LAST_LETTER.match(text)
    return ord(found[1]) - ord("A") if found else None


def mc_acc(prediction: str, answer: int) -> float:
    """Return whether the chosen option is the right one; `answer` is the place of the right option, from 0."""
    return float(option_letter(prediction) == answer)


def class_label(prediction: str) -> int | None:
    r"""Return the number after the first "label:", else the last separate number, else the first digits.

    >>> class_label("label: 3\nlabel: 0"), class_label("label 0 or 3"), class_label("x12y")
    (3, 3, 12)
    """
    text = single_blanks(prediction)
    found = _LABEL.search(text) or _LAST_NUMBER.match(text)
    digits = found[1] if found else (first[0] if (first := _DIGITS.search(text)) else "")
    return _number(digits) if digits else None


def cls_acc(prediction: str, answer: int) -> float:
    """Return whether the label is the answer."""
    return float(class_label(prediction) == answer)


def _sum_of_digits(text: str) -> int | None:
    """Return the sum of all numbers written in digits; None if one is too long to be read."""
    total = 0
    for found in _DIGITS.finditer(text):
        number = _number(found[0])
        if number is None:
            return None
        total += number
    return total


def _last_brackets(text: str) -> str:
    """Return the last part in brackets. Each part goes from a "[" to the next "]"; the next part begins after it."""
    last, start = "", text.find("[")
    while start >= 0 and (end := text.find("]", start)) >= 0:
        last = text[start : end + 1]
        start = text.find("[", end)
    return last


def _json_list(text: str) -> list[object] | None:
    try:
        values: object = json.loads(text)
    except (ValueError, RecursionError):  # a number of too many digits, brackets too deep
        return None
    return values if isinstance(values, list) else None


def _whole(value: Any) -> int | None:  # noqa: ANN401  (what JSON holds)
    """Return a value as a whole number, as Python converts it; None if it cannot."""
    try:
        return int(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _number(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MAX_DIGITS else None
