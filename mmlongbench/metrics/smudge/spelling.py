"""Compares the texts of unfinished paths with a string. The edit distances of many paths are computed at once.

The table of distances between a path's text and the string has a row for each letter of the string. Only the last
column of the table is kept: the differences between neighbouring rows as bits (see `windows.advance`), and the
distance to the whole string.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mmlongbench.metrics.smudge.windows import Bits, Letters, advance, needle_bits
from mmlongbench.metrics.smudge.words import Array, Integers

_CELLS = 1 << 21
"""How many distances are computed at once."""
_ROUNDING = 1e-3
"""A tolerance in errors, so that rounding does not remove a path."""


@dataclass(frozen=True, slots=True)
class Target:
    """A string to compare with, in the direction in which paths grow."""

    length: int
    table: Bits
    is_backward: bool
    """Whether paths grow from the string's end to its beginning."""


@dataclass(frozen=True, slots=True)
class Front:
    """Unfinished paths of the same number of words; each path has a place in every array."""

    rows: npt.NDArray[np.int32]
    """The numbers of each path's words, in the order of the path."""
    lengths: Integers
    """How many letters each path's text has, with a blank between words."""
    errors: Integers
    """The edit distance of each path's text to the whole string."""
    plus: Bits
    minus: Bits

    def taken(self, paths: Integers) -> "Front":
        """Return the paths with the given indices, in the order of the indices."""
        return Front(
            self.rows[paths], self.lengths[paths], self.errors[paths], self.plus[:, paths], self.minus[:, paths]
        )


def target_of(needle: str, letters: Letters, *, is_backward: bool) -> Target:
    """Prepare a string for comparisons with the words of a document."""
    return Target(len(needle), needle_bits(needle[::-1] if is_backward else needle, letters.alphabet), is_backward)


def begin(starts: Integers, kinds: Integers, letters: Letters, string: Target) -> Front:
    """Return paths of one word each; starts of equal `kinds` have the same spelling, which is compared once."""
    _, firsts, of_start = np.unique(kinds, return_index=True, return_inverse=True)
    shape = (len(string.table), len(firsts))
    plus, minus = np.full(shape, ~np.uint64(0)), np.zeros(shape, np.uint64)
    lengths, errors = np.zeros(len(firsts), np.int64), np.full(len(firsts), string.length, np.int64)
    front = Front(np.zeros((len(firsts), 0), np.int32), lengths, errors, plus, minus)
    return replace(
        extend(front, starts[firsts], letters, string).taken(of_start), rows=starts[:, None].astype(np.int32)
    )


def extend(front: Front, nodes: Integers, letters: Letters, string: Target) -> Front:
    """Return the paths, each longer by one word."""
    blank = 1 if front.rows.shape[1] else 0
    added = letters.words.ends[nodes] - letters.words.starts[nodes] + blank
    order = np.argsort(-added, kind="stable")  # longest first, so words with unread letters stay in front
    sizes = added[order]
    plus, minus, errors = front.plus[:, order], front.minus[:, order], front.errors[order]
    if string.is_backward:
        at, step = letters.words.ends[nodes[order]] - 1 + blank, -1
    else:
        at, step = letters.words.starts[nodes[order]] - blank, 1
    for taken in range(int(sizes[0]) if len(sizes) else 0):
        count = int(np.searchsorted(-sizes, -taken))
        equal = string.table[:, letters.codes[at[:count] + step * taken]]
        errors[:count] += advance(plus[:, :count], minus[:, :count], equal, string.length)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    rows = np.concatenate([front.rows, nodes[:, None].astype(np.int32)], axis=1)
    return Front(rows, front.lengths + added, errors[back], plus[:, back], minus[:, back])


def similarities(front: Front, string: Target) -> Array:
    """Return how similar the text of each path is to the string."""
    longest = np.maximum(front.lengths, string.length)
    return np.asarray((longest - front.errors) / longest, np.float64)


def promises(front: Front, string: Target, similarity: float) -> tuple[npt.NDArray[np.bool_], Array]:
    """Return which paths may still reach a similarity, and a rank for each; lower ranks are more promising.

    At best, a path continues with exactly the letters that follow some letter of the string. Then it has only the
    errors up to that letter; if its text becomes longer than the string, the similarity allows more errors. So a path
    that may still reach the similarity is never given up. The rank compares the errors of a path with the errors that
    the similarity allows for the letters so far.
    """
    share, places = np.float32(1 - similarity), np.arange(string.length + 1, dtype=np.float32)
    least, ranks = np.zeros(len(front.rows)), np.zeros(len(front.rows))
    size = max(1, _CELLS // len(places))
    for first in range(0, len(front.rows), size):
        part = slice(first, first + size)
        errors = _columns(front, part, string.length)
        longer = np.maximum(front.lengths[part, None].astype(np.float32) - places, 0)
        least[part] = (errors - share * longer).min(axis=1)
        ranks[part] = (errors - share * places).min(axis=1)
    return least <= share * string.length + _ROUNDING, ranks


def _columns(front: Front, part: slice, length: int) -> npt.NDArray[np.float32]:
    """Return a row for each path: the edit distance of its text to the first 0, 1, 2, … letters of the string."""
    rises, falls = (_unpacked(bits[:, part], length) for bits in (front.plus, front.minus))
    found = np.empty((len(rises), length + 1), np.float32)
    found[:, 0] = front.lengths[part]
    np.cumsum(rises - falls, axis=1, dtype=np.float32, out=found[:, 1:])
    found[:, 1:] += found[:, :1]
    return found


def _unpacked(bits: Bits, length: int) -> npt.NDArray[np.int8]:
    """Return a row for each path: its bit for each letter of the string."""
    whole = np.ascontiguousarray(bits.T, "<u8").view(np.uint8)
    return np.unpackbits(whole, axis=1, count=length, bitorder="little").view(np.int8)
