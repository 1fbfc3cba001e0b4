"""Needles inside text: a sentence goes between two sentences of the passage that stands at its depth (MM-NIAH).

Where the depth is at the edge of a passage, or in a picture beside it, it may stand before its first or after its last
sentence, so that depths 0 and 1 are exact. Each passage hides one needle, as long as there are as many passages as
needles.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from mmlongbench.draft import Unit
from mmlongbench.errors import MMLongBenchError
from mmlongbench.passages.splitting import sentences


class NoHostError(MMLongBenchError):
    """A sentence is to be hidden in a context that has no text unit."""


def hide(
    hay: Sequence[Unit],
    bounds: Sequence[int],
    needles: Sequence[Unit],
    depths: Sequence[float],
    price: Callable[[str], int],
) -> tuple[list[Unit], list[int]]:
    """The haystack with its sentences hidden, and the haystack tokens that stand before each.

    Args:
        hay: the haystack units in the order of standing.
        bounds: tokens before each of them, and the sum of all.
        needles: units whose bodies are sentences.
        depths: what is asked for each needle, 0 to 1.
        price: tokens of a text.

    Raises:
        NoHostError: no unit of the haystack is a text.

    """
    standing, before = list(hay), []
    texts = [number for number, unit in enumerate(hay) if isinstance(unit.body, str)]
    free: set[int] = set()
    for needle, depth in zip(needles, depths, strict=True):
        if not texts:
            raise NoHostError(f"{needle.id}: a sentence needs a passage to stand in; this context holds none")
        free = free or set(texts)
        target = depth * bounds[-1]
        host = _nearest(free, bounds, target)
        free.discard(host)
        cost = bounds[host + 1] - bounds[host]
        standing[host], offset = _with_sentence(standing[host], needle, target - bounds[host], cost, price)
        before.append(bounds[host] + offset)
    return standing, before


def _nearest(free: Set[int], bounds: Sequence[int], target: float) -> int:
    """The free unit that spans the target, or the one whose nearer edge is nearest to it; ties go to the lower."""
    below = max(0, min(bisect_left(bounds, target) - 1, len(bounds) - 2))
    left = next((i for i in range(below, -1, -1) if i in free), None)
    right = next((i for i in range(below + 1, len(bounds) - 1) if i in free), None)
    found = [i for i in (left, right) if i is not None]
    return min(found, key=lambda i: (max(bounds[i] - target, target - bounds[i + 1], 0), i))


def _with_sentence(host: Unit, needle: Unit, target: float, cost: int, price: Callable[[str], int]) -> tuple[Unit, int]:
    """The host, of `cost` tokens, with the needle at the boundary nearest to `target`, and the tokens before it."""
    parts = sentences(str(host.body))
    first = 0 if target <= 0 or len(parts) < 2 else 1
    last = len(parts) if target >= cost or len(parts) < 2 else len(parts) - 1
    offsets = {at: price(host.head + " ".join(parts[:at])) if at else 0 for at in range(first, last + 1)}
    at = min(offsets, key=lambda n: (abs(offsets[n] - target), n))
    body = " ".join((*parts[:at], str(needle.body), *parts[at:]))
    inside = sorted((*host.needles, needle), key=lambda unit: body.index(str(unit.body)))
    return replace(host, body=body, needles=tuple(inside)), offsets[at]
