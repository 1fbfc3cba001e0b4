"""Grids of tiles, and the choice of the grid whose aspect ratio is closest to the image's."""

import functools
import math


@functools.cache
def grids(most: int, least: int = 1) -> tuple[tuple[int, int], ...]:
    """Return (columns, rows) of all grids of `least` to `most` tiles, those with the fewest tiles first."""
    sides = range(1, most + 1)
    found = [(columns, rows) for columns in sides for rows in sides if least <= columns * rows <= most]
    return tuple(sorted(found, key=math.prod))


def with_overview(tiles: int, per_tile: int, overview: int) -> int:
    """Return the tokens of the overview, and of the tiles if there are several. A single tile is left out, because it
    would repeat the overview.
    """
    return overview + (tiles * per_tile if tiles > 1 else 0)


def closest_grid(width: int, height: int, *, tile: int, max_tiles: int, min_tiles: int = 1) -> tuple[int, int]:
    """Return (columns, rows) of the grid whose aspect ratio is closest to the image's.

    If several grids are equally close, the result is the largest of them that has fewer than twice the image's pixels,
    as in InternVL. If all of them have more, it is the smallest.
    """
    aspect, area = width / height, width * height
    best, nearest = (1, 1), math.inf
    for ratio, half, grid in _measured(tile, max_tiles, min_tiles):
        distance = abs(aspect - ratio)
        if distance < nearest:
            best, nearest = grid, distance
        elif distance == nearest and area > half:
            best = grid
    return best


def closest_aspect(
    width: int, height: int, *, tile: int, max_tiles: int, per_tile: int, overview: int, min_tiles: int = 1
) -> int:
    """Count like InternVL: an overview of the whole image, then the tiles of the closest grid. The side of a tile has
    `tile` pixels.
    """
    columns, rows = closest_grid(width, height, tile=tile, max_tiles=max_tiles, min_tiles=min_tiles)
    return with_overview(columns * rows, per_tile, overview)


@functools.cache
def _measured(tile: int, most: int, least: int) -> tuple[tuple[float, float, tuple[int, int]], ...]:
    """Return (columns / rows, half of the pixels of all its tiles, (columns, rows)) of each grid."""
    return tuple((grid[0] / grid[1], 0.5 * tile * tile * math.prod(grid), grid) for grid in grids(most, least))
