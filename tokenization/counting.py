"""Counts the tokens of prompts: of texts, and of images, which need their size alone."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tokenization.template import ChatTemplate, Turns
from tokenization.text import LLAMA2, TextTokenizer
from tokenization.vision.cells import PatchRule
from tokenization.vision.rule import VisionRule


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


_MARKER = re.compile(r"<[^<>\s]+>")
MANY = 100
"""The images of a prompt for which the price of an image is given; models that count images among others differently
do so from 2 to 64 images on, and the numbers of 100 images have at most two digits."""


@dataclass(frozen=True, slots=True)
class CrossModalCounter:
    """Counts the tokens of prompts: their texts, their images and, with a chat template, what it puts around them."""

    text: TextTokenizer
    image: PatchRule | VisionRule
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
    def split_markers(self) -> list[str]:
        """What the template writes as special tokens, such as `<|im_end|>`, and the tokenizer has not as one token."""
        if self.template is None:
            return []
        turns: Turns = [("user", ["a", (28, 28)] if self.template.placeholder else ["a"])]
        markers = dict.fromkeys(_MARKER.findall("".join(self.template.pieces(turns))))
        return [marker for marker in markers if self.text.count_pieces([marker], "") != 1]

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
