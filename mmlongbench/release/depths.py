"""Checks that needles are where a record says, each at the free place that is nearest to its requested depth.

Depths are shares of the haystack's tokens. The rules of the paper are implemented here a second time, without code of
the packer.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from mmlongbench.release.items import Item
from mmlongbench.release.positions import JOINT, NEEDLES, Found, separator

_ROUNDING = 0.51
"""The tokens by which a depth may differ from a place because shares are rounded."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """The tokens of a context without its needles; each unit counts with its separator."""

    tokens: int
    before: tuple[int, ...]
    """The haystack's tokens before each needle, in reading order."""
    bounds: tuple[int, ...]
    """The haystack's tokens before each unit, followed by the tokens of all units."""
    slack: int
    """The tokens by which positions may differ from those that the packer computed."""

    def is_at(self, needle: int, depth: object) -> bool:
        """Return whether a needle, given by its number, is at exactly this depth, to the token."""
        return is_number(depth) and self._distance(needle, depth) <= self.slack + _ROUNDING

    def is_near(self, needle: int, depth: object, *, is_sentence: bool, taken: Set[int]) -> bool:
        """Return whether a needle is at the free place that is nearest to a requested depth.

        This is so if `taken` has the numbers of all boundaries between units that are nearer to the depth. It is also
        so for a needle sentence whose distance from the depth is at most half of the tokens of the unit at that depth.
        """
        if not is_number(depth):
            return False
        target, distance = float(depth) * self.tokens, self._distance(needle, depth)  # type: ignore[arg-type]
        if is_sentence and distance <= self._half(target) + self.slack + _ROUNDING:
            return True
        reach = distance - self.slack - _ROUNDING
        low, high = bisect_right(self.bounds, target - reach), bisect_left(self.bounds, target + reach)
        return all(number in taken for number in range(low, high))

    def taken_by(self, needle: int, *, is_wide: bool) -> range:
        """Return the numbers of the boundaries that a needle takes; with `is_wide`, also the boundary before
        and the boundary after these.
        """
        low = bisect_left(self.bounds, self.before[needle] - self.slack - _ROUNDING)
        high = bisect_right(self.bounds, self.before[needle] + self.slack + _ROUNDING)
        return range(low - 1, high + 1) if is_wide else range(low, high)

    def share(self, needle: int) -> float:
        """Return the depth that a needle has."""
        return self.before[needle] / self.tokens if self.tokens else 0.0

    def _distance(self, needle: int, depth: object) -> float:
        return abs(float(depth) * self.tokens - self.before[needle])  # type: ignore[arg-type]

    def _half(self, target: float) -> float:
        """Return half of the tokens of the unit at a place; near a boundary, the larger of the two units counts."""
        spans = [after - before for before, after in pairwise(self.bounds)] or [0]
        slack = self.slack + _ROUNDING
        first, last = (bisect_left(self.bounds, target + by) - 1 for by in (-slack, slack))
        return max(spans[max(0, first) : last + 1] or spans[-1:]) / 2


def haystack(needles: Sequence[Found], items: Sequence[Item]) -> Haystack:
    """Return the haystack of a context, with the tokens that are before each needle."""
    gap = separator(items)
    first = items[0]["start"]
    passed = accumulate((needle.tokens for needle in needles), initial=first)
    before = tuple(needle.start - tokens for needle, tokens in zip(needles, passed, strict=False))
    hidden = [needle for needle in needles if needle.is_sentence]
    bounds, done = [0], 0
    for number, item in enumerate(items):
        if item["role"] in NEEDLES:
            continue
        end = items[number + 1]["start"] if number + 1 < len(items) else None
        inside = 0
        while done < len(hidden) and (end is None or hidden[done].start < end):
            inside += hidden[done].tokens
            done += 1
        size = item["text_tokens"] + item["image_tokens"] + gap - inside
        bounds.append(bounds[-1] + max(0, size))
    slack = JOINT * len(hidden) + max((needle.slack for needle in needles), default=0)
    return Haystack(bounds[-1], before, tuple(bounds), slack)


def placement_faults(
    record: Mapping[str, object], found: Sequence[Found], hay: Haystack, *, is_single: bool
) -> Iterator[str]:
    """Yield differences between the fields of a record and the positions of its needles.

    With `is_single`, the fields are about the one needle that was put at the depth; other needles may be before it.
    """
    names = ("needle_start", "depth_achieved", "depth" if is_single else "depth_requested")
    values = [[record.get(name)] if is_single else record.get(name) for name in names]
    lists = [value for value in values if isinstance(value, list)]
    wanted = 1 if is_single and found else len(found)
    if len(lists) < len(names) or any(len(value) != wanted for value in lists[:2]):
        yield f"needle_start and depth_achieved do not name the needles of the prompt, of which there are {len(found)}"
        return
    starts, achieved, requested = lists
    if not all(map(is_number, (*starts, *achieved))):
        yield "needle_start or depth_achieved is no number"
        return
    numbers = numbers_of(starts, found)
    for start, depth, number in zip(starts, achieved, numbers, strict=True):
        if number is None:
            others = ", ".join(str(each.start) for each in found[:5])
            yield f"needle_start is {start}, but in the prompt the tokens before needles are {others}"
        elif not hay.is_at(number, depth):
            yield f"depth_achieved is {depth}, but in the prompt it is {hay.share(number):.4f}"
    placed = [number for number in numbers if number is not None]
    if len(placed) < len(numbers) or len(requested) != len(placed):
        return  # reported before, or when drawn depths are compared
    yield from _unrequested(names[2], requested, placed, found, hay)


def _unrequested(
    name: str, requested: Sequence[object], placed: Sequence[int], found: Sequence[Found], hay: Haystack
) -> Iterator[str]:
    """Yield a fault for each requested depth to which a free place is nearer than the place of its needle.

    `placed` are the numbers of the needles in the order of placing; each needle takes a place, as long as any is free.
    """
    is_wide = any(needle.is_sentence for needle in found)  # a sentence takes its whole passage
    taken: set[int] = set()
    for at, (depth, number) in enumerate(zip(requested, placed, strict=True)):
        is_sentence = found[number].is_sentence
        if at < len(hay.bounds) and not hay.is_near(number, depth, is_sentence=is_sentence, taken=taken):
            yield f"{name} is {depth}, but in the prompt the needle is at {hay.share(number):.4f}"
        taken.update(hay.taken_by(number, is_wide=is_wide))


def numbers_of(starts: Sequence[Any], found: Sequence[Found]) -> list[int | None]:
    """Return for each start the number of its needle in reading order; None if no needle starts there. No needle is
    used twice.
    """
    left: dict[int, list[int]] = defaultdict(list)
    for number in reversed(range(len(found))):
        left[found[number].start].append(number)
    numbers: list[int | None] = []
    for start in starts:
        at = start if left.get(start) else _nearest(start, left, found)
        numbers.append(None if at is None else left[at].pop())
    return numbers


def _nearest(start: float, left: Mapping[int, Sequence[int]], found: Sequence[Found]) -> int | None:
    """Return the unused start of a needle that is nearest to a recorded start; None if all differ too much."""
    if not any(each.slack for each in found):
        return None
    near = [at for at, numbers in left.items() if numbers and abs(at - start) <= found[numbers[-1]].slack]
    return min(near, key=lambda at: abs(at - start), default=None)


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
