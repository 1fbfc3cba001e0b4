"""Scores a model: joins its predictions with a release, runs the chosen metrics, and writes a line for each score.

Examples are processed in order. Memory holds the `Predictions`, the examples that are being scored, and the tallies.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from mmlongbench.errors import ScoringError, nearest
from mmlongbench.io.files import atomic_write
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.release.layout import name_of
from mmlongbench.scoring.joining import (
    ExampleDigests,
    Joined,
    ScorableFile,
    Staleness,
    builder_name,
    is_stale,
    join,
    leave_out_others,
    predictions_for,
    refuse_stale,
    scorable_files,
)
from mmlongbench.scoring.predictions import Predictions, Problems
from mmlongbench.scoring.reasoning import Reasoning, Said, without_reasoning
from mmlongbench.scoring.scores import (
    CONTEXT,
    Sampled,
    ScoreLine,
    best_score,
    majority_score,
    mean_figures,
    mean_score,
    refuse_other_choices,
)
from mmlongbench.task.builder import Builder, scoring_input
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.metric import (
    Metric,
    MetricWithTotals,
    Provenance,
    Score,
    ScoringInput,
    Settings,
    provenance_of,
)
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import TaskSpec

DEFAULT = "default"
"""The name that stands for the own metric of each dataset."""
JUDGE = "judge"
"""The name that stands for the metrics that use a judge: those `further_metrics` whose names begin with `judge-`."""
REASONING_KEPT = "reasoning kept"
"""A run that keeps reasoning adds this choice to each line of its scores file."""
_AHEAD = 4
"""How many examples are prepared in advance for each thread that scores."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Run:
    """What to score, and how."""

    model: str
    metrics: tuple[str, ...]
    """The names of metrics; `default` and `judge` stand for several metrics (see `DEFAULT` and `JUDGE`)."""
    settings: Settings
    is_partial: bool = False
    """Whether to leave out files without any prediction."""
    keeps_reasoning: bool = False
    """Whether to score predictions with their reasoning, as the public code does."""
    is_dry: bool = False
    """Whether to score nothing, and only count problems and the calls to judges."""
    allows_stale: bool = False
    """Whether to score predictions that were made for other examples than those of the release."""
    only_answered: bool = False
    """Whether to leave out every example without a prediction."""


@dataclass(frozen=True, slots=True)
class CellScore:
    """The score of one dataset at one length by one metric."""

    metric: str
    """The name of the metric."""
    dataset: str
    """The name of the dataset."""
    length: int
    """The length in tokens."""
    score: float | None
    """The mean, from 0 to 1; an example without a prediction counts as 0. None if an example was skipped, or if no
    example could be scored."""
    score_of_others: float | None
    """The mean over the examples that were not skipped; None if none of them could be scored."""
    examples: int
    """The number of examples."""
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
    """The maximum number of samples of an example. The score of an example with several samples is their mean."""
    best: float | None = None
    """The mean over the examples of the best score of their samples; None if there is no `score`, or no example has
    several samples."""
    majority: float | None = None
    """The mean over the examples of the score of their most frequent answer; None where `best` is None."""
    failed_samples: int = 0
    """The number of samples that could not be scored, of examples with a score."""


@dataclass(frozen=True, slots=True)
class PredictionProblem:
    """A kind of problem of predictions, and how often it was found."""

    reason: str
    """The name of the kind, such as `unknown-id`; `REASONS` describes each kind."""
    count: int
    """How often it was found."""
    first: tuple[str, ...]
    """The first places where it was found."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a model on a release."""

    model: str
    """The model whose predictions were scored."""
    file: Path | None
    """The file with a line for each example and metric, which a report reads; None if no file was requested, for a dry
    run, or if no prediction fits an example."""
    cells: tuple[CellScore, ...]
    """A score for each metric, dataset and length; empty for a dry run, or if no prediction fits an example."""
    problems: tuple[PredictionProblem, ...]
    """The problems of predictions; empty if there are none."""
    profiles: Mapping[str, Provenance]
    """Whose rules the scores of each metric follow."""
    reasoning: Mapping[str, int]
    """How many predictions had reasoning, by what was done with it."""
    skipped: Mapping[str, int]
    """How many examples the model cannot be given, by reason."""
    usage: Mapping[str, Mapping[str, float]]
    """The calls, tokens and failures of each metric that uses a judge."""
    notes: tuple[str, ...]
    """Sentences that a reader of the scores must know."""


