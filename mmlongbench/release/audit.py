"""The audit: counts every example again, from its public record and the headers of its images alone.

Tokens are counted without anything that the build computed; the items of the release are only compared with the prompt.
One example is in memory at a time. Of each earlier example, about a hundred bytes are kept: its id, and digests of the
values that other examples must agree with.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mmlongbench.errors import ManifestError, MMLongBenchError, ReleaseError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import placements_of
from mmlongbench.manifest.code import ENGINE, PluginCode
from mmlongbench.manifest.model import SAMPLE
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles, task_file
from mmlongbench.manifest.validation import explain
from mmlongbench.prompt import commands_in
from mmlongbench.release.assets import audit_assets
from mmlongbench.release.checking import RecordChecks, compare_files, rejects_of
from mmlongbench.release.findings import FileAudit, ModelTally
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, LOCK, REJECTS
from mmlongbench.release.lock import (
    MAKERS,
    CellCounts,
    DatasetCounts,
    Lock,
    UnreadableCounts,
    inventory,
    leads_out,
    problem_of,
    read_lock,
)
from mmlongbench.release.measuring import ImageSizes, Measured, Model, ModelOptions, measure
from mmlongbench.release.release import PublicFile, ReadDataset, Release
from mmlongbench.task.rows import Record
from mmlongbench.task.spec import Remark
from tokenization import TokenizationError

Fault = tuple[str, str]
"""A fault: (kind, where)."""
_CODE: TypeAdapter[dict[str, PluginCode]] = TypeAdapter(dict[str, PluginCode])
_SHA256 = re.compile(r"[0-9a-f]{64}")


def lock_faults(
    lock: Lock, datasets: Sequence[ReadDataset], rejects: Iterable[tuple[str, str, int | None]] | None
) -> Iterator[Fault]:
    """Yield the entries of a lock that are impossible.

    Older locks name no code, so a lock may do without it if no dataset names its code and none was built with a task
    file: nothing finds that the code of installed plug-ins was taken out of all datasets.

    Args:
        lock: the lock.
        datasets: the datasets of its manifest.
        rejects: (dataset, id, length) of each reject of the release; None: the rejects are not compared.

    """
    is_of_this_version = lock.versions.get(MAKERS[0]) == version(MAKERS[0])
    # other versions may use other packages
    named_makers = MAKERS if is_of_this_version else (MAKERS[0], *lock.versions)
    if missing := [name for name in named_makers if not isinstance(lock.versions.get(name), str)]:
        yield "versions: expected the version of each package that makes bytes", f"none of {missing[0]}"
    if REJECTS not in lock.files:
        yield "the lock names no file of rejects, which every build writes", REJECTS
    named = [dataset.spec.name for dataset in datasets]
    if sorted(lock.datasets) != sorted(named):
        other = sorted(set(lock.datasets) ^ set(named))
        yield "the datasets that are counted are not those of the manifest", ", ".join(other)[:200]
    names_code = any("code" in data for data in lock.manifest)
    for data in lock.manifest:
        if names_code or any(task_file(str(data.get(kind))) for kind in ("builder", "reader")):
            yield from _code_faults(data, str(lock.versions.get(MAKERS[0])))
    lines = None if rejects is None else list(rejects)
    for dataset in datasets:
        counts = lock.datasets.get(dataset.spec.name)
        if isinstance(counts, UnreadableCounts):
            yield "the counts cannot be read", f"{dataset.spec.name}: {counts.fault}"
        elif counts:
            yield from _counted(dataset, counts, lock.files.keys(), lines)


def _code_faults(data: Mapping[str, object], engine: str) -> Iterator[Fault]:
    """Yield the faults in the entry `code` of a dataset in a lock; `engine` is the engine's version."""
    kind, dataset = "the code of the plug-ins is not that of the manifest", data.get("name")
    try:
        code = _CODE.validate_python(data.get("code"))
    except ValidationError as error:
        yield kind, f"{dataset}: code: {explain(error, '', PluginCode, [])[2:]}"
        return
    wanted = {"builder": data.get("builder"), "reader": data.get("reader")}
    if data.get("source") == SAMPLE:
        wanted["sample"] = data.get("reader")
    for name in (*wanted, "metric"):
        if name not in code:
            yield kind, f"{dataset}: none is named for the {name}"
        elif name in wanted and code[name].name != wanted[name]:
            yield kind, f"{dataset}: {name} {wanted[name]!r}, found {code[name].name!r}"
        elif code[name].distribution == ENGINE and (code[name].version != engine or code[name].sha256):
            yield kind, f"{dataset}: {name}: expected version {engine} of the engine, found {code[name].version}"
        elif code[name].distribution != ENGINE and not _SHA256.fullmatch(code[name].sha256):
            yield kind, f"{dataset}: {name}: expected a SHA-256, found {code[name].sha256!r:.80}"


