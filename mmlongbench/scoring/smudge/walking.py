"""Finds a string without any reading order: by walks from word to neighbouring word over a page's β-skeleton.

A walk begins at a word that the string has, the one that the page has least often, or else at the words most like one
of its own, and takes a step at either end as long as the string it spells becomes more similar: the most similar first,
then the nearest. It is a climb, so the best walk of all can be missed, and of a string that goes on in another line
only a part is found: the end of one line and the beginning of the next are no neighbours.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mmlongbench.scoring.errors import missing
from mmlongbench.scoring.smudge.graph import neighbours_on
from mmlongbench.scoring.smudge.matching import similarity
from mmlongbench.scoring.smudge.places import LEAST_SIMILARITY, MOST_PLACES, Found, place_of
from mmlongbench.scoring.smudge.reading import MOST_LETTERS
from mmlongbench.scoring.smudge.words import Array, Words

_STARTS = 64
"""Walks that begin on one page."""
_LIKE = 8
"""Words to begin at, where a page has none of the string's own."""


class Walking:
    """The words of a document as a graph a page (a `Locator`)."""

    def __init__(self, words: Words) -> None:
        self._words = words
        spelt = [words.word(number) for number in range(len(words))]
        self._vocabulary = sorted(set(spelt))
        numbers = {word: number for number, word in enumerate(self._vocabulary)}
        self._spelt = np.array([numbers[word] for word in spelt], np.int64)
        self._graphs: dict[int, dict[int, tuple[int, ...]]] = {}

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """The end of the walks that spells what is most similar."""
        top, paths = LEAST_SIMILARITY, set[tuple[int, ...]]()
        for path, similar in self._walks(needle, pages, LEAST_SIMILARITY):
            if similar > top:
                top, paths = similar, set()
            if similar == top > LEAST_SIMILARITY:
                paths.add(tuple(sorted(path)))
        places = tuple(place_of(self._words, path) for path in sorted(paths)[:MOST_PLACES])
        return Found(top, places) if places else Found()

    def is_better_on(self, needle: str, pages: Sequence[int], than: float) -> bool:
        """Whether a walk spells what is more similar."""
        return than < 1 and any(similar > than for _, similar in self._walks(needle, pages, than))

    def _walks(self, needle: str, pages: Sequence[int], above: float) -> Iterator[tuple[list[int], float]]:
        """Every walk: the words of its end, and how similar what they spell is to the needle."""
        own = needle.split()
        if not 0 < len(needle) <= MOST_LETTERS or not own:
            return
        likeness = self._likeness(own)
        for page in pages:
            for start in self._starts(likeness, self._words.range_of(page), above):
                yield self._climb(needle, start, self._graph(page))

    def _likeness(self, own: list[str]) -> Array:
        """(word of the needle, word of the vocabulary) → their similarity."""
        try:
            from rapidfuzz.distance import Levenshtein
            from rapidfuzz.process import cdist
        except ImportError as error:
            raise missing("rapidfuzz", "smudge") from error
        scorer = Levenshtein.normalized_similarity
        return np.asarray(cdist(own, self._vocabulary, scorer=scorer, dtype=np.float64), np.float64)

    def _starts(self, likeness: Array, numbers: range, above: float) -> list[int]:
        """Where walks begin on a page."""
        alike = likeness[:, self._spelt[numbers.start : numbers.stop]]
        if not alike.size:
            return []
        counts = (alike == 1).sum(axis=1)
        if counts.any():
            rarest = int(np.where(counts, counts, len(numbers) + 1).argmin())
            places = np.flatnonzero(alike[rarest] == 1)[:_STARTS]
        else:
            places = np.argsort(-alike.max(axis=0), kind="stable")[:_LIKE]
            places = places[alike.max(axis=0)[places] > above]
        return [numbers[place] for place in places.tolist()]

    def _graph(self, page: int) -> dict[int, tuple[int, ...]]:
        if page not in self._graphs:
            self._graphs[page] = neighbours_on(self._words, page)
        return self._graphs[page]

    def _climb(self, needle: str, start: int, graph: dict[int, tuple[int, ...]]) -> tuple[list[int], float]:
        path, top = [start], similarity(self._words.word(start), needle)
        while top < 1:
            longer = [[*path, near] for near in graph[path[-1]] if near not in path]
            longer += [[near, *path] for near in graph[path[0]] if near not in path]
            scored = [similarity(" ".join(map(self._words.word, each)), needle) for each in longer]
            if not scored or max(scored) <= top:
                break
            top = max(scored)
            path = longer[scored.index(top)]
        return path, top