class _NothingFits(Exception):
    """No prediction fits an example, so there are no scores; the scores file does not appear."""


def score(
    run: Run, known: ExampleDigests, predictions: Predictions, out: Path | None, problems: Problems, progress: Progress
) -> Scores:
    """Score every example of the datasets that declare a chosen metric.

    `known` has the opened release and the digests of its examples that an earlier run computed. `out` is the scores
    file; if it is None, no file is written. A dry run writes no file either.

    Raises:
        ScoringError: no dataset declares a requested metric, two outputs of the public code may belong to one file,
            predictions are stale or have several contexts, or `out` holds scores of these metrics under another profile
            or with other choices.

    """
    files = scorable_files(known.opened)
    choice = _chosen_metrics(run.metrics, [file.builder for file in files])
    leave_out_others(files, predictions, problems)
    _count_strangers(files, predictions, known, problems)
    asked = [file for file in files if choice[file.builder.dataset] and _is_asked(file, run, predictions, problems)]
    tallies: dict[tuple[str, str, int], _Tally] = {}
    outside, counts = Counter[tuple[str, str]](), _Counts()
    context = predictions.context()
    if not run.allows_stale:
        refuse_stale(asked, predictions, known)
    usage: dict[str, Mapping[str, float]] = {}
    metrics: dict[str, tuple[Metric, Provenance]] = {}
    out = None if run.is_dry else out
    fits, is_new = True, out is not None and not out.parent.exists()
    with suppress(_NothingFits), ExitStack() as stack:
        names = sorted({name for names in choice.values() for name in names})
        metrics = _open_metrics(names, run, stack, context)
        if out:
            refuse_other_choices(out, {name: provenance for name, (_, provenance) in metrics.items()})
        at_once = max((metric.concurrency for metric, _ in metrics.values()), default=1)
        pool = stack.enter_context(threads(at_once, [metric.stop for metric, _ in metrics.values()]))
        writer = stack.enter_context(atomic_write(out)) if out else None
        advance = stack.enter_context(progress.bar("files scored", len(asked)))
        for file in asked:
            chosen = [metrics[name][0] for name in choice[file.builder.dataset]]
            jobs = _jobs(chosen, _answers(file, run, predictions, problems, counts, known), outside)
            for (answer, metric, why_not), scored in _in_threads(jobs, pool, _AHEAD * at_once):
                if run.is_dry:
                    continue
                line = _line(run.model, file, answer, metric, metrics[metric.name][1], scored, known.lock, why_not)
                if not why_not:
                    key = line.metric, line.dataset, line.length
                    tallies.setdefault(key, _Tally(metric)).add(line, scored, answer.joined.row)
                if writer:
                    writer.write(to_json({**line.model_dump(exclude_defaults=True), "score": line.score}))
            for key in tallies.keys() & {(metric.name, file.builder.dataset, file.file.length) for metric in chosen}:
                tallies[key].end()
            advance()
        if not run.is_dry and not counts.answers and not counts.skipped:
            tallies, fits = {}, False
            raise _NothingFits
        usage = {name: used for name, (metric, _) in metrics.items() if (used := _usage_of(metric))}
    if out and is_new and not fits:
        with suppress(OSError):  # another process may write there
            out.parent.rmdir()
    notes = []
    if without := [dataset for dataset, chosen_names in choice.items() if not chosen_names]:
        notes.append(f"not scored, because they do not declare {', '.join(run.metrics)}: {', '.join(without)}")
    notes += [f"{name}: {count:,} examples left out: {why}" for (name, why), count in sorted(outside.items())]
    notes += [f"{name}: {note}" for name, (metric, _) in metrics.items() for note in metric.notes]
    notes += counts.notes()
    if run.only_answered:
        whole, examples = problems.forgive("no-predictions"), problems.forgive("absent")
        notes.append(f"left out by --only-answered: {examples:,} examples of the files, {whole:,} whole files")
    return Scores(
        model=run.model,
        file=out if fits else None,
        cells=tuple(tally.cell(*key) for key, tally in tallies.items()),
        problems=tuple(
            PredictionProblem(reason, each["count"], tuple(each["first"]))
            for reason, each in problems.summary().items()
        ),
        profiles={name: provenance for name, (_, provenance) in metrics.items()},
        reasoning=counts.reasoning,
        skipped=counts.skipped,
        usage=usage,
        notes=tuple(notes),
    )


