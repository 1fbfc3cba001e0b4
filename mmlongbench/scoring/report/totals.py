"""Finds which of the metrics named in the scores have totals: figures of whole files that are not means of examples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mmlongbench.errors import MMLongBenchError
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.task.metric import MetricWithTotals, Score

Totals: TypeAlias = Callable[[Sequence[Score]], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class KnownTotals:
    """The totals of the installed metrics. A metric is loaded when its name first occurs.

    If a metric cannot be loaded, the report lacks only its totals.
    """

    found: dict[str, Totals] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """Why a metric could not be loaded, by the metric's name."""
    without: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Return whether a metric has figures that are not means of its examples."""
        if name not in self.found and name not in self.problems and name not in self.without:
            self._look_for(name)
        return name in self.found

    def _look_for(self, name: str) -> None:
        try:
            metric = metric_type(name)
        except MMLongBenchError as error:
            self.problems[name] = " ".join(str(error).split())
            return
        if issubclass(metric, MetricWithTotals):
            self.found[name] = metric.totals
        else:
            self.without.add(name)
