"""Tells apart scores of one model by one metric and profile that were made with different choices.

An example is scored twice where a model was scored with its reasoning and without, say. Each set of choices then has a
profile of its own, which is called by what it adds: `official, reasoning kept`. So no table and no average mixes them.
Where every model has scores with one set of choices, they stay together, and a note of the report says what differs.
"""

from array import array
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from mmlongbench.scoring.report.columns import Ints, Origin, Series
from mmlongbench.scoring.report.reading import Reading


def told_apart(read: Reading) -> Reading:
    """Return the same lines, with series that name no choices but those which tell them apart, in their profile."""
    shown = _shown(list(read.series))
    numbers: dict[Series, int] = {}
    number: Ints = np.array([numbers.setdefault(shown[series], len(numbers)) for series in read.series], np.int64)
    rows: Ints = np.array(read.rows, np.int64).reshape(-1, 6)
    rows[:, 0] = number[rows[:, 0]] if len(rows) else rows[:, 0]
    origins: defaultdict[Series, Counter[Origin]] = defaultdict(Counter)
    for series, counts in read.origins.items():
        origins[shown[series]].update(counts)
    reasoning: Counter[tuple[Series, str, str]] = Counter()
    for (series, file, kind), count in read.reasoning.items():
        reasoning[shown[series], file, kind] += count
    first_metrics = dict(read.first_metrics)
    for (dataset, profile), metric in read.first_metrics.items():
        for series, new in shown.items():
            if (series.metric, series.profile) == (metric, profile):
                first_metrics.setdefault((dataset, new.profile), metric)
    return replace(
        read,
        rows=array("q", rows.reshape(-1).tobytes()),
        series=numbers,
        origins=origins,
        reasoning=reasoning,
        first_metrics=first_metrics,
    )


def _shown(every: list[Series]) -> dict[Series, Series]:
    """By series: the one that it is shown as."""
    choices: dict[tuple[str, str], dict[str, set[tuple[str, ...]]]] = {}
    for series in every:
        of_metric = choices.setdefault((series.metric, series.profile), {})
        of_metric.setdefault(series.model, set()).add(series.choices)
    shown = {}
    for series in every:
        by_model = choices[series.metric, series.profile]
        profile = series.profile
        if any(len(of_model) > 1 for of_model in by_model.values()):
            common = set.intersection(*(set(made) for of_model in by_model.values() for made in of_model))
            profile = ", ".join([profile, *(choice for choice in series.choices if choice not in common)])
        shown[series] = Series(series.model, series.metric, profile)
    return shown
