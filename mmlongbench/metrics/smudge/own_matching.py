"""Scores how well a prediction matches a gold answer by this project's own rules (profile `ours`); only the two strings
are used.

The formulas are the paper's (see `matching`), but numbers are recognised differently. A number may have a sign,
thousands' commas and a decimal point, and may be part of a sentence. A text without numbers is textual, even with
blanks.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import TypeAlias

from mmlongbench.metrics.smudge.matching import SCALES, Kind, harmonic_mean, similarity

Number: TypeAlias = tuple[str, str, int]
"""The sign, the digits without zeros at either end, and the power of ten; zero has no digits."""

_NUMBER = re.compile(
    r"(?:(?<![^\s($€£¥])[-+])?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![\w.])\.[0-9]+"
)
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")


def plain(text: str) -> str:
    r"""Return a string in the form that is compared: one form of each character, no case, single blanks, and no
    punctuation at the end of the string.

    >>> plain(" Up  to 10–12\nMGS. ")
    'up to 10-12 mgs'
    """
    return " ".join(unicodedata.normalize("NFKC", text).translate(_DASHES).casefold().split()).rstrip(".,;:!?")


def kind_of(text: str) -> Kind:
    """Return the kind of a string; the commas, the sign and the point of a number belong to the number.

    >>> [kind_of(text) for text in ("12", "-1,234.5", "Chapel Hill", "12 mg", "18.29%")]
    ['numeric', 'numeric', 'textual', 'hybrid', 'hybrid']
    """
    numbers, others = _apart(plain(text))
    if not numbers:
        return "textual"
    return "hybrid" if others else "numeric"


def match_score(gold: str, prediction: str) -> float:
    """Return a score from 0 to 1 by the kind of the gold. If the gold is textual and the prediction has a number, the
    score is 0.

    >>> [round(match_score("up to 12 milligrams", said), 3) for said in ("up to 12 mgs", "up to 1z milligrams")]
    [0.934, 0.0]
    >>> [match_score("12", said) for said in ("26", "12", "12,000", "up to 12 mgs", "up to 1z milligrams")]
    [0.0, 1.0, 1.0, 1.0, 0.0]
    """
    wanted, said = plain(gold), plain(prediction)
    numbers, others = _apart(wanted)
    said_numbers, said_others = _apart(said)
    if not numbers and not said_numbers:
        return similarity(wanted, said)
    is_equal = are_equal(numbers, said_numbers)
    if numbers and not others:
        return float(is_equal)
    return harmonic_mean(float(is_equal), similarity(others, said_others))


def are_equal(gold: Sequence[Number], prediction: Sequence[Number]) -> bool:
    """Return whether two sequences of numbers are equal, number by number. Empty sequences do not count as equal.

    All numbers may differ by the same power of ten, if that is in `SCALES`.
    """
    if not gold or len(gold) != len(prediction):
        return False
    shifts = set[int]()
    for (sign, digits, power), (said_sign, said_digits, said_power) in zip(gold, prediction, strict=True):
        if (sign, digits) != (said_sign, said_digits):
            return False
        if digits:  # zero is the same at every scale
            shifts.add(power - said_power)
    return not shifts or (len(shifts) == 1 and abs(shifts.pop()) in SCALES)


def numbers_of(text: str) -> tuple[Number, ...]:
    """Return every number of a string, in order.

    >>> numbers_of("from -1,200 to 0.5 on 2019-04-00")
    (('-', '12', 2), ('', '5', -1), ('', '2019', 0), ('', '4', 0), ('', '', 0))
    """
    return _apart(text)[0]


def _apart(text: str) -> tuple[tuple[Number, ...], str]:
    """Return the numbers of a string, and its other characters."""
    others = " ".join(_NUMBER.sub(" ", text).split())
    return tuple(_number(found) for found in _NUMBER.findall(text)), others


def _number(text: str) -> Number:
    whole, _, fraction = text.lstrip("+-").replace(",", "").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return "", "", 0
    return "-" if text[0] == "-" else "", kept, len(digits) - len(kept) - len(fraction)
