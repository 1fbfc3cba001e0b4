"""Scales the long side of every image to the same length, then cuts the image into tiles: Idefics3 and SmolVLM."""


def long_side_tiles(width: int, height: int, *, long_side: int, tile: int, per_tile: int) -> int:
    """Count like Idefics3, which also enlarges images: rows of tiles, in which each tile has two markers, then an
    overview. A single tile is left out, because it would repeat the overview.

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
    return split + per_tile + 3  # the newline before the overview and the newline of the last row are one token


def _even(side: int) -> int:
    """Return an odd number of pixels plus 1, and an even number unchanged; but 1 for 0."""
    return max(side + side % 2, 1)
