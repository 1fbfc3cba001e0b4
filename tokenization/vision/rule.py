"""Vision rules: a formula with the published numbers of a model, and a note of what its counts were compared with.

Sizes are widths and heights in pixels after EXIF rotation. Tokens are everything that one image adds to the prompt:
placeholders, markers, separators of rows and tiles.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from tokenization.errors import RefusedSizeError, TokenizationError

MAX_SIDE = 2**31 - 1  # pixels: the maximum of a PNG header, the largest of all formats
CACHED_SIZES = 4096  # for each rule; a size takes about 250 bytes


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the numbers of a rule come from, and what its counts were compared with. Both show how far to trust the
    rule.
    """

    checked: str
    """What its counts were compared with, including the version."""
    parameters: str
    """Where its numbers come from: class defaults, a hub config, a repository's code, documentation, or memory."""
    note: str = ""
    """What else a user of the counts should know."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A rule for prompts of more than `over` images: each image costs `tokens` at any size."""

    over: int
    tokens: int

    def __call__(self, alone: int, n_images: int) -> int:
        """Return the tokens of one image among `n_images`; `alone` is the tokens of the image without others."""
        return self.tokens if n_images > self.over else alone


def numbered(alone: int, place: int) -> int:
    """Return the tokens of an image before which the prompt has the number of the image in digits. `place` counts from
    1, the written number from 0; `alone` includes a number of one digit.
    """
    return alone + len(str(place - 1)) - 1


@dataclass(frozen=True, slots=True)
class VisionRule:
    """Counts the tokens of an image from its size.

    >>> def cells(width: int, height: int, cell: int) -> int:
    ...     return -(-width // cell) * -(-height // cell)
    >>> rule = VisionRule("mine", cells, {"cell": 2}, Provenance("counted by hand", "made up"))
    >>> rule.tokens(4, 5)
    6
    """

    name: str
    formula: Callable[..., int] = field(repr=False)
    """`formula(width, height, **parameters)`; it raises `ValueError` with the reason for a size that the model
    refuses."""
    parameters: Mapping[str, Any] = field(hash=False)
    """The published numbers, by the names of the formula's parameters."""
    provenance: Provenance = field(repr=False)
    among: Callable[[int, int], int] | None = None
    """`among(tokens alone, number of images in the prompt)` returns the tokens of an image among others. None: other
    images change nothing."""
    by_place: bool = False
    """Whether `among` gets the place of the image in the prompt, from 1, instead of the number of images."""
    shared: int = 0
    """Tokens that are saved if an image directly follows another, without text in between."""
    max_images: int | None = None
    """The maximum number of images in a request; None if unknown."""
    variant_of: str = ""
    """The name of the rule of which this rule is another setting or another way of counting; empty if there is no such
    rule."""
    exact: bool = True
    """Whether what runs the model counts the same; False if the rule is only known from documentation."""
    text: str = ""
    """The model's text tokenizer, as `load_tokenizer` takes it; empty if none is known."""
    around: str = ""
    """The text that the processor puts before and after an image; each of the two counts as one token of the image."""
    _alone: Callable[[int, int], int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        count = functools.partial(_count, self.name, functools.partial(self.formula, **self.parameters))
        # typed, because otherwise 5.0 would get the cached count of 5
        object.__setattr__(self, "_alone", functools.lru_cache(CACHED_SIZES, typed=True)(count))

    def tokens(self, width: int, height: int, n_images: int = 1) -> int:
        """Return the tokens of an image of this size (pixels, after EXIF rotation) in a prompt of `n_images`.

        If the tokens depend on the place, the result is for the costliest place: the last one, directly after text.
        """
        if type(n_images) is not int or n_images < 1:
            raise TokenizationError(f"{n_images!r} images in a prompt: give an integer of at least 1")
        alone = self._alone(width, height)
        return alone if self.among is None else self.among(alone, n_images)

    def total(self, sizes: Iterable[tuple[int, int]], adjacent: int = 0) -> int:
        """Return the tokens of all images of one prompt, given as (width, height) in pixels after EXIF rotation;
        `adjacent` is how many directly follow another image, without text in between.
        """
        listed = list(sizes)
        most = max(0, len(listed) - 1)
        if not 0 <= adjacent <= most:
            raise TokenizationError(f"adjacent: expected 0 to {most} of {len(listed)} images, found {adjacent}")
        if self.by_place:
            tokens = sum(self.tokens(*size, place) for place, size in enumerate(listed, 1))
        else:
            tokens = sum(times * self.tokens(*size, len(listed)) for size, times in Counter(listed).items())
        return tokens - self.shared * adjacent

    def each(self, sizes: Sequence[tuple[int, int]]) -> list[int]:
        """Return the tokens of each image of a prompt, in their order; what neighbours share is not taken off."""
        places = range(1, len(sizes) + 1) if self.by_place else [len(sizes)] * len(sizes)
        return [self.tokens(*size, place) for size, place in zip(sizes, places, strict=True)]

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return type(self), tuple((values | {"parameters": dict(self.parameters)}).values())


def _count(name: str, formula: Callable[[int, int], int], width: int, height: int) -> int:
    """Return the tokens of an image that is alone in its prompt, by the formula of the named rule."""
    for side in (width, height):
        if not isinstance(side, int) or isinstance(side, bool) or not 1 <= side <= MAX_SIDE:
            raise RefusedSizeError(
                f"image size {width!r} x {height!r}: both sides must be integers from 1 to {MAX_SIDE} pixels; "
                "check the header of the file it was read from"
            )
    try:
        tokens = formula(width, height)
    except (ValueError, ArithmeticError) as refusal:
        raise RefusedSizeError(
            f"image size {width} x {height}: rule {name!r} refuses it: {refusal}; "
            "crop or pad the image, or leave the model out"
        ) from refusal
    if not isinstance(tokens, int) or tokens < 0:
        raise TokenizationError(
            f"image size {width} x {height}: rule {name!r} counts {tokens!r} tokens; correct the rule"
        )
    return tokens
