"""How much smaller images must be for a release to fit a model: one factor for all, as `--image_resize` has it."""

import math
from dataclasses import dataclass

from mmlongbench.errors import ReleaseError
from mmlongbench.release.audit import Target
from mmlongbench.release.findings import FileAudit
from mmlongbench.release.measuring import Measured
from mmlongbench.release.models import Asked, Model
from tokenization import TokenizationError

STEPS = 100
"""Factors are hundredths."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was found."""

    model: str
    window: int
    factor: float | None
    """By which both sides of every image are to be multiplied; None where no factor would do."""
    most_tokens: int
    """The dearest example at that factor, with its reserve; at the smallest where no factor would do."""
    dearest: str
    """Its file and id."""
    as_it_is: int
    """The dearest example without resizing, with its reserve."""
    over_images: int = 0
    """Examples with more images than a request may hold: no factor helps these."""


def fit(target: Target, asked: Asked) -> Fit:
    """The largest factor at which every example fits the window; memory does not grow with the examples.

    Each factor that is tried is one pass over the release; sides are rounded down, at least one pixel.

    Raises:
        ReleaseError: the model has no window.

    """
    if asked.window is None:
        raise ReleaseError(f"--fit {asked.name}: how much it holds is not said; --window {asked.name}=TOKENS does")
    model = asked.open()
    whole, where, too_many = _most(target, model, STEPS)
    if whole <= asked.window:
        return Fit(asked.name, asked.window, 1.0, whole, where, whole, too_many)
    least, at, _ = _most(target, model, 1)
    if least > asked.window:
        return Fit(asked.name, asked.window, None, least, at, whole, too_many)
    low, high = 1, STEPS  # fits at low, and not at high
    while high - low > 1:
        middle = (low + high) // 2
        most, where, _ = _most(target, model, middle)
        if most <= asked.window:
            low, least, at = middle, most, where
        else:
            high = middle
    return Fit(asked.name, asked.window, low / STEPS, least, at, whole, too_many)


def resized(size: tuple[int, int], hundredths: int) -> tuple[int, int]:
    """(width, height) at so many hundredths, rounded down as `--image_resize` rounds.

    >>> resized((640, 3), 25)
    (160, 1)
    """
    return max(1, math.floor(size[0] * hundredths / STEPS)), max(1, math.floor(size[1] * hundredths / STEPS))


def _most(target: Target, model: Model, hundredths: int) -> tuple[int, str, int]:
    """(tokens, where) of the dearest example with its reserve, and how many have too many images."""
    from mmlongbench.release.audit import measured_examples

    opened, most, where, too_many = target.open(), 0, "", 0
    for file in opened.files:
        for _, made in measured_examples(file, opened.sizes, FileAudit(file.name, file.length)):
            total = _total(made, model, hundredths) + made.reserve
            too_many += model.max_images is not None and len(made.sizes) > model.max_images
            if total > most:
                most, where = total, f"{file.name}, {made.id}"
    return most, where, too_many


def _total(made: Measured, model: Model, hundredths: int) -> int:
    text = model.text.count(made.prompt.text) if model.text else made.count.text
    try:
        return text + model.rule.total([resized(size, hundredths) for size in made.sizes])
    except TokenizationError:  # refused whatever its size: the audit names it
        return text
