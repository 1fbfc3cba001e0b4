"""Formulas that count the cells of an image at its own resolution, within limits, or every image the same.

Sizes, sides and edges are in pixels.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tokenization.errors import TokenizationError

Rounding = Literal["round", "ceil", "floor"]


@dataclass(frozen=True, slots=True)
class PatchRule:
    """Counts one token for each cell, a square whose side has `patch * unshuffle` pixels, after the picture is resized
    as by Qwen2.5-VL.

    The defaults are the rule of MMLongBench (README of its repository, "Vision Token Counting": 14 x 14 patches with 2
    x 2 pixel unshuffle, same as Qwen2.5-VL), without the two vision markers. Unlike the model's own processor it
    refuses no picture: the formula is also applied at an aspect ratio over 200.

    >>> PatchRule().tokens(1224, 1584)  # a US letter page at 144 DPI: 44 x 57 cells
    2508
    """

    patch: int = 14
    """Side of a patch in pixels."""
    unshuffle: int = 2
    """Patches along the side of a cell."""
    rounding: Rounding = "round"
    """How a side becomes a number of cells. `round` rounds halves to even numbers. The other values are for
    comparison."""
    min_pixels: int = 3136
    """A picture whose cells cover fewer pixels is enlarged first; 0 means no limit."""
    max_pixels: int = 12_845_056
    """A picture whose cells cover more pixels is shrunk first."""

    def __post_init__(self) -> None:
        if self.rounding not in get_args(Rounding):
            raise TokenizationError(f"rounding is {self.rounding!r}: use one of {', '.join(get_args(Rounding))}")
        _require("patch", self.patch, 1)
        _require("unshuffle", self.unshuffle, 1)
        _require("min_pixels", self.min_pixels, 0)
        _require("max_pixels", self.max_pixels, max(1, self.min_pixels))

    @property
    def cell(self) -> int:
        """The side of a cell in pixels."""
        return self.patch * self.unshuffle

    def tokens(self, width: int, height: int) -> int:
        """Return the tokens of a picture of this size in pixels, as it is shown (after EXIF rotation).

        The formula is `smart_resize` of Qwen2-VL in transformers, with the same floating point steps. With `floor` and
        `min_pixels=0` the result can be 0.
        """
        if not (_whole(width, 1) and _whole(height, 1)):
            raise TokenizationError(
                f"image size {width!r} x {height!r}: both sides must be integers of at least 1 pixel; "
                "check the header of the file it was read from"
            )
        columns, rows = self._cells(width), self._cells(height)
        covered = columns * rows * self.cell**2
        if covered > self.max_pixels:
            shrink = math.sqrt(width * height / self.max_pixels)
            columns, rows = (max(1, math.floor(side / shrink / self.cell)) for side in (width, height))
        elif covered < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (width * height))
            columns, rows = (math.ceil(side * grow / self.cell) for side in (width, height))
        return columns * rows

    def each(self, sizes: Sequence[tuple[int, int]]) -> list[int]:
        """Return the tokens of each image of a prompt; each size is counted once."""
        tokens = {size: self.tokens(*size) for size in {*sizes}}
        return [tokens[size] for size in sizes]

    def _cells(self, side: int) -> int:
        """Return the cells along a side before the pixel limits are applied."""
        if self.rounding == "round":
            return round(side / self.cell)
        return side // self.cell if self.rounding == "floor" else -(-side // self.cell)


def _require(name: str, value: int, least: int) -> None:
    if not _whole(value, least):
        raise TokenizationError(f"{name} is {value!r}: give an integer of at least {least}")


def _whole(value: object, least: int) -> bool:
    """Return whether a value is an integer of at least this size; `True` does not count as an integer."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


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
