"""Separates scores that a model has by one metric under one profile, if they were made with different choices.

For example, a model may be scored both with and without its reasoning. Then each set of choices becomes a profile of
its own, whose name lists the choices that not all scores share: `official, reasoning kept`. So no table and no average
mixes scores of one model that have different choices. If each model has only one set of choices, all models stay in one
table; if the choices differ between models, a note of the report says so. Scores with different contexts, such as
`context none`, are never in one table.
"""

from collections.abc import Sequence

from mmlongbench.scoring.report.columns import Series
from mmlongbench.scoring.scores import CONTEXT


def told_apart(every: Sequence[Series]) -> dict[Series, Series]:
    """Return, for each series, the series that reports show instead. A shown series has no `choices`, but its
    profile may list choices.
    """
    choices: dict[tuple[str, str], dict[str, set[tuple[str, ...]]]] = {}
    for series in every:
        of_metric = choices.setdefault((series.metric, series.profile), {})
        of_metric.setdefault(series.model, set()).add(series.choices)
    shown = {}
    for series in every:
        by_model = choices[series.metric, series.profile]
        common = set(series.choices)
        if any(len(of_model) > 1 for of_model in by_model.values()):
            common = set.intersection(*(set(made) for of_model in by_model.values() for made in of_model))
        named = (choice for choice in series.choices if choice.startswith(CONTEXT) or choice not in common)
        shown[series] = Series(series.model, series.metric, ", ".join([series.profile, *named]))
    return shown
