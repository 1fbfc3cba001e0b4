"""The formulas that vendors of hosted models document: tiles, patches within a budget, area."""

import math


def scaled_tiles(width: int, height: int, *, base: int, per_tile: int, tile: int, box: int, short_side: int) -> int:
    """Count like GPT-4o at high detail: the image is shrunk to fit into a box, its short side is shrunk to a limit, and
    its tiles are counted.

    The image is never enlarged, and its sides are rounded to whole pixels after each step; otherwise the counts would
    not agree with known bills.

    Args:
        width: pixels.
        height: pixels.
        base: tokens of the image as a whole.
        per_tile: tokens of a tile.
        tile: side of a tile in pixels.
        box: side in pixels of the square that the image is fitted into.
        short_side: the maximum of the image's short side in pixels; a longer one is shrunk to this.

    """
    width, height = _shrunk(width, height, box / max(width, height))
    width, height = _shrunk(width, height, short_side / max(1, min(width, height)))
    return base + per_tile * max(1, -(-width // tile)) * max(1, -(-height // tile))


def budgeted_patches(width: int, height: int, *, patch: int, budget: int, max_side: int, multiplier: float = 1) -> int:
    """Count like GPT-4.1 mini: the patches times `multiplier`, rounded up. An image with more patches than the budget,
    or with a side over `max_side`, is shrunk first.

    Args:
        width: pixels.
        height: pixels.
        patch: side of a patch in pixels.
        budget: the maximum number of patches.
        max_side: the maximum side in pixels; a larger image is shrunk.
        multiplier: the tokens that the model charges for a patch.

    """
    patches = -(-width // patch) * -(-height // patch)
    if patches > budget or max(width, height) > max_side:
        scale = min(1.0, max_side / max(width, height))
        if math.prod(math.ceil(side * scale / patch) for side in (width, height)) > budget:
            scale = _whole_patches(width, height, patch, math.sqrt(patch * patch * budget / (width * height)))
        # rounded to 6 digits, because an error in the last bit would add a patch
        covered = math.prod(math.ceil(max(1, round(side * scale, 6)) / patch) for side in (width, height))
        patches = min(budget, covered)
    return math.ceil(patches * multiplier)


def padded_cells(width: int, height: int, *, cell: int, max_edge: int, budget: int) -> int:
    """Count like Claude: the cells of the image. A larger image is first shrunk until it is within `max_edge` and
    `budget`.

    Args:
        width: pixels.
        height: pixels.
        cell: side in pixels of the area of one token; sides are padded to whole cells.
        max_edge: the maximum side in pixels after padding.
        budget: the maximum number of tokens.

    """

    def cells(first: int, second: int) -> tuple[int, int]:
        return -(-first // cell), -(-second // cell)

    def fits(first: int, second: int) -> bool:
        found = cells(first, second)
        return max(found) * cell <= max_edge and found[0] * found[1] <= budget

    if fits(width, height):
        return math.prod(cells(width, height))
    aspect = max(width, height) / min(width, height)
    low, high = 1, min(max(width, height), max_edge + 1)  # a size beyond the edge never fits
    while low + 1 < high:
        middle = (low + high) // 2
        if fits(middle, max(round(middle / aspect), 1)):
            low = middle
        else:
            high = middle
    return math.prod(cells(low, max(round(low / aspect), 1)))


def area_share(width: int, height: int, *, pixels_per_token: int, max_edge: int, max_tokens: int) -> int:
    """Count by area, after the long side is shrunk to at most `max_edge` pixels. The result is at most `max_tokens`."""
    scale = min(1, max_edge / max(width, height))
    return min(max_tokens, math.ceil(width * scale * (height * scale) / pixels_per_token))


def crop_units(width: int, height: int, *, small: int, per_tile: int, divisor: float) -> int:
    """Count tiles whose side is the image's short side divided by `divisor`; an image whose sides have at most `small`
    pixels is one tile.
    """
    if max(width, height) <= small:
        return per_tile
    return _tiles(width, height, max(1, math.floor(min(width, height) / divisor))) * per_tile


def plain_tiles(width: int, height: int, *, small: int, per_tile: int, tile: int) -> int:
    """Count tiles whose side has `tile` pixels; an image whose sides have at most `small` pixels is one tile."""
    return per_tile if max(width, height) <= small else _tiles(width, height, tile) * per_tile


def _tiles(width: int, height: int, tile: int) -> int:
    """Return the number of tiles that cover an image."""
    return -(-width // tile) * -(-height // tile)


def _shrunk(width: int, height: int, scale: float) -> tuple[int, int]:
    """Return the sides in whole pixels after scaling; a scale of 1 or more leaves them unchanged."""
    return (round(width * scale), round(height * scale)) if scale < 1 else (width, height)


def _whole_patches(width: int, height: int, patch: int, scale: float) -> float:
    """Return the scale, reduced until one of the scaled sides is a whole number of patches."""
    across, down = width * scale / patch, height * scale / patch
    return scale * min(math.floor(side) / side if side >= 1 else 1 for side in (across, down))
