"""Finds a string without any reading order, by the paths of the paper's Algorithm 1 over the β-skeleton of each page.

The paper offers this for documents without a reliable reading order (appendix A, section 7); it did not use it.

A path begins at a word whose similarity to the string's first word is at least T (`LEAST_SIMILARITY`), and ends at a
word whose similarity to the string's last word is at least T. It goes from neighbour to neighbour and uses no word
twice. The string is located at the path whose text is most similar to it, if that similarity is more than T. For words,
T itself is enough because of the paper's own example: the similarity of `mgs`, the last word of a right answer, to
`milligrams` is exactly T, and that answer must be found. If a string continues on another line, only a part of it may
be found, because the end of a line and the beginning of the next are rarely neighbours.

All paths grow together, one word at a time. A path is given up as soon as no continuation can be as similar as the best
path so far, so the best path is never lost. The time for a page is limited: `MAX_NEIGHBOURS` and `MAX_WORDS` limit the
graph; `MAX_STARTS`, `MAX_EQUAL` and `MAX_UNDER_WAY` limit the search. If a search reaches one of its limits, it keeps
only some paths, and the result is marked as not exhaustive. The result for a page of more than `MAX_WORDS` words is
marked, too. Answers of a few words stay far below the limits of the search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mmlongbench.answers import missing
from mmlongbench.metrics.smudge.reading import (
    LEAST_SIMILARITY,
    MAX_LETTERS,
    MAX_PLACES,
    Bits,
    Found,
    Letters,
    advance,
    found_at,
    needle_bits,
    places_of,
)
from mmlongbench.metrics.smudge.words import Array, Integers, Words

# Texts of unfinished paths, compared with a string. The edit distances of many paths are computed at once. The table of
# distances between a path's text and the string has a row for each letter of the string. Only the last column of the
# table is kept: the differences between neighbouring rows as bits (see `reading.advance`), and the distance to the
# whole string.

_CELLS = 1 << 21
"""How many distances are computed at once."""
_ROUNDING_spelling = 1e-3
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
    return least <= share * string.length + _ROUNDING_spelling, ranks


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


# Which words of a page are neighbours, whatever the reading order: the β-skeleton of their boxes for β = 1.
#
# Two points are joined if no other point is inside the circle whose diameter is the line between them (Gabriel graph).
# Two words are neighbours if a point of one is joined to a point of the other. The points of a box are its corners and
# the middles of its left and right sides. With centres alone, wide words of one line would be further apart than words
# of two lines. With corners alone, overlapping boxes of close lines would come between words of one line.

MAX_NEIGHBOURS = 24
"""The maximum number of a word's neighbours that are kept, the nearest first; of 367,000 words on real pages none has
more than 21."""
MAX_WORDS = 20_000
"""The maximum words of a page for which a graph is made. On a page with more words, the neighbours of a word are the
words before and after it."""
_POINTS = [(x, y) for x in (0, 2) for y in ((1, 1), (3, 3), (1, 3))]
"""For each point: the index of its x in a box (x0, y0, x1, y1), and the indices of the two values whose mean is its
y."""
_MOVED = 1e-9
"""Each point is moved by less than this share of the width or height of all points together, whichever is larger. Then
no four points are on one circle, which halves the time of the triangulation."""
_RATIOS = (0.6180339887498949, 0.7548776662466927)
"""An irrational step for each axis, so that all points of a page are moved differently."""


def neighbours_on(words: Words, page: int) -> Integers:
    """Return a row for each word of a page: the numbers of the word's neighbours, nearest first; −1 fills the rest."""
    numbers = words.range_of(page)
    boxes = words.boxes[numbers.start : numbers.stop]
    table = np.full((len(boxes), MAX_NEIGHBOURS), -1, np.int64)
    one, other = _joined(boxes) if len(boxes) <= MAX_WORDS else _in_order(len(boxes))
    order = np.lexsort((other, _gaps(boxes[one], boxes[other]), one))
    one, other = one[order], other[order]
    rank = np.arange(len(one)) - np.searchsorted(one, one)
    kept = rank < MAX_NEIGHBOURS
    table[one[kept], rank[kept]] = numbers.start + other[kept]
    return table


def _in_order(size: int) -> tuple[Integers, Integers]:
    """Return the pairs of words that follow each other, each pair in both orders."""
    first, second = np.arange(size - 1), np.arange(1, size)
    return np.r_[first, second], np.r_[second, first]


