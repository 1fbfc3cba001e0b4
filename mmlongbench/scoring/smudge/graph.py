"""Which words of a page are neighbours, whatever order they are read in: the β-skeleton of their boxes for β = 1.

Two points are joined where no other point lies in the circle that has the two as its diameter (Gabriel graph). Each box
has the corners and the middles of its left and right side as points: the middles of wide words are further apart than
lines are, and the boxes of lines that stand close overlap, so that corners alone would come between words of one line.
"""

from typing import Any

import numpy as np

from mmlongbench.scoring.errors import missing
from mmlongbench.scoring.smudge.words import Array, Integers, Words

_POINTS = [(x, y) for x in (0, 2) for y in ((1, 1), (3, 3), (1, 3))]
"""Of a box (x0, y0, x1, y1): the column of x, and the two whose mean is y."""


def neighbours_on(words: Words, page: int) -> dict[int, tuple[int, ...]]:
    """The neighbours of each word of a page, the nearest first."""
    numbers = words.range_of(page)
    boxes = words.boxes[numbers.start : numbers.stop]
    near: dict[int, tuple[int, ...]] = {}
    for one, others in _joined(boxes).items():
        apart = [(_gap(boxes[one], boxes[other]), other) for other in others]
        near[numbers.start + one] = tuple(numbers.start + other for _, other in sorted(apart))
    return near


def _joined(boxes: Array) -> dict[int, set[int]]:
    """Boxes that have joined points."""
    joined: dict[int, set[int]] = {number: set() for number in range(len(boxes))}
    points = np.concatenate([np.stack([boxes[:, x], boxes[:, ys].mean(axis=1)], axis=1) for x, ys in _POINTS])
    for one, other in gabriel_edges(points).tolist():
        a, b = one % len(boxes), other % len(boxes)
        if a != b:
            joined[a].add(b)
            joined[b].add(a)
    return joined


def gabriel_edges(points: Array) -> Integers:
    """Rows of two points each: all edges of the Gabriel graph; points at one place are joined in a chain.

    Its edges are among those of the Delaunay triangulation, and to try one the corners opposite to it suffice.
    """
    places, where = np.unique(points, axis=0, return_inverse=True)
    order = np.argsort(where.ravel(), kind="stable")
    is_same = np.diff(where.ravel()[order]) == 0
    chains = np.stack([order[:-1][is_same], order[1:][is_same]], axis=1)
    standing = order[np.r_[True, ~is_same]] if len(order) else order
    return np.concatenate([chains, standing[_edges(places)]])


def _edges(places: Array) -> Integers:
    """The Gabriel graph of places that all differ."""
    try:
        from scipy.spatial import Delaunay, QhullError
    except ImportError as error:
        raise missing("scipy", "smudge") from error
    if len(places) < 4:
        return _clear(places, np.array([(a, b) for b in range(len(places)) for a in range(b)], np.int64).reshape(-1, 2))
    try:
        corners = _simplices(Delaunay(places))
    except QhullError:  # all in one line
        along = np.lexsort(places.T)
        return np.stack([along[:-1], along[1:]], axis=1)
    a, b, c = corners.T
    sides, opposite = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), np.r_[c, a, b]
    one, other = places[sides[:, 0]], places[sides[:, 1]]
    # the angle over the diameter is wider than a right one exactly where the corner lies inside the circle
    is_inside = ((one - places[opposite]) * (other - places[opposite])).sum(axis=1) < 0
    keys = np.sort(sides, axis=1) @ np.array([len(places), 1])
    kept = np.setdiff1d(keys, keys[is_inside])
    return np.stack(np.divmod(kept, len(places)), axis=1)


def _simplices(triangulation: Any) -> Integers:  # noqa: ANN401  (scipy has no types)
    return np.asarray(triangulation.simplices, np.int64)


def _clear(places: Array, pairs: Integers) -> Integers:
    """The pairs of a few places whose circle holds no third."""
    kept = [
        (a, b)
        for a, b in pairs.tolist()
        if not any(np.dot(places[a] - other, places[b] - other) < 0 for other in np.delete(places, [a, b], axis=0))
    ]
    return np.array(kept, np.int64).reshape(-1, 2)


def _gap(one: Array, other: Array) -> float:
    """Between two boxes, along both axes."""
    across = max(one[0] - other[2], other[0] - one[2], 0.0)
    down = max(one[1] - other[3], other[1] - one[3], 0.0)
    return float(across + down)
