"""High-definition crops of the Phi models."""

import math

from tokenization.vision.tiling import closest_grid


def hd_crops(width: int, height: int, *, crop: int, max_crops: int, per_crop: int, per_row: int) -> int:
    """Count like Phi-3-vision: crops of the image, an overview, and a newline after each row of features. An image in
    portrait orientation gets the same number of crops as in landscape orientation.

    Args:
        width: pixels.
        height: pixels.
        crop: side of a crop in pixels.
        max_crops: the maximum number of crops.
        per_crop: features of a crop.
        per_row: features along the side of a crop.

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

    Args:
        width: pixels.
        height: pixels.
        crop: side of a crop in pixels.
        max_crops: the maximum number of crops. An image that needs more uses the grid with the closest aspect ratio
            instead.
        patch: side of a patch in pixels; two patches along a side make one feature.
        per_crop: features of the overview.
        min_side: the minimum side in pixels after scaling into the grid; a smaller image is refused.
        markers: separators and newlines of the overview.

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
