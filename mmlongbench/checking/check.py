"""Builds a small release, checks it, then audits and rebuilds it in a second process."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir, cell_shard, questions_shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.planning import check_manifest as check_plugins
from mmlongbench.building.planning import plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.stage_lines import CELLS, QUESTIONS, RowCounts, WrittenCell
from mmlongbench.checking.findings import Checked, CheckedDataset, Failure, Finding, Note, Outcome, Skipped
from mmlongbench.checking.repeatable import ids_are_unique, ids_stay, rows_are_the_same_twice
from mmlongbench.checking.rules import BUILT, IDS, KEPT, NEEDS_NO_RELEASE, ROWS, RULES
from mmlongbench.checking.second_process import WORKERS, BuiltRelease, SecondLook, difference, look_again
from mmlongbench.checking.world import World
from mmlongbench.errors import ManifestError, MMLongBenchError, SourceError, error_text
from mmlongbench.io.locations import LocalPath
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import PluginCallError, bind
from mmlongbench.manifest.model import SAMPLE, DatasetSpec, Manifest
from mmlongbench.manifest.plugins import described
from mmlongbench.manifest.task_files import tasks_of
from mmlongbench.release.rejects import Reject
from tokenization import TokenizationError

LIMIT = 5
"""How many questions of each dataset are built."""
ERRORS = (MMLongBenchError, TokenizationError, OSError)
"""The errors that a task can cause; those of its own code are `PluginCallError`s."""
NO_RELEASE = "the small release was not built"
NO_QUESTIONS = "no questions were chosen"
_QUIET = Progress(is_shown=False)


@dataclass(slots=True)
class _DatasetCheck:
    spec: DatasetSpec
    folder: Path
    findings: list[Finding] = field(default_factory=list)
    world: World | None = None
    """The dataset with its questions; None if they could not be chosen."""
    is_built: bool = False

    @property
    def release(self) -> Path:
        """The folder of the small release."""
        return self.folder / "release"

    def add(self, rule: str, outcomes: Iterable[Outcome]) -> None:
        """Add the finding of a rule."""
        self.findings.append(finding(rule, self.spec.name, outcomes))

    def not_run(self, rules: Iterable[str], reason: str) -> None:
        """Add that rules could not be run."""
        self.findings += [Finding(rule, self.spec.name, "not run", reason) for rule in rules]


def check(manifest: Manifest, progress: Progress = _QUIET, workers: int = WORKERS) -> Checked:
    """Check every dataset of a manifest.

    Args:
        manifest: its lengths are built, and of each dataset as many questions as its sample has (see `small`).
        progress: shows a bar.
        workers: the number of workers in the process that builds again.

    Raises:
        ManifestError: the manifest cannot be used.
        PluginError: a plug-in is not installed, or is broken.
        SourceError: a source cannot be read.

    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_sessions:
        datasets = [_DatasetCheck(spec, Path(folder) / f"{number}") for number, spec in enumerate(manifest.datasets)]
        with progress.telling("check", 2 * len(datasets) + 1) as tell:
            for each in datasets:
                _build(each, open_sessions)
                tell(each.spec.name)
            _look_again(datasets, Path(folder), workers)
            tell("built again")
            for each in datasets:
                _run_rules(each)
                tell(each.spec.name)
    return Checked(
        tuple(_summary(each) for each in datasets), tuple(found for each in datasets for found in each.findings)
    )


def small(manifest: Manifest, lengths: bool) -> Manifest:
    """Return a manifest with the lengths of a small release, unless the user has given `lengths`: the two shortest
    lengths of each dataset, or its only one and the double of it.
    """
    if lengths:
        return manifest
    specs = []
    for spec in manifest.datasets:
        first, *more = sorted(spec.lengths)[:2]
        specs.append(spec.model_copy(update={"lengths": (first, *(more or [2 * first]))}))
    return Manifest(datasets=tuple(specs))


def plugins_of(spec: DatasetSpec) -> tuple[str, ...]:
    """Return the plug-ins whose code a check of a dataset runs, as messages show them."""
    sample = (described("sample", spec.reader),) if spec.source == SAMPLE else ()
    metric: tuple[str, ...] = ()
    with suppress(MMLongBenchError):  # a broken builder has no metric
        metric = (described("metric", bind(spec).task.metric),)
    return (described("builder", spec.builder), described("reader", spec.reader), *sample, *metric)


def finding(rule: str, dataset: str, outcomes: Iterable[Outcome]) -> Finding:
    """Return the finding of a rule; an error of a plug-in is a failure."""
    failures: list[Failure] = []
    note = ""
    try:
        for outcome in outcomes:
            if isinstance(outcome, Skipped):
                return Finding(rule, dataset, "skipped", outcome.reason)
            if isinstance(outcome, Note):
                note = outcome.text
            else:
                failures.append(outcome)
    except ERRORS as error:
        failures.append(failure_of(error))
    if not failures:
        return Finding(rule, dataset, "holds", note)
    first = failures[0]
    return Finding(rule, dataset, "fails", first.detail, first.method, first.row, len(failures) - 1)


def failure_of(error: Exception) -> Failure:
    """Return the failure that an error stands for."""
    if isinstance(error, PluginCallError):
        return Failure(error.fault, error.method, error.row)
    return Failure(error_text(error))


