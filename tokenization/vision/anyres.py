"""Chooses from a list the resolution that an image fits best, and counts its tokens: the rules of LLaVA ("anyres") and
DeepSeek.
"""

import functools
import math
from collections.abc import Iterable

from tokenization.vision.tiling import grids


def best_fit(width: int, height: int, candidates: Iterable[tuple[int, int]], tile: int) -> tuple[int, int]:
    """Return (columns, rows) of the candidate that keeps the most pixels; of several such candidates, the one with the
    least padding.

    Candidates must be sorted, the smallest first, so the first one that keeps all pixels also has the least padding.
    """
    area = width * height
    best, kept, wasted = (1, 1), 0, math.inf
    for columns, rows in candidates:
        across, down = columns * tile, rows * tile
        scale = min(across / width, down / height)
        if scale >= 1:
            return columns, rows
        effective = min(int(width * scale) * int(height * scale), area)
        waste = across * down - effective
        if effective > kept or (effective == kept and waste < wasted):
            best, kept, wasted = (columns, rows), effective, waste
    return best


def anyres(width: int, height: int, *, tile: int, per_side: int, max_per_side: int, max_area: int) -> int:
    """Count like LLaVA-OneVision: an overview, then rows of features, in which the features of the padding are left
    out.

    Args:
        width: pixels.
        height: pixels.
        tile: side of a tile in pixels.
        per_side: features along the side of a tile.
        max_per_side: the maximum number of tiles along a side of the grid.
        max_area: the limit of features is the number of features in this many tiles, such as 9 in `anyres_max_9`. If an
            image has more than 1.1 × 1.1 times this limit, its features are shrunk to the limit.

    """
    best = best_fit(width, height, _square(max_per_side), tile)
    columns, rows = best[0] * per_side, best[1] * per_side
    if width / height > columns / rows:
        rows -= (rows - int(round(height * (columns / width), 7))) // 2 * 2
    else:
        columns -= (columns - int(round(width * (rows / height), 7))) // 2 * 2
    excess = math.sqrt(columns * rows / (max_area * per_side**2))
    if excess > 1.1:
        columns, rows = int(columns // excess), int(rows // excess)
    return columns * rows + rows + per_side**2  # one newline for each row


def fitted_tiles(width: int, height: int, *, tile: int, per_side: int, max_tiles: int) -> int:
    """Count like DeepSeek-VL2: an overview, a separator and the tiles, with a newline after each row of features."""
    columns, rows = best_fit(width, height, grids(max_tiles), tile)
    return per_side * (per_side + 1) + 1 + per_side * rows * (per_side * columns + 1)


@functools.cache
def _square(most: int) -> tuple[tuple[int, int], ...]:
    """Return (columns, rows) of all grids with at most `most` columns and `most` rows, those with the fewest tiles
    first.
    """
    sides = range(1, most + 1)
    return tuple(sorted(((columns, rows) for rows in sides for columns in sides), key=math.prod))
