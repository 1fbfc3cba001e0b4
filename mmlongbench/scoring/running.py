"""Scores a model: joins its predictions with a release, runs the chosen metrics, and writes a line for each score.

Examples are processed in order. Memory holds the `Predictions`, the examples that are being scored, and the tallies.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from mmlongbench.errors import nearest
from mmlongbench.io.files import atomic_write
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.release.layout import name_of
from mmlongbench.release.release import Release
from mmlongbench.scoring.choosing import chosen_metrics, said_of_choice
from mmlongbench.scoring.joining import (
    Joined,
    ScorableFile,
    builder_name,
    join,
    leave_out_others,
    predictions_for,
    scorable_files,
)
from mmlongbench.scoring.metric_calls import (
    closed_at_end,
    compared_answer,
    details_of_absent,
    score_of,
    usage_of,
    why_outside,
)
from mmlongbench.scoring.predictions import Prediction, Predictions
from mmlongbench.scoring.problems import Problems
from mmlongbench.scoring.reasoning import Reasoning, Said, without_reasoning
from mmlongbench.scoring.replacing import refuse_other_choices
from mmlongbench.scoring.samples import SampleCounts
from mmlongbench.scoring.scores import CONTEXT, ScoreLine, Status
from mmlongbench.scoring.staleness import ExampleDigests, Staleness, is_stale, refuse_stale
from mmlongbench.scoring.tallies import Tallies
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.metric import Metric, Provenance, Score, ScoringInput, Settings, provenance_of
from mmlongbench.task.spec import TaskSpec

REASONING_KEPT = "reasoning kept"
"""A run that keeps reasoning adds this choice to each line of its scores file."""
_AHEAD = 4
"""How many examples are prepared in advance for each thread that scores."""


@dataclass(frozen=True, slots=True)
class Run:
    """What to score, and how."""

    model: str
    metrics: tuple[str, ...]
    """The names of metrics; `default` and `judge` stand for several metrics (see `choosing`)."""
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


class _NothingFits(Exception):
    """No prediction fits an example, so there are no scores; the scores file does not appear."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    tallies: Tallies
    notes: Sequence[str] = ()
    usage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The calls, tokens and failures of each metric that reports them."""
    provenances: Mapping[str, Provenance] = field(default_factory=dict)
    """Whose rules the scores follow, by metric."""
    reasoning: Mapping[str, int] = field(default_factory=dict)
    """How many predictions had reasoning, by what was done with it (see `Reasoning`)."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many examples the model cannot be given, by reason."""
    fits: bool = True
    """False if no prediction fits an example: `tallies` are empty, and no file appears."""


def score(
    run: Run, known: ExampleDigests, predictions: Predictions, out: Path | None, problems: Problems, progress: Progress
) -> Outcome:
    """Score every example of the datasets that declare a chosen metric.

    `known` has the opened release and the digests of its examples that an earlier run computed. `out` is the scores
    file; if it is None, no file is written. A dry run writes no file either.

    Raises:
        ScoringError: no dataset declares a requested metric, two outputs of the public code may belong to one file,
            predictions are stale or have several contexts, or `out` holds scores of these metrics under another profile
            or with other choices.

    """
    files = scorable_files(known.opened)
    choice = chosen_metrics(run.metrics, [file.builder for file in files])
    leave_out_others(files, predictions, problems)
    _count_strangers(files, predictions, known.opened, problems)
    asked = [file for file in files if choice[file.builder.dataset] and _is_asked(file, run, predictions, problems)]
    tallies, outside, counts = Tallies(), Counter[tuple[str, str]](), _Counts()
    context = predictions.context()
    if not run.allows_stale:
        refuse_stale(asked, predictions, known)
    usage: dict[str, Mapping[str, float]] = {}
    metrics: dict[str, _Chosen] = {}
    fits, is_new = True, out is not None and not out.parent.exists()
    with suppress(_NothingFits), ExitStack() as stack:
        names = sorted({name for names in choice.values() for name in names})
        metrics = _open_metrics(names, run, stack, context)
        out = None if run.is_dry else out
        if out:
            refuse_other_choices(out, {name: each.provenance for name, each in metrics.items()})
        at_once = max((each.metric.concurrency for each in metrics.values()), default=1)
        stops = [each.metric.stop for each in metrics.values()]
        pool = stack.enter_context(threads(at_once, stops))
        writer = stack.enter_context(atomic_write(out)) if out else None
        advance = stack.enter_context(progress.bar("files scored", len(asked)))
        for file in asked:
            chosen = [metrics[name] for name in choice[file.builder.dataset]]
            lines = _Lines(run.model, file, file.builder.spec, known.lock)
            jobs = _jobs(chosen, _answers(file, run, predictions, problems, counts, known), outside)
            for job, scored in _in_threads(jobs, pool, _AHEAD * at_once):
                if run.is_dry:
                    continue
                line = lines.of(job, scored)
                if not job.outside:
                    tallies.add(line, scored, job.chosen.metric, job.answer.joined.row)
                if writer:
                    _write(writer, line)
            tallies.end_cell()
            advance()
        if not run.is_dry and not counts.answers and not counts.skipped:
            tallies, fits = Tallies(), False
            raise _NothingFits
        usage = {name: used for name, each in metrics.items() if (used := usage_of(each.metric))}
    if out and is_new and not fits:
        with suppress(OSError):  # another process may write there
            out.parent.rmdir()
    left_out = [f"{name}: {count:,} examples left out: {why}" for (name, why), count in sorted(outside.items())]
    provenances = {name: each.provenance for name, each in metrics.items()}
    said = [f"{name}: {note}" for name, each in metrics.items() for note in each.metric.notes]
    of_predictions = [*counts.staleness.notes(), *counts.samples.notes(), *counts.notes_on_receipts()]
    if run.only_answered:
        whole, examples = problems.forgive("no-predictions"), problems.forgive("absent")
        of_predictions.append(f"left out by --only-answered: {examples:,} examples of the files, {whole:,} whole files")
    notes = [*said_of_choice(run.metrics, choice), *left_out, *said, *of_predictions]
    return Outcome(tallies, notes, usage, provenances, counts.reasoning, counts.skipped, fits)


