"""Compares concise answers with gold answers by MMLongBench-Doc's rules for each format; computes accuracy and F1.

Where the paper's text and the public code differ, the code is followed: an Integer prediction is cut to a whole number
("5.9" is 5), "mile" and "million" are not removed, a list of exact strings is compared as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose

from mmlongbench.answers import anls, cleaned, flat_list, gold_list, is_exact

FAIL_TO_ANSWER = "Fail to answer"
TOLERANCE = 0.01
"""The relative tolerance of a Float."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What accuracy and F1 need to know about one answer."""

    score: float
    is_answerable: bool
    is_answered: bool
    """Whether the model gave an answer; "Fail to answer" counts as an answer."""


def score_extracted(gold: str, answer_format: str, extracted: str) -> float:
    """Return the score of a concise answer, from 0 to 1. `answer_format` is the name of the format in the source or in
    a release.

    The score is 0 if a number or a list cannot be read. For a gold number or a list that cannot be read, the rules of
    the public code raise an error, and its scorer counts 0, too.

    >>> score_extracted("5", "Integer", "5.0"), score_extracted("18.29%", "Float", "$18.3")
    (1.0, 1.0)
    >>> score_extracted("['red', 'blue']", "List", "['Blue', 'red']"), score_extracted("red", "String", "reds")
    (1.0, 0.75)
    """
    if answer_format in ("Int", "Integer"):
        return _integer(gold, extracted)
    if answer_format == "Float":
        return _float(gold, extracted)
    if answer_format == "List":
        return _list(gold_list(gold), extracted)
    return _text(cleaned(gold), cleaned(extracted))


def accuracy_and_f1(answers: Sequence[Judged]) -> Mapping[str, float]:
    """Return generalized accuracy (the mean score) and F1.

    Recall is the mean score of the answerable questions. Precision is the sum of these scores divided by the number of
    questions that were answered. F1 is 0 if there are no answerable questions, or if no question was answered.
    """
    answerable = [answer for answer in answers if answer.is_answerable]
    answered = sum(answer.is_answered for answer in answers)
    earned = sum(answer.score for answer in answerable)
    accuracy = sum(answer.score for answer in answers) / len(answers) if answers else 0.0
    if not answerable or not answered or not earned:
        return {"accuracy": accuracy, "f1": 0.0}
    recall, precision = earned / len(answerable), earned / answered
    return {"accuracy": accuracy, "f1": 2 * recall * precision / (recall + precision)}


def _integer(gold: str, extracted: str) -> float:
    try:
        return float(int(gold) == int(float(extracted)))
    except (ValueError, OverflowError):
        return 0.0


def _float(gold: str, extracted: str) -> float:
    try:
        wanted, said = float(cleaned(gold)), float(cleaned(extracted))
    except ValueError:
        return 0.0
    return float(any(_is_close(each, said) for each in (wanted / 100, wanted, wanted * 100)))


def _is_close(wanted: float, said: float) -> bool:
    """Return whether two numbers differ by at most one per cent, or are equal after rounding. Both are rounded to the
    number of decimals of the number that has fewer, but at least to two.
    """
    if isclose(wanted, said, rel_tol=TOLERANCE):
        return True
    digits = max(min(_digits(said), _digits(wanted)), 2)
    return round(said, digits) == round(wanted, digits)


def _digits(number: float) -> int:
    """Return how many digits Python prints after the point; 3 if it prints no point."""
    _, point, behind = str(number).partition(".")
    return len(behind) if point else 3


def _text(gold: str, said: str) -> float:
    return float(gold == said) if is_exact(gold) else anls(gold, said)


def _list(golds: Sequence[str], extracted: str) -> float:
    """Return the score of a list, which is 0 if the two lists have different lengths.

    Both lists are sorted. If the first gold element is a number or an exact string (`is_exact`), all elements must be
    equal. If not, each gold element is compared with the element at the same place, and the lowest similarity counts.
    """
    said = flat_list(extracted) if extracted.startswith("[") else [extracted]
    if said is None or len(said) != len(golds) or not golds:
        return 0.0
    wanted = sorted(cleaned(element) for element in golds)
    given = sorted(cleaned(element) for element in said)
    if _is_number(wanted[0]) or is_exact(wanted[0]):
        return float("-".join(wanted) == "-".join(given))
    return min(anls(gold, answer) for gold, answer in zip(wanted, given, strict=True))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
