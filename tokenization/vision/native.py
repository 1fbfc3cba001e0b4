"""Images at their own resolution: one token for each cell of pixels, within limits."""

import functools
import math

from tokenization.images import PatchRule, Rounding

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
        width: pixels.
        height: pixels.
        patch: side of a patch in pixels.
        merge: patches along the side of a cell.
        min_pixels: an image whose cells cover fewer pixels is enlarged.
        max_pixels: an image whose cells cover more pixels is shrunk.
        max_aspect: the largest ratio of long to short side that is accepted.
        markers: tokens around the image.
        frames: how often the pixels of the image count for the limits (GLM treats an image as a video of two frames).
        min_side: an image with a shorter side, in pixels, is enlarged first.

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
    """Count like Pixtral: the long side is shrunk to at most `max_side` pixels, cells are rounded up, and a break or
    end token follows each row.
    """
    shrink = max(width / max_side, height / max_side)
    if shrink > 1:
        width, height = math.floor(width / shrink), math.floor(height / shrink)
    if min(width, height) < 1:
        raise ValueError(f"shrunk to a long side of {max_side} pixels, its short side has no pixel left")
    columns, rows = (-(-side // (patch * merge)) for side in (width, height))
    return (columns + 1) * rows
