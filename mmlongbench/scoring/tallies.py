"""Scores added up as they are made: each metric of each dataset at each length."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mmlongbench.scoring.scores import ScoreLine
from mmlongbench.task.metric import Metric, MetricWithTotals, Score


@dataclass(slots=True)
class Tally:
    """One metric over the examples of a dataset at a length."""

    examples: int = 0
    absent: int = 0
    failed: int = 0
    skipped: int = 0
    first_failure: str = ""
    total: float = 0.0
    further: Mapping[str, float] = field(default_factory=dict)
    """Figures that are no mean of examples."""

    @property
    def mean(self) -> float | None:
        """The mean over all that could be scored, where one without prediction counts as 0.

        None, which is shown as N/A, where the model cannot be asked some of the examples: the mean of the others is
        that of another set, most often of the shorter ones. The paper leaves such a cell out as a whole.
        """
        return None if self.skipped else self.mean_of_others

    @property
    def mean_of_others(self) -> float | None:
        """The mean over what was not skipped."""
        scored = self.examples - self.failed - self.skipped
        return self.total / scored if scored else None

    def summary(self) -> dict[str, Any]:
        """As JSON's types."""
        counts = {"examples": self.examples, "absent": self.absent, "failed": self.failed, "skipped": self.skipped}
        others = {"score_of_others": self.mean_of_others} if self.skipped else {}
        return {"score": self.mean, **others, **counts, **self.further}


class Tallies:
    """Tallies by metric, dataset and length."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str, int], Tally] = {}
        self._held: dict[tuple[str, str, int], tuple[MetricWithTotals, list[Score]]] = {}

    def add(self, line: ScoreLine, scored: Score, metric: Metric) -> None:
        """Count one more score; it is held until the cell ends where the metric has totals."""
        key = (line.metric, line.dataset, line.length)
        tally = self.cells.setdefault(key, Tally())
        tally.examples += 1
        tally.total += scored.score or 0.0
        tally.absent += line.status == "absent"
        if line.status == "failed":
            tally.failed += 1
            tally.first_failure = tally.first_failure or f"{line.file}: {line.id}: {line.failure}"
        if line.status == "skipped":
            tally.skipped += 1
        elif isinstance(metric, MetricWithTotals):
            self._held.setdefault(key, (metric, []))[1].append(scored)

    def end_cell(self) -> None:
        """Work out the totals of the file that is done."""
        for key, (metric, scored) in self._held.items():
            if not self.cells[key].skipped:
                self.cells[key].further = metric.totals(scored)
        self._held.clear()
