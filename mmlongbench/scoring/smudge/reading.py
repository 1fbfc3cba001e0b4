"""Finds a string among words that stand in reading order: a run of words that equals it, else the one most like it."""

from collections.abc import Iterator, Sequence

import numpy as np

from mmlongbench.scoring.smudge.places import LEAST_SIMILARITY, Found, places_of
from mmlongbench.scoring.smudge.windows import Letters, best_runs
from mmlongbench.scoring.smudge.words import Words

MOST_LETTERS = 512
"""A longer string is looked for as it is only: no answer that was taken from a document is so long."""


class Reading:
    """The words of a document in the order of its text (a `Locator`)."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """A run that equals it, else the most similar."""
        words = self._letters.words
        ranges = [words.range_of(page) for page in pages]
        if spans := [span for each in ranges for span in equal_runs(words, needle, each)]:
            return Found(1.0, places_of(words, spans))
        if not 0 < len(needle) <= MOST_LETTERS:
            return Found()
        best = best_runs(self._letters, needle, ranges, LEAST_SIMILARITY)
        spans = [(first, int(np.searchsorted(words.ends, end))) for first, end in best.runs]
        return Found(best.similarity, places_of(words, spans)) if spans else Found()

    def is_better_on(self, needle: str, pages: Sequence[int], than: float) -> bool:
        """Whether a run is more similar."""
        words = self._letters.words
        if than >= 1 or not needle:
            return False
        ranges = [words.range_of(page) for page in pages]
        if any(next(equal_runs(words, needle, each), None) for each in ranges):
            return True
        return len(needle) <= MOST_LETTERS and bool(
            best_runs(self._letters, needle, ranges, max(than, LEAST_SIMILARITY), is_first=True).runs
        )


def equal_runs(words: Words, needle: str, inside: range) -> Iterator[tuple[int, int]]:
    """(first, last) of each run of one page's words that equals a needle."""
    if not inside or not needle:
        return
    sought, end = f" {needle} ", int(words.ends[inside[-1]]) + 1
    at = words.text.find(sought, int(words.starts[inside[0]]) - 1, end)
    while at >= 0:
        first = int(np.searchsorted(words.starts, at + 1))
        last = int(np.searchsorted(words.ends, at + len(sought) - 1))
        yield first, last
        at = words.text.find(sought, at + 1, end)
