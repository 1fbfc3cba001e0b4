"""Scores example by example, of every metric, and of every value of a parameter that a metric was given.

A detail called `<parameter>_<value>`, such as `alpha_0.5`, is the score under another value of a parameter; where a
metric says several, these take its place.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mmlongbench.scoring.report.columns import ABSENT, Column, Floats, Ints, Scores, by_value

_VARIANT = re.compile(r"[a-z]+_[0-9.]+")


@dataclass(frozen=True, slots=True)
class Scored:
    """One number an example, model and metric; NaN where there is none."""

    file: Ints
    """Of each example."""
    question: Ints
    """Of each example, a number for each question of a dataset, at whatever length and placement it is asked."""
    of_line: Ints
    """Of each line, its example."""
    by_metric: Mapping[str, Mapping[str, Floats]]
    """By metric, or metric and parameter, then by model."""


def vectors(scores: Scores) -> Scored:
    """The score of each example; what is absent is 0 in all of them."""
    keys = np.stack([scores.of_file, scores.question, scores.placement])
    examples, of_line = np.unique(keys, axis=1, return_inverse=True)
    of_line = of_line.reshape(-1)
    everything = np.arange(len(scores.score))
    found: dict[str, dict[str, Floats]] = {}
    varied = _varied(scores)
    for (metric, model), lines in by_value(everything, scores.label, scores.model).items():
        empty = np.full(examples.shape[1], np.nan)
        absent = lines[scores.status[lines] == ABSENT]
        for name, (at, values) in varied.get((metric, model), {metric: (lines, scores.score[lines])}).items():
            vector = empty.copy()
            vector[of_line[absent]] = 0.0
            vector[of_line[at]] = values
            found.setdefault(name, {})[model] = vector
    populations = np.zeros(len(scores.files), np.int64)
    populations[scores.of_file] = scores.of_population
    questions = np.unique(np.stack([populations[examples[0]], examples[1]]), axis=1, return_inverse=True)[1]
    return Scored(examples[0], questions.reshape(-1), of_line, found)


def _varied(scores: Scores) -> dict[tuple[str, str], dict[str, tuple[Ints, Floats]]]:
    """By metric and model: the lines and values of each parameter, where there are several."""
    wanted = [number for number, name in enumerate(scores.numbers) if _VARIANT.fullmatch(name)]
    rows = np.flatnonzero(np.isin(scores.details[:, 1], wanted))
    lines = scores.details[rows, 0]
    names = Column(scores.numbers, scores.details[rows, 1])
    found: dict[tuple[str, str], dict[str, tuple[Ints, Floats]]] = {}
    for (metric, model, name), at in by_value(rows, scores.label.at(lines), scores.model.at(lines), names).items():
        found.setdefault((metric, model), {})[f"{metric} {name}"] = (scores.details[at, 0], scores.values[at])
    return {key: variants for key, variants in found.items() if len(variants) > 1}
