"""Finds a string among words in reading order: the runs of words that equal the string or, without such runs, the most
similar runs. This is how the paper grounds strings (section 3.1, footnote 2; appendix A).
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from mmlongbench.metrics.smudge.places import LEAST_SIMILARITY, MAX_PLACES, Found, Place, found_at, places_of
from mmlongbench.metrics.smudge.windows import Letters, best_runs
from mmlongbench.metrics.smudge.words import Words

MAX_LETTERS = 512
"""The maximum characters of a string for which similar text is searched for. For a longer string, only equal text is
searched for; no answer from a document is so long."""


class Reading:
    """The words of a document in the order of its text (a `Locator`)."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """Return the places of the runs that equal the string or, without such runs, of the most similar ones."""
        words, ranges = self._letters.words, self._ranges(pages)
        runs = (run for each in ranges for run in equal_runs(words, needle, each))
        if spans := list(islice(runs, MAX_PLACES + 1)):
            return found_at(1.0, _middles(words, spans))
        if not 0 < len(needle) <= MAX_LETTERS:
            return Found()
        best = best_runs(self._letters, needle, ranges, 0.0)
        spans = [(first, int(np.searchsorted(words.ends, end))) for first, end in sorted(best.runs)[: MAX_PLACES + 1]]
        return found_at(best.similarity, _middles(words, spans))

    def best_near(self, needle: str, pages: Sequence[int]) -> Found:
        """Return what `best` returns, but no places if it is not similar enough, or a run on another page is more
        similar.
        """
        found = self.best(needle, pages)
        if found.similarity <= LEAST_SIMILARITY:
            return Found()
        if found.similarity == 1:
            return found
        words = self._letters.words
        others = self._ranges(np.setdiff1d(words.pages, pages).tolist())
        if any(next(equal_runs(words, needle, each), None) for each in others):
            return Found()
        is_better = best_runs(self._letters, needle, others, found.similarity, is_first=True).runs
        return Found() if is_better else found

    def _ranges(self, pages: Sequence[int]) -> list[range]:
        """Return the numbers of the words of some pages, a range for each page."""
        return [self._letters.words.range_of(page) for page in pages]


def equal_runs(words: Words, needle: str, inside: range) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of each run of words on one page that equals a needle."""
    if not inside or not needle:
        return
    sought, end = f" {needle} ", int(words.ends[inside[-1]]) + 1
    at = words.text.find(sought, int(words.starts[inside[0]]) - 1, end)
    while at >= 0:
        first = int(np.searchsorted(words.starts, at + 1))
        last = int(np.searchsorted(words.ends, at + len(sought) - 1))
        yield first, last
        at = words.text.find(sought, at + 1, end)


def _middles(words: Words, spans: Sequence[tuple[int, int]]) -> list[Place]:
    """Return the places of runs of words, each given by its first and last word."""
    by_size: dict[int, list[int]] = {}
    for first, last in spans:
        by_size.setdefault(last - first + 1, []).append(first)
    return [
        place
        for size, firsts in by_size.items()
        for place in places_of(words, np.array(firsts)[:, None] + np.arange(size))
    ]
