"""Decides whether questions need a part of their context, from the fall of the score without it.

One margin decides in both directions: an interval above it says `needs`, an interval below it says `does not need`. So
no difference is both, and a difference that is certain but tiny is not called a need. The margin is 5 points, as for
findings of the audit without a model.
"""

import math
from dataclasses import dataclass

import numpy as np

from mmlongbench.shortcuts.contexts.results import Need, NeedVerdict, Part
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, Floats, interval

MARGIN = 0.05
"""A fall of the score that is smaller than this is no need."""
POWER = 0.8
"""The probability with which `Need.smallest` is shown."""
PARTS: dict[str, Part] = {"none": "context", "text-only": "images", "shuffled": "order"}
"""What a question needs if its score falls in a context."""
UNSOLVED = "the model is not above chance with the released prompt"
"""The reason that nothing is decided if the model does not solve the questions even with their context."""
FEW = "too few questions"
_Z = 1.959964
"""The normal quantile of an interval of 95 %."""
_Z_POWER = 0.841621
"""The normal quantile of a power of 0.8."""
_NEAREST = 0.01
"""A fall closer to the margin than this is taken to be this far away from it, so that `Need.needed` stays finite."""
_DUST = 1e-9
"""A difference that is smaller comes from rounding."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A paired difference between two contexts."""

    mean: float
    draws: Floats
    """The mean in each resample of the clusters."""
    clusters: int
    questions: int

    @property
    def unseen(self) -> float:
        """The share of clusters that may differ from all that were seen, with 97.5 % confidence (Clopper and Pearson).

        Resamples contain only what was seen. If no question of five is lost, no resample loses any; yet one question in
        two may be of a kind that is lost.
        """
        return unseen_share(self.clusters)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the resamples, widened to at least `unseen` on both sides; None with too few clusters."""
        if self.clusters < MIN_CLUSTERS:
            return None
        low, high = interval(self.draws)
        return max(-1.0, min(low, self.mean - self.unseen)), min(1.0, max(high, self.mean + self.unseen))

    @property
    def error(self) -> float:
        """The standard deviation of the resamples."""
        return float(np.nanstd(self.draws))


def unseen_share(clusters: int) -> float:
    """Return the upper end of the exact interval of a share of which no case was found among `clusters`.

    >>> round(unseen_share(5), 3), round(unseen_share(72), 3)
    (0.522, 0.05)
    """
    return 1.0 - float(((1 - LEVEL) / 2) ** (1 / clusters))


def need(context: str, fall: Fall, *, is_solved: bool) -> Need | None:
    """Return what a fall says about the questions; None for a context that no verdict is about.

    Args:
        context: the context without the part, such as `none`.
        fall: the difference released prompt − context.
        is_solved: whether the model is above chance with the released prompt. A model that does not solve the questions
            loses nothing without the context, so its scores do not say that a question can do without.

    """
    if context not in PARTS:
        return None
    found = fall.interval
    verdict: NeedVerdict = "undecided"
    if found and found[0] > MARGIN + _DUST:
        verdict = "needs"
    elif found and found[1] < MARGIN - _DUST and is_solved:
        verdict = "does not need"
    smallest = MARGIN + max((_Z + _Z_POWER) * fall.error, fall.unseen)
    is_open = verdict == "undecided"
    return Need(
        part=PARTS[context],
        verdict=verdict,
        reason="" if not is_open else FEW if is_solved else UNSOLVED,
        smallest=smallest if smallest <= 1 else None,
        needed=_needed(fall) if is_open and is_solved else None,
    )


def _needed(fall: Fall) -> int:
    """Return about how many questions would decide, if the fall, its spread and the size of clusters stay."""
    gap = max(abs(fall.mean - MARGIN), _NEAREST)
    by_spread = fall.questions * ((_Z + _Z_POWER) * fall.error / gap) ** 2
    clusters = math.log((1 - LEVEL) / 2) / math.log(1 - min(gap, 0.99))
    by_unseen = fall.questions / fall.clusters * clusters
    return max(fall.questions + 1, math.ceil(by_spread), math.ceil(by_unseen))
