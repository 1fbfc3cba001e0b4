"""Images brought to one long side, then cut into tiles: the rule of Idefics3 and SmolVLM."""


def long_side_tiles(width: int, height: int, *, long_side: int, tile: int, per_tile: int) -> int:
    """Count as Idefics3 does, which also enlarges: rows of tiles, each with two markers, then an overview.

    Args:
        width: pixels.
        height: pixels.
        long_side: pixels to which the long side is brought.
        tile: side of a tile in pixels, to whole numbers of which both sides are then stretched.
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
    """The next even number of pixels, at least 1."""
    return max(side + side % 2, 1)
