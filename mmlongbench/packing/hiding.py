"""Needles inside text: a sentence goes between two sentences of the passage that stands at its depth (MM-NIAH).

Where the depth is the edge of a passage, or its sentences are so long that the edge is nearer, it stands before its
first or after its last sentence; where no text is, between two pictures, it stands alone. So it is never farther from
its depth than half of the unit there. Each passage hides one needle, as long as there are as many passages as needles.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from mmlongbench.draft import Unit
from mmlongbench.passages.splitting import sentences

Price: TypeAlias = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a sentence goes."""

    host: int | None
    """The haystack unit; None: it stands alone."""
    at: int
    """Sentences of the host before it; alone: units of the haystack before it."""
    before: int
    """Haystack tokens before it."""


def find_slots(hay: Sequence[Unit], bounds: Sequence[int], depths: Sequence[float], price: Price) -> list[Slot]:
    """A slot for each sentence, in the order of `depths`.

    Args:
        hay: the haystack units in the order of standing.
        bounds: tokens before each of them, and the sum of all.
        depths: what is asked for each needle, 0 to 1.
        price: tokens of a text.

    """
    texts = frozenset(number for number, unit in enumerate(hay) if isinstance(unit.body, str))
    free: set[int] = set()
    slots = []
    for depth in depths:
        free = free or set(texts)
        target = depth * bounds[-1]
        slot = _inside(hay, bounds, target, free, price) or _at_an_edge(hay, bounds, target, free, texts)
        free.discard(-1 if slot.host is None else slot.host)
        slots.append(slot)
    return slots


def with_sentences(unit: Unit, hidden: Sequence[tuple[Slot, Unit]]) -> Unit:
    """A passage with sentences in their slots."""
    parts = sentences(str(unit.body))
    ordered = sorted(hidden, key=lambda pair: pair[0].at)
    body, done = [], 0
    for slot, needle in ordered:
        body += [*parts[done : slot.at], str(needle.body)]
        done = slot.at
    return replace(unit, body=" ".join((*body, *parts[done:])), needles=tuple(needle for _, needle in ordered))


def _inside(hay: Sequence[Unit], bounds: Sequence[int], target: float, free: Set[int], price: Price) -> Slot | None:
    """The nearest boundary between two sentences of the passage that spans the target, if it is near enough."""
    host = min(bisect_left(bounds, target), len(bounds) - 1) - 1
    if host not in free or not 0 < target < bounds[-1]:
        return None
    parts, head = sentences(str(hay[host].body)), hay[host].head
    offsets = {at: bounds[host] + price(head + " ".join(parts[:at])) for at in range(1, len(parts))}
    at = min(offsets, key=lambda at: (abs(offsets[at] - target), at), default=0)
    half = (bounds[host + 1] - bounds[host]) / 2
    return Slot(host, at, offsets[at]) if at and abs(offsets[at] - target) <= half else None


def _at_an_edge(hay: Sequence[Unit], bounds: Sequence[int], target: float, free: Set[int], texts: Set[int]) -> Slot:
    """The nearest boundary of units: at the edge of a free passage, or alone where no text is on either side."""
    for at in sorted(range(len(bounds)), key=lambda at: (abs(bounds[at] - target), at)):
        beside = [number for number in (at - 1, at) if number in free]
        if beside:
            host = min(beside, key=lambda number: (not bounds[number] < target <= bounds[number + 1], number))
            return Slot(host, len(sentences(str(hay[host].body))) if host < at else 0, bounds[at])
        if not texts & {at - 1, at}:
            return Slot(None, at, bounds[at])
    raise AssertionError("a free passage has edges")  # without texts every boundary is alone
