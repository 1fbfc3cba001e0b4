"""Needles inside text: a sentence is put between two sentences of the passage at its depth (MM-NIAH).

If the depth is at the edge of a passage, or the edge is nearer than any end of a sentence, the needle goes before the
first or after the last sentence of the passage. Between two pictures, where there is no text, the needle stands alone.
So a single needle is never farther from its depth than half of the unit there. A passage gets a second needle only if
there are more needles than passages.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from mmlongbench.draft import Unit
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