def _counted(
    dataset: ReadDataset,
    counts: DatasetCounts,
    files: Collection[str],
    rejects: Sequence[tuple[str, str, int | None]] | None,
) -> Iterator[Fault]:
    spec = dataset.spec
    try:
        placements = placements_of(spec, dataset.builder)
    except ManifestError as error:
        yield "the placements of the lock are not valid", str(error)
        return
    cells, questions = counts.cells, counts.questions
    wanted = [format_length(length) for length in spec.lengths]
    if sorted(cells) != sorted(wanted):
        yield "the lengths that are counted are not those of the manifest", f"{spec.name}: {', '.join(cells)}"
    turned_away = Counter(length for name, _, length in rejects or () if name == spec.name)
    for length in spec.lengths:
        cell = cells.get(format_length(length))
        if cell is None:
            continue
        public = dataset.builder.spec.files.write(spec.name, length, questions.kept, len(placements))
        where = f"{spec.name} {format_length(length)}"
        for kind, said in _cell(cell, questions.kept, len(placements), f"{DATA}/{public}" in files):
            yield kind, f"{where}: {said}"
        if rejects is not None and cell.rejected != turned_away[length]:
            yield "the rejects are not those of the lock", f"{where}: {turned_away[length]} against {cell.rejected}"
    rows = sum(questions.rejected.values()) + sum(questions.skipped.values())
    if rejects is not None and turned_away[None] != rows:
        yield "the rejects are not those of the lock", f"{spec.name}: rows"


def _cell(cell: CellCounts, kept: int, placements: int, has_file: bool) -> Iterator[Fault]:
    """Yield the impossible counts of one length."""
    examples, dry = cell.examples, cell.ran_dry
    if dry > examples or (not dry and cell.missing_units):
        said = f"{dry} of {examples}, {cell.missing_units} units missing"
        yield "the count of examples that ran out of units is impossible", said
    expected = (kept - cell.rejected - cell.not_asked) * placements
    if examples != expected:
        said = f"{examples} examples, {kept} questions at {placements} placements give {expected}"
        yield "the number of examples does not fit the number of questions", said
    if has_file != (examples > 0):
        yield "the files of the lock are not those of its counts", f"{examples} examples"


Visit = Callable[[PublicFile, Measured], None]
"""A function that is called with every example that could be counted."""


@dataclass(frozen=True, slots=True)
class Target:
    """What to audit, as plain values that can be sent to a process."""

    paths: tuple[Path, ...]
    """A release of this engine; or public files of other origin, or folders of such files."""
    images: Path | None = None
    """The folder of the images of public files; None: `mmlb_image` beside `mmlb_data` is used."""
    tokenizer: str | None = None
    """The path or hub id of the tokenizer that the release was counted with; None: the name in the lock is used."""
    variant: str = ""
    """Another form of the prompt that builders offer beside the released one, such as `oracle`; its counts are compared
    with the length, not with the counts that the build recorded. Empty: the released form."""
    builder: str = ""
    """The builder of public files whose names no installed manifest has; empty: such files are a problem."""
    tasks: TaskFiles = NO_TASK_FILES
    """The task files that the release was built with."""

    def open(self) -> Release:
        """Open the release, or the files; raises ReleaseError."""
        (first, *others) = self.paths
        paths = self.paths
        if self.images is None and not others and first.is_dir() and not _is_public(first):
            if not is_download(first):
                if self.builder:
                    raise ReleaseError(f"--builder: only for files of other origin; the lock of {first} names builders")
                return self._open_locked(first)
            paths = (first / DATA,)
        for path in paths:
            if (path / LOCK).is_file():
                raise ReleaseError(f"{path}: a release with a lock is audited alone, without --images or other paths")
        return Release.open(*paths, images=self.images, variant=self.variant, builder=self.builder)

    def _open_locked(self, folder: Path) -> Release:
        if not (folder / LOCK).is_file():
            read_lock(folder)  # says what is missing
        opened = Release.open(folder, tokenizer=self.tokenizer, variant=self.variant, tasks=self.tasks)
        opened.load_tokenizers()
        return opened


