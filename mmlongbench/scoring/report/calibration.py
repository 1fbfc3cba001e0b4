"""Calibrates α of SMuDGE: finds the α whose scores, α × match + (1 − α) × grounding, agree best with given scores.

There are two kinds of given scores:

- Scores of examples by people, a judge or another metric. At each α, the expected calibration error (ECE, see
  `expected_error`) and Pearson's r over examples are computed.
- An ECE of each model, as leaderboards list it. At each α, Pearson's r over models is computed between this ECE and the
  model's mean score. The paper on SMuDGE chose 0.25 in this way (Nourbakhsh et al., Findings of NAACL 2025,
  arXiv:2503.19120). A model with higher scores should have a lower ECE, so the lowest r is best.

The score at another α is computed from the match and the grounding in the score line. If an answer is a list or has
alternatives, match and grounding are those of the values that were chosen at the α of the scoring run.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mmlongbench.errors import Fault, ReleaseError
from mmlongbench.io.json_lines import json_lines
from mmlongbench.scoring.scores import ScoreLine, profile_order, read_scores
from mmlongbench.statistics import Floats

ALPHAS = tuple(step / 20 for step in range(21))
BINS = 10
_DIGITS = 9
"""The decimal places to which a score × `BINS` is rounded to find its bin, because 1 − 0.8 is computed as less than
0.2."""
MIN_EXAMPLES = 2
MIN_MODELS = 3
Key: TypeAlias = tuple[str, str, float | None, int | None]
"""The file, the id, the depth and the permutation of an example."""
Parts: TypeAlias = tuple[float, float]
"""The match and the grounding of an example."""


class GivenScore(BaseModel):
    """A given score of one example; other fields, such as those of a scores file, are ignored."""

    model_config = ConfigDict(frozen=True)

    model: str | None = None
    """The model whose prediction was scored; it may be left out if there is only one model."""
    file: str
    id: str
    depth: float | None = None
    permutation: int | None = None
    sample: int = 0
    """The number of the answer, if the model has several answers to the example; their mean counts."""
    score: float | None = Field(ge=0, le=1)
    """The score; None if the example could not be scored. Such a line is ignored."""

    @property
    def key(self) -> Key:
        """Return the key of the example that was scored."""
        return self.file, self.id, self.depth, self.permutation


class GivenError(BaseModel):
    """The expected calibration error of one model."""

    model_config = ConfigDict(frozen=True)

    model: str
    ece: float = Field(ge=0, le=1)


@dataclass(frozen=True, slots=True)
class AtAlpha:
    """How well the scores at one α agree with the given scores."""

    alpha: float
    ece: float | None
    """The expected calibration error; None if the given scores are errors of models, not scores of examples."""
    pearson: float | None
    """Pearson's r; None if all scores at this α are equal, or if all given scores are equal."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The agreement at every α, and the best α."""

    given: str
    """What the given scores are about: `examples` or `models`."""
    count: int
    """How many examples or models were compared."""
    rows: tuple[AtAlpha, ...]

    @property
    def best_by_ece(self) -> AtAlpha | None:
        """Return the row with the lowest ECE; None if no row has an ECE.

        If several rows have this ECE, it is the one with the smallest α.
        """
        return min((row for row in self.rows if row.ece is not None), key=_error, default=None)

    @property
    def best_by_pearson(self) -> AtAlpha | None:
        """Return the row with the highest r over examples, or with the lowest r over models; None if no row has an r.

        If several rows have this r, it is the one with the smallest α.
        """
        sign = -1 if self.given == "examples" else 1
        known = ((sign * row.pearson, row) for row in self.rows if row.pearson is not None)
        return min(known, key=lambda pair: round(pair[0], 12), default=(0.0, None))[1]


def calibration(scores: Path, given: Path, profile: str = "") -> Calibration:
    """Compare the scores of a folder with the scores in the file `given`, at every α.

    If `profile` is given, only scores under this profile are compared.

    Raises:
        ReleaseError: a file cannot be read or a line is not valid, an example has two scores, or too few examples or
            models have both a score and a given score.

    """
    parts = _parts(scores, profile)
    lines = list(_given(given))
    errors = {line.model: line.ece for line in lines if isinstance(line, GivenError)}
    if errors:
        return _over_models(parts, errors, given.name)
    return _over_examples(parts, [line for line in lines if isinstance(line, GivenScore)], given.name)


def _parts(folder: Path, profile: str) -> dict[str, dict[Key, Parts]]:
    """Return match and grounding by model and example, for the lines that have both. If an example has several samples,
    these are the means over them.

    If `profile` is given, lines under other profiles are left out.
    """
    found: dict[str, dict[Key, list[Parts]]] = {}
    profiles: dict[tuple[str, Key, int], str] = {}
    others: set[str] = set()
    for line in read_scores(folder):
        match, grounding = line.details.get("match"), line.details.get("grounding")
        if not (isinstance(match, int | float) and isinstance(grounding, int | float)):
            continue
        if profile not in ("", line.profile):
            others.add(line.profile)
            continue
        key, sample = _key(line), (line.model, _key(line), line.sample)
        if sample in profiles:
            raise _twice(folder, line, profiles[sample])
        profiles[sample] = line.profile
        found.setdefault(line.model, {}).setdefault(key, []).append((float(match), float(grounding)))
    if not found:
        raise _nothing(folder, profile, others)
    return {model: {key: _mean(parts) for key, parts in of_model.items()} for model, of_model in found.items()}