def _chosen_metrics(names: Sequence[str], builders: Sequence[Builder[Row]]) -> dict[str, tuple[str, ...]]:
    """Return the metrics that score each dataset, from the builders' declarations and the names that a user gives."""

    def of_spec(name: str, spec: TaskSpec) -> tuple[str, ...]:
        if name == DEFAULT:
            return (spec.metric,)
        if name == JUDGE:
            return tuple(metric for metric in spec.further_metrics if metric.startswith(f"{JUDGE}-"))
        return (name,) if name in (spec.metric, *spec.further_metrics) else ()

    for name in names:
        if any(of_spec(name, builder.spec) for builder in builders):
            continue
        declared: dict[str, dict[str, None]] = {}
        for builder in builders:
            for metric in (builder.spec.metric, *builder.spec.further_metrics):
                declared.setdefault(metric, {})[builder.dataset] = None
        there = "; ".join(f"{metric}: {', '.join(datasets)}" for metric, datasets in sorted(declared.items()))
        hint = f"{nearest(name, declared)}; declared are {there}" if declared else "; no file here has a known name"
        raise ScoringError(f"--metrics {name}: no dataset here declares it{hint}")
    return {
        builder.dataset: tuple(dict.fromkeys(metric for name in names for metric in of_spec(name, builder.spec)))
        for builder in builders
    }


@dataclass(slots=True)
class _Counts:
    """Counts of what was found in the predictions."""

    reasoning: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    staleness: Staleness = field(default_factory=Staleness)
    samples: dict[str, dict[int, tuple[int, str]]] = field(default_factory=lambda: defaultdict(dict))
    """By file and number of samples: how many answered examples have this number, and the name of the first one."""
    answers: int = 0
    receipts: Counter[str] = field(default_factory=Counter)
    """The number of answers to prompts whose token count was not as expected, for each kind of fault."""

    def notes(self) -> Iterator[str]:
        """Yield the sentences that readers of the scores must know."""
        yield from self.staleness.notes()
        fewer, every, first = 0, 0, ""
        for file, by_number in self.samples.items():
            most = max(by_number)
            for number, (count, name) in by_number.items() if len(by_number) > 1 else ():
                every += count
                if number < most:
                    fewer += count
                    first = first or f"{file}: {name} has {number} of {most}"
        if fewer:
            yield f"{fewer:,} of {every:,} examples have fewer samples than others of their file; first {first}"
        if self.receipts:
            kinds = ", ".join(f"{fault} {count:,}" for fault, count in sorted(self.receipts.items()))
            bad = f"{self.receipts.total():,} of {self.answers:,} answers"
            yield f"{bad} were given to prompts whose tokens were not as expected: {kinds}"


@dataclass(frozen=True, slots=True)
class _Answer:
    """One example, and a model's output for it."""

    joined: Joined
    asked: ScoringInput
    state: Literal["scored", "absent", "skipped"]
    skipped: str
    """Why the model cannot be given the example; empty if it can."""
    reasoning: Reasoning
    digest: bytes
    """The digest of the example; empty if it has none."""


_Job = tuple[_Answer, Metric, str]
"""An answer to be scored by a metric; the text says why the metric does not apply to the example, or is empty."""


