"""Adds up scores while a run makes them, for each metric, dataset and length."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mmlongbench.scoring.scores import ScoreLine
from mmlongbench.task.metric import Metric, MetricWithTotals, Score


@dataclass(slots=True)
class Tally:
    """The scores of one metric over the examples of a dataset at a length."""

    examples: int = 0
    absent: int = 0
    failed: int = 0
    skipped: int = 0
    first_failure: str = ""
    total: float = 0.0
    further: Mapping[str, float] = field(default_factory=dict)
    """Figures that are not means of examples, by name."""

    @property
    def mean(self) -> float | None:
        """Return the mean over all examples that could be scored; an example without a prediction counts as 0.

        It is None if no example could be scored. It is also None, and shown as N/A, if some examples were skipped. The
        remaining examples are usually the shorter ones, so their mean is not comparable with means over all examples.
        The paper shows no mean in this case either.
        """
        return None if self.skipped else self.mean_of_others

    @property
    def mean_of_others(self) -> float | None:
        """Return the mean over the examples that were not skipped; None if none of them could be scored."""
        scored = self.examples - self.failed - self.skipped
        return self.total / scored if scored else None

    def summary(self) -> dict[str, object]:
        """Return the tally as JSON values."""
        counts = {"examples": self.examples, "absent": self.absent, "failed": self.failed, "skipped": self.skipped}
        others = {"score_of_others": self.mean_of_others} if self.skipped else {}
        return {"score": self.mean, **others, **counts, **self.further}


class Tallies:
    """The tallies by metric, dataset and length."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str, int], Tally] = {}
        self._held: dict[tuple[str, str, int], tuple[MetricWithTotals, list[Score]]] = {}

    def add(self, line: ScoreLine, scored: Score, metric: Metric) -> None:
        """Add one score to its tally. If the metric is a `MetricWithTotals`, the score is kept until `end_cell`."""
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
        """Compute the totals of the file that was scored last; if an example was skipped, there are none."""
        for key, (metric, scored) in self._held.items():
            if not self.cells[key].skipped:
                self.cells[key].further = metric.totals(scored)
        self._held.clear()
