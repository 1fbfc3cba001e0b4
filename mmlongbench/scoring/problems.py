"""Counts the problems of predictions by reason, and keeps the first places where each problem occurs."""

from collections import Counter, defaultdict
from typing import TypedDict

REASONS = {
    "unreadable-file": "files that are neither predictions nor an output of the public code",
    "unreadable-line": "lines that are no JSON object in UTF-8",
    "line-too-long": "lines too long to be read",
    "missing-field": "predictions without a field they need",
    "mistyped-field": "predictions with a field of another type",
    "not-a-text": "predictions that are no text; ignored",
    "skipped-and-predicted": "lines with both a prediction and `skipped`; ignored",
    "unknown-skip": "lines whose `skipped` is not a known reason; ignored",
    "other-dataset": "outputs of the public code for another dataset than the file's own; left out",
    "unknown-file": "predictions for a file that the release does not have",
    "unknown-id": "predictions for an id that the file does not have",
    "wrong-placement": "predictions for a placement that the example does not have",
    "duplicate": "predictions for an example that has one; the first counts",
    "ambiguous": "ids with rows that cannot be told apart, and fewer predictions than such rows; none of these counts",
    "absent": "examples without a prediction; they score 0",
    "no-predictions": "files without any prediction, left out by --partial",
    "lost-output": "examples of a sample without an output; they are not scored, because their ids are unknown",
    "missing-file": "files that the release's lock names, but that are not there",
}
"""The reasons in words, in the order in which they are shown."""
_NAMED = 3
"""How many places are kept for each reason."""


class Found(TypedDict):
    """How often a problem occurs."""

    count: int
    first: list[str]
    """The first places where it occurs."""


class Problems:
    """Counts problems by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, list[str]] = defaultdict(list)

    def add(self, reason: str, place: str, count: int = 1) -> None:
        """Count one more problem, or several at one place."""
        self._counts[reason] += count
        if len(self._first[reason]) < _NAMED:
            self._first[reason].append(place)

    def forgive(self, reason: str) -> int:
        """Forget the problems with a reason; return how many there were."""
        return self._counts.pop(reason, 0)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def summary(self) -> dict[str, Found]:
        """Return how often each problem occurs, and its first places."""
        return {
            reason: {"count": self._counts[reason], "first": self._first[reason]}
            for reason in REASONS
            if self._counts[reason]
        }
