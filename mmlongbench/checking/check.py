"""Builds a small release, checks it, then audits and rebuilds it in a second process."""

import csv
import io
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir, cell_shard, questions_shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.lines import CELLS, QUESTIONS, RowCounts, WrittenCell
from mmlongbench.building.planning import check_manifest as check_plugins
from mmlongbench.building.planning import plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.checking.again import WORKERS, RecheckResult, ReleaseToRecheck, difference, recheck
from mmlongbench.checking.findings import Checked, CheckedDataset, Failure, Finding, Note, Outcome, Skipped
from mmlongbench.checking.purity import rows_are_the_same_twice
from mmlongbench.checking.rules import BUILT, IDS, KEPT, ROWS, RULES
from mmlongbench.checking.world import SmallRelease, World, shortest
from mmlongbench.errors import ManifestError, MMLongBenchError, SourceError, error_text
from mmlongbench.io.files import read_regular
from mmlongbench.io.locations import LocalPath
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import PluginCallError, bind
from mmlongbench.manifest.model import SAMPLE, DatasetSpec, Manifest
from mmlongbench.manifest.plugins import ENGINE, described, plugin_code, reader_type
from mmlongbench.manifest.task_files import tasks_of
from mmlongbench.release.rejects import Reject
from mmlongbench.task.rows import Row, SourcePaths
from tokenization import TokenizationError

_FEW = 3
"""With fewer rows, ids that look like row numbers may be chance."""
_CSV, _LINES = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson")
_MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of a table that is copied without its first row."""
_NUMBER = re.compile(r"[0-9]+\Z")


def ids_are_unique(session: Session, name: str) -> Iterator[Outcome]:
    """Yield every id that a second row of the source has too."""
    for line in session.build_dir.read(questions_shard(name), QUESTIONS):
        if isinstance(line, Reject) and line.fault.reason == "duplicate-id":
            yield Failure("another row of the source has the same id; give each row an id of its own", "row()", line.id)


def ids_stay(reader: str, sources: SourcePaths, ids: Sequence[str], folder: Path) -> Iterator[Outcome]:
    """Yield the first id that changes when the first row of a table is taken out; `folder` is for the shorter table.

    Public data sets that the engine reads number their rows and do not change. For a reader of the engine, and where no
    source is such a table, yield a note if the ids are the numbers of rows.
    """
    is_ours = plugin_code("reader", reader).distribution == ENGINE
    shorter = {} if is_ours else _shorter_tables(sources, folder)
    if not shorter:
        if len(ids) >= _FEW and (_numbered(ids, 0) or _numbered(ids, 1)):
            yield Note("ids are the numbers of rows: they move when a row is added above them")
        return
    before = _ids(reader, sources)
    for name, path in shorter.items():
        after: dict[str, str] = {}
        with suppress(MMLongBenchError):  # a table without this row may be refused; then nothing is known
            after = _ids(reader, {**sources, name: path})
        moved = ((before[row], id) for row, id in after.items() if before.get(row, id) != id)
        if found := next(moved, None):
            said = f"without the first row of {path.name}, the row has the id {found[1]!r}"
            yield Failure(f"{said}; use an id of the source, or a hash of the row's fields", "raw_rows()", found[0])
            return


def _ids(reader: str, sources: SourcePaths) -> dict[str, str]:
    """Return the id of each row by its other fields; rows whose other fields are equal are left out."""
    rows = [row for row in read_rows(reader_type(reader)(), sources, name=reader) if isinstance(row, Row)]
    fields = [row.model_dump_json(exclude={"id", "file", "place"}) for row in rows]
    times = Counter(fields)
    return {each: row.id for each, row in zip(fields, rows, strict=True) if times[each] == 1}


def _shorter_tables(sources: SourcePaths, folder: Path) -> dict[str, Path]:
    """Write a copy of every text table without its first row, and return the copies by the names of the sources."""
    shorter = {}
    for name, path in sources.items():
        with suppress(OSError, ValueError, csv.Error):  # what cannot be read is reported elsewhere
            if path.suffix.lower() in (*_CSV, *_LINES) and path.is_file():
                text = read_regular(path, _MAX_BYTES).decode("latin-1")  # every byte stays as it is
                lines = list(io.StringIO(text, newline=""))
                first, end = _first_row(lines) if path.suffix.lower() in _CSV else _first_line(lines)
                shorter[name] = folder / name / path.name
                shorter[name].parent.mkdir(parents=True)
                shorter[name].write_bytes("".join([*lines[:first], *lines[end:]]).encode("latin-1"))
    return shorter


def _first_line(lines: Sequence[str]) -> tuple[int, int]:
    """Return where the first line that is not blank begins and ends."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return first, first + 1


