"""Chooses the closing units: the last few units are exchanged so that the total comes as close to the budget as it
can.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import combinations


def closest_sum(costs: Sequence[int], room: int, most: int) -> tuple[int, ...]:
    """Return the indexes of at most `most` (1 to 3) costs whose sum is the largest that is not above the room.

    If several choices have this sum, a choice of the fewest costs is returned. If there are several such choices, the
    one with the earliest indexes is returned.

    >>> closest_sum([5, 4, 3, 2], 9, 2)
    (0, 1)
    """
    if not costs:
        return ()
    places: dict[int, list[int]] = {}
    for index, cost in enumerate(costs):
        places.setdefault(cost, []).append(index)
    values = sorted(places)
    best: tuple[int, tuple[int, ...]] = (0, ())
    for size in range(1, most + 1):
        for head in combinations(range(len(costs)), size - 1):
            given = sum([costs[i] for i in head])
            if given + values[-1] <= best[0]:
                continue
            left = room - given
            found = _largest(values, places, head[-1] + 1 if head else 0, left)
            if found is not None and given + costs[found] > best[0]:
                best = (given + costs[found], (*head, found))
                if best[0] == room:
                    return best[1]
    return best[1]


def _largest(values: Sequence[int], places: Mapping[int, Sequence[int]], start: int, left: int) -> int | None:
    """Return the index of the largest cost that is not above `left`, among the costs from the index `start` on. Of
    equal costs, the first is chosen. Return None if there is no such cost.

    `values` are the different costs in rising order; `places` has the indexes of each cost, in rising order.
    """
    for at in reversed(range(bisect_right(values, left))):
        indexes = places[values[at]]
        if indexes[-1] >= start:
            return indexes[bisect_left(indexes, start)]
    return None
