"""Finds a factor for the sides of all images at which every example fits the window of a model."""

import math
from dataclasses import dataclass, replace

from mmlongbench.errors import ReleaseError
from mmlongbench.release.audit import Target, measured_examples
from mmlongbench.release.example_cost import Model, ModelOptions
from mmlongbench.release.file_audit import FileAudit
from mmlongbench.release.release import Release
from tokenization import TokenizationError

STEPS = 100
"""The number of steps: factors are hundredths."""


@dataclass(frozen=True, slots=True)
class Costliest:
    """What one pass finds with all images scaled by one factor: the example with the most tokens, and two counts."""

    tokens: int
    """Its tokens, with its reserve."""
    where: str
    """Its file and id."""
    over_images: int
    """The number of examples with more images than a request may hold: no size helps these."""
    refused: int
    """The number of examples with an image whose size the model refuses."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The factor that was found."""

    model: str
    window: int
    factor: float | None
    """The factor for both sides of every image; None if even a hundredth is too large."""
    at: Costliest
    """The costliest example at that factor; at a hundredth if there is no factor."""
    as_it_is: Costliest


def fit(target: Target, asked: ModelOptions) -> Fit:
    """Find a factor at which every example fits the window, while at a factor larger by 0.01 some example does not.

    The factor is 1 if every example fits unchanged. Examples with an image that the model refuses are only counted.
    Trying a factor takes one pass over the release. Sides are rounded down, to at least one pixel. With rules that cut
    images into tiles, a larger factor may fit again.

    Raises:
        ReleaseError: the model has no window.

    """
    if asked.window is None:
        raise ReleaseError(f"--fit {asked.name}: its window is not known; give it with --window {asked.name}=TOKENS")
    model, opened = asked.open(), target.open()
    whole = _most(opened, model, STEPS)
    if whole.tokens <= asked.window:
        return Fit(asked.name, asked.window, 1.0, whole, whole)
    least = _most(opened, model, 1)
    if least.tokens > asked.window:
        return Fit(asked.name, asked.window, None, least, whole)
    low, high = 1, STEPS  # fits at low, but not at high
    while high - low > 1:
        middle = (low + high) // 2
        tried = _most(opened, model, middle)
        if tried.tokens <= asked.window:
            low, least = middle, tried
        else:
            high = middle
    return Fit(asked.name, asked.window, low / STEPS, least, whole)


def resized(size: tuple[int, int], hundredths: int) -> tuple[int, int]:
    """Return (width, height) scaled by hundredths, rounded down as `--image_resize` rounds.

    >>> resized((640, 3), 25)
    (160, 1)
    """
    return max(1, math.floor(size[0] * hundredths / STEPS)), max(1, math.floor(size[1] * hundredths / STEPS))


def _most(opened: Release, model: Model, hundredths: int) -> Costliest:
    """Return the costliest example if images are scaled by `hundredths`; headers of images are read only once."""
    most, where, too_many, refused = 0, "", 0, 0
    for file in opened.files:
        for _, made in measured_examples(file, FileAudit(file.name, file.length)):
            smaller = replace(made, sizes=tuple(resized(size, hundredths) for size in made.sizes))
            too_many += model.max_images is not None and len(made.sizes) > model.max_images
            try:
                total = sum(smaller.tokens(model)) + made.reserve
            except TokenizationError:
                refused += 1
                continue
            if total > most:
                most, where = total, f"{file.name}, {made.id}"
    return Costliest(most, where, too_many, refused)
