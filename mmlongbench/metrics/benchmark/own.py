"""Scores answers about documents as a person would: the same value, however it is written. The profile `ours` uses it.

What it adds to the public rules (`documents.py`): other forms of the same characters, scale words that count, decimal
commas and blanks between digits, lists as JSON, words of scripts without blanks, and the words that lead to an answer.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import isclose, isfinite
from typing import NamedTuple

from mmlongbench.answers import normalised
from mmlongbench.metrics.benchmark.documents import FORMATS, TOLERANCE, is_exact

_CHARACTERS = str.maketrans(
    {"−": "-", "‐": "-", "‑": "-", "‒": "-", "–": "-", "’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "⁄": "/"}
)
_FRACTION = re.compile(r"(?:(?<!\d)(\d{1,300}))?\s?([¼-¾⅐-⅞])")
"""A fraction of one character, with the whole number before it; the search begins at the first digit of a number alone,
so that its time does not grow with the square of the digits."""
_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+|(?:'\d{3})+)(?![\d,]|\.\d+\.)")
"""A number whose thousands are set apart by commas, blanks or apostrophes."""
_CONTINENTAL = re.compile(r"(?<![\d.,])\d{1,3}(?:[. ]\d{3})+,\d{1,2}(?!\d)")
"""A number with a decimal comma whose thousands are set apart."""
_POWERS = re.compile("[⁰¹²³⁴-⁹]+")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2}|\d{4,})(?![\d,]|\.\d)")
_LEAD = re.compile(
    r"^(?:so |thus |hence )?the (?:final |correct )?answer (?:is|would be):? |^(?:正确)?答案[是为為:]\s*", re.IGNORECASE
)
"""Words that lead to an answer."""
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "mn": 1e6, "trillion": 1e12}
_SCALES |= {"billion": 1e9, "bn": 1e9, "b": 1e9}
_CURRENCIES = "$£€¥₩₹"
_NUMBER = re.compile(
    rf"(?P<sign>(?:(?<!\w)-)?)(?P<currency>[{_CURRENCIES}]?)\s?(?P<digits>(?<![\d.])(?<!\d-)(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
    rf"(?:\s?(?P<scale>{'|'.join(sorted(_SCALES, key=len, reverse=True))})\b)?",
    re.IGNORECASE,
)
_WITHOUT_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff]+")
"""Characters of scripts that set no blanks between words: kana, Han, Thai, Lao."""
_JOINING = re.compile(r"\b(?:and|or)\b|&", re.IGNORECASE)


class _Number(NamedTuple):
    """A number as it is written, what its scale word multiplies it by (1 without one), and the sign of its currency."""

    value: float
    scale: float
    currency: str


def own_doc_qa(prediction: str, answer: object, answer_format: str) -> float:
    """Return the score of a prediction by the format of the gold answer, 0 to 1.

    >>> own_doc_qa("−5", "-5", "Integer"), own_doc_qa("4.2 billion", "$4.2 million", "String")
    (1.0, 0.0)
    >>> own_doc_qa('["a","b"]', '["b", "a"]', "List"), own_doc_qa("答案是艾勒里。", "艾勒里", "String")
    (1.0, 1.0)
    """
    if answer_format not in FORMATS:
        raise ValueError(answer_format)
    if answer_format == "List" and (elements := _json_list(str(answer))):
        return _list(elements, prediction)
    gold, said = _plain(str(answer)), _plain(prediction)
    if (wanted := _only_number(gold)) is not None and answer_format != "None":
        tolerance = TOLERANCE if answer_format == "Float" else 0.0
        percents = (1.0, 0.01, 100.0) if answer_format == "Float" else (1.0,)
        scaled = [wanted._replace(value=wanted.value * percent) for percent in percents]
        return float(any(_same(number, each, tolerance) for number in _numbers(said) for each in scaled))
    if is_exact(gold):
        return float(gold in said)
    return _word_f1(said, gold)


def _plain(text: str) -> str:
    """Return a text in the characters that most people type: composed forms, plain signs, digits without groups."""
    text = _POWERS.sub(lambda found: f"^{unicodedata.normalize('NFKC', found[0])}", text)
    text = _FRACTION.sub(lambda found: f"{int(found[1] or 0) + unicodedata.numeric(found[2]):g}", text)
    text = " ".join(unicodedata.normalize("NFKC", text).translate(_CHARACTERS).split())
    text = _CONTINENTAL.sub(lambda found: re.sub("[. ]", "", found[0]).replace(",", "."), text)
    text = _GROUPS.sub(lambda found: re.sub(r"[ ,']", "", found[0]), _LEAD.sub("", text))
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _json_list(text: str) -> list[object]:
    """Return the elements of a list in JSON; none if the text is no such list, or an empty one."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _list(wanted: list[object], prediction: str) -> float:
    """Return the mean over the gold elements, whose plain texts are joined into one; order does not count. Digits that
    stand apart may be one number or several, so the better reading counts.
    """
    apart = "; ".join(_plain(str(part)) for part in _json_list(prediction) or re.split(r"[\s,]+", prediction))
    return max(_listed(wanted, said) for said in (_plain(prediction), apart))


