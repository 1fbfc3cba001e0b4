"""The places of strings in a document, and the distance of two strings: the grounding score of SMuDGE."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from mmlongbench.metrics.smudge.words import Array, Integers, Words

LEAST_SIMILARITY = 0.3
"""A prediction is located in a document only where a text has a similarity to it of more than this (the paper's
T)."""
MAX_PLACES = 1024
"""The maximum number of equally similar places that are compared; the places on the first pages are kept."""
_CHUNK = 512
"""How many places of the gold are compared at once with all places of the prediction on the page."""


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
    """The similarity of the found text to the string: 1 if the string itself was found, 0 if nothing was found."""
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
    """Return a result with the given places; each place counts once, and the first `MAX_PLACES` by page are kept."""
    there = sorted(set(places))
    kept = there[:MAX_PLACES]
    pages, points = np.array([place.page for place in kept], np.int64), np.array([place[1:] for place in kept])
    is_whole = is_exhaustive and len(kept) == len(there)
    return Found(similarity if kept else 0.0, pages, points.reshape(-1, 2), is_whole)


class Locator(Protocol):
    """Finds strings in one document. A string is given as its words (see `split`), with single blanks between them."""

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """Return the places, on some pages, of the text that is most similar to a string. Algorithm 1 needs a
        similarity of more than `LEAST_SIMILARITY`.
        """
        ...

    def best_near(self, needle: str, pages: Sequence[int]) -> Found:
        """Return what `best` returns, but no places if the similarity is not above `LEAST_SIMILARITY`, or if another
        page of the document has a more similar text.
        """
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
    """Return the smallest distance, at most 1, between a place of the gold and a place of the prediction on the same
    page; 1 if no page has both.
    """
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
