"""Chooses the smallest grid whose tiles cover enough of the image: the rule of Ovis2."""

from tokenization.vision.tiling import grids, with_overview


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