def _is_public(folder: Path) -> bool:
    """Return whether a folder is `mmlb_data/`, or a part of it."""
    return not (folder / LOCK).is_file() and DATA in folder.resolve().parts


def is_download(folder: Path) -> bool:
    """Return whether a folder holds `mmlb_data/` of other origin, without a lock or any other file of a build."""
    ours = (LOCK, ITEMS, REJECTS, ".build")
    return (folder / DATA).is_dir() and not any((folder / name).exists() for name in ours)


def audit_release(
    release: Path,
    progress: Progress,
    tokenizer: str | None = None,
    workers: int = 1,
    variant: str = "",
    tasks: TaskFiles = NO_TASK_FILES,
) -> list[FileAudit]:
    """Audit every file of a release of this engine (see `audit`)."""
    return audit(Target((release,), None, tokenizer, variant, tasks=tasks), progress, workers)


def audit(
    target: Target,
    progress: Progress,
    workers: int = 1,
    models: Sequence[ModelOptions] = (),
    visit: Visit | None = None,
) -> list[FileAudit]:
    """Audit every file.

    Args:
        target: what to audit.
        progress: shows the bars.
        workers: the number of processes; it does not change the result. With `visit` there is only one.
        models: the models on which the cost of each example is counted too.
        visit: is called with every example that could be counted.

    Raises:
        ReleaseError: the target cannot be read, or was not counted with the given tokenizer.

    """
    opened = target.open()
    found: dict[str, FileAudit] = {}
    with progress.meter("audit: examples", _examples(opened.lock)) as advance:
        if workers == 1 or len(opened.files) < 2 or visit:
            asked = [each.open() for each in models]
            found = {file.name: audit_file(opened, file, asked, advance, visit) for file in opened.files}
        else:
            largest = sorted(opened.files, key=lambda file: -file.path.stat().st_size)
            found = _audit_files(target, tuple(models), largest, workers, advance)
    audits = [found[file.name] for file in opened.files]
    for name in opened.missing:
        audits.append(FileAudit(name, 0))
        audits[-1].problem("missing file", "the lock names it")
    if not opened.is_locked:
        return audits
    shown = _compare(opened, found)
    others = _audit_others(opened, progress, shown)
    return audits + audit_lock(opened) + others + ([] if target.variant else audit_assets(opened, found))


def _audit_others(opened: Release, progress: Progress, shown: frozenset[str] | None) -> list[FileAudit]:
    """Return what is wrong outside `mmlb_data/`: one entry for each folder or file at the top that has a problem.

    `shown` are the images that prompts show; None if this is not known for all prompts. A publication has a part of the
    release; its examples name the images that they need, and one image may have several paths.
    """
    lock, root = opened.lock, opened.path
    files = {path: sha256 for path, sha256 in inventory(root, lock).items() if path.split("/")[0] != DATA}
    if opened.is_published:
        files, shown = {path: sha256 for path, sha256 in files.items() if (root / path).exists()}, None
    found: dict[str, FileAudit] = {}
    with progress.bar("audit: files", len(files)) as advance:
        for path, sha256 in files.items():
            part = path.split("/")[0]
            is_ours = sha256 is not None or part in (IMAGES, ITEMS, REJECTS)
            size = lock.files[path].bytes if path in lock.files else None
            if is_ours and (problem := problem_of(root, path, sha256, size)):
                found.setdefault(part, FileAudit(part, 0)).problem(problem, path)
            elif part == IMAGES and shown is not None and path.removeprefix(f"{IMAGES}/") not in shown:
                found.setdefault(IMAGES, FileAudit(IMAGES, 0)).problem("no example shows the image", path)
            advance()
    return list(found.values())


def audit_lock(opened: Release) -> list[FileAudit]:
    """Compare the parts of a lock with each other and with the rejects; a changed file of rejects is not compared.

    Returns a list with one entry if something differs, and an empty list otherwise.
    """
    lock, root = opened.lock, opened.path
    described = lock.files.get(REJECTS)
    is_damaged = described is None or problem_of(root, REJECTS, described.sha256, described.bytes) is not None
    found = FileAudit(LOCK, 0)
    rejects = None
    try:
        rejects = None if is_damaged else rejects_of(root)
    except ReleaseError as error:
        found.problem("the rejects are not compared", str(error))
    for kind, where in lock_faults(lock, [opened.dataset(name) for name in opened.datasets], rejects):
        found.problem(kind, where)
    return [found] if found.problems else []


