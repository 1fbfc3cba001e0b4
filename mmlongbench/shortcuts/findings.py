"""What a probe measures, and the finding that it becomes: an interval, a p-value, and one of three verdicts.

- Every probe guesses out of sample: a question is never judged by a rule that was learned from a question about the
  same document, entity or needle picture. The null repeats the whole procedure, learning included, 999 times with the
  answers exchanged, or with other units of the context as gold.
- A p-value is the share of the draws of the null that reach the measured score. Where less than 10 of 999 do, the tail
  beyond the highest tenth is taken as exponential, which is cautious for the tails of means. Its mean is at least one
  step of the scores, since the null of a small file has few different values. A release has one p-value, by the largest
  of all standardised scores (max-T).
- Findings are chosen by Benjamini and Hochberg at 5 %.
- The interval is Wilson's, with the number of questions divided by the design effect of their clusters. Its upper end
  is at least the upper end of what the null draws, so that a bad guess in a small file is not taken for a clean file.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from mmlongbench.draws import digest
from mmlongbench.likeness import missing
from mmlongbench.statistics import Floats, Ints, effective_number, wilson

PERMUTATIONS = 999
"""How often the null is drawn."""
FOLDS = 5
"""Into how many parts the clusters are divided."""
MIN_SUBJECTS = 6
"""The minimum number of clusters for a probe; with fewer, nothing can be learned from others."""
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
MOST_CARRIERS = 0.1
"""The largest share of the questions that are named as carriers of a finding that was estimated, and the largest share
of a dataset's questions that are excluded for all its findings."""

Flags: TypeAlias = npt.NDArray[np.bool_]
Verdict: TypeAlias = Literal["leak", "clean", "undecided"]
"""`leak`: what should not tell tells. `clean`: it tells less than 5 points, with 95 % confidence. `undecided`: the
file has too few questions to say either."""


