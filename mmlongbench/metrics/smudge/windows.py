"""Finds the run of words that is most similar to a string by edit distance. All runs are searched; the result is exact.

The runs that begin at one word are a lane, and all lanes advance by one character at a time. Myers' bit vectors (in
Hyyrö's form for several machine words) give the distance of the needle to every run in one pass, so time grows with
words × characters of the needle. A lane ends as soon as longer runs in it cannot be as good as the best run so far.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mmlongbench.metrics.smudge.words import Integers, Words

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

    def take(self, similarities: npt.NDArray[np.float64], lanes: Integers, ends: Integers) -> None:
        """Keep the best of some new runs if they are at least as good as the runs so far."""
        top = float(similarities.max())
        if top < self.similarity or (top == self.similarity and not self.runs):
            return
        if top > self.similarity:
            self.similarity, self.runs = top, []
        chosen: npt.NDArray[np.bool_] = similarities == top
        self.runs += zip(lanes[chosen].tolist(), ends[chosen].tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class Letters:
    """A document's text as numbers: each letter's place in the alphabet of the document."""

    words: Words
    alphabet: npt.NDArray[np.uint32]
    codes: npt.NDArray[np.uint32]
    is_end: npt.NDArray[np.bool_]
    """For each place in the text, whether a word ends just before it."""
    page_ends: Integers
    """For each word, the end of the last word of its page."""

    @property
    def weight(self) -> int:
        """About how many bytes this object takes."""
        return self.codes.nbytes + self.is_end.nbytes + self.page_ends.nbytes


def letters_of(words: Words) -> Letters:
    """Prepare a document for searches."""
    beyond = "\n" * (_THINNED + 1)  # lanes are removed some steps after the end of their page
    text = np.frombuffer((words.text + beyond).encode("utf-32-le", "surrogatepass"), np.uint32)
    alphabet, codes = np.unique(text, return_inverse=True)
    is_end = np.zeros(len(text), np.bool_)
    is_end[words.ends] = True
    lasts = words.ends[words.firsts[1:] - 1] if len(words) else words.ends
    page_ends = np.repeat(lasts, np.diff(words.firsts))
    return Letters(
        words, alphabet, codes.astype(np.uint16 if len(alphabet) < 1 << 16 else np.uint32), is_end, page_ends
    )


def best_runs(letters: Letters, needle: str, ranges: list[range], above: float, *, is_first: bool = False) -> Best:
    """Return the runs of words that are most similar to a needle; they begin in the given ranges.

    Only runs with a similarity of more than `above` count. With `is_first` the search ends at the first such run.
    """
    best, table = Best(above), needle_bits(needle, letters.alphabet)
    for lanes in _batches(ranges):
        _run(letters, len(needle), table, lanes, best, is_first=is_first)
        if is_first and best.runs:
            break
    return best


def _batches(ranges: list[range]) -> Iterator[Integers]:
    """Yield the lanes of some ranges in batches."""
    if lanes := [np.arange(each.start, each.stop) for each in ranges if each]:
        whole = np.concatenate(lanes)
        yield from (whole[at : at + _LANES] for at in range(0, len(whole), _LANES))


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


def _run(letters: Letters, length: int, table: Bits, lanes: Integers, best: Best, *, is_first: bool) -> None:
    """Advance every lane through its runs; changes `best`."""
    at, limits = letters.words.starts[lanes], letters.page_ends[lanes]
    plus, minus = np.full((len(table), len(lanes)), ~np.uint64(0)), np.zeros((len(table), len(lanes)), np.uint64)
    errors, step = np.full(len(lanes), length, np.int64), 0
    while len(lanes) and (step + 1) * best.similarity <= length + _ROUNDING:
        errors += advance(plus, minus, table[:, letters.codes[at]], length)
        at, step = at + 1, step + 1
        if step + _ROUNDING >= best.similarity * length:  # a shorter run is too short to be as similar
            ended = np.flatnonzero(letters.is_end[at] & (at <= limits))
            if len(ended):
                best.take((max(step, length) - errors[ended]) / max(step, length), lanes[ended], at[ended])
            if is_first and best.runs:
                return
        if not step % _THINNED:
            # a step removes at most one error, and every letter beyond the needle's length is an error: so no later run
            # of a lane is more similar than 2 · length / (length + errors + step)
            kept = (at < limits) & ((errors + step + length) * best.similarity <= 2 * length + _ROUNDING)
            if not kept.all():
                lanes, at, limits, errors = lanes[kept], at[kept], limits[kept], errors[kept]
                plus, minus = plus[:, kept], minus[:, kept]


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
