"""How much smaller images must be for a release to fit a model: one factor for all, as `--image_resize` has it."""

import math
from dataclasses import dataclass, replace

from mmlongbench.errors import ReleaseError
from mmlongbench.release.audit import Target, measured_examples
from mmlongbench.release.findings import FileAudit
from mmlongbench.release.loading import LoadedRelease
from mmlongbench.release.models import Model, ModelOptions
from tokenization import TokenizationError

STEPS = 100
"""Factors are hundredths."""


@dataclass(frozen=True, slots=True)
class Costliest:
    """The costliest example at one size of images."""

    tokens: int
    """With its reserve."""
    where: str
    """Its file and id."""
    over_images: int
    """Examples with more images than a request may hold: no size helps these."""
    refused: int
    """Examples with an image of a size that the model does not take."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was found."""

    model: str
    window: int
    factor: float | None
    """By which both sides of every image are to be multiplied; None where none of a hundredth and more would do."""
    at: Costliest
    """At that factor; at a hundredth where none would do."""
    as_it_is: Costliest


def fit(target: Target, asked: ModelOptions) -> Fit:
    """A factor at which every example fits the window, and a hundredth more does not; memory does not grow.

    Each factor that is tried is one pass over the release; sides are rounded down, at least one pixel. Rules that cut
    images into tiles may have a larger factor that fits again.

    Raises:
        ReleaseError: the model has no window.

    """
    if asked.window is None:
        raise ReleaseError(f"--fit {asked.name}: how much it holds is not said; --window {asked.name}=TOKENS does")
    model, opened = asked.open(), target.open()
    whole = _most(opened, model, STEPS)
    if whole.tokens <= asked.window:
        return Fit(asked.name, asked.window, 1.0, whole, whole)
    least = _most(opened, model, 1)
    if least.tokens > asked.window:
        return Fit(asked.name, asked.window, None, least, whole)
    low, high = 1, STEPS  # fits at low, and not at high
    while high - low > 1:
        middle = (low + high) // 2
        tried = _most(opened, model, middle)
        if tried.tokens <= asked.window:
            low, least = middle, tried
        else:
            high = middle
    return Fit(asked.name, asked.window, low / STEPS, least, whole)


def resized(size: tuple[int, int], hundredths: int) -> tuple[int, int]:
    """(width, height) at so many hundredths, rounded down as `--image_resize` rounds.

    >>> resized((640, 3), 25)
    (160, 1)
    """
    return max(1, math.floor(size[0] * hundredths / STEPS)), max(1, math.floor(size[1] * hundredths / STEPS))


def _most(opened: LoadedRelease, model: Model, hundredths: int) -> Costliest:
    """The costliest example at a size; headers are read once for all sizes."""
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
