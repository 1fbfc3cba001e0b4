"""Counts the tokens of texts and images as the benchmark does; an image needs its size alone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from tokenization.errors import TokenizationError
from tokenization.text import TextTokenizer

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


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of text and tokens of images, kept apart.

    >>> (TokenCount(text=5, image=4) + TokenCount(text=1, image=0)).total
    10
    """

    text: int
    """Tokens of all texts."""
    image: int
    """Tokens of all images."""

    @property
    def total(self) -> int:
        """Tokens of both kinds."""
        return self.text + self.image

    def __add__(self, other: "TokenCount") -> "TokenCount":
        return TokenCount(self.text + other.text, self.image + other.image)


@dataclass(frozen=True, slots=True)
class CrossModalCounter:
    """Counts the tokens of a text and of the images in it."""

    text: TextTokenizer
    image: PatchRule

    def count(self, text: str, sizes: Iterable[tuple[int, int]]) -> TokenCount:
        """Return the tokens of the whole text, and of images with these (width, height) in pixels."""
        return TokenCount(self.text.count(text), sum(self.image.tokens(width, height) for width, height in sizes))
