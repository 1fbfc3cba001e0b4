"""Scores answers about documents by the format of the gold answer (see `FORMATS`), with the benchmark's rules.

For integers, the paper says exact match. The public code accepts a prediction if any number in it is the answer, and so
does this module. If the answer of a foreign record does not fit its format, the public code fails; here it is compared
as a String. A build refuses such an answer.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import isclose

from mmlongbench.answers import is_not_answerable, normalised, without_quotes

TOLERANCE = 0.01
"""The relative tolerance of a Float."""
_UNITS = ("meters", "acres", "minutes", "miles", "mile", "feet")
_SUFFIXES = ("kg", *_UNITS, "million", "thousand", "billion", "mm", "m")
"""The endings that are removed, each at most once, in this order."""
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?|-?\.\d+")
_EXACT = tuple(
    re.compile(pattern)
    for pattern in (
        r"https://",
        r"\.(?:py|ipynb)$",
        r"^page",
        r"^\d+(?:-\d+|\s\d+)?$",  # a phone number, a range, a number
        r"[ap]\.m\.",
        r"^\d{4}[-/\s]\d{1,2}[-/\s]\d{1,2}$",
        r"^\d{1,2}[-/\s]\d{1,2}[-/\s]\d{2,4}$",
        r"^\d{4}[-/\s]\d{1,2}$",
        r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$",
    )
)


def doc_qa(prediction: str, answer: object, answer_format: str) -> float:
    """Return the score of a prediction by the format of the gold answer: Integer, Float, String, None or List.

    A gold List is JSON. Its strings that need no exact match (`is_exact`) are joined into one element. The score is the
    mean over the elements.

    >>> doc_qa("about 4 or 5", "5", "Integer"), doc_qa("0.21", "21%", "Float"), doc_qa("red", '["red", "3"]', "List")
    (1.0, 1.0, 0.5)
    """
    text = answer if isinstance(answer, str) else str(answer)
    try:
        return _SCORES[answer_format](text, prediction)
    except (ValueError, OverflowError):  # the gold answer is no number, or no list
        return _string(text, prediction)


def format_fault(answer: object, answer_format: str) -> str:
    """Return why an answer is compared as a text, although its format is another; empty if it is not."""
    text = answer if isinstance(answer, str) else str(answer)
    if is_not_answerable(text):  # compared as a text, in every format
        return ""
    try:
        _SCORES[answer_format](text, text)
    except ValueError:
        return f"expected {_EXPECTED[answer_format]} for the format {answer_format}"
    except OverflowError:  # a number of very many digits
        pass
    return ""


def cleaned(text: str) -> str:
    """Return a text in lower case, without commas, a unit at its end, quotes around it, and $, £ or % at either end.

    >>> cleaned("$1,577.00 million"), cleaned("'73.2% '")
    ('1577.00', '73.2')
    """
    text = text.lower().strip().replace(",", "")
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix).strip()
    text = without_quotes(text).strip()
    for sign in "$£%":
        text = text.strip().strip(sign).strip()
    return text


def token_f1(prediction: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over normalised words; each occurrence of a word counts.

    >>> round(token_f1("eight degrees", "up to eight degrees"), 3)
    0.667
    """
    said, wanted = normalised(prediction).split(), normalised(gold).split()
    same = sum((Counter(said) & Counter(wanted)).values())
    if not same:
        return 0.0
    precision, recall = same / len(said), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def numbers_said(text: str) -> Iterator[float]:
    """Yield every finite number in a text; commas are removed first."""
    for found in _NUMBER.finditer(text.replace(",", "")):
        number = float(found[0])
        if math.isfinite(number):
            yield number


def is_exact(answer: str) -> bool:
    """Return whether a prediction must contain the answer unchanged: True for a URL, file name, page, number, time,
    date or mail address.
    """
    return any(pattern.search(answer) for pattern in _EXACT)


def _integer(answer: str, prediction: str) -> float:
    wanted = float(cleaned(answer))
    if int(wanted) != wanted:
        raise ValueError(answer)
    return float(any(number == wanted for number in numbers_said(cleaned(prediction))))


def _float(answer: str, prediction: str) -> float:
    wanted = float(cleaned(answer))
    as_percents = (wanted / 100, wanted, wanted * 100)
    said = numbers_said(cleaned(prediction))
    return float(any(isclose(each, number, rel_tol=TOLERANCE) for number in said for each in as_percents))


def _string(answer: str, prediction: str) -> float:
    return float(answer in prediction) if is_exact(answer) else token_f1(prediction, answer)


def _list(answer: str, prediction: str) -> float:
    elements: object = json.loads(answer)
    if not isinstance(elements, list) or not elements:
        raise ValueError(answer)
    scores = [doc_qa(prediction, element, kind) for element, kind in _elements(elements)]
    return sum(scores) / len(scores)


def _elements(elements: list[object]) -> Iterator[tuple[object, str]]:
    """Yield each element with its format. Strings that need no exact match are joined and come first, as one element.
    If they were compared one by one, a prediction that lists all of them would have a low score for each.
    """
    kinds = [_kind(element) for element in elements]
    is_merged = [kind == "String" and not is_exact(str(each)) for each, kind in zip(elements, kinds, strict=True)]
    merged = " ".join(str(each) for each, is_plain in zip(elements, is_merged, strict=True) if is_plain).strip()
    if merged:
        yield merged, _kind(merged)
    for element, kind, is_plain in zip(elements, kinds, is_merged, strict=True):
        if not (merged and is_plain):
            yield element, kind


def _kind(element: object) -> str:
    if isinstance(element, bool) or not isinstance(element, int | float | str):
        return "String"
    if not isinstance(element, str):
        return "Integer" if isinstance(element, int) else "Float"
    try:
        number = float(cleaned(element))
        return "Integer" if number == int(number) and "%" not in element else "Float"
    except (ValueError, OverflowError):
        return "String"


_SCORES: Mapping[str, Callable[[str, str], float]] = {
    "Integer": _integer,
    "Float": _float,
    "String": _string,
    "None": _string,
    "List": _list,
}
_EXPECTED = {"Integer": "a whole number", "Float": "a number", "List": "a JSON list with elements, as a text,"}
FORMATS = tuple(_SCORES)
"""The names of the formats of gold answers."""
