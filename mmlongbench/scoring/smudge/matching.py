"""How well a prediction matches a gold answer, as strings alone: the match score of SMuDGE.

The formulas are those of the paper (Nourbakhsh et al., Findings of NAACL 2025, arXiv 2503.19120); of its own example
the printed table does not follow from them, and the formulas decide here: for the gold answer 12, "26" scores 0 and
"up to 12 mgs" 1, for a number is compared with the numbers that were said; "up to 1z milligrams" scores 0.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, TypeAlias

from mmlongbench.scoring.errors import missing

Kind: TypeAlias = Literal["numeric", "textual", "hybrid"]
Number: TypeAlias = tuple[str, str, int]
"""Sign, digits without zeros at either end, and the power of ten they are multiplied by; of zero no digits."""

_NUMBER = re.compile(
    r"(?:(?<![^\s($€£¥])[-+])?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![\w.])\.[0-9]+"
)
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")
_SCALES = (0, 2, 3, 6, 9)
"""Powers of ten that two ways to write a number may differ by: as such, per cent, thousand, million, billion."""
_NUMBERS_WEIGHT, _TEXT_WEIGHT = 10, 1


def plain(text: str) -> str:
    r"""A string as it is compared: compatible characters made one, without case, single blanks, no stop at its end.

    >>> plain(" Up  to 10–12\nMGS. ")
    'up to 10-12 mgs'
    """
    return " ".join(unicodedata.normalize("NFKC", text).translate(_DASHES).casefold().split()).rstrip(".,;:!?")


def similarity(one: str, other: str) -> float:
    """The normalised Levenshtein similarity of two strings as they stand, from 0 to 1.

    >>> similarity("milligrams", "mgs"), similarity("", "")
    (0.3, 1.0)
    """
    longest = max(len(one), len(other))
    return (longest - distance(one, other)) / longest if longest else 1.0


def distance(one: str, other: str) -> int:
    """The edit distance of two strings."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise missing("rapidfuzz", "smudge") from error
    return Levenshtein.distance(one, other)


def kind_of(text: str) -> Kind:
    """What a string is made of; the separators, the sign and the point of a number belong to it.

    >>> [kind_of(text) for text in ("12", "-1,234.5", "Chapel Hill", "12 mg", "18.29%")]
    ['numeric', 'numeric', 'textual', 'hybrid', 'hybrid']
    """
    numbers, others = _apart(plain(text))
    if not numbers:
        return "textual"
    return "hybrid" if others else "numeric"


def match_score(gold: str, prediction: str) -> float:
    """From 0 to 1, by the kind of the gold answer; it is textual only where the prediction has no digits either.

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
    return _harmonic(float(is_equal), similarity(others, said_others))


def are_equal(gold: Sequence[Number], prediction: Sequence[Number]) -> bool:
    """Whether two rows of numbers, none of them empty, are the same, as such or all scaled alike."""
    if not gold or len(gold) != len(prediction):
        return False
    shifts = set[int]()
    for (sign, digits, power), (said_sign, said_digits, said_power) in zip(gold, prediction, strict=True):
        if (sign, digits) != (said_sign, said_digits):
            return False
        if digits:  # zero is zero at every scale
            shifts.add(power - said_power)
    return not shifts or (len(shifts) == 1 and abs(shifts.pop()) in _SCALES)


def numbers_of(text: str) -> tuple[Number, ...]:
    """Every number of a string, in order.

    >>> numbers_of("from -1,200 to 0.5 on 2019-04-00")
    (('-', '12', 2), ('', '5', -1), ('', '2019', 0), ('', '4', 0), ('', '', 0))
    """
    return _apart(text)[0]


def _apart(text: str) -> tuple[tuple[Number, ...], str]:
    """The numbers of a string, and its other characters."""
    others = " ".join(_NUMBER.sub(" ", text).split())
    return tuple(_number(found) for found in _NUMBER.findall(text)), others


def _number(text: str) -> Number:
    whole, _, fraction = text.lstrip("+-").replace(",", "").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return "", "", 0
    return "-" if text[0] == "-" else "", kept, len(digits) - len(kept) - len(fraction)


def _harmonic(numbers: float, text: float) -> float:
    """The weighted harmonic mean, 0 where either is: numbers weigh ten times what the rest does."""
    if not numbers or not text:
        return 0.0
    return (_NUMBERS_WEIGHT + _TEXT_WEIGHT) / (_NUMBERS_WEIGHT / numbers + _TEXT_WEIGHT / text)
