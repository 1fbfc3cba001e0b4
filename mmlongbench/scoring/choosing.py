"""Decides which metrics score which dataset, from the builders' declarations and the names that a user gives."""

from collections.abc import Mapping, Sequence

from mmlongbench.errors import ScoringError, nearest
from mmlongbench.task.builder import Builder
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import TaskSpec

DEFAULT = "default"
"""The name that stands for the own metric of each dataset."""
JUDGE = "judge"
"""The name that stands for the metrics that use a judge: those `further_metrics` whose names begin with `judge-`."""


def chosen_metrics(names: Sequence[str], builders: Sequence[Builder[Row]]) -> dict[str, tuple[str, ...]]:
    """Return the chosen metrics of each dataset, by the name of the dataset.

    Raises:
        ScoringError: no dataset declares a requested metric.

    """
    for name in names:
        if not any(_of_spec(name, builder.spec) for builder in builders):
            raise ScoringError(f"--metrics {name}: no dataset here declares it{_what_there_is(name, builders)}")
    chosen = {}
    for builder in builders:
        of_each = (_of_spec(name, builder.spec) for name in names)
        chosen[builder.dataset] = tuple(dict.fromkeys(found for some in of_each for found in some))
    return chosen


def said_of_choice(names: Sequence[str], chosen: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a list with one sentence about the datasets that are not scored; an empty list if all are scored."""
    without = [dataset for dataset, metrics in chosen.items() if not metrics]
    if not without:
        return []
    return [f"not scored, because they do not declare {', '.join(names)}: {', '.join(without)}"]


def _of_spec(name: str, spec: TaskSpec) -> tuple[str, ...]:
    if name == DEFAULT:
        return (spec.metric,)
    if name == JUDGE:
        return tuple(each for each in spec.further_metrics if each.startswith(f"{JUDGE}-"))
    return (name,) if name in (spec.metric, *spec.further_metrics) else ()


def _what_there_is(name: str, builders: Sequence[Builder[Row]]) -> str:
    declared: dict[str, list[str]] = {}
    for builder in builders:
        for metric in (builder.spec.metric, *builder.spec.further_metrics):
            declared.setdefault(metric, []).append(builder.dataset)
    if not declared:
        return "; no file here has a known name"
    said = "; ".join(f"{metric}: {', '.join(dict.fromkeys(names))}" for metric, names in sorted(declared.items()))
    return f"{nearest(name, declared)}; declared are {said}"
