"""Chooses the canvas of tiles that an image fills best without being cut: the rules of Llama and Cohere."""

import struct
from bisect import bisect_left
from collections.abc import Sequence

from tokenization.vision.tiling import with_overview


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
