"""Grids of tiles, and the choice of the grid whose aspect ratio is closest to the image's."""

import functools
import math
import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence


def canvas_tiles(width: int, height: int, *, tile: int, max_tiles: int, single_precision: bool = False) -> int:
    """Return the number of tiles of the canvas that enlarges the image least or, if no canvas is large enough, of the
    one that shrinks it least.

    Args:
        width: pixels.
        height: pixels.
        tile: side of a tile in pixels.
        max_tiles: the maximum number of tiles of a canvas.
        single_precision: whether the model's own code compares scales as 32-bit floats, so that more scales are equal.

    """
    enough = -(-width // tile) * -(-height // tile)
    # any other canvas that is large enough has more columns or rows, and enlarges at least as much
    if enough <= max_tiles:
        return enough
    across, down = (_scales(side, tile, min(max_tiles, -(-side // tile)), single_precision) for side in (width, height))
    scale = max(
        min(across[columns - 1], down[min(max_tiles // columns, len(down)) - 1])
        for columns in range(1, len(across) + 1)
    )
    return (bisect_left(across, scale) + 1) * (bisect_left(down, scale) + 1)


def canvas(
    width: int,
    height: int,
    *,
    tile: int,
    max_tiles: int,
    per_tile: int,
    overview: int,
    single_precision: bool = False,
) -> int:
    """Return the tokens of the canvas's tiles and of an overview, which shows the whole image and comes first."""
    tiles = canvas_tiles(width, height, tile=tile, max_tiles=max_tiles, single_precision=single_precision)
    return with_overview(tiles, per_tile, overview)


def canvas_states(width: int, height: int, *, tile: int, max_tiles: int, per_tile: int) -> int:
    """Return the cross-attention states of the canvas's tiles, which are not tokens of the prompt."""
    return per_tile * canvas_tiles(width, height, tile=tile, max_tiles=max_tiles)


def _scales(side: int, tile: int, most: int, single_precision: bool) -> Sequence[float]:
    """Return the factors that scale a side to fill 1, 2, ... tiles."""
    scales = [tiles * tile / side for tiles in range(1, most + 1)]
    return struct.unpack(f"{most}f", struct.pack(f"{most}f", *scales)) if single_precision else scales


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


def hd_crops(width: int, height: int, *, crop: int, max_crops: int, per_crop: int, per_row: int) -> int:
    """Count like Phi-3-vision: crops of the image, an overview, and a newline after each row of features. An image in
    portrait orientation gets the same number of crops as in landscape orientation.

    Args:
        width: pixels.
        height: pixels.
        crop: side of a crop in pixels.
        max_crops: the maximum number of crops.
        per_crop: features of a crop.
        per_row: features along the side of a crop.

    """
    aspect = max(width, height) / min(width, height)
    long = 1
    while (long + 1) * math.ceil((long + 1) / aspect) <= max_crops:
        long += 1
    short = math.ceil(int(long * crop / aspect) / crop)
    if short == 0:
        raise ValueError(f"scaled to a long side of {long * crop} pixels, its short side has no pixel left")
    rows = long if height > width else short
    return (long * short + 1) * per_crop + 1 + (rows + 1) * per_row


def padded_crops(
    width: int, height: int, *, crop: int, max_crops: int, patch: int, per_crop: int, min_side: int, markers: int
) -> int:
    """Count like Phi-4-multimodal: an overview, and a grid of crops, whose features count unless they are only padding.

    Args:
        width: pixels.
        height: pixels.
        crop: side of a crop in pixels.
        max_crops: the maximum number of crops. An image that needs more uses the grid with the closest aspect ratio
            instead.
        patch: side of a patch in pixels; two patches along a side make one feature.
        per_crop: features of the overview.
        min_side: the minimum side in pixels after scaling into the grid; a smaller image is refused.
        markers: separators and newlines of the overview.

    """
    columns, rows = -(-width // crop), -(-height // crop)
    if columns * rows > max_crops:
        columns, rows = closest_grid(width, height, tile=crop, max_tiles=max_crops)
    across, down = columns * crop, rows * crop
    if across / width < down / height:
        scaled_width, scaled_height = across, int(height * (across / width))
    else:
        scaled_width, scaled_height = int(width * (down / height)), down
    if min(scaled_width, scaled_height, across, down) < min_side:
        raise ValueError(f"scaled into {across} x {down} pixels, a side is under {min_side}")
    live_columns = _live(across, across - scaled_width, patch)
    live_rows = _live(down, down - scaled_height, patch)
    return per_crop + markers + live_columns * live_rows + live_rows  # one newline for each row


def _live(side: int, padding: int, patch: int) -> int:
    """Return the number of features along a side of `side` pixels that are not completely padding."""
    return (side // patch - padding // patch + 1) // 2


def covering_grid(
    width: int, height: int, *, tile: int, max_tiles: int, enough: float, per_tile: int, overview: int
) -> int:
    """Return the tokens of an overview and, if the grid has several tiles, of the tiles with separators between them.

    Args:
        width: pixels.
        height: pixels.
        tile: side of a tile in pixels; a part of the image that is larger than a tile is shrunk to fit it.
        max_tiles: the maximum number of tiles of a grid.
        enough: a grid covers enough of the image if its shrunk parts have more than this share of the image's area.
        per_tile: tokens of a tile, including the separator after it.
        overview: tokens of the overview and the markers.

    """
    tiles = _covering_tiles(width, height, tile, max_tiles, enough)
    return with_overview(tiles, per_tile, overview) - (tiles > 1)


def _covering_tiles(width: int, height: int, tile: int, most: int, enough: float) -> int:
    """Return the number of tiles of the smallest grid that covers more than `enough` of the image or, if none does, of
    the grid that covers the most.
    """
    best, highest = 1, -1.0
    for columns, rows in grids(most):
        covered = _covered(width, height, columns, rows, tile)
        if covered > enough:
            return columns * rows
        if covered > highest:
            best, highest = columns * rows, covered
    return best


def _covered(width: int, height: int, columns: int, rows: int, tile: int) -> float:
    """Return the share of the image's area that remains when each part of the grid is shrunk to fit a tile.

    The last column and the last row also get the pixels that remain after division, so their parts may be larger.
    """
    inner = width // columns, height // rows
    last = width - (columns - 1) * inner[0], height - (rows - 1) * inner[1]
    upper = [_shrunk(inner[0], inner[1], tile)] * (columns - 1) + [_shrunk(last[0], inner[1], tile)]
    lowest = [_shrunk(inner[0], last[1], tile)] * (columns - 1) + [_shrunk(last[0], last[1], tile)]
    return sum(upper * (rows - 1) + lowest, 0.0) / (width * height)


def _shrunk(width: int, height: int, tile: int) -> float:
    """Return the area of a part of the image after it is shrunk to fit a tile; a part that fits is not shrunk."""
    long, short = max(width, height), min(width, height)
    return tile * (short / long * tile) if long > tile else long * short


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