def _answers(
    file: ScorableFile,
    run: Run,
    predictions: Predictions,
    problems: Problems,
    counts: _Counts,
    digests: ExampleDigests,
) -> Iterator[_Answer]:
    """Yield every example of a file with the model's output; problems of predictions are counted."""
    name, last = builder_name(file), -1
    for joined in join(file, predictions, problems):
        prediction, said = joined.prediction, Said("", "")
        if prediction:
            whole = predictions.text(prediction)
            if not whole.strip() and predictions.is_cut_off(prediction):
                said = Said("", "unclosed")
            else:
                said = without_reasoning(whole)
                if run.keeps_reasoning:
                    said = Said(whole, "kept" if said.reasoning else "")
        if said.reasoning:
            counts.reasoning[said.reasoning] += 1
        skipped = prediction.skipped if prediction else ""
        if skipped:
            counts.skipped[skipped] += 1
        elif prediction:
            if joined.row != last:
                of_file = counts.samples[file.file.name]
                count, first = of_file.get(joined.samples, (0, name_of(joined.record)))
                of_file[joined.samples] = count + 1, first
            counts.answers += 1
            counts.receipts.update([prediction.receipt] if prediction.receipt else [])
        elif run.only_answered:
            continue
        last = joined.row
        digest = digests.of(file, joined)
        counts.staleness.add(file, joined, digest)
        lead = prediction.lead if prediction else ""
        with calling("builder", name, "a method that scoring calls", about=f"example {joined.record.get('id')!r}"):
            asked = scoring_input(
                file.builder, joined.record, file.file.name, said.answer, lead=lead, place=joined.place
            )
        state: Literal["scored", "absent", "skipped"] = "skipped" if skipped else "scored" if prediction else "absent"
        yield _Answer(joined, asked, state, skipped, said.reasoning, digest)


def _jobs(metrics: Sequence[Metric], answers: Iterable[_Answer], outside: Counter[tuple[str, str]]) -> Iterator[_Job]:
    """Yield a job for each example and metric; `outside` counts, by metric and reason, examples that a metric does not
    apply to.
    """
    for answer in answers:
        for metric in metrics:
            if why := why_outside(metric, answer.asked):
                outside[metric.name, why] += 1
            yield answer, metric, why


def _in_threads(jobs: Iterable[_Job], pool: ThreadPoolExecutor, ahead: int) -> Iterator[tuple[_Job, Score]]:
    """Yield each job with its score, in order.

    A job runs in the pool if its metric has concurrency and the example has a prediction; any other job runs in the
    current thread.
    """
    under_way: deque[tuple[_Job, Future[Score]]] = deque()
    for job in jobs:
        answer, metric, outside = job
        if metric.concurrency > 1 and answer.state == "scored" and not outside:
            under_way.append((job, pool.submit(score_of, metric, answer.asked)))
        else:
            done: Future[Score] = Future()
            if outside:
                done.set_result(Score(None, failure=outside))
            elif answer.state == "skipped":
                done.set_result(Score(None))
            elif answer.state == "absent":
                done.set_result(Score(0.0, dict(_called(metric, "absent", Mapping, answer.asked))))  # type: ignore[type-abstract]
            else:
                done.set_result(score_of(metric, answer.asked))
            under_way.append((job, done))
        while under_way and (len(under_way) > ahead or under_way[0][1].done()):
            first, future = under_way.popleft()
            yield first, future.result()
    for job, future in under_way:
        yield job, future.result()


