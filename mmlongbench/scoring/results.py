"""The scores of a model as values, and the tallies that add them up while a run makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.scoring.scores import Sampled, ScoreLine, best_score, majority_score, mean_figures, mean_score
from mmlongbench.task.metric import Metric, MetricWithTotals, Provenance, Score


@dataclass(frozen=True, slots=True)
class CellScore:
    """The score of one dataset at one length (in tokens) by one metric. Each example counts once, with the mean over
    its samples.
    """

    metric: str
    dataset: str
    length: int
    score: float | None
    """The mean, from 0 to 1; an example without a prediction counts as 0. None if an example was skipped, or if no
    example could be scored."""
    score_of_others: float | None
    """The mean over the examples that were not skipped; None if none of them could be scored."""
    examples: int
    absent: int
    """The number of examples without a prediction."""
    failed: int
    """The number of examples that could not be scored; these examples are left out of the mean."""
    skipped: int
    """The number of examples that the model cannot be given."""
    first_failure: str
    """The first example that could not be scored, and why; empty if there is none."""
    further: Mapping[str, float]
    """Figures of the metric that are not means of examples, by name."""
    samples: int = 1
    """The maximum number of samples of an example."""
    best: float | None = None
    """The mean over the examples of the best score of their samples; None if there is no `score`, or no example has
    several samples."""
    majority: float | None = None
    """The mean over the examples of the score of their most frequent answer; None where `best` is None."""
    failed_samples: int = 0
    """The number of samples that could not be scored, of examples with a score."""


@dataclass(frozen=True, slots=True)
class PredictionProblem:
    """A kind of problem of predictions (see `REASONS`), how often it was found, and the first places."""

    reason: str
    count: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a model on a release."""

    model: str
    file: Path | None
    """The file with a line for each example and metric, which a report reads; None if no file was requested, for a dry
    run, or if no prediction fits an example."""
    cells: tuple[CellScore, ...]
    """A score for each metric, dataset and length; empty for a dry run, or if no prediction fits an example."""
    problems: tuple[PredictionProblem, ...]
    profiles: Mapping[str, Provenance]
    """Whose rules the scores follow, by metric."""
    reasoning: Mapping[str, int]
    """How many predictions had reasoning, by what was done with it (see `Reasoning`)."""
    skipped: Mapping[str, int]
    """How many examples the model cannot be given, by reason."""
    usage: Mapping[str, Mapping[str, float]]
    """The calls, tokens and failures of each metric that uses a judge."""
    notes: tuple[str, ...]
    """Sentences that a reader of the scores must know."""


@dataclass(slots=True)
class Tally:
    """Adds up the scores of one metric over the examples of a dataset at a length, while a run makes them."""

    metric: Metric
    examples: int = 0
    absent: int = 0
    failed: int = 0
    skipped: int = 0
    first_failure: str = ""
    further: Mapping[str, float] = field(default_factory=dict)
    samples: int = 1
    failed_samples: int = 0
    sums: dict[str, float] = field(default_factory=lambda: {"mean": 0.0, "best": 0.0, "majority": 0.0})
    """The sums over examples of the mean and best score of their samples, and of the score of the majority."""
    row: int = -1
    """The number of the last example in its file."""
    last: list[tuple[ScoreLine, Score]] = field(default_factory=list)
    """The samples of the last example so far."""
    kept: list[list[Score]] = field(default_factory=list)
    """The scores of each example's samples, if the metric has totals."""

    def add(self, line: ScoreLine, scored: Score, row: int) -> None:
        """Add one score. The samples of an example come one after the other."""
        if row != self.row:
            self._end_example()
            self.row = row
        self.last.append((line, scored))

    def end(self) -> None:
        """Finish: compute the totals; if an example was skipped, there are none."""
        self._end_example()
        if isinstance(self.metric, MetricWithTotals) and not self.skipped:
            self.further = mean_figures(self.metric.totals, self.kept)
        self.kept.clear()

    def _end_example(self) -> None:
        if not self.last:
            return
        (first, _), *_ = self.last
        failures = [line for line, _ in self.last if line.status == "failed"]
        answers = [Sampled(line.answer, scored.score) for line, scored in self.last if scored.score is not None]
        self.examples += 1
        self.absent += first.status == "absent"
        self.skipped += first.status == "skipped"
        self.samples = max(self.samples, len(self.last))
        if failures:
            self.first_failure = self.first_failure or f"{failures[0].file}: {failures[0].id}: {failures[0].failure}"
        if answers:
            self.failed_samples += len(failures)
            self.sums["mean"] += mean_score(answers)
            self.sums["best"] += best_score(answers)
            self.sums["majority"] += majority_score(answers)
        else:
            self.failed += bool(failures)
        if isinstance(self.metric, MetricWithTotals) and first.status != "skipped":
            self.kept.append([scored for _, scored in self.last])
        self.last.clear()

    def cell(self, metric: str, dataset: str, length: int) -> CellScore:
        """Return the result.

        If some examples were skipped, there is no mean, and it is shown as N/A. The remaining examples are usually the
        shorter ones, so their mean is not comparable with means over all examples. The paper shows no mean in this case
        either.
        """
        scored = self.examples - self.failed - self.skipped
        means = {name: total / scored if scored else None for name, total in self.sums.items()}
        shown = dict.fromkeys(means) if self.skipped else means
        return CellScore(
            metric=metric,
            dataset=dataset,
            length=length,
            score=shown["mean"],
            score_of_others=means["mean"],
            examples=self.examples,
            absent=self.absent,
            failed=self.failed,
            skipped=self.skipped,
            first_failure=self.first_failure,
            further=self.further,
            samples=self.samples,
            best=shown["best"] if self.samples > 1 else None,
            majority=shown["majority"] if self.samples > 1 else None,
            failed_samples=self.failed_samples,
        )