def _first_row(lines: Sequence[str]) -> tuple[int, int]:
    """Return the lines at which the first row below the header of a CSV table begins and ends.

    Raises:
        ValueError: the table is UTF-16.

    """
    if any("\0" in line for line in lines[:1]):
        raise ValueError("UTF-16")
    separator = max(",;\t", key=lambda each: lines[0].count(each) if lines else 0)
    table = csv.reader(iter(lines), delimiter=separator)
    next(table, None)
    first = table.line_num
    next((row for row in table if row), None)
    return first, table.line_num


def _numbered(ids: Sequence[str], first: int) -> bool:
    """Return whether ids are a common text and the number of the row, with or without zeros before it.

    >>> _numbered(["a1", "a2"], 1), _numbered(["a0001", "a0002"], 1), _numbered(["a1", "b2"], 1)
    (True, True, False)
    """
    common = ids[0].removesuffix(str(first))
    if all(id == f"{common}{number}" for number, id in enumerate(ids, first)):
        return True
    numbers = [_NUMBER.search(id) for id in ids]
    texts = {_NUMBER.sub("", id) for id in ids}
    return len(texts) == 1 and all(found and int(found[0]) == n for n, found in enumerate(numbers, first))


LIMIT = 5
"""How many questions of each dataset are built."""
ERRORS = (MMLongBenchError, TokenizationError, OSError)
"""The errors that a task can cause; those of its own code are `PluginCallError`s."""
NO_RELEASE = "the small release was not built"
NO_QUESTIONS = "no questions were chosen"
_QUIET = Progress(is_shown=False)


@dataclass(slots=True)
class _DatasetCheck:
    """One dataset while it is checked."""

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
            _recheck(datasets, Path(folder), workers)
            tell("built again")
            for each in datasets:
                _run_rules(each)
                tell(each.spec.name)
    return Checked(
        tuple(_summary(each) for each in datasets), tuple(found for each in datasets for found in each.findings)
    )


def small(manifest: Manifest, lengths: bool) -> Manifest:
    """Return a manifest with the lengths of a small release (`shortest`), unless the user has given `lengths`."""
    if lengths:
        return manifest
    specs = (spec.model_copy(update={"lengths": shortest(spec.lengths)}) for spec in manifest.datasets)
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
            dataset.world = World(
                session.dataset(name),
                rows,
                lengths,
                SmallRelease(dataset.release, tasks_of(dataset.spec.builder, dataset.spec.reader)),
            )


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
    """Return the failure that rows were rejected, with the first reject."""
    return Failure(f"{what}; the first: {first.fault}", row=first.id) if first else Failure(what)


def _opened(spec: DatasetSpec, sources: Mapping[str, Path]) -> DatasetSpec:
    """Return a dataset whose sources are where they were unpacked or downloaded to; a sample is drawn again."""
    if isinstance(spec.source, str):
        return spec
    return spec.model_copy(update={"source": {name: (LocalPath(sources[name]),) for name in spec.source}})


def _recheck(datasets: Sequence[_DatasetCheck], folder: Path, workers: int) -> None:
    """Let another process audit and build every release that was built, and keep what it found in the worlds."""
    built = [each for each in datasets if each.is_built and each.world]  # all that have questions
    releases = [
        ReleaseToRecheck(
            manifest=Manifest(datasets=(_opened(each.spec, each.world.dataset.plan.sources),)),
            release=each.release,
            out=each.folder / "again",
            sources=each.world.dataset.plan.sources,
            workers=workers,
        )
        for each in built
        if each.world
    ]
    for each, found in zip(built, _rechecked(releases, folder), strict=True):
        if each.world:
            each.world = replace(each.world, rechecked=_compared(each, found))


def _rechecked(releases: Sequence[ReleaseToRecheck], folder: Path) -> list[RecheckResult]:
    """Return what another process finds. If a task ends the process, each release gets a process of its own."""
    if not releases:
        return []
    try:
        return recheck(releases, folder)
    except MMLongBenchError as error:
        if len(releases) == 1:
            return [RecheckResult(audit_error=str(error), build_error=str(error))]
        return [found for each in releases for found in _rechecked([each], folder)]


def _compared(dataset: _DatasetCheck, found: RecheckResult) -> RecheckResult:
    """Return what another process found, with the difference between the two releases."""
    if found.build_error:
        return found
    return found.model_copy(update={"difference": difference(dataset.release, dataset.folder / "again")})


def _run_rules(dataset: _DatasetCheck) -> None:
    """Run all rules about a built dataset."""
    first = [BUILT, KEPT, ROWS, IDS][len(dataset.findings) :]
    dataset.not_run(first, NO_RELEASE)
    for rule in RULES:
        if not dataset.world:
            dataset.not_run([rule.text], NO_QUESTIONS)
        elif rule.needs_release and not dataset.is_built:
            dataset.not_run([rule.text], NO_RELEASE)
        else:
            dataset.add(rule.text, rule.find(dataset.world))


def _summary(dataset: _DatasetCheck) -> CheckedDataset:
    rows = dataset.world.rows if dataset.world else ()
    return CheckedDataset(dataset.spec.name, plugins_of(dataset.spec), len(rows), tuple(sorted(dataset.spec.lengths)))