def _build(dataset: _DatasetCheck, open_sessions: ExitStack) -> None:
    """Build the small release of a dataset, as far as that is possible."""
    executor, build_dir = LocalExecutor(1, _QUIET), BuildDir(dataset.release)
    build_dir.root.mkdir(parents=True)
    manifest, name = Manifest(datasets=(dataset.spec,)), dataset.spec.name
    error: Exception | None = None
    plans: list[DatasetPlan] = []
    try:
        plans, _ = plan_build(check_plugins(manifest), build_dir, executor)
    except PluginCallError as found:
        dataset.add(BUILT, [failure_of(found)])
        return
    session = open_sessions.enter_context(Session(build_dir.out))
    try:
        do_stages(plans, session, executor)
        finish(plans, session, executor)
        dataset.is_built = True
    except (SourceError, ManifestError):
        raise
    except ERRORS as found:
        error = found
    dataset.add(BUILT, [failure_of(error)] if error else ())
    if build_dir.is_done(questions_shard(name)):
        dataset.add(KEPT, _not_kept(session, name, is_built=dataset.is_built))
        dataset.add(ROWS, rows_are_the_same_twice(plans[0].bound, plans[0].sources))
        ids = [row.id for row in session.dataset(name).sources.rows]
        stay = ids_stay(dataset.spec.reader, plans[0].sources, ids, dataset.folder / "shorter")
        dataset.add(IDS, chain(ids_are_unique(session, name), stay))
        if rows := session.questions(name):
            lengths = tuple(sorted(dataset.spec.lengths))
            tasks = tasks_of(dataset.spec.builder, dataset.spec.reader)
            dataset.world = World(session.dataset(name), rows, lengths, dataset.release, tasks)


def _not_kept(session: Session, name: str, *, is_built: bool) -> Iterator[Outcome]:
    """Yield a failure if no question was kept, and for every length that no question fits; and a note on rejected rows
    and on lengths that the sources cannot fill.
    """
    lines = list(session.build_dir.read(questions_shard(name), QUESTIONS))
    counts = next(line.counts for line in lines if isinstance(line, RowCounts))
    if not counts.kept:
        first = next((line for line in lines if isinstance(line, Reject)), None)
        said = ", ".join(f"{count} × {reason}" for reason, count in {**counts.rejected, **counts.skipped}.items())
        yield _rejected(f"none of {counts.read} rows is kept ({said or 'nothing was read'})", first)
    notes = []
    if counts.kept and counts.rejected:
        said = ", ".join(f"{count} × {reason}" for reason, count in counts.rejected.items())
        notes.append(f"rows were rejected: {said}")
    for length in session.plans[name].spec.lengths if counts.kept and is_built else ():
        lines_of_cell = list(session.build_dir.read(cell_shard(name, length), CELLS))
        if not any(isinstance(line, WrittenCell) and line.files for line in lines_of_cell):
            first = next((line for line in lines_of_cell if isinstance(line, Reject)), None)
            yield _rejected(f"no question fits {format_length(length)}", first)
        cell = next((line.counts for line in lines_of_cell if isinstance(line, WrittenCell)), None)
        if cell and cell.ran_dry:
            said = f"{cell.ran_dry} of {cell.examples} examples at {format_length(length)}"
            notes.append(f"units run out in {said}")
    if notes:
        yield Note("; ".join(notes))


def _rejected(what: str, first: Reject | None) -> Failure:
    return Failure(f"{what}; the first: {first.fault}", row=first.id) if first else Failure(what)


def _look_again(datasets: Sequence[_DatasetCheck], folder: Path, workers: int) -> None:
    """Let a second process audit and build every release that was built, and keep what it found in the worlds."""
    worlds = [(each, each.world) for each in datasets if each.is_built and each.world]
    releases = []
    for each, world in worlds:
        spec, sources = each.spec, dict(world.dataset.plan.sources)
        if not isinstance(spec.source, str):  # sources are not unpacked or downloaded again; a sample is drawn again
            spec = spec.model_copy(update={"source": {name: (LocalPath(sources[name]),) for name in spec.source}})
        again = each.folder / "again"
        releases.append(BuiltRelease(Manifest(datasets=(spec,)), each.release, again, sources, workers))
    for (each, world), found in zip(worlds, _looks(releases, folder), strict=True):
        other = None if found.build_error else difference(each.release, each.folder / "again")
        each.world = replace(world, looked=found, difference=other)


def _looks(releases: Sequence[BuiltRelease], folder: Path) -> list[SecondLook]:
    """Return what the second process finds. If a task ends the process, each release gets a process of its own."""
    if not releases:
        return []
    try:
        return look_again(releases, folder)
    except MMLongBenchError as error:
        if len(releases) == 1:
            return [SecondLook(failures=(Failure(str(error)),), build_error=str(error))]
        return [found for each in releases for found in _looks([each], folder)]


def _run_rules(dataset: _DatasetCheck) -> None:
    first = [BUILT, KEPT, ROWS, IDS][len(dataset.findings) :]
    dataset.not_run(first, NO_RELEASE)
    for rule, find in RULES.items():
        if not dataset.world:
            dataset.not_run([rule], NO_QUESTIONS)
        elif rule not in NEEDS_NO_RELEASE and not dataset.is_built:
            dataset.not_run([rule], NO_RELEASE)
        else:
            dataset.add(rule, find(dataset.world))


def _summary(dataset: _DatasetCheck) -> CheckedDataset:
    rows = dataset.world.rows if dataset.world else ()
    return CheckedDataset(dataset.spec.name, plugins_of(dataset.spec), len(rows), tuple(sorted(dataset.spec.lengths)))
