"""Rules that count the same number of tokens for an image of any size, or for each of a few crops."""

import math


def fixed(width: int, height: int, *, tokens: int) -> int:
    """Count every image with the same number of tokens."""
    del width, height
    return tokens


def quartered(width: int, height: int, *, per_crop: int, crops: int) -> int:
    """Count like Idefics2: the four quarters and the whole image, with a marker before each and one at the end."""
    if min(width, height) < 2:
        raise ValueError("it is cut into four, so each side must have at least 2 pixels")
    return crops * (per_crop + 1) + 1


def pan_and_scan(width: int, height: int, *, per_crop: int, min_crop: int, max_crops: int, min_ratio: float) -> int:
    """Count like Gemma 3 with pan and scan: the whole image and, if it is long, crops along its long side.

    The English words that the processor puts around the crops are text and are not counted here.

    Args:
        width: pixels.
        height: pixels.
        per_crop: tokens of the whole image, and of each crop, including markers and newlines.
        min_crop: the minimum side of a crop in pixels.
        max_crops: the maximum number of crops.
        min_ratio: the minimum ratio of long to short side at which an image is cropped.

    """
    long, short = max(width, height), min(width, height)
    if long / short < min_ratio:
        return per_crop
    crops = min(max_crops, max(2, min(long // min_crop, math.floor(long / short + 0.5))))
    if min(-(-long // crops), short) < min_crop:
        return per_crop
    return per_crop * (1 + crops)
