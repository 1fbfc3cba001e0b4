"""Where a string stands in a document, and how far two strings are apart: the grounding score.

A string is located at the runs of words, in reading order, that equal it or, without such runs, at the most similar
ones. This is how the paper grounds strings (section 3.1, footnote 2; appendix A).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mmlongbench.metrics.smudge.words import Array, Integers, Words

LEAST_SIMILARITY = 0.3
"""A prediction is located in a document only where a text has a similarity to it of more than this (the paper's
T)."""
MAX_PLACES = 1024
"""The maximum number of equally similar places that are compared; the places on the first pages are kept."""
MAX_LETTERS = 512
"""The maximum characters of a string for which similar text is searched for. For a longer string, only equal text is
searched for; no answer from a document is so long."""
_CHUNK = 512
"""How many places of one string are compared at once with all places of the other on the page."""


class Place(NamedTuple):
    """The centre of the box around a string's words, in units of the page's size."""

    page: int
    x: float
    y: float


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The places where a string, or the text that is most similar to it, was found."""

    similarity: float = 0.0
    """The similarity of the found text to the string: 1 if the string itself was found, 0 if nothing was found."""
    places: tuple[Place, ...] = ()
    """The places, by page."""
    is_exhaustive: bool = True
    """Whether these are all places; False if there are more than `MAX_PLACES`."""

    def on(self, page: int) -> Array:
        """Return the coordinates x and y of each place on a page."""
        return np.array([place[1:] for place in self.places if place.page == page])

    def distance(self, other: "Found") -> float:
        """Return the smallest distance, at most 1, between a place of one and a place of the other on the same page; 1
        if no page has both.
        """
        least = 1.0
        for page in {place.page for place in self.places} & {place.page for place in other.places}:
            own, others = self.on(page), other.on(page)
            for first in range(0, len(own), _CHUNK):
                apart = np.abs(own[first : first + _CHUNK, None] - others[None]).sum(axis=2)
                least = min(least, float(apart.min()))
        return least


def found_at(similarity: float, places: Iterable[Place]) -> Found:
    """Return a result with the given places; each place counts once, and the first `MAX_PLACES` by page are kept."""
    there = sorted(set(places))
    return Found(similarity if there else 0.0, tuple(there[:MAX_PLACES]), len(there) <= MAX_PLACES)


# The run of words that is most similar to a string by edit distance. All runs are searched; the result is exact.
#
# The runs that begin at one word are a lane, and all lanes advance by one character at a time. Myers' bit vectors (in
# Hyyrö's form for several machine words) give the distance of the needle to every run in one pass, so time grows with
# words × characters of the needle. A lane ends as soon as longer runs in it cannot be as good as the best run so far.

_BITS = 64
_ONE = np.uint64(1)
_THINNED = 8
"""The number of steps after which finished lanes are removed."""
_ROUNDING = 1e-6
_LANES = 4096
"""The number of lanes at once; their state fits into the processor's cache."""

Bits = npt.NDArray[np.uint64]


@dataclass(slots=True)
class Best:
    """The best runs so far, as (first word, place after the last character); at first, `similarity` is the value that a
    run must exceed.
    """

    similarity: float
    runs: list[tuple[int, int]] = field(default_factory=list)

    def take(self, similarities: Array, lanes: Integers, ends: Integers) -> None:
        """Keep the best of some new runs if they are at least as good as the runs so far."""
        top = float(similarities.max())
        if top < self.similarity or (top == self.similarity and not self.runs):
            return
        if top > self.similarity:
            self.similarity, self.runs = top, []
        chosen: npt.NDArray[np.bool_] = similarities == top
        self.runs += zip(lanes[chosen].tolist(), ends[chosen].tolist(), strict=True)


