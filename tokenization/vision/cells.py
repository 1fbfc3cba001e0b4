"""Formulas that count the cells of an image at its own resolution, within limits, or every image the same.

Sizes, sides and edges are in pixels.
"""

import functools
import math

from tokenization.counting import PatchRule, Rounding

_rule = functools.cache(PatchRule)


def patch_cells(
    width: int, height: int, *, patch: int, merge: int, min_pixels: int, max_pixels: int, rounding: Rounding = "round"
) -> int:
    """Count the cells of `PatchRule`, which also counts an image whose extreme aspect ratio the model would refuse."""
    return _rule(patch, merge, rounding, min_pixels, max_pixels).tokens(width, height)


def native_grid(
    width: int,
    height: int,
    *,
    patch: int,
    merge: int,
    min_pixels: int,
    max_pixels: int,
    max_aspect: int,
    markers: int,
    frames: int = 1,
    min_side: int = 1,
) -> int:
    """Count like Qwen2-VL and its successors: the cells of the image, and the markers around the image.

    Args:
        width: the image's width.
        height: the image's height.
        patch: side of a patch.
        merge: patches along the side of a cell.
        min_pixels: an image whose cells cover fewer pixels is enlarged.
        max_pixels: an image whose cells cover more pixels is shrunk.
        max_aspect: the largest ratio of long to short side that is accepted.
        markers: tokens around the image.
        frames: how often the pixels of the image count for the limits (GLM treats an image as a video of two frames).
        min_side: an image with a shorter side is enlarged first.

    """
    if min(width, height) < min_side:
        scale = max(min_side / height, min_side / width)
        width, height = int(width * scale), int(height * scale)
    aspect = max(width, height) / min(width, height)
    if aspect > max_aspect:
        raise ValueError(f"its long side is {aspect:g} times the short one, at most {max_aspect} are accepted")
    least, most = min_pixels // frames, max_pixels // frames
    return patch_cells(width, height, patch=patch, merge=merge, min_pixels=least, max_pixels=most) + markers


def broken_rows(width: int, height: int, *, patch: int, merge: int, max_side: int) -> int:
    """Count like Pixtral: the long side is shrunk to at most `max_side`, cells are rounded up, and a break or end token
    follows each row.
    """
    shrink = max(width / max_side, height / max_side)
    if shrink > 1:
        width, height = math.floor(width / shrink), math.floor(height / shrink)
    if min(width, height) < 1:
        raise ValueError(f"shrunk to a long side of {max_side} pixels, its short side has no pixel left")
    columns, rows = (-(-side // (patch * merge)) for side in (width, height))
    return (columns + 1) * rows


def budgeted_patches(
    width: int, height: int, *, patch: int, budget: int, max_side: int, multiplier: float = 1, is_strict: bool = False
) -> int:
    """Count like GPT-4.1 mini: the patches times `multiplier` (tokens that the model charges for a patch), rounded up.
    An image with more patches than the budget, or with a side over `max_side`, is shrunk first; refused if `is_strict`.
    """
    patches = -(-width // patch) * -(-height // patch)
    if patches > budget or max(width, height) > max_side:
        if is_strict:
            raise ValueError(f"it has {patches} patches, at most {budget} and {max_side} pixels a side are accepted")
        scale = min(1.0, max_side / max(width, height))
        if math.prod(math.ceil(side * scale / patch) for side in (width, height)) > budget:
            # shrunk to the area of the budget, then until one of the sides is a whole number of patches
            scale = math.sqrt(patch * patch * budget / (width * height))
            sides = width * scale / patch, height * scale / patch
            scale *= min(math.floor(side) / side if side >= 1 else 1 for side in sides)
        # rounded to 6 digits, because an error in the last bit would add a patch
        covered = math.prod(math.ceil(max(1, round(side * scale, 6)) / patch) for side in (width, height))
        patches = min(budget, covered)
    return math.ceil(patches * multiplier)


def fitted_cells(width: int, height: int, *, cell: int, budget: int, markers: int) -> int:
    """Count like Gemma 4: the image is enlarged or shrunk to about `budget` cells, and its sides rounded down to whole
    cells. A side that would have none has one.
    """
    scale = math.sqrt(budget * cell**2 / (width * height))
    columns, rows = (int(scale * side / cell) for side in (width, height))
    if not columns or not rows:
        columns, rows = 1, min(max(width, height) // min(width, height), budget)
    return columns * rows + markers


def limited_patches(
    width: int, height: int, *, patch: int, merge: int, max_patches: int, max_side: int, markers: int
) -> int:
    """Count like Kimi-VL: the cells of the image, rounded up. An image with more than `max_patches` whole patches is
    shrunk first; one that then has `max_side` patches along a side is refused.
    """
    if (patches := (width // patch) * (height // patch)) > max_patches:
        width, height = (int(side * math.sqrt(max_patches / patches)) for side in (width, height))
    columns, rows = (-(-side // (patch * merge)) for side in (width, height))
    if max(columns, rows) * merge >= max_side or not columns * rows:
        raise ValueError(f"it has {columns * merge} x {rows * merge} patches, 1 to {max_side - 1} a side are accepted")
    return columns * rows + markers


def padded_cells(width: int, height: int, *, cell: int, max_edge: int, budget: int) -> int:
    """Count like Claude: the cells of the image, whose sides are padded to whole cells. A larger image is first shrunk
    until it has at most `budget` cells, and a padded side of at most `max_edge`.
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
    """Count by area, after the long side is shrunk to at most `max_edge`. The result is at most `max_tokens`."""
    scale = min(1, max_edge / max(width, height))
    return min(max_tokens, math.ceil(width * scale * (height * scale) / pixels_per_token))


def fixed(width: int, height: int, *, tokens: int) -> int:
    """Count every image with the same number of tokens."""
    del width, height
    return tokens