def _line(
    model: str,
    file: ScorableFile,
    answer: _Answer,
    metric: Metric,
    provenance: Provenance,
    scored: Score,
    lock: str,
    outside: str,
) -> ScoreLine:
    joined, asked, spec, digest = answer.joined, answer.asked, file.builder.spec, answer.digest
    compared = _called(metric, "compared_answer", str, asked) if joined.samples > 1 else None
    is_failed = answer.state == "scored" and scored.score is None
    return ScoreLine.model_construct(
        model=model,
        metric=metric.name,
        profile=provenance.profile,
        follows=provenance.follows,
        choices=provenance.choices,
        file=file.file.name,
        dataset=asked.dataset,
        category=spec.category,
        counted_with=spec.counted_with,
        length=file.file.length,
        id=asked.id,
        depth=joined.record.get("depth"),
        permutation=joined.record.get("permutation", joined.turn),
        is_own=metric.name == spec.metric,
        averaged_metric=spec.averaged_metric,
        status="outside" if outside else "failed" if is_failed else answer.state,
        skipped=answer.skipped,
        score=scored.score,
        reasoning=answer.reasoning,
        details=dict(scored.details),
        cluster=asked.cluster,
        facets=asked.facets,
        failure=scored.failure,
        digest=digest.hex(),
        lock=lock if digest else "",
        is_stale=is_stale(joined.prediction, digest),
        sample=joined.prediction.sample if joined.prediction else 0,
        answer=""
        if compared is None
        else blake2b(compared.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
    )


def score_of(metric: Metric, asked: ScoringInput) -> Score:
    """Return the score of an example: the best of the scores for its answer and for each other accepted answer."""
    best = _called(metric, "score", Score, asked)
    for gold in asked.accepted:
        if best.score == 1:
            break
        other = _called(metric, "score", Score, replace(asked, gold=gold))
        if other.score is not None and (best.score is None or other.score > best.score):
            best = other
    return best


def why_outside(metric: Metric, asked: ScoringInput) -> str:
    """Return why a metric does not apply to an example; empty if it applies."""
    return _called(metric, "out_of_scope", str, asked)


def _called(metric: Metric, method: str, kind: type[_T], asked: ScoringInput) -> _T:
    """Call a method of a metric. An error in it names the metric, the method, the example and the line of code."""
    about = f"example {asked.id!r} of {asked.file}"
    with calling("metric", metric.name, f"{method}()", about=about):
        found: object = getattr(metric, method)(asked)
    if not isinstance(found, kind):
        fault = f"it returned a {type(found).__name__}, expected a {kind.__name__}"
        raise broken("metric", metric.name, f"{method}()", fault, about=about)
    return found


def _open_metrics(
    names: Sequence[str], run: Run, stack: ExitStack, context: str = ""
) -> dict[str, tuple[Metric, Provenance]]:
    """Return the metrics, which `stack` closes, and where their rules come from."""
    metrics = {}
    of_run = [*([REASONING_KEPT] if run.keeps_reasoning else []), *([f"{CONTEXT}{context}"] if context else [])]
    for name in names:
        with calling("metric", name, "__init__()"):
            metric = stack.enter_context(_closed_at_end(metric_type(name)(run.settings)))
            provenance = provenance_of(metric, run.settings)
        metrics[name] = metric, replace(provenance, choices=(*provenance.choices, *of_run))
    return metrics


def _usage_of(metric: Metric) -> dict[str, float]:
    with calling("metric", metric.name, "usage()"):
        return dict(metric.usage())


@contextmanager
def _closed_at_end(metric: Metric) -> Iterator[Metric]:
    try:
        yield metric
    finally:
        with calling("metric", metric.name, "close()"):
            metric.close()


def _is_asked(file: ScorableFile, run: Run, predictions: Predictions, problems: Problems) -> bool:
    if (run.is_partial or run.only_answered) and not predictions_for(file, predictions):
        problems.add("no-predictions", file.file.name)
        return False
    return True


def _count_strangers(
    files: Sequence[ScorableFile], predictions: Predictions, digests: ExampleDigests, problems: Problems
) -> None:
    """Count predictions for files that the release does not have, and files in its lock that are missing on disk."""
    known = {name for file in files for name in file.names}
    names = [file.file.name for file in files]
    for name, found in predictions.by_file.items():
        if name not in known:
            first = next(iter(found.values()))[0]
            same = [other for other in names if PurePosixPath(other).name == PurePosixPath(name).name]
            hint = f"; did you mean {same[0]!r}?" if same else nearest(name, names)
            problems.add("unknown-file", f"{first}: {name}{hint}", sum(map(len, found.values())))
    for name in digests.opened.missing:
        problems.add("missing-file", name)


@dataclass(slots=True)
class _Tally:
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