def _mean(parts: Sequence[Parts]) -> Parts:
    """Return the mean match and the mean grounding of the samples of an example."""
    match, grounding = (math.fsum(values) / len(parts) for values in zip(*parts, strict=True))
    return match, grounding


def _twice(folder: Path, line: ScoreLine, first: str) -> ReleaseError:
    """Return the error for an example with two scores; it suggests --profile only if the scores have two profiles."""
    what = f"{folder}: {line.model}: id {line.id!r} of {line.file} has two scores of SMuDGE"
    if first == line.profile:
        return ReleaseError(f"{what}; give a folder, or one file, with one score of each example")
    one, two = sorted((first, line.profile), key=profile_order)
    return ReleaseError(f"{what}, under the profiles {one} and {two}; choose one with --profile")


def _nothing(folder: Path, profile: str, others: Collection[str]) -> ReleaseError:
    """Return the error for a folder in which no score, or none under the profile, has a match and a grounding."""
    if others:
        there = ", ".join(sorted(others, key=profile_order))
        what = f"{folder}: no scores under {profile} have a match and a grounding; there are such under {there}"
        return ReleaseError(f"{what}; choose one with --profile")
    todo = "score with --metrics smudge"
    return ReleaseError(f"{folder}: no scores have a match and a grounding, so there is no α to choose; {todo}")


def _key(line: ScoreLine) -> Key:
    return line.file, line.id, line.depth, line.permutation


def _given(path: Path) -> Iterator[GivenScore | GivenError]:
    for line in json_lines(path):
        if isinstance(line.value, Fault):
            raise ReleaseError(f"{path.name}, line {line.number}: {line.value.expected}, found {line.value.found}")
        kind = GivenError if "ece" in line.value else GivenScore
        try:
            yield kind.model_validate(line.value)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            expected = "a line has model and ece, or file, id and a score from 0 to 1"
            raise ReleaseError(f"{path.name}, line {line.number}: {field}: {first['msg']}; {expected}") from error


def _over_examples(parts: Mapping[str, Mapping[Key, Parts]], lines: Sequence[GivenScore], name: str) -> Calibration:
    """Compare the scores of examples with given scores of the same examples, at every α."""
    found: dict[tuple[str, Key], dict[int, float]] = {}
    for line in lines:
        if line.score is None:
            continue
        if line.model is None and len(parts) > 1:
            raise ReleaseError(f"{name}: a line names no model, but {len(parts)} models have scores: add `model` to it")
        key = (line.model or next(iter(parts)), line.key)
        if found.setdefault(key, {}).setdefault(line.sample, line.score) != line.score:
            raise ReleaseError(f"{name}: id {line.id!r} of {line.file} has two scores; give one metric, or their mean")
    wanted = {key: math.fsum(samples.values()) / len(samples) for key, samples in found.items()}
    shared = sorted(((model, key) for model in parts for key in parts[model] if (model, key) in wanted), key=repr)
    if len(shared) < MIN_EXAMPLES:
        raise ReleaseError(
            f"{name}: {len(shared)} of its {len(wanted)} examples are scored; expected {MIN_EXAMPLES} at least: "
            "`model`, `file`, `id` and the placement must be those of the scores"
        )
    own = np.array([parts[model][key] for model, key in shared])
    given = np.array([wanted[each] for each in shared])
    at_each = ((alpha, _at(own, alpha)) for alpha in ALPHAS)
    rows = (AtAlpha(alpha, expected_error(scores, given), pearson(scores, given)) for alpha, scores in at_each)
    return Calibration("examples", len(shared), tuple(rows))


def _over_models(parts: Mapping[str, Mapping[Key, Parts]], errors: Mapping[str, float], name: str) -> Calibration:
    """Compare the errors with the models' mean scores, at every α; the means are over examples that all models have."""
    models = sorted(parts.keys() & errors.keys())
    if len(models) < MIN_MODELS:
        found = f"{len(models)} of its {len(errors)} models are scored"
        raise ReleaseError(f"{name}: {found}; expected {MIN_MODELS} at least: `model` must be that of the scores")
    shared = sorted(set.intersection(*(set(parts[model]) for model in models)), key=repr)
    if not shared:
        raise ReleaseError(f"{name}: the models share no example with a match and a grounding: score the same files")
    means = np.array([np.mean([parts[model][key] for key in shared], axis=0) for model in models])
    given = np.array([errors[model] for model in models])
    return Calibration(
        "models", len(models), tuple(AtAlpha(alpha, None, pearson(_at(means, alpha), given)) for alpha in ALPHAS)
    )


def _at(parts: Floats, alpha: float) -> Floats:
    """Return the scores at α; each row of `parts` is the match and the grounding of a score."""
    return np.asarray(parts @ np.array([alpha, 1 - alpha]), np.float64)


def _error(row: AtAlpha) -> float:
    return math.inf if row.ece is None else round(row.ece, 12)


def expected_error(scores: Floats, given: Floats) -> float:
    """Return the mean, over `BINS` bins of equal width, of |mean score − mean given score| within a bin.

    Each bin has the weight of its share of the examples.

    >>> round(expected_error(np.array([0.1, 0.12, 0.9, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])), 3)
    0.08
    """
    bins = np.minimum(np.round(scores * BINS, _DIGITS).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(bins, scores - given, BINS)).sum() / len(scores))


def pearson(one: Floats, other: Floats) -> float | None:
    """Return Pearson's r; None if all values of `one` are equal, or all values of `other`."""
    if np.ptp(one) < 1e-12 or np.ptp(other) < 1e-12:
        return None
    return float(np.corrcoef(one, other)[0, 1])