@dataclass(slots=True)
class _Counts:
    """Counts of what was found in the predictions."""

    reasoning: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    staleness: Staleness = field(default_factory=Staleness)
    samples: SampleCounts = field(default_factory=SampleCounts)
    answers: int = 0
    """How many answers there are."""
    receipts: Counter[str] = field(default_factory=Counter)
    """The number of answers to prompts whose token count was not as expected, for each kind of fault."""

    def notes_on_receipts(self) -> list[str]:
        """Return a sentence about the answers whose calls had a fault; an empty list if there are none."""
        if not self.receipts:
            return []
        kinds = ", ".join(f"{fault} {count:,}" for fault, count in sorted(self.receipts.items()))
        bad = self.receipts.total()
        return [f"{bad:,} of {self.answers:,} answers were given to prompts whose tokens were not as expected: {kinds}"]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A chosen metric that is ready to score."""

    metric: Metric
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class _Job:
    """One example to be scored by one metric."""

    chosen: _Chosen
    answer: "_Answer"
    outside: str = ""
    """Why the metric does not apply to the example; empty if it applies."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """One example, and a model's output for it."""

    joined: Joined
    asked: ScoringInput
    state: Literal["answered", "absent", "skipped"]
    skipped: str
    """Why the model cannot be given the example; empty if it can."""
    reasoning: Reasoning
    digest: bytes
    """The digest of the example; empty if it has none."""


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
        found = joined.prediction
        said = _said(predictions, found, keeps_reasoning=run.keeps_reasoning) if found else Said("", "")
        if said.reasoning:
            counts.reasoning[said.reasoning] += 1
        skipped = found.skipped if found else ""
        if skipped:
            counts.skipped[skipped] += 1
        elif found and joined.row != last:
            counts.samples.add(file.file.name, name_of(joined.record), joined.samples)
        elif not found and run.only_answered:
            continue
        if found and not skipped:
            counts.answers += 1
            counts.receipts.update([found.receipt] if found.receipt else [])
        last = joined.row
        digest = digests.of(file, joined)
        counts.staleness.add(file, joined, digest)
        state: Literal["answered", "absent", "skipped"] = "skipped" if skipped else "answered" if found else "absent"
        lead = found.lead if found else ""
        with calling("builder", name, "a method that scoring calls", about=f"example {joined.record.get('id')!r}"):
            asked = scoring_input(
                file.builder, joined.record, file.file.name, said.answer, lead=lead, place=joined.place
            )
        yield _Answer(joined, asked, state, skipped, said.reasoning, digest)


def _said(predictions: Predictions, prediction: Prediction, *, keeps_reasoning: bool) -> Said:
    """Return the answer in a prediction; nothing if the model was cut off while it was reasoning."""
    whole = predictions.text(prediction)
    if not whole.strip() and predictions.is_cut_off(prediction):
        return Said("", "unclosed")
    said = without_reasoning(whole)
    return Said(whole, "kept" if said.reasoning else "") if keeps_reasoning else said


def _jobs(metrics: Sequence[_Chosen], answers: Iterable[_Answer], outside: Counter[tuple[str, str]]) -> Iterator[_Job]:
    """Yield a job for each example and metric; `outside` counts, by metric and reason, examples that a metric does not
    apply to.
    """
    for answer in answers:
        for chosen in metrics:
            if why := why_outside(chosen.metric, answer.asked):
                outside[chosen.metric.name, why] += 1
            yield _Job(chosen, answer, why)