def _listed(wanted: list[object], said: str) -> float:
    texts = [_plain(str(element)) for element in wanted]
    words = [text for text in texts if _only_number(text) is None and not is_exact(text)]
    others = [text for text in texts if text not in words]
    scores = [_word_f1(said, " ".join(words))] if words and not others else []
    if words and others:  # words among numbers
        scores = [_word_f1(_JOINING.sub(" ", _NUMBER.sub(" ", said)), " ".join(words))]
    for text in others:
        number = _only_number(text)
        is_said = text in said if number is None else any(_same(each, number, 0.0) for each in _numbers(said))
        scores.append(float(is_said))
    return sum(scores) / len(scores)


def _numbers(text: str) -> Iterator[_Number]:
    for found in _NUMBER.finditer(text):
        value = float(found["sign"] + found["digits"])
        if isfinite(value):
            yield _Number(value, _SCALES.get((found["scale"] or "").lower(), 1.0), found["currency"])


def _only_number(text: str) -> _Number | None:
    """Return the number that a text is, apart from a full stop, a percent sign or a currency at its end."""
    bare = text.strip(" .%\"'()").strip()
    bare = bare[-1] + bare[:-1].strip() if bare[-1:] and bare[-1:] in _CURRENCIES else bare
    found = _NUMBER.fullmatch(bare)
    return next(_numbers(bare), None) if found else None


def _same(said: _Number, wanted: _Number, tolerance: float) -> bool:
    """Whether two numbers are one. A scale word that only one of them has may be left out ("in millions")."""
    if said.currency and wanted.currency and said.currency != wanted.currency:
        return False
    close = {"rel_tol": max(tolerance, 1e-9)}
    if isclose(said.value * said.scale, wanted.value * wanted.scale, **close):
        return True
    return (said.scale == 1) != (wanted.scale == 1) and isclose(said.value, wanted.value, **close)


def _word_f1(said: str, wanted: str) -> float:
    """Return the harmonic mean of precision and recall over words; in scripts without blanks, over characters."""
    if not normalised(wanted):  # an article or a sign alone
        return float(said.strip(" .").casefold() == wanted.strip(" .").casefold())
    if normalised(said) == normalised(wanted):
        return 1.0
    ours, theirs = _words(said), _words(wanted)
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs)) if same else 0.0


def _words(text: str) -> list[str]:
    """Return the words of a text; of scripts without blanks, the pairs of characters that follow each other."""
    spaced = _WITHOUT_BLANKS.sub(lambda found: f" {' '.join(map(''.join, pairwise(found[0]))) or found[0]} ", text)
    without_marks = "".join(" " if unicodedata.category(sign) == "Po" and sign > "\x7f" else sign for sign in spaced)
    return normalised(without_marks).split()