def _compare(opened: Release, found: Mapping[str, FileAudit]) -> frozenset[str] | None:
    """Compare the files of each dataset; return the images that their prompts show, or None if not all files were
    read.
    """
    facts = [(file, audit.facts) for file in opened.files if (audit := found[file.name]).facts is not None]
    each = ((file, known) for file, known in facts if known is not None)
    try:
        rejects = None if opened.is_published else frozenset(rejects_of(opened.path))
    except ReleaseError:  # reported as a problem of the lock
        rejects = None
    for name, kind, where in compare_files(each, opened.lock, rejects):
        found[name].problem(kind, where)
    is_whole = len(facts) == len(opened.files) and not opened.missing and all(k and k.is_read for _, k in facts)
    return frozenset().union(*(known.shown for _, known in facts if known)) if is_whole else None


_opened_here = cache(Target.open)
"""Opens a release once in each worker; a worker lives as long as one audit."""


def _audit_files(
    target: Target, models: tuple[ModelOptions, ...], files: Sequence[PublicFile], workers: int, advance: Advance
) -> dict[str, FileAudit]:
    """Audit the files in other processes, each file in one of them; files are started in the given order."""
    found = {}
    names = [file.name for file in files]
    calls = [(target, models, name) for name in names]
    with closing(each_done(workers, _audit_here, calls, names)) as ended:
        for place, made in ended:
            found[names[place]] = made
            advance(made.examples)
    return found


def _audit_here(target: Target, models: tuple[ModelOptions, ...], name: str) -> FileAudit:
    opened = _opened_here(target)
    file = next(file for file in opened.files if file.name == name)
    return audit_file(opened, file, [each.open() for each in models])


def _examples(lock: Lock) -> int:
    """Return how many examples there should be, for the progress bar."""
    return sum(cell.examples for data in lock.readable.values() for cell in data.cells.values())


def audit_file(
    opened: Release,
    file: PublicFile,
    models: Sequence[Model],
    advance: Advance | None = None,
    visit: Visit | None = None,
) -> FileAudit:
    """Count every example of one file again."""
    name, tokenizer = "", ""
    if file.dataset:
        name, tokenizer = file.dataset.name, file.dataset.counter.text.name
    tallies = {model.name: ModelTally() for model in models}
    found = FileAudit(file.name, file.length, models=tallies, dataset=name, tokenizer=tokenizer)
    if file.dataset is None:
        known = "dataset of the lock" if opened.is_locked else "known dataset"
        found.problem(f"no {known} has a file of this name", "the whole file")
        return found
    if opened.is_locked and file.sha256 is None:
        found.problem("file is not in the lock", "the whole file")
    elif not file.is_part and file.sha256 not in (None, sha256_of(file.path)):
        found.problem("the bytes are not those of the lock", "the whole file")
    if opened.is_locked and leads_out(opened.path, f"{DATA}/{file.name}"):
        found.problem("is a link out of the release", "the whole file")
    checks = None
    if opened.is_locked and file.sha256 is not None and not file.dataset.variant:
        checks = RecordChecks(file, file.dataset, opened)
    found.facts = checks.facts if checks else None
    for where, measured in measured_examples(file, found, checks):
        _take_in(found, where, measured, models)
        if visit:
            visit(file, measured)
        if advance:
            advance(1)
    _end(found, checks)
    return found


def _end(found: FileAudit, checks: RecordChecks | None) -> None:
    """Check a file as a whole, after its records were read."""
    for kind, where in checks.end(found.examples) if checks else ():
        found.problem(kind, where)
    if not found.examples:
        found.problem("no examples", "the whole file")


def measured_examples(
    file: PublicFile, found: FileAudit, checks: RecordChecks | None = None
) -> Iterator[tuple[str, Measured]]:
    """Yield (where it is, the measured example) for each example that can be measured. Any other example becomes a
    problem of `found`.
    """
    dataset = file.dataset
    if dataset is None:
        return
    try:
        for where, record in file.form.read(file.path):
            found.examples += 1
            if isinstance(record, ReleaseError):
                found.problem("the record cannot be read", str(record))
                continue
            place = f"{where}, {record.get('id')}"
            if measured := _measured(found, place, record, dataset, file.sizes):
                _check(found, place, record, measured, checks)
                yield place, measured
    except (ReleaseError, OSError) as error:
        found.problem("the file cannot be read", str(error))


