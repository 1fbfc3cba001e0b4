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
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mmlongbench.metrics.missing import missing
from mmlongbench.metrics.smudge.graph import MAX_NEIGHBOURS, MAX_WORDS, neighbours_on
from mmlongbench.metrics.smudge.places import LEAST_SIMILARITY, MAX_PLACES, Found, found_at, places_of
from mmlongbench.metrics.smudge.reading import MAX_LETTERS
from mmlongbench.metrics.smudge.spelling import Front, Target, begin, extend, promises, similarities, target_of
from mmlongbench.metrics.smudge.windows import Letters
from mmlongbench.metrics.smudge.words import Array, Integers

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
