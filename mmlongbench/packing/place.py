"""Where units go: haystack units are sorted by place, needles are put at a depth measured in tokens.

Depth 0 is before the first haystack unit, depth 1 after the last. In between, a needle goes to the unit boundary
without another needle that is nearest to depth × haystack tokens (paper, section 3). So a single needle is off by at
most half of a unit.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

from mmlongbench.draft import Unit
from mmlongbench.draws import Draws
from mmlongbench.sentences import sentence_spans

Price: TypeAlias = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Slot:
    """The position at which a needle sentence is put."""

    host: int | None
    """The index of the haystack unit that the sentence is put into; None if the sentence stands alone."""
    at: int
    """How many sentences of the host come before the needle sentence. If the needle sentence stands alone: how many
    haystack units come before it."""
    before: int
    """Haystack tokens before the sentence."""


def find_slots(hay: Sequence[Unit], bounds: Sequence[int], depths: Sequence[float], price: Price) -> list[Slot]:
    """Return a slot for each sentence, in the order of `depths`.

    Args:
        hay: the haystack units in the order of the prompt.
        bounds: the tokens before each haystack unit, and at the end the tokens of all units.
        depths: the depth of each needle, from 0 to 1.
        price: returns the tokens of a text.

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
    """Return a passage with needle sentences put into their slots. The words, blanks and line breaks of the passage
    stay as they are.

    A blank is added between a needle sentence and the text next to it, if there is no blank yet.
    """
    text = str(unit.body)
    ends = _ends(text)
    ordered = sorted(hidden, key=lambda pair: pair[0].at)
    body, done = [], 0
    for slot, needle in ordered:
        at = ends[slot.at]
        blank = "" if (text[at - 1 : at] if slot.at else text[:1]).isspace() else " "
        body += [text[done:at], f"{blank}{needle.body}" if slot.at else f"{needle.body}{blank}"]
        done = at
    return replace(unit, body="".join((*body, text[done:])), needles=tuple(needle for _, needle in ordered))


def _ends(text: str) -> list[int]:
    """Return the positions, in characters, at which a sentence can be put: the edges of the text, and the ends of its
    sentences.
    """
    ends = [end for _, end in sentence_spans(text)]
    return [0, *ends[:-1], *([len(text)] if ends else [])]


def _inside(hay: Sequence[Unit], bounds: Sequence[int], target: float, free: Set[int], price: Price) -> Slot | None:
    """Return the slot at the boundary of two sentences that is nearest to the target, in the passage that contains the
    target. Return None if no passage contains the target, if the passage has a needle already, or if every boundary is
    farther away than half of the passage's tokens.
    """
    host = min(bisect_left(bounds, target), len(bounds) - 1) - 1
    if host not in free or not 0 < target < bounds[-1]:
        return None
    body, head = str(hay[host].body), hay[host].head
    ends = _ends(body)
    offsets = {at: bounds[host] + price(head + body[: ends[at]]) for at in range(1, len(ends) - 1)}
    at = min(offsets, key=lambda at: (abs(offsets[at] - target), at), default=0)
    half = (bounds[host + 1] - bounds[host]) / 2
    return Slot(host, at, offsets[at]) if at and abs(offsets[at] - target) <= half else None


def _at_an_edge(hay: Sequence[Unit], bounds: Sequence[int], target: float, free: Set[int], texts: Set[int]) -> Slot:
    """Return the slot at the nearest boundary of units at which the sentence can go into a free passage, or can stand
    alone because no unit at this boundary is text.
    """
    for at in sorted(range(len(bounds)), key=lambda at: (abs(bounds[at] - target), at)):
        beside = [number for number in (at - 1, at) if number in free]
        if beside:
            host = min(beside, key=lambda number: (not bounds[number] < target <= bounds[number + 1], number))
            return Slot(host, len(_ends(str(hay[host].body))) - 1 if host < at else 0, bounds[at])
        if not texts & {at - 1, at}:
            return Slot(None, at, bounds[at])
    raise AssertionError("a free passage has edges")  # without texts, a needle may stand alone at every boundary


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
