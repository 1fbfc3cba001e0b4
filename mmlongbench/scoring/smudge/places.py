"""Where a string stands in a document, and how far apart two strings stand: the grounding score of SMuDGE."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from mmlongbench.scoring.smudge.words import Words

LEAST_SIMILARITY = 0.3
"""A string that resembles nothing of a document more than this is not in it."""
MOST_PLACES = 256
"""Places of equal similarity that are compared, the first in reading order."""


class Place(NamedTuple):
    """The middle of the box around a string's words."""

    page: int
    x: float
    y: float
    """In units of the page's size."""


@dataclass(frozen=True, slots=True)
class Found:
    """The places where a string stands, or what resembles it most."""

    similarity: float = 0.0
    """1 where it is found as it is, else that of what was found; 0 where nothing was."""
    places: tuple[Place, ...] = ()


class Locator(Protocol):
    """Finds strings, given as words (see `split`), in one document."""

    def best(self, needle: str, pages: Sequence[int]) -> Found:
        """What resembles it most on some pages, if that is more than `LEAST_SIMILARITY`."""
        ...

    def is_better_on(self, needle: str, pages: Sequence[int], than: float) -> bool:
        """Whether some other pages have anything that resembles it more."""
        ...


def place_of(words: Words, numbers: Sequence[int]) -> Place:
    """The middle of the box around some words of one page."""
    boxes = words.boxes[list(numbers)]
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    x, y = ((low + high) / 2).tolist()
    return Place(int(words.page_of(np.array(numbers[:1]))[0]), x, y)


def places_of(words: Words, spans: Iterable[tuple[int, int]]) -> tuple[Place, ...]:
    """The places of runs of words, each given by its first and its last; at most `MOST_PLACES`."""
    first = sorted(spans)[:MOST_PLACES]
    return tuple(place_of(words, range(start, end + 1)) for start, end in first)


def distance_between(gold: Found, prediction: Found) -> float:
    """The least distance of the two, from 0 to 1; 1 where they stand on different pages, or either is nowhere."""
    golds, least = _by_page(gold), 1.0
    for page, said in _by_page(prediction).items():
        if page in golds:
            apart = np.abs(golds[page][:, None] - said[None]).sum(axis=2)
            least = min(least, float(apart.min()))
    return least


def grounding_score(distance: float) -> float:
    """exp(−d / (1 − d)): 1 at the same place, 0 at a distance of 1.

    >>> grounding_score(0.0), round(grounding_score(0.5), 4), grounding_score(1.0)
    (1.0, 0.3679, 0.0)
    """
    return math.exp(-distance / (1 - distance)) if distance < 1 else 0.0


def _by_page(found: Found) -> dict[int, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    pages = dict[int, list[tuple[float, float]]]()
    for place in found.places:
        pages.setdefault(place.page, []).append((place.x, place.y))
    return {page: np.array(points).reshape(-1, 2) for page, points in pages.items()}
