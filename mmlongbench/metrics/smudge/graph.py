"""Finds which words of a page are neighbours, whatever the reading order: the β-skeleton of their boxes for β = 1.

Two points are joined if no other point is inside the circle whose diameter is the line between them (Gabriel graph).
Two words are neighbours if a point of one is joined to a point of the other.

The points of a box are its corners and the middles of its left and right sides. With centres alone, wide words of one
line would be further apart than words of two lines. With corners alone, overlapping boxes of close lines would come
between words of one line.
"""

import numpy as np

from mmlongbench.metrics.missing import missing
from mmlongbench.metrics.smudge.words import Array, Integers, Words

MAX_NEIGHBOURS = 24
"""The maximum number of a word's neighbours that are kept, the nearest first; of 367,000 words on real pages none has
more than 21."""
MAX_WORDS = 20_000
"""The maximum words of a page for which a graph is made. On a page with more words, the neighbours of a word are the
words before and after it."""
_POINTS = [(x, y) for x in (0, 2) for y in ((1, 1), (3, 3), (1, 3))]
"""For each point: the index of its x in a box (x0, y0, x1, y1), and the indices of the two values whose mean is its
y."""
_MOVED = 1e-9
"""Each point is moved by less than this share of the width or height of all points together, whichever is larger. Then
no four points are on one circle, which halves the time of the triangulation."""
_RATIOS = (0.6180339887498949, 0.7548776662466927)
"""An irrational step for each axis, so that all points of a page are moved differently."""


def neighbours_on(words: Words, page: int) -> Integers:
    """Return a row for each word of a page: the numbers of the word's neighbours, nearest first; −1 fills the rest."""
    numbers = words.range_of(page)
    boxes = words.boxes[numbers.start : numbers.stop]
    table = np.full((len(boxes), MAX_NEIGHBOURS), -1, np.int64)
    one, other = _joined(boxes) if len(boxes) <= MAX_WORDS else _in_order(len(boxes))
    order = np.lexsort((other, _gaps(boxes[one], boxes[other]), one))
    one, other = one[order], other[order]
    rank = np.arange(len(one)) - np.searchsorted(one, one)
    kept = rank < MAX_NEIGHBOURS
    table[one[kept], rank[kept]] = numbers.start + other[kept]
    return table


def _in_order(size: int) -> tuple[Integers, Integers]:
    """Return the pairs of words that follow each other, each pair in both orders."""
    first, second = np.arange(size - 1), np.arange(1, size)
    return np.r_[first, second], np.r_[second, first]


def _joined(boxes: Array) -> tuple[Integers, Integers]:
    """Return the pairs of boxes with joined points, each pair in both orders."""
    size = len(boxes)
    points = np.concatenate([np.stack([boxes[:, x], boxes[:, ys].mean(axis=1)], axis=1) for x, ys in _POINTS])
    one, other = gabriel_edges(points).T % max(1, size)
    pairs = np.concatenate([one * size + other, other * size + one])[np.tile(one != other, 2)]
    first, second = np.divmod(np.unique(pairs), max(1, size))
    return first, second


def gabriel_edges(points: Array) -> Integers:
    """Return all edges of the Gabriel graph, each as a row with the indices of two points. Points at the same place are
    joined in a chain.

    All edges of the graph are in the Delaunay triangulation. To test an edge, it is enough to look at the
    opposite corners of its triangles.
    """
    order = np.lexsort(points.T)
    is_new = np.r_[True, np.any(np.diff(points[order], axis=0) != 0, axis=1)] if len(points) else np.zeros(0, np.bool_)
    chains = np.stack([order[:-1][~is_new[1:]], order[1:][~is_new[1:]]], axis=1)
    standing = order[is_new]
    return np.concatenate([chains, standing[_edges(points[standing])]])


def _edges(places: Array) -> Integers:
    """Return the edges of the Gabriel graph of distinct places, which must be sorted by y, then x."""
    try:
        from scipy.spatial import Delaunay, QhullError
    except ImportError as error:
        raise missing("scipy", "smudge") from error
    if len(places) < 4:
        return _clear(places, np.array([(a, b) for b in range(len(places)) for a in range(b)], np.int64).reshape(-1, 2))
    try:
        corners: Integers = np.asarray(Delaunay(_moved(places)).simplices, np.int64)
    except QhullError:  # all points are on one line
        return np.stack([np.arange(len(places) - 1), np.arange(1, len(places))], axis=1)
    a, b, c = corners.T
    sides, opposite = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), np.r_[c, a, b]
    one, other = places[sides[:, 0]], places[sides[:, 1]]
    # the angle at a corner is wider than a right angle exactly if the corner lies inside the circle
    is_inside = ((one - places[opposite]) * (other - places[opposite])).sum(axis=1) < 0
    keys, of_side = np.unique(sides.min(axis=1) * len(places) + sides.max(axis=1), return_inverse=True)
    is_crossed = np.zeros(len(keys), np.bool_)
    is_crossed[of_side[is_inside]] = True
    return np.stack(np.divmod(keys[~is_crossed], len(places)), axis=1)


def _moved(places: Array) -> Array:
    """Move each place by its own tiny distance."""
    steps = np.arange(len(places))[:, None] * np.array(_RATIOS) % 1 - 0.5
    return np.asarray(places + steps * (_MOVED * float(np.ptp(places, axis=0).max())), np.float64)


def _clear(places: Array, pairs: Integers) -> Integers:
    """Return those pairs of a few places whose circle contains no other place."""
    kept = [
        (a, b)
        for a, b in pairs.tolist()
        if not any(np.dot(places[a] - other, places[b] - other) < 0 for other in np.delete(places, [a, b], axis=0))
    ]
    return np.array(kept, np.int64).reshape(-1, 2)


def _gaps(one: Array, other: Array) -> Array:
    """Return, for each row, the horizontal plus the vertical gap between the two boxes."""
    across = np.maximum(np.maximum(one[:, 0] - other[:, 2], other[:, 0] - one[:, 2]), 0)
    down = np.maximum(np.maximum(one[:, 1] - other[:, 3], other[:, 1] - one[:, 3]), 0)
    return np.asarray(across + down, np.float64)