class Finding(BaseModel):
    """What one probe found in one dataset."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    dataset: str
    file: str
    """The public file whose contexts tell most, below `mmlb_data/`."""
    length: int = 0
    """The length of this file, in tokens; 0 if what was found is the same at every length."""
    kind: str
    """What was tried, such as `answer from the question`."""
    verdict: Verdict
    questions: int
    """The number of questions that were tried."""
    clusters: int
    """The number of documents, entities or needle pictures that these questions are about."""
    measure: str
    """What the numbers below are shares of, such as `answers guessed right`."""
    found: float
    """The share that was reached, from 0 to 1."""
    chance: float
    """The share that is reached if nothing tells."""
    low: float
    """The lower end of the 95 % interval of found − chance."""
    high: float
    """The upper end of this interval."""
    p: float | None
    """The probability of such a share if nothing tells; None if the share was counted and not estimated."""
    smallest: float | None
    """The smallest excess that this file would show with a probability of 0.8; None if it was counted."""
    needed: int | None
    """About how many questions would show an excess of 5 points; None if it was counted."""
    evidence: str
    """What tells, in words, such as the features with the largest weights."""
    examples: tuple[str, ...]
    """The ids of the questions that carry the finding, the strongest first; at most 10."""
    carriers: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    """The ids of the questions to exclude. If the share was counted: all without which nothing would be counted. If it
    was estimated: those that tell most, the strongest first, so many that the others are like the null, and at most a
    tenth. Not written."""

    @property
    def excess(self) -> float:
        """Return the share that was reached above chance."""
        return self.found - self.chance


ShortcutFinding = Finding
"""The name of a finding in `import mmlongbench as mm`, where a finding of `check` is `Finding`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one probe measured in one dataset."""

    kind: str
    """What was tried."""
    measure: str
    """What a score is a share of."""
    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    """The cluster of each question."""
    scores: Floats
    """The score of each question, from 0 to 1."""
    null: Floats
    """The mean score of each draw of the null."""
    evidence: str
    """What tells, in words."""
    chance: float | None = None
    """The share that is reached if nothing tells, if it is known; None: the mean of the null."""
    length: int = 0
    """The length of the contexts, in tokens; 0 if it is not known."""


def uniforms(n: int, *key: str | int) -> Floats:
    """Return n drawn numbers from 0 to 1, the same for the same key."""
    drawn = hashlib.shake_128(digest("shortcuts", *key)).digest(4 * n)
    found: Floats = (np.frombuffer(drawn, "<u4").astype(np.float64) + 0.5) / 2.0**32
    return found


def folds_of(clusters: Sequence[str]) -> Ints:
    """Return the fold of each question: all questions of a cluster are in one fold, and folds have about equally many
    questions. Clusters of one size are in a drawn order, which no splitter of scikit-learn has.
    """
    sizes: dict[str, int] = {}
    for cluster in clusters:
        sizes[cluster] = sizes.get(cluster, 0) + 1
    filled, fold = [0] * FOLDS, dict[str, int]()
    for cluster in sorted(sizes, key=lambda name: (-sizes[name], digest("fold", name))):
        fold[cluster] = filled.index(min(filled))
        filled[fold[cluster]] += sizes[cluster]
    return np.array([fold[cluster] for cluster in clusters], dtype=np.int64)


def has_enough(clusters: Sequence[str]) -> bool:
    """Return whether there are enough clusters to learn from some and to guess in others."""
    return len(set(clusters)) >= MIN_SUBJECTS


def judge(measured: Sequence[tuple[str, str, Measured]]) -> tuple[tuple[Finding, ...], float | None]:
    """Return the findings of measurements, each given with the names of its dataset and file, in their order; and the
    probability that the strongest of all probes is so strong if nothing tells anywhere, None if nothing was measured.

    What was measured at several lengths is one finding: a leak at the length at which it is strongest, and otherwise
    at the length at which most could still be hidden. The null is the strongest of the lengths, too, so that more
    lengths give no more false leaks.
    """
    if not measured:
        return (), None
    try:
        from scipy.stats import false_discovery_control
    except ModuleNotFoundError as error:
        raise missing("scipy", "a verdict") from error
    probes: dict[tuple[str, str], list[tuple[float, Floats, tuple[str, str, Measured]]]] = {}
    for dataset, file, at_length in measured:
        # In standard deviations of the null. Differences that come from the order in which scores are summed are 0: a
        # null of one value has no spread that would hide them.
        centre, spread = float(at_length.null.mean()), max(float(at_length.null.std()), _EQUAL)
        draws = np.round(at_length.null - centre, _DIGITS) / spread
        strength = round(float(at_length.scores.mean()) - centre, _DIGITS) / spread
        probes.setdefault((dataset, at_length.kind), []).append((strength, draws, (dataset, file, at_length)))
    strongest = [max(lengths, key=lambda one: one[0]) for lengths in probes.values()]
    null = np.array([np.max([draws for _, draws, _ in lengths], axis=0) for lengths in probes.values()])
    reached = int((null.max(axis=0) >= max(strength for strength, _, _ in strongest) - _EQUAL).sum())
    p = [_p(strength, draws) for (strength, _, _), draws in zip(strongest, null, strict=True)]
    is_chosen = (false_discovery_control(p) <= FALSE_DISCOVERIES).tolist()
    findings = []
    for number, lengths in enumerate(probes.values()):
        best = _finding(*strongest[number][2], p[number], is_chosen=is_chosen[number])
        if best.verdict != "leak":  # show the length at which most could still be hidden
            every = (_finding(*at_length, p[number], is_chosen=False) for _, _, at_length in lengths)
            best = max(every, key=lambda finding: finding.high)
        findings.append(best)
    return tuple(findings), (1 + reached) / (1 + PERMUTATIONS)


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


def _finding(dataset: str, file: str, probe: Measured, p: float, *, is_chosen: bool) -> Finding:
    chance = float(probe.null.mean()) if probe.chance is None else probe.chance
    found, spread = float(probe.scores.mean()), max(float(probe.null.std()), 1e-9)
    low, high = (end - chance for end in wilson(found, effective_number(probe.scores, probe.clusters)))
    high = max(high, max(found - chance, 0.0) + _Z_ONE * spread)
    order = sorted(range(len(probe.ids)), key=lambda at: (-probe.scores[at], probe.ids[at]))
    strongest = [at for at in order if probe.scores[at] > 0]
    # The mean of the others after each of the strongest is left out; the first one that the null reaches is enough.
    n, most = len(probe.ids), math.floor(MOST_CARRIERS * len(probe.ids))
    left = (probe.scores.sum() - np.cumsum(probe.scores[strongest[:most]])) / (n - 1 - np.arange(len(strongest[:most])))
    enough = next((number for number, mean in enumerate(left.tolist(), 1) if mean <= probe.null.mean()), most)
    return Finding(
        dataset=dataset,
        file=file,
        length=probe.length,
        kind=probe.kind,
        verdict=verdict(low, high, is_chosen=is_chosen),
        questions=n,
        clusters=len(set(probe.clusters)),
        measure=probe.measure,
        found=found,
        chance=chance,
        low=low,
        high=high,
        p=p,
        smallest=min(_Z_POWER * spread, 1.0),
        needed=max(1, math.ceil(n * (_Z_POWER * spread / TOLERATED) ** 2)),
        evidence=probe.evidence,
        examples=tuple(probe.ids[at] for at in strongest[:10]),
        carriers=tuple(probe.ids[at] for at in strongest[:enough]),
    )


def verdict(low: float, high: float, *, is_chosen: bool) -> Verdict:
    """Return the verdict of an interval of the excess; a leak must also be chosen among all findings.

    >>> verdict(0.02, 0.2, is_chosen=True), verdict(-0.03, 0.04, is_chosen=False), verdict(-0.2, 0.2, is_chosen=False)
    ('leak', 'clean', 'undecided')
    """
    if is_chosen and low > 0:
        return "leak"
    return "clean" if high < TOLERATED else "undecided"
