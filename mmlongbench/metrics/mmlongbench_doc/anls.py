"""ANLS: the normalised Levenshtein similarity of two strings, 0 if it is not above one half."""

from mmlongbench.metrics.missing import missing

TAU = 0.5
"""A similarity of at most this counts as 0."""


def anls(gold: str, prediction: str, tau: float = TAU) -> float:
    """Return the similarity of two strings, or 0 if it is at most `tau`. Case and blanks count.

    If the lengths differ too much for a similarity above `tau`, the letters are not compared. As in the
    public code, the distance is divided by the length of the longer string in capitals, where "ß" is two letters.

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
    """Return the smallest number of characters to insert, delete or replace to turn one string into the other.

    Raises:
        ScoringError: rapidfuzz is not installed.

    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise missing("rapidfuzz", "ANLS") from error
    return Levenshtein.distance(one, other)
