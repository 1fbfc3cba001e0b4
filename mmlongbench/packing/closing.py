"""The closing units: the last few are exchanged so that the sum lands as near under the budget as it can."""

from collections.abc import Sequence
from itertools import combinations


def closest_sum(costs: Sequence[int], room: int, most: int) -> tuple[int, ...]:
    """Indexes of at most `most` (1 to 3) costs whose sum is the largest that is not above the room.

    Among equal sums fewer units win, then the earlier ones, so the choice does not depend on anything else.

    >>> closest_sum([5, 4, 3, 2], 9, 2)
    (0, 1)
    """
    best: tuple[int, tuple[int, ...]] = (0, ())
    for size in range(1, most + 1):
        for head in combinations(range(len(costs)), size - 1):
            left = room - sum(costs[i] for i in head)
            start = head[-1] + 1 if head else 0
            found = _largest(costs, start, left) if left >= 0 else None
            if found is not None and room - left + costs[found] > best[0]:
                best = (room - left + costs[found], (*head, found))
                if best[0] == room:
                    return best[1]
    return best[1]


def _largest(costs: Sequence[int], start: int, left: int) -> int | None:
    """The first index from `start` of the largest cost that is not above `left`."""
    fitting = [(cost, -index) for index, cost in enumerate(costs[start:], start) if cost <= left]
    return -max(fitting)[1] if fitting else None