def _joined(boxes: Array) -> tuple[Integers, Integers]:
    """Return the pairs of boxes with joined points, each pair in both orders."""
    size = len(boxes)
    points = np.concatenate([np.stack([boxes[:, x], boxes[:, ys].mean(axis=1)], axis=1) for x, ys in _POINTS])
    one, other = gabriel_edges(points).T % max(1, size)
    pairs = np.concatenate([one * size + other, other * size + one])[np.tile(one != other, 2)]
    first, second = np.divmod(np.unique(pairs), max(1, size))
    return first, second


def gabriel_edges(points: Array) -> Integers:
    """Return all edges of the Gabriel graph, each as a row with the indices of two points. Points at the same place are
    joined in a chain.

    All edges of the graph are in the Delaunay triangulation. To test an edge, it is enough to look at the
    opposite corners of its triangles.
    """
    order = np.lexsort(points.T)
    is_new = np.r_[True, np.any(np.diff(points[order], axis=0) != 0, axis=1)] if len(points) else np.zeros(0, np.bool_)
    chains = np.stack([order[:-1][~is_new[1:]], order[1:][~is_new[1:]]], axis=1)
    standing = order[is_new]
    return np.concatenate([chains, standing[_edges(points[standing])]])


def _edges(places: Array) -> Integers:
    """Return the edges of the Gabriel graph of distinct places, which must be sorted by y, then x."""
    try:
        from scipy.spatial import Delaunay, QhullError
    except ImportError as error:
        raise missing("scipy", "smudge") from error
    if len(places) < 4:
        return _clear(places, np.array([(a, b) for b in range(len(places)) for a in range(b)], np.int64).reshape(-1, 2))
    try:
        corners: Integers = np.asarray(Delaunay(_moved(places)).simplices, np.int64)
    except QhullError:  # all points are on one line
        return np.stack([np.arange(len(places) - 1), np.arange(1, len(places))], axis=1)
    a, b, c = corners.T
    sides, opposite = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), np.r_[c, a, b]
    one, other = places[sides[:, 0]], places[sides[:, 1]]
    # the angle at a corner is wider than a right angle exactly if the corner lies inside the circle
    is_inside = ((one - places[opposite]) * (other - places[opposite])).sum(axis=1) < 0
    keys, of_side = np.unique(sides.min(axis=1) * len(places) + sides.max(axis=1), return_inverse=True)
    is_crossed = np.zeros(len(keys), np.bool_)
    is_crossed[of_side[is_inside]] = True
    return np.stack(np.divmod(keys[~is_crossed], len(places)), axis=1)


def _moved(places: Array) -> Array:
    """Move each place by its own tiny distance."""
    steps = np.arange(len(places))[:, None] * np.array(_RATIOS) % 1 - 0.5
    return np.asarray(places + steps * (_MOVED * float(np.ptp(places, axis=0).max())), np.float64)


def _clear(places: Array, pairs: Integers) -> Integers:
    """Return those pairs of a few places whose circle contains no other place."""
    kept = [
        (a, b)
        for a, b in pairs.tolist()
        if not any(np.dot(places[a] - other, places[b] - other) < 0 for other in np.delete(places, [a, b], axis=0))
    ]
    return np.array(kept, np.int64).reshape(-1, 2)


def _gaps(one: Array, other: Array) -> Array:
    """Return, for each row, the horizontal plus the vertical gap between the two boxes."""
    across = np.maximum(np.maximum(one[:, 0] - other[:, 2], other[:, 0] - one[:, 2]), 0)
    down = np.maximum(np.maximum(one[:, 1] - other[:, 3], other[:, 1] - one[:, 3]), 0)
    return np.asarray(across + down, np.float64)


# The search.

MAX_UNDER_WAY = 1 << 19
"""The limit for unfinished paths × the square of the number of letters in the string: 1,310 paths for 20 letters."""
MAX_EQUAL = 1 << 18
"""The limit for the number of paths that equal the string so far × the number of words in the string."""
MAX_STARTS = 1 << 16
"""The maximum number of words at which paths begin."""
_FEW_ERRORS = 6
"""Texts with fewer errors than this are searched for first."""
_NARROW = 16
"""The other searches may keep this many times as many unfinished paths as a narrow search (see `_searches`)."""
_FEWEST = 16
"""Any search may keep at least this many unfinished paths."""
_ROUNDING = 1e-6
"""A tolerance in letters, so that rounding does not remove a path that is as similar as the best."""
Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Best:
    """The best paths so far; at first, `similarity` is the value that a path must exceed."""

    similarity: float
    rows: list[Integers] = field(default_factory=list)
    is_exhaustive: bool = True

    def __bool__(self) -> bool:
        """Return whether there is any path."""
        return any(len(rows) for rows in self.rows)

    def inside(self, is_inside: Mask) -> "_Best":
        """Return the paths on some pages; `is_inside` says for each word whether it is on one of these pages."""
        return _Best(self.similarity, [rows[is_inside[rows[:, 0]]] for rows in self.rows], self.is_exhaustive)

    def take(self, similar: Array, rows: Rows) -> None:
        """Keep the best of some new paths if they are at least as good as the paths so far."""
        top = float(similar.max(initial=0.0))
        if top < self.similarity or (top == self.similarity and not self.rows):
            return
        if top > self.similarity:
            self.similarity, self.rows = top, []
        ordered = np.unique(np.sort(rows[similar == top], axis=1), axis=0)
        self.rows.append(ordered[: MAX_PLACES + 1].astype(np.int64))