class Reading:
    """The words of a document in the order of its text. A string to find is given as its words (see `split`), with
    single blanks between them.
    """

    def __init__(self, words: Words) -> None:
        self._words, self.pages = words, words.pages.tolist()
        beyond = "\n" * (_THINNED + 1)  # lanes are removed some steps after the end of their page
        text = np.frombuffer((words.text + beyond).encode("utf-32-le", "surrogatepass"), np.uint32)
        self._alphabet, codes = np.unique(text, return_inverse=True)
        # each letter as its place in the alphabet of the document
        self._codes = codes.astype(np.uint16 if len(self._alphabet) < 1 << 16 else np.uint32)
        self._is_end = np.zeros(len(text), np.bool_)  # for each place in the text, whether a word ends just before it
        self._is_end[words.ends] = True
        lasts = words.ends[words.firsts[1:] - 1] if len(words) else words.ends
        # for each word, the end of the last word of its page
        self._page_ends: Integers = np.repeat(lasts, np.diff(words.firsts))

    @property
    def weight(self) -> int:
        """About how many bytes this object takes."""
        return self._words.weight + self._codes.nbytes + self._is_end.nbytes + self._page_ends.nbytes

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """Return the places, on some pages, of the runs that equal the string or, without such runs, of the most
        similar ones.
        """
        words, ranges = self._words, [self._words.range_of(page) for page in pages]
        runs = (run for each in ranges for run in equal_runs(words, needle, each))
        if spans := list(islice(runs, MAX_PLACES + 1)):
            return found_at(1.0, self._middles(spans))
        if not 0 < len(needle) <= MAX_LETTERS:
            return Found()
        best = self.best_runs(needle, ranges, 0.0)
        spans = [(first, int(np.searchsorted(words.ends, end))) for first, end in sorted(best.runs)[: MAX_PLACES + 1]]
        return found_at(best.similarity, self._middles(spans))

    def best_near(self, needle: str, pages: Sequence[int]) -> Found:
        """Return what `best` returns, but no places if the similarity is not above `LEAST_SIMILARITY`, or if another
        page of the document has a more similar text.
        """
        found = self.best(needle, pages)
        if found.similarity <= LEAST_SIMILARITY:
            return Found()
        if found.similarity == 1:
            return found
        others = [self._words.range_of(page) for page in self.pages if page not in pages]
        if any(next(equal_runs(self._words, needle, each), None) for each in others):
            return Found()
        is_better = self.best_runs(needle, others, found.similarity, is_first=True).runs
        return Found() if is_better else found

    def best_runs(self, needle: str, ranges: Iterable[range], above: float, *, is_first: bool = False) -> Best:
        """Return the runs of words that are most similar to a needle; they begin in the given ranges.

        Only runs with a similarity of more than `above` count. With `is_first` the search ends at the first such run.
        """
        best, table = Best(above), needle_bits(needle, self._alphabet)
        starts = np.concatenate([np.zeros(0, np.int64), *(np.arange(each.start, each.stop) for each in ranges)])
        for at in range(0, len(starts), _LANES):
            self._advance(len(needle), table, starts[at : at + _LANES], best, is_first=is_first)
            if is_first and best.runs:
                break
        return best

    def _advance(self, length: int, table: Bits, lanes: Integers, best: Best, *, is_first: bool) -> None:
        """Advance every lane through its runs; changes `best`."""
        at, limits = self._words.starts[lanes], self._page_ends[lanes]
        plus, minus = np.full((len(table), len(lanes)), ~np.uint64(0)), np.zeros((len(table), len(lanes)), np.uint64)
        errors, step = np.full(len(lanes), length, np.int64), 0
        while len(lanes) and (step + 1) * best.similarity <= length + _ROUNDING:
            errors += advance(plus, minus, table[:, self._codes[at]], length)
            at, step = at + 1, step + 1
            if step + _ROUNDING >= best.similarity * length:  # a shorter run is too short to be as similar
                ended = np.flatnonzero(self._is_end[at] & (at <= limits))
                if len(ended):
                    best.take((max(step, length) - errors[ended]) / max(step, length), lanes[ended], at[ended])
                if is_first and best.runs:
                    return
            if not step % _THINNED:
                # a step removes at most one error, and every letter beyond the needle's length is an error: so no later
                # run of a lane is more similar than 2 · length / (length + errors + step)
                kept = (at < limits) & ((errors + step + length) * best.similarity <= 2 * length + _ROUNDING)
                if not kept.all():
                    lanes, at, limits, errors = lanes[kept], at[kept], limits[kept], errors[kept]
                    plus, minus = plus[:, kept], minus[:, kept]

    def _middles(self, spans: Sequence[tuple[int, int]]) -> list[Place]:
        """Return the place of each run of words, given by its first and last word: the centre of the box around it."""
        boxes, firsts = self._words.boxes, np.array([first for first, _ in spans], np.int64)
        corners = np.array([[*boxes[a : b + 1, :2].min(axis=0), *boxes[a : b + 1, 2:].max(axis=0)] for a, b in spans])
        middles = (corners[:, :2] + corners[:, 2:]) / 2 if spans else np.zeros((0, 2))
        pages = self._words.page_of(firsts)
        return [Place(page, x, y) for page, (x, y) in zip(pages.tolist(), middles.tolist(), strict=True)]


def equal_runs(words: Words, needle: str, inside: range) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of each run of words on one page that equals a needle."""
    if not inside or not needle:
        return
    sought, end = f" {needle} ", int(words.ends[inside[-1]]) + 1
    at = words.text.find(sought, int(words.starts[inside[0]]) - 1, end)
    while at >= 0:
        yield int(np.searchsorted(words.starts, at + 1)), int(np.searchsorted(words.ends, at + len(sought) - 1))
        at = words.text.find(sought, at + 1, end)


def needle_bits(needle: str, alphabet: npt.NDArray[np.uint32]) -> Bits:
    """Return a row for each 64 letters of the needle, with a number for each letter of the alphabet.

    Bit i of the number is 1 if the needle has the letter at place i of these 64.
    """
    codes = np.frombuffer(needle.encode("utf-32-le", "surrogatepass"), np.uint32)
    table = np.zeros((-(-len(codes) // _BITS), len(alphabet)), np.uint64)
    at = np.minimum(np.searchsorted(alphabet, codes), len(alphabet) - 1)
    for place in np.flatnonzero(alphabet[at] == codes).tolist():
        table[place // _BITS, at[place]] |= np.uint64(1 << place % _BITS)
    return table


def advance(plus: Bits, minus: Bits, equal: Bits, length: int) -> Integers:
    """Advance every lane by one character, and return how the distances to the whole needle change.

    This changes `plus` and `minus`, the vertical differences of a column of the table of distances, with one bit for
    each letter of the needle.
    """
    more: Bits | np.uint64 = _ONE
    less: Bits | np.uint64 = np.uint64(0)  # the top of the table grows by one for each character
    for row in range(len(plus)):
        before: Bits = plus[row]
        after: Bits = minus[row]
        match: Bits = equal[row]
        down, eq = match | after, match | less
        across = eq & before
        across += before
        across ^= before
        across |= eq
        grows, falls = after | ~(across | before), before & across
        shift = np.uint64(_BITS - 1 if row < len(plus) - 1 else (length - 1) % _BITS)
        grown, fallen = (grows >> shift) & _ONE, (falls >> shift) & _ONE
        grows <<= _ONE
        grows |= more
        falls <<= _ONE
        falls |= less
        np.bitwise_and(grows, down, out=minus[row])
        np.bitwise_or(falls, ~(down | grows), out=plus[row])
        more, less = grown, fallen
    return np.asarray(more, np.int64) - np.asarray(less, np.int64)
