"""ANLS: the normalised Levenshtein similarity of two strings, 0 where it is not above one half."""

from mmlongbench.metrics.missing import missing

TAU = 0.5
"""A similarity of at most this much counts as 0."""


def anls(gold: str, prediction: str, tau: float = TAU) -> float:
    """From 0 to 1; case and blanks are the caller's. Nothing is compared where the lengths alone say 0.

    As in the public code the distance is divided by the longer string in capitals ("ß" is two letters there).

    >>> round(anls("yellow", "yello"), 3), anls("yellow", "blue"), anls("", "")
    (0.833, 0.0, 1.0)
    """
    longest = max(len(gold.upper()), len(prediction.upper()))
    if not longest:
        return 1.0
    if 1.0 - abs(len(gold) - len(prediction)) / longest <= tau:
        return 0.0
    similarity = 1.0 - edit_distance(gold, prediction) / longest
    return similarity if similarity > tau else 0.0


def edit_distance(one: str, other: str) -> int:
    """The least number of characters put in, taken out or exchanged.

    Raises:
        ScoringError: rapidfuzz is not installed.

    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise missing("rapidfuzz", "ANLS") from error
    return Levenshtein.distance(one, other)
