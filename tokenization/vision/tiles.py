"""Formulas that cut an image into tiles, crops or slices, and count those.

Sizes and sides are in pixels; `tile`, `crop` and `patch` are sides of squares. `max_tiles`, `max_crops` and
`max_slices` are maximum numbers of those; `per_tile`, `per_crop` and `per_slice` are the tokens of one. `overview` are
the tokens of the whole image, shown beside its tiles: where it is shown, a single tile is left out, because it would
repeat the overview. Grids are (columns, rows).
"""

import functools
import math
import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence


@functools.cache
def grids(most: int, least: int = 1) -> tuple[tuple[int, int], ...]:
    """Return (columns, rows) of all grids of `least` to `most` tiles, those with the fewest tiles first."""
    sides = range(1, most + 1)
    found = [(columns, rows) for columns in sides for rows in sides if least <= columns * rows <= most]
    return tuple(sorted(found, key=math.prod))


def with_overview(tiles: int, per_tile: int, overview: int) -> int:
    """Return the tokens of the overview, and of the tiles if there are several."""
    return overview + (tiles * per_tile if tiles > 1 else 0)


# The grid whose aspect ratio is closest to the image's


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
    """Count like InternVL: an overview of the whole image, then the tiles of the closest grid."""
    columns, rows = closest_grid(width, height, tile=tile, max_tiles=max_tiles, min_tiles=min_tiles)
    return with_overview(columns * rows, per_tile, overview)


@functools.cache
def _measured(tile: int, most: int, least: int) -> tuple[tuple[float, float, tuple[int, int]], ...]:
    """Return (columns / rows, half of the pixels of all its tiles, (columns, rows)) of each grid."""
    return tuple((grid[0] / grid[1], 0.5 * tile * tile * math.prod(grid), grid) for grid in grids(most, least))


# The canvas that the image fills best


