"""Builds a small release, checks it, then audits and rebuilds it in a second process."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir, questions_shard
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.planning import check_manifest as check_plugins
from mmlongbench.building.planning import plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import QUESTIONS, RowCounts
from mmlongbench.checking.answers import example_to_read
from mmlongbench.checking.findings import Checked, CheckedDataset, Failure, Finding, Outcome, Skipped, failure_of
from mmlongbench.checking.repeatable import ids_stay, rows_are_the_same_twice
from mmlongbench.checking.rules import BUILT, DRAFTS, EVERY, IDS, KEPT, ROWS, RULES
from mmlongbench.checking.second_process import (
    WORKERS,
    BuiltRelease,
    difference,
    digest_of,
    look_again,
    packed_texts,
    prompts,
)
from mmlongbench.checking.world import ERRORS, World
from mmlongbench.errors import ManifestError, MMLongBenchError, SourceError
from mmlongbench.io.locations import LocalPath
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import PluginCallError, bind
from mmlongbench.manifest.loading import narrowed
from mmlongbench.manifest.model import SAMPLE, DatasetSpec, Manifest
from mmlongbench.manifest.plugins import described
from mmlongbench.manifest.task_files import tasks_of
from mmlongbench.release.rejects import Reject

_BUILT = 3
"""At how many lengths a release is built, the shortest ones; at the others, examples are only packed."""
NO_RELEASE = "the small release was not built"
NO_QUESTIONS = "no questions were chosen"
_QUIET = Progress(is_shown=False)


@dataclass(slots=True)
class _DatasetCheck:
    spec: DatasetSpec
    """The dataset at the lengths that are built."""
    folder: Path
    lengths: tuple[int, ...]
    """All lengths at which examples are packed."""
    wanted: tuple[int, ...]
    """The lengths that the manifest asks for."""
    findings: list[Finding] = field(default_factory=list)
    world: World | None = None
    """The dataset with its questions; None if they could not be chosen."""
    is_built: bool = False
    example: tuple[tuple[str, str], ...] = ()

    @property
    def release(self) -> Path:
        return self.folder / "release"

    def add(self, rule: str, outcomes: Iterable[Outcome]) -> None:
        """Add the finding of a rule; an error of a plug-in is a failure."""
        failures: list[Failure] = []
        notes: list[str] = []
        try:
            for outcome in outcomes:
                if isinstance(outcome, str):
                    notes.append(outcome)
                else:
                    failures.append(outcome)
        except Skipped as why:
            self.findings.append(Finding(rule, self.spec.name, "skipped", str(why)))
            return
        except Exception as error:  # noqa: BLE001  (an odd value of one task must not end the checks of the others)
            failures.append(failure_of(error))
        found = Finding(rule, self.spec.name, "holds", "; ".join(notes))
        if failures:
            first, more = failures[0], len(failures) - 1
            place = first.place or (self.world.place(first.row) if self.world and first.row else "")
            is_shared = self.world is not None and self.world.is_shared and not first.traceback
            method = first.method.replace("draft()", "contexts()") if is_shared else first.method
            values = (first.detail, method, first.row, more, first.length, place, first.traceback)
            found = Finding(rule, self.spec.name, "fails", *values)
        self.findings.append(found)


def check(
    manifest: Manifest,
    progress: Progress = _QUIET,
    workers: int = WORKERS,
    *,
    limit: int | None = None,
    has_one_length: bool = False,
) -> Checked:
    """Check every dataset of a manifest (see `mmlongbench.check`).

    Examples are packed at all lengths of the manifest, and a release is built at the three shortest. Of each dataset,
    as many questions are packed as its sample has, at most `limit`; all rows are drafted. Unless `has_one_length`, a
    dataset's only length is doubled, so that contexts of two lengths can be compared.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_sessions:
        datasets = []
        for number, spec in enumerate(narrowed(manifest, None, limit).datasets):
            lengths = tuple(sorted(spec.lengths))
            if len(lengths) == 1 and not has_one_length:
                lengths += (2 * lengths[0],)
            small = spec.model_copy(update={"lengths": lengths[:_BUILT]})
            datasets.append(_DatasetCheck(small, Path(folder) / f"{number}", lengths, spec.lengths))
        with progress.telling("check", 2 * len(datasets) + 1) as tell:
            for dataset in datasets:
                _build(dataset, open_sessions)
                tell(dataset.spec.name)
            _look_again(datasets, Path(folder), workers)
            worlds = {dataset.spec.name: dataset.world for dataset in datasets if dataset.world}
            for stated in manifest.datasets:
                if world := worlds.get(stated.name):
                    world.stated, world.pair = stated, worlds.get(stated.drawn_name)
            tell("built again")
            for dataset in datasets:
                _run_rules(dataset)
                tell(dataset.spec.name)
    return Checked(
        tuple(
            CheckedDataset(
                dataset.spec.name,
                plugins_of(dataset.spec),
                len(dataset.world.rows) if dataset.world else 0,
                dataset.lengths,
                dataset.example,
            )
            for dataset in datasets
        ),
        tuple(finding for dataset in datasets for finding in dataset.findings),
    )