def _scored(job: _Job) -> Score:
    if job.outside:
        return Score(None, failure=job.outside)
    if job.answer.state == "skipped":
        return Score(None)
    if job.answer.state == "absent":
        return Score(0.0, details_of_absent(job.chosen.metric, job.answer.asked))
    return score_of(job.chosen.metric, job.answer.asked)


def _in_threads(jobs: Iterable[_Job], pool: ThreadPoolExecutor, ahead: int) -> Iterator[tuple[_Job, Score]]:
    """Yield each job with its score, in order.

    A job runs in the pool if its metric has concurrency and the example has a prediction; any other job runs in the
    current thread.
    """
    under_way: deque[tuple[_Job, Future[Score]]] = deque()
    for job in jobs:
        if job.chosen.metric.concurrency > 1 and job.answer.state == "answered" and not job.outside:
            under_way.append((job, pool.submit(_scored, job)))
        else:
            done: Future[Score] = Future()
            done.set_result(_scored(job))
            under_way.append((job, done))
        while under_way and (len(under_way) > ahead or under_way[0][1].done()):
            first, future = under_way.popleft()
            yield first, future.result()
    for job, future in under_way:
        yield job, future.result()


@dataclass(frozen=True, slots=True)
class _Lines:
    """Makes the lines of a scores file."""

    model: str
    file: ScorableFile
    spec: TaskSpec
    lock: str
    """See `ScoreLine.lock`."""

    def of(self, job: _Job, scored: Score) -> ScoreLine:
        """Return the line of one score."""
        joined, asked, spec, file = job.answer.joined, job.answer.asked, self.spec, self.file
        metric, provenance, digest = job.chosen.metric, job.chosen.provenance, job.answer.digest
        return ScoreLine.model_construct(
            model=self.model,
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
            status=_status(job, scored),
            skipped=job.answer.skipped,
            score=scored.score,
            reasoning=job.answer.reasoning,
            details=dict(scored.details),
            cluster=asked.cluster,
            facets=asked.facets,
            failure=scored.failure,
            digest=digest.hex(),
            lock=self.lock if digest else "",
            is_stale=is_stale(joined.prediction, digest),
            sample=joined.prediction.sample if joined.prediction else 0,
            answer=_hashed(compared_answer(metric, asked)) if joined.samples > 1 else "",
        )


def _hashed(answer: str) -> str:
    return blake2b(answer.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _status(job: _Job, scored: Score) -> Status:
    if job.outside:
        return "outside"
    if job.answer.state == "answered":
        return "failed" if scored.score is None else "scored"
    return job.answer.state


def _write(writer: BinaryIO, line: ScoreLine) -> None:
    fields: dict[str, object] = {**line.model_dump(exclude_defaults=True), "score": line.score}
    writer.write(to_json(fields))


def _open_metrics(names: Sequence[str], run: Run, stack: ExitStack, context: str = "") -> dict[str, _Chosen]:
    found = {}
    of_run = [*([REASONING_KEPT] if run.keeps_reasoning else []), *([f"{CONTEXT}{context}"] if context else [])]
    for name in names:
        with calling("metric", name, "__init__()"):
            metric = stack.enter_context(closed_at_end(metric_type(name)(run.settings)))
            provenance = provenance_of(metric, run.settings)
        found[name] = _Chosen(metric, replace(provenance, choices=(*provenance.choices, *of_run)))
    return found


def _is_asked(file: ScorableFile, run: Run, predictions: Predictions, problems: Problems) -> bool:
    if (run.is_partial or run.only_answered) and not predictions_for(file, predictions):
        problems.add("no-predictions", file.file.name)
        return False
    return True


def _meant(name: str, names: Iterable[str]) -> str:
    """Return a hint for a name that no public file has: the file with this name in another folder, or else the file
    with the most similar name. The hint is empty if there is no such file.
    """
    known = list(names)
    same = [each for each in known if PurePosixPath(each).name == PurePosixPath(name).name]
    return f"; did you mean {same[0]!r}?" if same else nearest(name, known)


def _count_strangers(
    files: Sequence[ScorableFile], predictions: Predictions, opened: Release, problems: Problems
) -> None:
    """Count predictions for files that the release does not have, and files in its lock that are missing on disk."""
    known = {name for file in files for name in file.names}
    for name, found in predictions.by_file.items():
        if name not in known:
            first = next(iter(found.values()))[0]
            hint = _meant(name, (file.file.name for file in files))
            problems.add("unknown-file", f"{first}: {name}{hint}", sum(map(len, found.values())))
    for name in opened.missing:
        problems.add("missing-file", name)