def canvas_tiles(width: int, height: int, *, tile: int, max_tiles: int, single_precision: bool = False) -> int:
    """Return the number of tiles of the canvas that enlarges the image least or, if no canvas is large enough, of the
    one that shrinks it least.

    If `single_precision`, scales are compared as 32-bit floats, as the model's own code does; more scales are equal
    then.
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


# The best-fitting resolution


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

    A tile has `per_side` features along its side, and a side of the grid has at most `max_per_side` tiles. The limit of
    features is their number in `max_area` tiles, such as 9 in `anyres_max_9`: an image that has more than 1.1 × 1.1
    times the limit is shrunk to it.
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


# Crops


def alike_crops(width: int, height: int, *, side: int, per_crop: int, grids: Iterable[tuple[int, int]]) -> int:
    """Count like mPLUG-Owl3: an overview, and the crops of the grid (columns, rows) that is the most like the image: in
    shape, then in size.
    """

    def likeness(grid: tuple[int, int]) -> float:
        across, down = grid[0] * side, grid[1] * side
        shown = (across, height / width * across), (width, height)  # the image as wide as the grid, and as it is
        shared = [min(across, wide) * min(down, high) for wide, high in shown]
        shape, size = (each / (across * down + math.prod(of) - each) for each, of in zip(shared, shown, strict=True))
        return 100 * shape + size

    columns, rows = max(grids, key=likeness)
    return (columns * rows + 1) * per_crop


def hd_crops(width: int, height: int, *, crop: int, max_crops: int, per_crop: int, per_row: int) -> int:
    """Count like Phi-3-vision: crops of the image, an overview, and a newline after each row of features. An image in
    portrait orientation gets the same number of crops as in landscape orientation.

    `per_row` are the features along the side of a crop.
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

    An image that needs more than `max_crops` uses the grid with the closest aspect ratio instead. Two patches along a
    side make one feature. An image with a side under `min_side` after scaling into the grid is refused. `markers` are
    separators and newlines of the overview.
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

    A part of the image that is larger than a tile is shrunk to fit it; a grid covers enough of the image if its shrunk
    parts have more than the share `enough` of the image's area. `per_tile` includes the separator after a tile,
    `overview` its markers.
    """
    tiles, highest = 1, -1.0
    for columns, rows in grids(max_tiles):
        covered = _covered(width, height, columns, rows, tile)
        if covered > highest:  # without a grid that covers enough, the one that covers the most
            tiles, highest = columns * rows, covered
        if covered > enough:
            break
    return with_overview(tiles, per_tile, overview) - (tiles > 1)


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


def long_side_tiles(width: int, height: int, *, long_side: int, tile: int, per_tile: int) -> int:
    """Count like Idefics3, which also enlarges images: rows of tiles, in which each tile has two markers, then an
    overview.

    The long side is scaled to `long_side`; then both sides are stretched to whole numbers of tiles.
    """
    aspect = width / height
    if width >= height:
        width, height = long_side, _even(int(long_side / aspect))
        aspect = width / height
        columns = -(-width // tile)
        rows = -(-int(columns * tile / aspect) // tile)
    else:
        width, height = _even(int(long_side * aspect)), long_side
        aspect = width / height
        rows = -(-height // tile)
        columns = -(-int(rows * tile * aspect) // tile)
    split = rows * (columns * (per_tile + 2) + 1) if columns * rows > 1 else 0
    return split + per_tile + 3  # the newline before the overview and the newline of the last row are one token


def _even(side: int) -> int:
    """Return an odd number of pixels plus 1, and an even number unchanged; but 1 for 0."""
    return max(side + side % 2, 1)


def scaled_tiles(width: int, height: int, *, base: int, per_tile: int, tile: int, box: int, short_side: int) -> int:
    """Count like GPT-4o at high detail: the image is shrunk to fit into a box, its short side is shrunk to a limit, and
    its tiles are counted.

    The image is never enlarged, and its sides are rounded to whole pixels after each step; otherwise the counts would
    not agree with known bills.

    `base` are the tokens of the image as a whole, `box` is the side of the square that the image is fitted into, and
    `short_side` the limit of the short side.
    """
    if (scale := box / max(width, height)) < 1:
        width, height = round(width * scale), round(height * scale)
    if (scale := short_side / max(1, min(width, height))) < 1:
        width, height = round(width * scale), round(height * scale)
    return base + per_tile * max(1, -(-width // tile)) * max(1, -(-height // tile))


def crop_units(width: int, height: int, *, small: int, per_tile: int, divisor: float) -> int:
    """Count tiles whose side is the image's short side divided by `divisor`; an image whose sides are at most `small`
    is one tile.
    """
    if max(width, height) <= small:
        return per_tile
    return plain_tiles(width, height, small=small, per_tile=per_tile, tile=max(1, int(min(width, height) / divisor)))


def plain_tiles(width: int, height: int, *, small: int, per_tile: int, tile: int) -> int:
    """Count tiles whose side is `tile`; an image whose sides are at most `small` is one tile."""
    return per_tile if max(width, height) <= small else per_tile * -(-width // tile) * -(-height // tile)


def quartered(width: int, height: int, *, per_crop: int, crops: int) -> int:
    """Count like Idefics2: the four quarters and the whole image, with a marker before each and one at the end."""
    if min(width, height) < 2:
        raise ValueError("it is cut into four, so each side must have at least 2 pixels")
    return crops * (per_crop + 1) + 1


def pan_and_scan(width: int, height: int, *, per_crop: int, min_crop: int, max_crops: int, min_ratio: float) -> int:
    """Count like Gemma 3 with pan and scan: the whole image and, if it is long, crops along its long side.

    The English words that the processor puts around the crops are text and are not counted here.

    `per_crop` includes markers and newlines. An image is cropped from the ratio `min_ratio` of long to short side on,
    if no side of a crop is under `min_crop`.
    """
    long, short = max(width, height), min(width, height)
    if long / short < min_ratio:
        return per_crop
    crops = min(max_crops, max(2, min(long // min_crop, math.floor(long / short + 0.5))))
    if min(-(-long // crops), short) < min_crop:
        return per_crop
    return per_crop * (1 + crops)


# Slices


def slice_grid(width: int, height: int, *, max_slices: int, resolution: int) -> tuple[int, int] | None:
    """Return (columns, rows) of the grid whose aspect ratio is closest to the image's; None if the image is not cut.

    The grid may have one slice more or less than the area needs. Logarithms of aspect ratios are compared. Of equally
    close grids, the one with the fewest slices is returned and, of equal numbers of slices, the one with the most rows.
    """
    slices = min(math.ceil(width * height / resolution**2), max_slices)
    if slices <= 1:
        return None
    aspect = math.log(width / height)
    return min(_candidates(slices, max_slices), key=lambda candidate: abs(aspect - candidate[0]))[1]


def numbered_slices(
    width: int, height: int, *, max_slices: int, resolution: int, per_slice: int, slice_markers: int, markers: int
) -> int:
    """Count like MiniCPM-V 2.6: the whole image, then rows of slices of one size with a newline between rows.

    `resolution` is the side of a square with the area of a slice. `slice_markers` are the tokens around a slice;
    `markers` are those around the whole image, including its number if that has one digit.
    """
    grid = slice_grid(width, height, max_slices=max_slices, resolution=resolution)
    if grid is None:
        return markers + per_slice
    return markers + per_slice + math.prod(grid) * (per_slice + slice_markers) + grid[1] - 1


def sized_slices(
    width: int, height: int, *, max_slices: int, resolution: int, cell: int, slice_markers: int, markers: int
) -> int:
    """Count like MiniCPM-V 4.6: as in `numbered_slices`, but the whole image and the slices keep their aspect ratio.

    Sides of the image and of slices are multiples of `cell`, the side of the area of one token.
    """
    grid = slice_grid(width, height, max_slices=max_slices, resolution=resolution)
    tokens = markers + _cells(*_scaled(width, height, resolution), cell)
    if grid is None:
        return tokens
    columns, rows = grid
    part = _multiple(width, columns) / columns, _multiple(height, rows) / rows
    return tokens + columns * rows * (_cells(*_scaled(*part, resolution), cell) + slice_markers) + rows - 1


def _scaled(width: float, height: float, resolution: int) -> tuple[int, int]:
    """Return the sides in pixels of a picture with the same aspect ratio and about `resolution` squared pixels."""
    aspect = width / height
    scaled_height = int(resolution / math.sqrt(aspect))
    return int(scaled_height * aspect), scaled_height


def _cells(width: float, height: float, cell: int) -> int:
    """Return the tokens of a picture, whose sides are first rounded to multiples of the side of a cell."""
    return math.prod(_multiple(side, cell) // cell for side in (width, height))


def _multiple(side: float, unit: int) -> int:
    """Return the multiple of `unit` closest to a side, at least one unit."""
    return max(round(side / unit) * unit, unit)


@functools.cache
def _candidates(slices: int, most: int) -> tuple[tuple[float, tuple[int, int]], ...]:
    """Return (logarithm of columns / rows, (columns, rows)) of each grid with `slices` slices, one less or one more. Of
    equal numbers of slices, the grid with more rows comes first.
    """
    counts = [count for count in (slices - 1, slices, slices + 1) if 1 < count <= most]
    found = [(columns, count // columns) for count in counts for columns in range(1, count + 1) if not count % columns]
    return tuple((math.log(columns / rows), (columns, rows)) for columns, rows in found)