def _check(found: FileAudit, where: str, record: Record, made: Measured, checks: RecordChecks | None) -> None:
    """Compare a record with its prompt, its items and the records before it."""
    if checks and checks.unplaced:
        found.remark(Remark("places in the prompt", checks.unplaced), where, is_ours=True)
    try:
        for kind, said in checks.look(where, record, made) if checks else ():
            found.problem(kind, said)
    except (MMLongBenchError, TypeError, ValueError, LookupError, AttributeError) as error:
        found.problem("the needles or the answer cannot be read", f"{where}: {type(error).__name__}: {error}")


def _ranks(found: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the ranks that a builder gives.

    Raises:
        TypeError: they are no whole numbers.

    """
    if found is None:
        return None
    if any(type(rank) is not int or rank < 0 for rank in found):
        raise TypeError(f"gold_ranks() of the builder gives {found!r:.80}, and no whole numbers from 0")
    return tuple(found)


def _measured(found: FileAudit, where: str, record: Record, dataset: ReadDataset, sizes: ImageSizes) -> Measured | None:
    """Count an example from its record, and compare the result with the counts in the record.

    Return None if the example cannot be counted.
    """
    reserve = None if dataset.is_locked else dataset.reserve
    try:
        made = measure(str(record.get("id")), record, dataset.prompt(record), dataset.counter, sizes, reserve)
        remarks = tuple(dataset.builder.remarks(record))
        ranks = _ranks(dataset.builder.gold_ranks(record))
    except KeyError as error:
        found.problem(f"the field {error} is missing", where)
        return None
    except (MMLongBenchError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        found.problem("the prompt cannot be rebuilt and counted", f"{where}: {error}")
        return None
    if ranks is not None:
        found.gold_ranks.append(ranks)
    for remark in (*remarks, *_odd_images(made, sizes), *_commands(made)):
        found.remark(remark, where, is_ours=dataset.is_locked)
    if dataset.is_locked and dataset.reserve not in (None, made.reserve):
        found.problem("tokens.reserve differs from the lock", f"{where}: {made.reserve} against {dataset.reserve}")
    has_claims = not dataset.variant and (dataset.is_locked or isinstance(record.get("tokens"), dict))
    for kind, claimed, counted in _claims(record, made) if has_claims else ():
        if claimed != counted:
            found.problem(f"{kind} differs from the recount", f"{where}: {claimed} against {counted}")
    return made


def _odd_images(made: Measured, sizes: ImageSizes) -> Iterator[Remark]:
    """Yield what is odd about the image files of an example, each fault once. These are no problems, because a build
    releases photographs unchanged.
    """
    odd = [fault for path in made.prompt.images for fault in sizes.odd.get(path, ())]
    for fault in dict.fromkeys(odd):
        yield Remark("examples of odd images", f"with an image {fault}")


def _commands(made: Measured) -> Iterator[Remark]:
    """Yield the first text of an example that some models read as a command, such as `<|im_end|>`."""
    for found in commands_in(made.prompt.text)[:1]:
        yield Remark("examples with texts that models read as commands", f"with {found}")


def _claims(record: Record, made: Measured) -> Iterator[tuple[str, Any, int]]:
    yield "length", record.get("length"), made.count.total
    tokens = record.get("tokens")
    said = tokens if isinstance(tokens, dict) else {}
    yield "tokens.text", said.get("text"), made.count.text
    yield "tokens.image", said.get("image"), made.count.image


def _take_in(found: FileAudit, where: str, made: Measured, models: Sequence[Model]) -> None:
    share = made.total / found.length
    found.fill.add(share)
    found.fills.add(share)
    found.text.add(made.count.text)
    found.image.add(made.count.image)
    found.images.add(len(made.sizes))
    if made.total > found.length:
        found.problem("over its length", f"{where}: {made.count.total} + {made.reserve} > {found.length}")
    for model in models:
        tally = found.models[model.name]
        tally.over_images += model.max_images is not None and len(made.sizes) > model.max_images
        try:
            total = sum(made.tokens(model))
        except TokenizationError as error:
            tally.refuse(f"{where}: {error}")
            continue
        tally.add(made.id, total)
        if model.window is not None:
            tally.over_window += total + made.reserve > model.window
            tally.shares.add((total + made.reserve) / model.window)
