"""Adds up scores while a run makes them, for each metric, dataset and length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mmlongbench.scoring.samples import Sampled, best_score, majority_score, mean_figures, mean_score
from mmlongbench.scoring.scores import ScoreLine
from mmlongbench.task.metric import Metric, MetricWithTotals, Score

Key: TypeAlias = tuple[str, str, int]
"""The metric, the dataset and the length."""


@dataclass(slots=True)
class Tally:
    """The scores of one metric over the examples of a dataset at a length. The score of an example with several samples
    is the mean over its samples that have a score.
    """

    examples: int = 0
    absent: int = 0
    failed: int = 0
    skipped: int = 0
    first_failure: str = ""
    total: float = 0.0
    further: Mapping[str, float] = field(default_factory=dict)
    """Figures that are not means of examples, by name."""
    samples: int = 1
    """The maximum number of samples of an example."""
    failed_samples: int = 0
    """The samples that could not be scored, of examples with a score."""
    best_total: float = 0.0
    """The sum over examples of the best score of their samples."""
    majority_total: float = 0.0
    """The sum over examples of the score of their most frequent answer."""

    @property
    def best(self) -> float | None:
        """Return the mean over all examples of the best score of their samples; None where `mean` is None."""
        return self._mean(self.best_total)

    @property
    def majority(self) -> float | None:
        """Return the mean over all examples of the score of their most frequent answer; None where `mean` is None."""
        return self._mean(self.majority_total)

    @property
    def of_samples(self) -> Mapping[str, float | None]:
        """Return `best of N` and `majority of N`, by name; empty if no example has several samples."""
        if self.samples < 2:
            return {}
        return {f"best of {self.samples}": self.best, f"majority of {self.samples}": self.majority}

    def _mean(self, total: float) -> float | None:
        scored = self.examples - self.failed - self.skipped
        return total / scored if scored and not self.skipped else None

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
        sampled: dict[str, object] = {}
        if self.samples > 1:
            sampled = {"samples": self.samples, "best": self.best, "majority": self.majority}
            sampled["failed_samples"] = self.failed_samples
        return {"score": self.mean, **others, **counts, **sampled, **self.further}


class Tallies:
    """The tallies by metric, dataset and length."""

    def __init__(self) -> None:
        self.cells: dict[Key, Tally] = {}
        self._held: dict[Key, tuple[MetricWithTotals, list[list[Score]]]] = {}
        """By metric, the scores of each example's samples, of the file that is being scored."""
        self._last: dict[Key, tuple[int, list[tuple[ScoreLine, Score]]]] = {}
        """By metric, the number of the last example, and its samples so far."""

    def add(self, line: ScoreLine, scored: Score, metric: Metric, example: int) -> None:
        """Add one score to its tally. If the metric is a `MetricWithTotals`, the score is kept until `end_cell`.

        The samples of an example come one after the other; `example` is the number of the example in its file.
        """
        key = (line.metric, line.dataset, line.length)
        self.cells.setdefault(key, Tally())
        if key not in self._last or self._last[key][0] != example:
            self._end_example(key)
            self._last[key] = example, []
        self._last[key][1].append((line, scored))
        if line.status != "skipped" and isinstance(metric, MetricWithTotals):
            held = self._held.setdefault(key, (metric, []))[1]
            if len(self._last[key][1]) == 1:
                held.append([])
            held[-1].append(scored)

    def end_cell(self) -> None:
        """Finish the file that was scored last: compute its totals; if an example was skipped, there are none."""
        for key in list(self._last):
            self._end_example(key)
        for key, (metric, scored) in self._held.items():
            if not self.cells[key].skipped:
                self.cells[key].further = mean_figures(metric.totals, scored)
        self._held.clear()

    def _end_example(self, key: Key) -> None:
        """Add the last example of a metric to its tally."""
        _, samples = self._last.pop(key, (0, []))
        if samples:
            _add_example(self.cells[key], samples)


def _add_example(tally: Tally, samples: Sequence[tuple[ScoreLine, Score]]) -> None:
    status, failures = samples[0][0].status, [line for line, _ in samples if line.status == "failed"]
    found = [Sampled(line.answer, scored.score) for line, scored in samples if scored.score is not None]
    tally.examples += 1
    tally.absent += status == "absent"
    tally.skipped += status == "skipped"
    tally.samples = max(tally.samples, len(samples))
    if failures:
        first = failures[0]
        tally.first_failure = tally.first_failure or f"{first.file}: {first.id}: {first.failure}"
    if found:
        tally.failed_samples += len(failures)
        tally.total += mean_score(found)
        tally.best_total += best_score(found)
        tally.majority_total += majority_score(found)
    else:
        tally.failed += bool(failures)
