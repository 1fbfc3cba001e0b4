"""What the vendors of hosted models document: tiles, patches within a budget, area."""

import math


def scaled_tiles(width: int, height: int, *, base: int, per_tile: int, tile: int, box: int, short_side: int) -> int:
    """Count as GPT-4o does at high detail: fitted into a box, short side brought down, tiles of it.

    It never enlarges, and rounds both sides to whole pixels each time: only so it meets the bills that are known.

    Args:
        width: pixels.
        height: pixels.
        base: tokens of the image as a whole.
        per_tile: tokens of a tile.
        tile: side of a tile in pixels.
        box: side in pixels of the square that the image is fitted into.
        short_side: pixels to which a longer short side is brought.

    """
    width, height = _shrunk(width, height, box / max(width, height))
    width, height = _shrunk(width, height, short_side / max(1, min(width, height)))
    return base + per_tile * max(1, -(-width // tile)) * max(1, -(-height // tile))


def budgeted_patches(width: int, height: int, *, patch: int, budget: int, max_side: int, multiplier: float = 1) -> int:
    """Count as GPT-4.1 mini does: patches within a budget, times what the model charges for one, rounded up.

    Args:
        width: pixels.
        height: pixels.
        patch: side of a patch in pixels.
        budget: the most patches.
        max_side: the longest side in pixels.
        multiplier: tokens of a patch.

    """
    patches = -(-width // patch) * -(-height // patch)
    if patches > budget or max(width, height) > max_side:
        scale = min(1.0, max_side / max(width, height))
        if math.prod(math.ceil(side * scale / patch) for side in (width, height)) > budget:
            scale = _whole_patches(width, height, patch, math.sqrt(patch * patch * budget / (width * height)))
        # rounded at 6 digits, or an error of the last bit would be a patch more
        covered = math.prod(math.ceil(max(1, round(side * scale, 6)) / patch) for side in (width, height))
        patches = min(budget, covered)
    return math.ceil(patches * multiplier)


def padded_cells(width: int, height: int, *, cell: int, max_edge: int, budget: int) -> int:
    """Count as Claude does: cells of the largest size of the same aspect ratio within an edge and a budget.

    Args:
        width: pixels.
        height: pixels.
        cell: side in pixels of what is one token; sides are padded to whole cells.
        max_edge: the longest padded side in pixels.
        budget: the most tokens.

    """

    def cells(first: int, second: int) -> tuple[int, int]:
        return -(-first // cell), -(-second // cell)

    def fits(first: int, second: int) -> bool:
        found = cells(first, second)
        return max(found) * cell <= max_edge and found[0] * found[1] <= budget

    if fits(width, height):
        return math.prod(cells(width, height))
    aspect = max(width, height) / min(width, height)
    low, high = 1, min(max(width, height), max_edge + 1)  # what is beyond the edge never fits
    while low + 1 < high:
        middle = (low + high) // 2
        if fits(middle, max(round(middle / aspect), 1)):
            low = middle
        else:
            high = middle
    return math.prod(cells(low, max(round(low / aspect), 1)))


def area_share(width: int, height: int, *, pixels_per_token: int, max_edge: int, max_tokens: int) -> int:
    """Count by area, after the long side was brought down to `max_edge` pixels."""
    scale = min(1, max_edge / max(width, height))
    return min(max_tokens, math.ceil(width * scale * (height * scale) / pixels_per_token))


def crop_units(width: int, height: int, *, small: int, per_tile: int, divisor: float) -> int:
    """Count tiles of the short side over `divisor`; an image within `small` pixels square is one."""
    if max(width, height) <= small:
        return per_tile
    return _tiles(width, height, max(1, math.floor(min(width, height) / divisor))) * per_tile


def plain_tiles(width: int, height: int, *, small: int, per_tile: int, tile: int) -> int:
    """Count tiles of `tile` pixels; an image within `small` pixels square is one."""
    return per_tile if max(width, height) <= small else _tiles(width, height, tile) * per_tile


def _tiles(width: int, height: int, tile: int) -> int:
    """Tiles that cover an image."""
    return -(-width // tile) * -(-height // tile)


def _shrunk(width: int, height: int, scale: float) -> tuple[int, int]:
    """Sides in whole pixels when scaled, unless that would enlarge."""
    return (round(width * scale), round(height * scale)) if scale < 1 else (width, height)


def _whole_patches(width: int, height: int, patch: int, scale: float) -> float:
    """The scale, lowered until one of the sides is a whole number of patches."""
    across, down = width * scale / patch, height * scale / patch
    return scale * min(math.floor(side) / side if side >= 1 else 1 for side in (across, down))