def plugins_of(spec: DatasetSpec) -> tuple[str, ...]:
    """Return the plug-ins whose code a check of a dataset runs, as messages show them."""
    sample = (described("sample", spec.reader),) if spec.source == SAMPLE else ()
    metric: tuple[str, ...] = ()
    with suppress(MMLongBenchError):  # a broken builder has no metric
        metric = (described("metric", bind(spec).task.metric),)
    reader = () if spec.reader == spec.builder else (described("reader", spec.reader),)
    return (described("builder", spec.builder), *reader, *sample, *metric)


def _build(dataset: _DatasetCheck, open_sessions: ExitStack) -> None:
    """Build the small release of a dataset, as far as that is possible, and run the rules about its rows."""
    executor, build_dir = LocalExecutor(1, _QUIET), BuildDir(dataset.release)
    build_dir.root.mkdir(parents=True)
    spec, name = dataset.spec, dataset.spec.name
    try:
        plans, _ = plan_build(check_plugins(Manifest(datasets=(spec,))), build_dir, executor)
    except PluginCallError as error:
        dataset.add(BUILT, [failure_of(error)])
        return
    (plan,) = plans
    session, failures = open_sessions.enter_context(Session(build_dir.out, plans)), list[Failure]()
    try:
        do_stages(session, executor)
        finish(session, executor)
        dataset.is_built = True
    except (SourceError, ManifestError):
        raise
    except ERRORS as error:
        failures.append(failure_of(error))
    dataset.add(BUILT, failures)
    if not build_dir.is_done(questions_shard(name)):
        return

    def wrong_ids() -> Iterator[Outcome]:
        message = "another row of the source has the same id; give each row an id of its own"
        for line in build_dir.read(questions_shard(name), QUESTIONS):
            if isinstance(line, Reject) and line.fault.reason == "duplicate-id":
                yield Failure(message, "row()", line.id)
        ids = [row.id for row in session.dataset(name).sources.rows]
        yield from ids_stay(spec.reader, plan.sources, ids, dataset.folder / "shorter")

    dataset.add(KEPT, _not_kept(session, name))
    dataset.add(ROWS, rows_are_the_same_twice(plan.bound, plan.sources))
    dataset.add(IDS, wrong_ids())
    if build_dir.is_done(questions_shard(name)) and (rows := session.questions(name)):  # a damaged result is removed
        tasks = tasks_of(spec.builder, spec.reader)
        opened = session.dataset(name)
        dataset.world = World(opened, tuple(rows), dataset.lengths, dataset.release, tasks, dataset.wanted)


def _not_kept(session: Session, name: str) -> Iterator[Outcome]:

    def listed(reasons: Mapping[str, int]) -> str:
        return ", ".join(f"{count} × {reason}" for reason, count in reasons.items())

    lines = list(session.build_dir.read(questions_shard(name), QUESTIONS))
    counts = next(line.counts for line in lines if isinstance(line, RowCounts))
    if counts.kept:
        if counts.rejected:
            yield f"rows were rejected: {listed(counts.rejected)}"
        return
    message = listed({**counts.rejected, **counts.skipped}) or "nothing was read"
    message = f"none of {counts.read} rows is kept ({message})"
    first = next((line for line in lines if isinstance(line, Reject)), None)
    yield Failure(f"{message}; the first: {first.fault}", row=first.id) if first else Failure(message)


def _look_again(datasets: Sequence[_DatasetCheck], folder: Path, workers: int) -> None:
    worlds = [(dataset, dataset.world) for dataset in datasets if dataset.is_built and dataset.world]
    releases = []
    for dataset, world in worlds:
        spec, sources = dataset.spec, dict(world.dataset.plan.sources)
        if not isinstance(spec.source, str):  # sources are not unpacked or downloaded again; a sample is drawn again
            spec = spec.model_copy(update={"source": {name: (LocalPath(sources[name]),) for name in spec.source}})
        with suppress(PluginCallError):  # then another rule fails
            world.prompts = list(prompts(world.release, world.tasks))
        with suppress(*ERRORS):
            world.packed_texts = packed_texts(world)
        digests = tuple(digest_of(text) for *_, text in world.prompts)
        packed = tuple((*key, digest_of(text)) for key, text in world.packed_texts.items())
        manifest, again = Manifest(datasets=(spec,)), dataset.folder / "again"
        given = (dataset.release, again, sources, workers, digests, dataset.lengths, packed)
        releases.append(BuiltRelease(manifest, *given))
    for (dataset, world), look in zip(worlds, look_again(releases, folder), strict=True):
        world.look = look
        world.difference = None if look.build_error else difference(dataset.release, dataset.folder / "again")


def _run_rules(dataset: _DatasetCheck) -> None:
    def not_run(rule: str, reason: str) -> None:
        dataset.findings.append(Finding(rule, dataset.spec.name, "not run", reason))

    for rule in [BUILT, KEPT, ROWS, IDS][len(dataset.findings) :]:
        not_run(rule, NO_RELEASE)
    for rule, find in RULES.items():
        if not dataset.world:
            not_run(rule, NO_QUESTIONS)
        elif rule not in (DRAFTS, EVERY) and not dataset.is_built:  # drafts need no release
            not_run(rule, NO_RELEASE)
        else:
            dataset.add(rule, find(dataset.world))
    if dataset.world:
        try:
            dataset.example = tuple(example_to_read(dataset.world))
        except ERRORS as error:
            failure = failure_of(error)
            dataset.example = (("not shown", f"{failure.method or 'an error'}: {failure.detail}"),)
