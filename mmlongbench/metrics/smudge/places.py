"""Where a string stands in a document, and how far apart two strings stand: the grounding score of SMuDGE."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from mmlongbench.metrics.smudge.words import Array, Integers, Words

LEAST_SIMILARITY = 0.3
"""A string that resembles nothing of a document more than this is not located in it (the paper's T)."""
MAX_PLACES = 1024
"""Places of equal similarity that are compared, the first in reading order."""
_CHUNK = 512
"""Places that are compared with all others at once."""


class Place(NamedTuple):
    """The middle of the box around a string's words."""

    page: int
    x: float
    y: float
    """In units of the page's size."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The places where a string stands, or what resembles it most."""

    similarity: float = 0.0
    """1 where it is found as it is, else that of what was found; 0 where nothing was."""
    pages: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each place, ascending."""
    points: Array = field(default_factory=lambda: np.zeros((0, 2)))
    """x and y of each place, in units of the page's size."""
    is_exhaustive: bool = True
    """Whether everything was tried that could be as similar; False where a bound of the search cut it."""

    @property
    def is_located(self) -> bool:
        """Return whether the text was found on any page."""
        return bool(len(self.pages))

    @property
    def places(self) -> tuple[Place, ...]:
        """The places one by one."""
        return tuple(Place(page, x, y) for page, (x, y) in zip(self.pages.tolist(), self.points.tolist(), strict=True))


def found_at(similarity: float, places: Iterable[Place], *, is_exhaustive: bool = True) -> Found:
    """Return what stands at some places: each once, the first `MAX_PLACES` by page."""
    there = sorted(set(places))
    kept = there[:MAX_PLACES]
    pages, points = np.array([place.page for place in kept], np.int64), np.array([place[1:] for place in kept])
    is_whole = is_exhaustive and len(kept) == len(there)
    return Found(similarity if kept else 0.0, pages, points.reshape(-1, 2), is_whole)


class Locator(Protocol):
    """Finds strings, given as words (see `split`), in one document."""

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """Return what resembles a string most on some pages, if that is more than `LEAST_SIMILARITY`."""
        ...

    def best_near(self, needle: str, pages: Sequence[int]) -> Found:
        """Return the same, but nothing where other pages of the document have what resembles the string more."""
        ...


def places_of(words: Words, rows: Integers) -> list[Place]:
    """Return the middles of the boxes around some words, a row of numbers each; those of a row share a page."""
    boxes = words.boxes[rows]
    low, high = boxes[:, :, :2].min(axis=1), boxes[:, :, 2:].max(axis=1)
    pages = words.page_of(rows[:, 0]).tolist()
    return [Place(page, x, y) for page, (x, y) in zip(pages, ((low + high) / 2).tolist(), strict=True)]


def distance_between(gold: Found, prediction: Found) -> float:
    """Return the least distance of the two, from 0 to 1; 1 where no page has both, or either is not located."""
    least = 1.0
    for page in np.intersect1d(gold.pages, prediction.pages).tolist():
        golds, said = gold.points[gold.pages == page], prediction.points[prediction.pages == page]
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
