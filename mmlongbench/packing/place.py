"""Where units go: haystack units are sorted by place, needles are put at a depth measured in tokens.

Depth 0 is before the first haystack unit, depth 1 after the last. In between, a needle goes to the unit boundary
without another needle that is nearest to depth × haystack tokens (paper, section 3). So a single needle is off by at
most half of a unit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from mmlongbench.draft import Unit
from mmlongbench.draws import Draws
from mmlongbench.packing.text_needles import find_slots, with_sentences

DEPTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""The six depths of a single needle (paper, section 3)."""


@dataclass(frozen=True, slots=True)
class Depth:
    """A placement that puts every needle at the same depth."""

    value: float
    """The depth: 0 is before the first haystack unit, 1 after the last."""

    field = "depth"

    def requested(self, needles: Sequence[Unit], draws: Draws) -> list[float]:
        """Return the depth, once for each needle."""
        return [self.value for _ in needles]


@dataclass(frozen=True, slots=True)
class Permutation:
    """A placement that draws a depth for each needle. The draw depends on question, permutation and needle, but not on
    the length.
    """

    value: int
    """The number of the permutation, counted from 0."""

    field = "permutation"

    def requested(self, needles: Sequence[Unit], draws: Draws) -> list[float]:
        """Return a depth for each needle, drawn with the needle's id."""
        return [draws.fraction(f"permutation {self.value}: {needle.id}") for needle in needles]


Placement: TypeAlias = Depth | Permutation | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Units in the order of the prompt, and the depth of each needle."""

    units: tuple[Unit, ...]
    requested: tuple[float, ...] = ()
    """The depth that the placement asks for, for each needle in the order of the draft."""
    achieved: tuple[float, ...] = ()
    """The depth that each needle reached: haystack tokens before it / haystack tokens."""


def place_units(
    units: Sequence[Unit],
    costs: Sequence[int],
    placement: Placement,
    draws: Draws,
    price: Callable[[str], int] = len,
) -> Standing:
    """Put the units in order and the needles at their depths.

    Args:
        units: the units of a context, in any order; those without a place are needles.
        costs: the tokens of each unit, with its separator.
        placement: where the needles go; None if there are no needles.
        draws: the draws of the question.
        price: returns the tokens of a text, to measure where in a passage a sentence goes.

    """
    order = sorted((i for i, unit in enumerate(units) if unit.place is not None), key=lambda i: units[i].place or ())
    hay = [units[i] for i in order]
    needles = [unit for unit in units if unit.place is None]
    if placement is None or not needles:
        return Standing((*needles, *hay))
    bounds = [0, *accumulate(costs[i] for i in order)]
    requested = placement.requested(needles, draws)
    inside = [n for n, needle in enumerate(needles) if needle.between_sentences]
    alone = [n for n, needle in enumerate(needles) if not needle.between_sentences]
    slots = nearest_free(bounds, [requested[n] for n in alone])
    hidden = dict(zip(inside, find_slots(hay, bounds, [requested[n] for n in inside], price), strict=True))
    for host in {slot.host for slot in hidden.values() if slot.host is not None}:
        hay[host] = with_sentences(hay[host], [(slot, needles[n]) for n, slot in hidden.items() if slot.host == host])
    at = dict(zip(alone, slots, strict=True)) | {n: slot.at for n, slot in hidden.items() if slot.host is None}
    reached = {n: bounds[slot] for n, slot in at.items()} | {n: slot.before for n, slot in hidden.items()}
    achieved = tuple(reached[n] / bounds[-1] if bounds[-1] else 0.0 for n in range(len(needles)))
    return Standing(_insert(hay, [needles[n] for n in at], list(at.values())), tuple(requested), achieved)


def nearest_free(bounds: Sequence[int], depths: Sequence[float]) -> list[int]:
    """Return for each depth the index of the nearest boundary that is still free; of two equally near, the lower one.

    If there are more depths than boundaries, all boundaries are free again when all are taken.

    >>> nearest_free([0, 10, 20, 30], [0.5, 0.5, 1.0])
    [1, 2, 3]
    """
    free: set[int] = set()
    chosen = []
    for depth in depths:
        free = free or set(range(len(bounds)))
        slot = min(free, key=lambda i: (abs(bounds[i] - depth * bounds[-1]), i))
        free.discard(slot)
        chosen.append(slot)
    return chosen


def _insert(hay: Sequence[Unit], needles: Sequence[Unit], slots: Sequence[int]) -> tuple[Unit, ...]:
    at: dict[int, list[Unit]] = {}
    for needle, slot in zip(needles, slots, strict=True):
        at.setdefault(slot, []).append(needle)
    standing = [*at.get(0, ())]
    for number, unit in enumerate(hay, 1):
        standing += [unit, *at.get(number, ())]
    return tuple(standing)
