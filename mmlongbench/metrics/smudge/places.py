"""The places of strings in a document, and the distance of two strings: the grounding score of SMuDGE."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from mmlongbench.metrics.smudge.words import Array, Integers, Words

LEAST_SIMILARITY = 0.3
"""A string is located in a document only if something resembles it more than this (the paper's T)."""
MAX_PLACES = 1024
"""How many equally similar places are compared at most; those on the first pages are kept."""
_CHUNK = 512
"""How many places are compared with all others at once."""


class Place(NamedTuple):
    """The centre of the box around a string's words."""

    page: int
    x: float
    y: float
    """The vertical coordinate. Like `x`, it is in units of the page's size."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The places where a string, or the text that is most similar to it, was found."""

    similarity: float = 0.0
    """The similarity: 1 if the string itself was found; 0 if nothing was."""
    pages: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """The page of each place, ascending."""
    points: Array = field(default_factory=lambda: np.zeros((0, 2)))
    """The coordinates x and y of each place, in units of the page's size."""
    is_exhaustive: bool = True
    """Whether the search was complete; False if a limit cut it."""

    @property
    def is_located(self) -> bool:
        """Return whether the text was found on any page."""
        return bool(len(self.pages))

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the places as values of `Place`."""
        return tuple(_places(self.pages, self.points))


def found_at(similarity: float, places: Iterable[Place], *, is_exhaustive: bool = True) -> Found:
    """Return what was found at some places; each place counts once, and the first `MAX_PLACES` by page are kept."""
    there = sorted(set(places))
    kept = there[:MAX_PLACES]
    pages, points = np.array([place.page for place in kept], np.int64), np.array([place[1:] for place in kept])
    is_whole = is_exhaustive and len(kept) == len(there)
    return Found(similarity if kept else 0.0, pages, points.reshape(-1, 2), is_whole)


class Locator(Protocol):
    """Finds strings, given as words (see `split`), in one document."""

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """Return where on some pages the text most similar to a string is, if it resembles the string by more
        than `LEAST_SIMILARITY`.
        """
        ...

    def best_near(self, needle: str, pages: Sequence[int]) -> Found:
        """Return what `best` returns, but nothing if other pages of the document have a more similar text."""
        ...


def places_of(words: Words, rows: Integers) -> list[Place]:
    """Return the place of each row of words: the centre of the box around them. The words of a row are on one page."""
    boxes = words.boxes[rows]
    low, high = boxes[:, :, :2].min(axis=1), boxes[:, :, 2:].max(axis=1)
    return _places(words.page_of(rows[:, 0]), (low + high) / 2)


def _places(pages: Integers, points: Array) -> list[Place]:
    numbers: list[int] = pages.tolist()
    middles: list[list[float]] = points.tolist()
    return [Place(page, x, y) for page, (x, y) in zip(numbers, middles, strict=True)]


def distance_between(gold: Found, prediction: Found) -> float:
    """Return the smallest distance between places of the two on one page, from 0 to 1; 1 if no page has both."""
    least = 1.0
    for page in np.intersect1d(gold.pages, prediction.pages).tolist():
        golds: Array = gold.points[gold.pages == page]
        said: Array = prediction.points[prediction.pages == page]
        for first in range(0, len(golds), _CHUNK):
            apart = np.abs(golds[first : first + _CHUNK, None] - said[None]).sum(axis=2)
            least = min(least, float(apart.min()))
    return least


def grounding_score(distance: float) -> float:
    """Return exp(−d / (1 − d)): 1 at the same place, 0 at a distance of 1.

    >>> grounding_score(0.0), round(grounding_score(0.2), 4), grounding_score(1.0)
    (1.0, 0.7788, 0.0)
    """
    return math.exp(-distance / (1 - distance)) if distance < 1 else 0.0
