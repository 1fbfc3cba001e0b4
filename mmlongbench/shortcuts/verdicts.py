"""Turns what probes measured into findings: intervals, p-values, and one of three verdicts for each.

- A p-value is the share of the draws of the null that reach the measured score. Where less than 10 of 999 do, the tail
  beyond the highest tenth is taken as exponential, which is cautious for the tails of means. Its mean is at least one
  step of the scores, since the null of a small file has few different values. A release has one p-value, by the largest
  of all standardised scores (max-T).
- Findings are chosen by Benjamini and Hochberg at 5 %.
- The interval is Wilson's, with the number of questions divided by the design effect of their clusters. Its upper end
  is at least the upper end of what the null draws, so that a bad guess in a small file is not taken for a clean file.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mmlongbench.shortcuts.findings import Finding, Verdict
from mmlongbench.shortcuts.measured import PERMUTATIONS, Floats, Measured
from mmlongbench.statistics import discoveries, effective_number, wilson

TOLERATED = 0.05
"""The excess under which a file is clean, as a share: 5 points."""
FALSE_DISCOVERIES = 0.05
"""The share of findings that may be false."""
_Z_ONE = NormalDist().inv_cdf(0.95)
_Z_POWER = _Z_ONE + NormalDist().inv_cdf(0.8)
"""A one-sided test at 5 % with a power of 0.8."""
_FEW = 10
_EQUAL = 1e-9
"""The difference below which two scores, in standard deviations, are equal; also the smallest standard deviation."""
_DIGITS = 12
"""The decimals of a mean score that are kept."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings of a release."""

    findings: tuple[Finding, ...]
    """One for each dataset and kind, in the order of the measurements."""
    p: float | None
    """The probability that the strongest of all probes is so strong if nothing tells anywhere; None if nothing was
    measured."""


def judge(measured: Sequence[tuple[str, str, Measured]]) -> Judged:
    """Return the findings of measurements, each with the names of its dataset and file.

    What was measured at several lengths is one finding: a leak at the length at which it is strongest, and otherwise
    at the length at which most could still be hidden. The null is the strongest of the lengths, too, so that more
    lengths give no more false leaks.
    """
    if not measured:
        return Judged((), None)
    of_lengths: dict[tuple[str, str], list[tuple[float, Floats, tuple[str, str, Measured]]]] = {}
    for each in measured:
        strength, draws = _standardised(each[2])
        of_lengths.setdefault((each[0], each[2].kind), []).append((strength, draws, each))
    strongest = [max(group, key=lambda one: one[0]) for group in of_lengths.values()]
    null = np.array([np.max([draws for _, draws, _ in group], axis=0) for group in of_lengths.values()])
    reached = int((null.max(axis=0) >= max(strength for strength, _, _ in strongest) - _EQUAL).sum())
    p = [_p(strength, draws) for (strength, _, _), draws in zip(strongest, null, strict=True)]
    chosen = discoveries(p, FALSE_DISCOVERIES)
    found = []
    for number, group in enumerate(of_lengths.values()):
        best = _finding(*strongest[number][2], p[number], number in chosen)
        if best.verdict != "leak":  # show the length at which most could still be hidden
            every = (_finding(*each, p[number], is_chosen=False) for _, _, each in group)
            best = max(every, key=lambda finding: finding.high)
        found.append(best)
    return Judged(tuple(found), (1 + reached) / (1 + PERMUTATIONS))


def _standardised(each: Measured) -> tuple[float, Floats]:
    """Return the score and the draws of the null in standard deviations of the null. Differences that come from the
    order in which scores are summed are 0: a null of one value has no spread that would hide them.
    """
    spread = max(float(each.null.std()), _EQUAL)
    centre = float(each.null.mean())
    null: Floats = np.round(each.null - centre, _DIGITS) / spread
    return round(float(each.scores.mean()) - centre, _DIGITS) / spread, null


def _p(real: float, null: Floats) -> float:
    """Return the p-value of a standardised score.

    >>> round(_p(-1.0, np.linspace(-3, 3, 999)), 2)
    0.67
    >>> _p(1.0, np.array([0.0] * 990 + [1.0] * 9)) >= 0.009
    True
    """
    reached = int((null >= real - _EQUAL).sum())
    if reached >= _FEW:
        return (1 + reached) / (1 + len(null))
    tail = np.sort(null)[-len(null) // 10 :]
    steps = np.diff(np.unique(np.round(tail, 9)))
    if not steps.size or real <= tail[0]:
        return (1 + reached) / (1 + len(null))
    over = max(float((tail - tail[0]).mean()), float(steps.min()))
    return max(len(tail) / len(null) * math.exp(-(real - tail[0]) / over), reached / len(null), 1e-12)


def _finding(dataset: str, file: str, each: Measured, p: float, is_chosen: bool) -> Finding:
    chance = float(each.null.mean()) if each.chance is None else each.chance
    found, effective = float(each.scores.mean()), effective_number(each.scores, each.clusters)
    spread = max(float(each.null.std()), 1e-9)
    low, high = (end - chance for end in wilson(found, effective))
    high = max(high, max(found - chance, 0.0) + _Z_ONE * spread)
    smallest = min(_Z_POWER * spread, 1.0)
    return Finding(
        dataset=dataset,
        file=file,
        length=each.length,
        kind=each.kind,
        verdict=verdict(low, high, is_chosen=is_chosen),
        questions=len(each.ids),
        clusters=len(set(each.clusters)),
        measure=each.measure,
        found=found,
        chance=chance,
        low=low,
        high=high,
        p=p,
        smallest=smallest,
        needed=max(1, math.ceil(len(each.ids) * (_Z_POWER * spread / TOLERATED) ** 2)),
        evidence=each.evidence,
        examples=_carriers(each),
    )


def verdict(low: float, high: float, *, is_chosen: bool) -> Verdict:
    """Return the verdict of an interval of the excess; a leak must also be chosen among all findings.

    >>> verdict(0.02, 0.2, is_chosen=True), verdict(-0.03, 0.04, is_chosen=False), verdict(-0.2, 0.2, is_chosen=False)
    ('leak', 'clean', 'undecided')
    """
    if is_chosen and low > 0:
        return "leak"
    return "clean" if high < TOLERATED else "undecided"


def _carriers(each: Measured) -> tuple[str, ...]:
    """Return the questions with the highest scores, at most 10."""
    order = sorted(range(len(each.ids)), key=lambda at: (-each.scores[at], each.ids[at]))
    return tuple(each.ids[at] for at in order[:10] if each.scores[at] > 0)
