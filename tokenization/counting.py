"""Counts the tokens of text and images together."""

from collections.abc import Iterable
from dataclasses import dataclass

from tokenization.images import PatchRule
from tokenization.text import TextTokenizer


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
