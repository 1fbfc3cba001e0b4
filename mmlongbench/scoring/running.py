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
from mmlongbench.manifest.binding import broken, calling, metric_of
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
from mmlongbench.scoring.results import PredictionProblem, Scores, Tally
from mmlongbench.scoring.scores import CONTEXT, ScoreLine, refuse_other_choices
from mmlongbench.task.builder import Builder, scoring_input
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.metric import (
    Metric,
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
    allows_stale: bool = False
    """Whether to score predictions that were made for other examples than those of the release."""
    only_answered: bool = False
    """Whether to leave out every example without a prediction."""
    replaces: bool = False
    """Whether to overwrite scores of another release in the scores file."""

    @property
    def is_dry(self) -> bool:
        """Whether to score nothing, and only count problems and the calls to judges."""
        return self.settings.judge is not None and self.settings.judge.is_dry


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
    _add_unknown_files(files, predictions, problems)
    for name in known.opened.missing:
        problems.add("missing-file", name)
    asked = [file for file in files if choice[file.builder.dataset]]
    if run.is_partial or run.only_answered:
        for file in [file for file in asked if not predictions_for(file, predictions)]:
            problems.add("no-predictions", file.file.name)
            asked.remove(file)
    tallies: dict[tuple[str, str, int], Tally] = {}
    outside, counts = Counter[tuple[str, str]](), _Counts()
    context = predictions.context()
    if not run.allows_stale:
        refuse_stale(asked, predictions, known)
    usage: dict[str, Mapping[str, float]] = {}
    metrics: dict[str, tuple[Metric, Provenance]] = {}
    out = None if run.is_dry else out
    fits, is_new = True, out is not None and not out.parent.exists()
    with suppress(_NothingFits), ExitStack() as stack:
        by_name = {name: file.builder for file in files for name in choice[file.builder.dataset]}
        metrics = _open_metrics(dict(sorted(by_name.items())), run, stack, context)
        rules = {metric.name: provenance for metric, provenance in metrics.values()}
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
                line = _line(run.model, file, answer, metric, rules[metric.name], scored, known.lock, why_not)
                if not why_not:
                    key = line.metric, line.dataset, line.length
                    tallies.setdefault(key, Tally(metric)).add(line, scored, answer.joined.row)
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
    notes = tuple(_notes(run, choice, outside, [metric for metric, _ in metrics.values()], counts, problems))
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
        notes=notes,
    )


def _notes(
    run: Run,
    choice: Mapping[str, Sequence[str]],
    outside: Mapping[tuple[str, str], int],
    metrics: Sequence[Metric],
    counts: "_Counts",
    problems: Problems,
) -> Iterator[str]:
    if without := [dataset for dataset, chosen in choice.items() if not chosen]:
        yield f"not scored, because they do not declare {', '.join(run.metrics)}: {', '.join(without)}"
    yield from (f"{name}: {count:,} examples left out: {why}" for (name, why), count in sorted(outside.items()))
    yield from (f"{metric.name}: {note}" for metric in metrics for note in metric.notes)
    yield from counts.staleness.notes()
    fewer, every, first = 0, 0, ""
    for file, by_number in counts.samples.items():
        most = max(by_number)
        for number, (count, name) in by_number.items() if len(by_number) > 1 else ():
            every += count
            if number < most:
                fewer += count
                first = first or f"{file}: {name} has {number} of {most}"
    if fewer:
        yield f"{fewer:,} of {every:,} examples have fewer samples than others of their file; first {first}"
    if counts.receipts:
        kinds = ", ".join(f"{fault} {count:,}" for fault, count in sorted(counts.receipts.items()))
        bad = f"{counts.receipts.total():,} of {counts.answers:,} answers"
        yield f"{bad} were given to prompts whose tokens were not as expected: {kinds}"
    if run.only_answered:
        whole, examples = problems.forgive("no-predictions"), problems.forgive("absent")
        yield f"left out by --only-answered: {examples:,} examples of the files, {whole:,} whole files"


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
        other = _called(metric, "score", Score, replace(asked, answer=gold))
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
    builders: Mapping[str, Builder[Row]], run: Run, stack: ExitStack, context: str = ""
) -> dict[str, tuple[Metric, Provenance]]:
    """Return the metrics, which `stack` closes, and where their rules come from; `builders` has for each name a builder
    that declares it.
    """
    metrics = {}
    of_run = [*([REASONING_KEPT] if run.keeps_reasoning else []), *([f"{CONTEXT}{context}"] if context else [])]
    for name, builder in builders.items():
        with calling("metric", name, "__init__()"):
            metric = stack.enter_context(_closed_at_end(metric_of(builder, name)(run.settings)))
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


def _add_unknown_files(files: Sequence[ScorableFile], predictions: Predictions, problems: Problems) -> None:
    known = {name for file in files for name in file.names}
    names = [file.file.name for file in files]
    for name, found in predictions.by_file.items():
        if name not in known:
            first = next(iter(found.values()))[0]
            same = [other for other in names if PurePosixPath(other).name == PurePosixPath(name).name]
            hint = f"; did you mean {same[0]!r}?" if same else nearest(name, names)
            problems.add("unknown-file", f"{first}: {name}{hint}", sum(map(len, found.values())))
