"""Images that are scaled to one long side and then cut into tiles: the rule of Idefics3 and SmolVLM."""


def long_side_tiles(width: int, height: int, *, long_side: int, tile: int, per_tile: int) -> int:
    """Count like Idefics3, which also enlarges images: rows of tiles, in which each tile has two markers, then an
    overview.

    Args:
        width: pixels.
        height: pixels.
        long_side: pixels to which the long side is scaled.
        tile: side of a tile in pixels; both sides of the scaled image are stretched to whole numbers of tiles.
        per_tile: tokens of a tile without its markers.

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
    return split + per_tile + 3  # the newline before the overview merges with the last row's


def _even(side: int) -> int:
    """Return an even number of pixels: an odd number plus 1, an even number unchanged; but 1 for 0."""
    return max(side + side % 2, 1)
