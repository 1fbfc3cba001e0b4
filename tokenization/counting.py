"""Counts the tokens of prompts: of texts, and of images, which need their size alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from tokenization.errors import TokenizationError
from tokenization.template import ChatTemplate, Turns
from tokenization.text import LLAMA2, TextTokenizer

if TYPE_CHECKING:
    from tokenization.vision.rule import VisionRule  # its package uses `PatchRule`

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


MANY = 100
"""The images of a prompt for which the price of an image is given; models that count images among others differently
do so from 2 to 64 images on, and the numbers of 100 images have at most two digits."""


@dataclass(frozen=True, slots=True)
class CrossModalCounter:
    """Counts the tokens of prompts: their texts, their images and, with a chat template, what it puts around them."""

    text: TextTokenizer
    image: "PatchRule | VisionRule"
    """The benchmark's rule, or that of a model."""
    template: ChatTemplate | None = None
    """The chat template whose tokens are counted; None: they are not."""

    @property
    def additive(self) -> bool:
        """Whether the prices of texts add up exactly at newlines, and those of images everywhere."""
        return self.text.additive and isinstance(self.image, PatchRule) and self.template is None

    @property
    def is_exact(self) -> bool:
        """Whether counts are those of the model; False if its rule or its tokenizer is not known, so that they are
        estimates.
        """
        if isinstance(self.image, PatchRule):
            return True
        return self.image.exact and (self.text.name != LLAMA2 or self.image.text == LLAMA2)

    @property
    def max_images(self) -> int | None:
        """The maximum number of images in a prompt; None if there is no limit."""
        return None if isinstance(self.image, PatchRule) else self.image.max_images

    def image_price(self, width: int, height: int) -> int:
        """Return the tokens of an image; of a model that counts an image among others differently, in a prompt of many.

        Raises:
            TokenizationError: the model refuses an image of this size.

        """
        if isinstance(self.image, PatchRule):
            return self.image.tokens(width, height)
        return self.image.tokens(width, height, MANY)

    def prompt(self, turns: Turns) -> TokenCount:
        """Return the tokens of a whole prompt.

        By the benchmark's rule, the text of a turn is one string, from which the images are taken out. A model's own
        tokens part the texts before and after an image, so with its rule each text is counted by itself.

        Raises:
            TokenizationError: the model refuses an image, or the template cannot show these turns.

        """
        sizes = [part for _, parts in turns for part in parts if not isinstance(part, str)]
        count, rule, around = self.text.count, self.image, ""
        if isinstance(rule, PatchRule):
            images = sum(rule.each(sizes))
        else:
            images, around = rule.total(sizes, adjacent(turns) if rule.shared else 0), rule.around
        if self.template is not None:
            pieces, placeholder = self.template.pieces(turns), self.template.placeholder
            return TokenCount(self.text.count_pieces(pieces, placeholder, around), images)
        if isinstance(rule, PatchRule):
            said = ("".join(part for part in parts if isinstance(part, str)) for _, parts in turns)
            return TokenCount(sum(map(count, said)), images)
        text = sum(count(piece) for _, parts in turns for piece in _pieces(parts, around))
        return TokenCount(text - 2 * len(sizes) * bool(around), images)

    def count(self, text: str, sizes: Iterable[tuple[int, int]]) -> TokenCount:
        """Return the tokens of one turn of the user: a text, then images with these (width, height) in pixels."""
        return self.prompt([("user", [text, *sizes])])


def _pieces(parts: Sequence[str | tuple[int, int]], around: str) -> list[str]:
    """Return the texts before, between and after the images of a turn, with `around` before and after each image."""
    pieces = [""]
    for part in parts:
        if isinstance(part, str):
            pieces[-1] += part
        else:
            pieces[-1] += around
            pieces.append(around)
    return pieces


def adjacent(turns: Turns) -> int:
    """Return how many images directly follow another image of the same turn.

    >>> adjacent([("user", ["a", (8, 8), (8, 8), "b", (8, 8)]), ("user", [(8, 8)])])
    1
    """
    pairs = (pair for _, parts in turns for pair in pairwise(parts))
    return sum(not isinstance(one, str) and not isinstance(other, str) for one, other in pairs)