class Paths:
    """The words of a document, with a graph for each page (a `Locator`)."""

    def __init__(self, letters: Letters) -> None:
        words = letters.words
        self._letters, texts = letters, [words.word(number) for number in range(len(words))]
        self._vocabulary = sorted(set(texts))
        self._numbers = {word: number for number, word in enumerate(self._vocabulary)}
        self._sizes = np.array([len(word) for word in self._vocabulary], np.int64)
        self._word_of = np.array([self._numbers[word] for word in texts], np.int64)
        self._in_order = np.argsort(self._word_of, kind="stable")
        self._firsts = np.searchsorted(self._word_of[self._in_order], np.arange(len(self._vocabulary) + 1))
        self._page = np.repeat(np.arange(len(words.pages)), np.diff(words.firsts))
        self._near = np.zeros((len(words), MAX_NEIGHBOURS), np.int32)
        """A row for each word: the numbers of the word's neighbours, each plus 1, then zeros. The row has only zeros
        until the graph of the page is built."""
        self._is_built = np.zeros(len(words.pages), np.bool_)
        self._is_small = np.diff(words.firsts) <= MAX_WORDS
        """For each page, whether it gets a graph; if not, only words that follow each other are neighbours."""

    @property
    def weight(self) -> int:
        """About how many bytes this object takes."""
        return self._near.nbytes + 3 * self._word_of.nbytes + 128 * len(self._vocabulary)

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """Return the places of the paths whose text is most similar to the string, if the similarity is more than T."""
        own, is_inside = needle.split(), np.isin(self._letters.words.pages, pages)
        return self._found(self._equal(own, is_inside) or self._similar(needle, own, is_inside))

    def best_near(self, needle: str, pages: Sequence[int]) -> Found:
        """Search all pages in the same way, and return those of the best places that are on the given pages."""
        own, is_near = needle.split(), np.isin(self._letters.words.pages, pages)
        if best := self._equal(own, is_near):
            return self._found(best)
        if best := self._equal(own, ~is_near):
            return Found(is_exhaustive=best.is_exhaustive)
        best = self._similar(needle, own, np.ones_like(is_near))
        return self._found(best.inside(is_near[self._page]))

    def _found(self, best: _Best) -> Found:
        places = [place for rows in best.rows for place in places_of(self._letters.words, rows)]
        return found_at(best.similarity, places, is_exhaustive=best.is_exhaustive)

    def _equal(self, own: Sequence[str], is_inside: Mask) -> _Best:
        """Return the paths whose text equals the string."""
        best, numbers = _Best(0.0), [self._numbers.get(word, -1) for word in own]
        if min(numbers, default=-1) < 0:
            return best
        is_there = is_inside.copy()
        for number in set(numbers):
            is_there &= self._pages_of(self._spelling(number))
        starts = self._spelling(numbers[0])
        starts = starts[is_there[self._page[starts]]]
        rows = starts[:, None].astype(np.int32)
        best.is_exhaustive &= len(own) == 1 or self._has_graphs(starts)
        for number in numbers[1:]:
            paths, nodes = self._steps(rows)
            wanted = self._word_of[nodes] == number
            rows = np.concatenate([rows[paths[wanted]], nodes[wanted, None].astype(np.int32)], axis=1)
            bound = max(1, MAX_EQUAL // len(own))
            best.is_exhaustive &= len(rows) <= bound
            rows = rows[:bound]
        best.take(np.ones(len(rows)), rows)
        return best

    def _similar(self, needle: str, own: Sequence[str], is_inside: Mask) -> _Best:
        """Return the paths whose text is most similar to the string, if the similarity is more than T."""
        best = _Best(LEAST_SIMILARITY)
        if not 0 < len(needle) <= MAX_LETTERS:
            return best
        firsts, lasts = (self._alike(word) & is_inside[self._page] for word in (own[0], own[-1]))
        firsts, lasts = firsts & self._pages_of(lasts)[self._page], lasts & self._pages_of(firsts)[self._page]
        is_backward = bool(lasts.sum() < firsts.sum())
        starts, is_end = (np.flatnonzero(lasts), firsts) if is_backward else (np.flatnonzero(firsts), lasts)
        string = target_of(needle, self._letters, is_backward=is_backward)
        for least, bound in _searches(len(needle)):
            best = _Best(best.similarity if best.rows else least, best.rows)
            self._search(string, starts, is_end, best, bound)
            if best.is_exhaustive and (best.rows or least == LEAST_SIMILARITY):
                break
        return best

    def _search(self, string: Target, starts: Integers, is_end: Mask, best: _Best, bound: int) -> None:
        """Grow all paths until none can be as good as the best; changes `best`."""
        nodes = starts[self._sizes[self._word_of[starts]] <= string.length / best.similarity + _ROUNDING]
        best.is_exhaustive &= len(nodes) <= MAX_STARTS and self._has_graphs(nodes)
        nodes = nodes[:MAX_STARTS]
        front = begin(nodes, self._word_of[nodes], self._letters, string)
        while len(front.rows):
            best.take(np.where(is_end[front.rows[:, -1]], similarities(front, string), 0.0), front.rows)
            front = _promising(front, string, best, bound)
            paths, nodes = self._steps(front.rows)
            lengths = front.lengths[paths] + 1 + self._sizes[self._word_of[nodes]]
            kept = lengths <= string.length / best.similarity + _ROUNDING
            front = extend(front.taken(paths[kept]), nodes[kept], self._letters, string)

    def _alike(self, word: str) -> Mask:
        """Return, for each word of the document, whether its similarity to a given word is at least T."""
        try:
            from rapidfuzz.distance import Levenshtein
            from rapidfuzz.process import cdist
        except ImportError as error:
            raise missing("rapidfuzz", "smudge") from error
        apart = np.asarray(cdist([word], self._vocabulary, scorer=Levenshtein.distance, dtype=np.int64), np.int64)[0]
        longest = np.maximum(self._sizes, len(word))
        return np.asarray((longest - apart) / longest >= LEAST_SIMILARITY)[self._word_of]

    def _spelling(self, number: int) -> Integers:
        """Return all words with a given spelling."""
        return np.asarray(self._in_order[self._firsts[number] : self._firsts[number + 1]], np.int64)

    def _has_graphs(self, words: Integers) -> bool:
        """Return whether every page of some words has a graph."""
        return bool(self._is_small[self._page[words]].all())

    def _pages_of(self, words: Integers | Mask) -> Mask:
        """Return, for each page, whether it contains any of some words."""
        return np.bincount(self._page[words], minlength=len(self._is_built)) > 0

    def _steps(self, rows: Rows) -> tuple[Integers, Integers]:
        """Return two arrays with a value for each possible next step: the index of the path, the number of the word."""
        pages = self._page[rows[:, -1]]
        for page in np.unique(pages[~self._is_built[pages]]).tolist():
            words = self._letters.words
            numbers = words.range_of(int(words.pages[page]))
            self._near[numbers.start : numbers.stop] = neighbours_on(words, int(words.pages[page])) + 1
            self._is_built[page] = True
        near = self._near[rows[:, -1]]
        paths, columns = np.nonzero(near)
        nodes = near[paths, columns].astype(np.int64) - 1
        is_new = ~(rows[paths] == nodes[:, None]).any(axis=1)
        return paths[is_new], nodes[is_new]


def _searches(length: int) -> Iterator[tuple[float, int]]:
    """Yield the searches for a string as (similarity to exceed, maximum number of unfinished paths), in their order.

    The first search finds texts with few errors, and is quick if the pages have no such text. The second is narrow: it
    keeps few paths. With the best path of the narrow search, the last search can give up most other paths and so be
    exhaustive. The first search is left out for short strings, the narrow search for long strings.
    """
    most = max(_FEWEST, MAX_UNDER_WAY // length**2)
    if 1 - _FEW_ERRORS / length > LEAST_SIMILARITY:
        yield 1 - _FEW_ERRORS / length, most
    if most > _FEWEST * _NARROW:
        yield LEAST_SIMILARITY, most // _NARROW
    yield LEAST_SIMILARITY, most


def _promising(front: Front, string: Target, best: _Best, bound: int) -> Front:
    """Return the paths that may still be as good as the best, at most `bound` of them."""
    may, ranks = promises(front, string, best.similarity)
    kept = np.flatnonzero(may)
    if len(kept) > bound:
        best.is_exhaustive = False
        kept = kept[np.argsort(ranks[kept], kind="stable")[:bound]]
    return front.taken(kept)
