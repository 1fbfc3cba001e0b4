"""Where units go: haystack units are sorted by place, needles are put at a depth measured in tokens.

Depth 0 is before the first haystack unit, depth 1 after the last. In between, a needle goes to the unit boundary
without another needle that is nearest to depth × haystack tokens (paper, section 3). So a single needle is off by at
most half of a unit.

Several needles may keep their order and a distance (`Permutation`).

A needle sentence is put between two sentences of the passage at its depth (MM-NIAH). If the depth is at the edge of a
passage, or the edge is nearer than any end of a sentence, the needle goes before the first or after the last sentence
of the passage. Between two pictures, where there is no text, the needle stands alone. A passage gets a second needle
only if there are more needles than passages.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

from mmlongbench.draft import Unit
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Fault, Rejected
from mmlongbench.sentences import sentence_spans

Price: TypeAlias = Callable[[str], int]
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
    in_order: bool = False
    """Whether the needles keep the order that they are given in."""
    apart: float = 0.0
    """The least distance of two needles, as a share of the haystack."""

    field = "permutation"

    @property
    def is_free(self) -> bool:
        """Whether each needle is placed without regard to the others."""
        return not (self.in_order or self.apart)

    def requested(self, needles: Sequence[Unit], draws: Draws) -> list[float]:
        """Return a depth for each needle."""
        return self.depths([needle.id for needle in needles], draws)

    def depths(self, ids: Sequence[str], draws: Draws) -> list[float]:
        """Return a depth for each needle, drawn with its id. With `in_order`, they ascend; with `apart`, they are drawn
        in the rest of the haystack, and then moved apart.
        """
        drawn = [draws.fraction(f"permutation {self.value}: {id}") for id in ids]
        if self.is_free:
            return drawn
        rest = 1 - (len(ids) - 1) * self.apart
        ordered = [self.apart * rank + rest * depth for rank, depth in enumerate(sorted(drawn))]
        if self.in_order:
            return ordered
        ranks = sorted(range(len(ids)), key=lambda number: drawn[number])
        return [depth for _, depth in sorted(zip(ranks, ordered, strict=True))]


Placement: TypeAlias = Depth | Permutation | None


@dataclass(frozen=True, slots=True)
class Slot:
    """The position at which a needle is put."""

    host: int | None
    """The index of the haystack unit that a needle sentence is put into; None if the needle stands alone."""
    at: int
    """How many sentences of the host come before the needle sentence. If the needle stands alone: how many haystack
    units come before it."""
    before: int
    """Haystack tokens before the needle."""


class Haystack:
    """The units of a context without its needles, in the order of the prompt. It is the same at every placement."""

    def __init__(self, units: Sequence[Unit], costs: Sequence[int], price: Price = len) -> None:
        """Put units in order.

        Args:
            units: the units of a context, in any order; those without a place are needles.
            costs: the tokens of each unit, with its separator.
            price: returns the tokens of a text, to measure where in a passage a sentence goes.

        """
        places = [(unit.place, index) for index, unit in enumerate(units) if unit.place is not None]
        order = [index for _, index in sorted(places)]
        self._needles = [unit for unit in units if unit.place is None]
        self._units = [units[index] for index in order]
        self._bounds = [0, *accumulate([costs[index] for index in order])]
        self._texts = {at for at, unit in enumerate(self._units) if isinstance(unit.body, str) and not unit.turns}
        self._price = price

    def placed(self, placement: Placement, draws: Draws) -> tuple[tuple[Unit, ...], list[float], list[float]]:
        """Put the needles at their depths. Return the units in the order of the prompt and, for each needle in the
        order of the draft, the requested and the achieved depth; without a placement or needles, no depths.

        Raises:
            Rejected: the haystack is too short for the order and the distance that the placement asks for.

        """
        hay, needles, bounds, texts = [*self._units], self._needles, self._bounds, self._texts
        if placement is None or not needles:
            return (*needles, *hay), [], []
        requested = placement.requested(needles, draws)
        spaced = placement if isinstance(placement, Permutation) and not placement.is_free else None
        if spaced and any(needle.between_sentences for needle in needles):
            raise DraftError(
                "needle sentences keep no order and no distance; make each sentence of the haystack a unit, and leave "
                "out `between_sentences`"
            )
        slots = _spaced(requested, bounds, spaced.apart) if spaced else []
        # if there are more needles than boundaries or passages, all are free again when all are taken
        free_bounds: set[int] = set()
        free_texts: set[int] = set()
        for needle, depth in zip(needles, requested, strict=True) if not spaced else ():
            target = depth * bounds[-1]
            if needle.between_sentences:
                free_texts = free_texts or set(texts)
                slot = _between_sentences(hay, bounds, target, free_texts, texts, self._price)
                free_texts.discard(-1 if slot.host is None else slot.host)
            else:
                free_bounds = free_bounds or set(range(len(bounds)))
                nearest = min(free_bounds, key=lambda at: (abs(bounds[at] - target), at))
                free_bounds.discard(nearest)
                slot = Slot(None, nearest, bounds[nearest])
            slots.append(slot)
        achieved = [slot.before / bounds[-1] if bounds[-1] else 0.0 for slot in slots]
        placed = list(zip(needles, slots, strict=True))
        for host in {slot.host for slot in slots if slot.host is not None}:
            hay[host] = _with_sentences(hay[host], [(slot.at, needle) for needle, slot in placed if slot.host == host])
        alone: dict[int, list[Unit]] = {}
        for needle, slot in sorted(placed, key=lambda pair: pair[0].between_sentences):  # sentences come last
            if slot.host is None:
                alone.setdefault(slot.at, []).append(needle)
        for at in sorted(alone, reverse=True):
            hay[at:at] = alone[at]
        return tuple(hay), requested, achieved


def _spaced(requested: Sequence[float], bounds: Sequence[int], apart: float) -> list[Slot]:
    """Return the slots of needles that keep a distance: each takes the boundary nearest to its depth among those that
    are far enough after the needle before it, and leave room for the needles after it.
    """
    gap = math.ceil(apart * bounds[-1] - 1e-6)
    latest = [len(bounds) - 1]  # the last boundary that each needle may take, from the last needle to the first
    while len(latest) < len(requested):
        latest.append(min(bisect_right(bounds, bounds[max(0, latest[-1])] - gap), latest[-1]) - 1)
    if latest[-1] < 0:
        expected = f"{len(requested)} needles, one after another"
        expected += f", {apart:g} of the haystack apart" if apart else ""
        found = f"{len(bounds) - 1} haystack units of {bounds[-1]:,} tokens"
        todo = "build longer lengths, make the units shorter, or ask for fewer needles or a smaller distance"
        raise Rejected(Fault("too-short-for-needles", expected, found, todo=todo))
    slots = {}
    first = 0
    for needle, last in zip(sorted(range(len(requested)), key=requested.__getitem__), reversed(latest), strict=True):
        target = requested[needle] * bounds[-1]
        at = min(range(first, last + 1), key=lambda at: (abs(bounds[at] - target), at))
        slots[needle] = Slot(None, at, bounds[at])
        first = max(bisect_left(bounds, bounds[at] + gap), at + 1)
    return [slots[needle] for needle in range(len(requested))]


def _between_sentences(
    hay: Sequence[Unit], bounds: Sequence[int], target: float, free: Set[int], texts: Set[int], price: Price
) -> Slot:
    """Return the slot of a needle sentence that should have `target` tokens before it. `free` and `texts` are the
    indexes of the passages without a needle, and of all passages.
    """
    # inside the passage at the target, unless every end of a sentence is farther away than half of the passage
    host = min(bisect_left(bounds, target), len(bounds) - 1) - 1
    if host in free and 0 < target < bounds[-1]:
        body, head = str(hay[host].body), hay[host].head
        ends = _ends(body)
        offsets = {at: bounds[host] + price(head + body[: ends[at]]) for at in range(1, len(ends) - 1)}
        at = min(offsets, key=lambda at: (abs(offsets[at] - target), at), default=0)
        if at and abs(offsets[at] - target) <= (bounds[host + 1] - bounds[host]) / 2:
            return Slot(host, at, offsets[at])
    # at the nearest boundary with a free passage beside it, or with no text beside it
    for at in sorted(range(len(bounds)), key=lambda at: (abs(bounds[at] - target), at)):
        beside = [index for index in (at - 1, at) if index in free]
        if beside:
            host = min(beside, key=lambda index: (not bounds[index] < target <= bounds[index + 1], index))
            return Slot(host, len(_ends(str(hay[host].body))) - 1 if host < at else 0, bounds[at])
        if not texts & {at - 1, at}:
            return Slot(None, at, bounds[at])
    raise AssertionError("a free passage has edges")  # without texts, a needle may stand alone at every boundary


def _with_sentences(unit: Unit, hidden: Sequence[tuple[int, Unit]]) -> Unit:
    """Return a passage with needle sentences in it, each after a number of the passage's sentences. The words, blanks
    and line breaks of the passage stay as they are.

    A blank is added between a needle sentence and the text next to it, if there is no blank yet.
    """
    text = str(unit.body)
    ends = _ends(text)
    ordered = sorted(hidden, key=lambda pair: pair[0])
    body, done = [], 0
    for number, needle in ordered:
        at = ends[number]
        blank = "" if (text[at - 1 : at] if number else text[:1]).isspace() else " "
        body += [text[done:at], f"{blank}{needle.body}" if number else f"{needle.body}{blank}"]
        done = at
    return replace(unit, body="".join((*body, text[done:])), needles=tuple(needle for _, needle in ordered))


def _ends(text: str) -> list[int]:
    """Return the positions, in characters, at which a sentence can be put: the edges of the text, and the ends of its
    sentences.
    """
    ends = [end for _, end in sentence_spans(text)]
    return [0, *ends[:-1], *([len(text)] if ends else [])]
