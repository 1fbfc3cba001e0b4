"""The audit: counts every example again, from its public record and the headers of its images alone.

Tokens are counted without anything that the build computed; the items of the release are only compared with the prompt.
One example is in memory at a time. Of each earlier example, about a hundred bytes are kept: its id, and digests of the
values that other examples must agree with.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.prompt import commands_in
from mmlongbench.release.assets import audit_assets
from mmlongbench.release.figures import FileAudit, ModelTally
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, LOCK, REJECTS
from mmlongbench.release.lock import (
    inventory,
    leads_out,
    problem_of,
    read_lock,
)
from mmlongbench.release.lock_checks import audit_lock, rejects_of
from mmlongbench.release.measuring import ImageSizes, Measured, Model, ModelOptions, measure
from mmlongbench.release.record_checks import RecordChecks, compare_files
from mmlongbench.release.release import PublicFile, ReadDataset, Release
from mmlongbench.task.rows import Record
from mmlongbench.task.spec import Remark
from tokenization import TokenizationError

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
    expected = sum(cell.examples for data in opened.lock.readable.values() for cell in data.cells.values())
    with progress.meter("audit: examples", expected) as advance:
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
    files = {path: file for path, file in inventory(root, lock).items() if path.split("/")[0] != DATA}
    if opened.is_publication:
        files, shown = {path: file for path, file in files.items() if (root / path).exists()}, None
    found: dict[str, FileAudit] = {}
    with progress.bar("audit: files", len(files)) as advance:
        for path, file in files.items():
            part = path.split("/")[0]
            is_ours = file is not None or part in (IMAGES, ITEMS, REJECTS)
            if is_ours and (problem := problem_of(root, path, file)):
                found.setdefault(part, FileAudit(part, 0)).problem(problem, path)
            elif part == IMAGES and shown is not None and path.removeprefix(f"{IMAGES}/") not in shown:
                found.setdefault(IMAGES, FileAudit(IMAGES, 0)).problem("no example shows the image", path)
            advance()
    return list(found.values())


def _compare(opened: Release, found: Mapping[str, FileAudit]) -> frozenset[str] | None:
    """Compare the files of each dataset; return the images that their prompts show, or None if not all files were
    read.
    """
    facts = [(file, audit.facts) for file in opened.files if (audit := found[file.name]).facts is not None]
    each = ((file, known) for file, known in facts if known is not None)
    try:
        rejects = None if opened.is_publication else frozenset(rejects_of(opened.path))
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
    for kind, where in checks.end(found.examples) if checks else ():
        found.problem(kind, where)
    if not found.examples:
        found.problem("no examples", "the whole file")
    return found


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


def _measured(found: FileAudit, where: str, record: Record, dataset: ReadDataset, sizes: ImageSizes) -> Measured | None:
    """Count an example from its record, and compare the result with the counts in the record.

    Return None if the example cannot be counted.
    """
    reserve = None if dataset.is_locked else dataset.reserve
    try:
        made = measure(str(record.get("id")), record, dataset.prompt(record), dataset.counter, sizes, reserve)
        remarks = tuple(dataset.builder.remarks(record))
        ranks = dataset.builder.gold_ranks(record)
        if ranks is not None and any(type(rank) is not int or rank < 0 for rank in ranks):
            raise TypeError(f"gold_ranks() of the builder gives {ranks!r:.80}, and no whole numbers from 0")
    except KeyError as error:
        found.problem(f"the field {error} is missing", where)
        return None
    except (MMLongBenchError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        found.problem("the prompt cannot be rebuilt and counted", f"{where}: {error}")
        return None
    if ranks is not None:
        found.gold_ranks.append(tuple(ranks))
    # odd images are no problems, because a build releases photographs unchanged
    odd = dict.fromkeys(fault for path in made.prompt.images for fault in sizes.odd.get(path, ()))
    remarks += tuple(Remark("examples of odd images", f"with an image {fault}") for fault in odd)
    for command in commands_in(made.prompt.text)[:1]:
        remarks += (Remark("examples with texts that models read as commands", f"with {command}"),)
    for remark in remarks:
        found.remark(remark, where, is_ours=dataset.is_locked)
    if dataset.is_locked and dataset.reserve not in (None, made.reserve):
        found.problem("tokens.reserve differs from the lock", f"{where}: {made.reserve} against {dataset.reserve}")
    tokens = record.get("tokens")
    said = tokens if isinstance(tokens, dict) else {}
    claims = (
        ("length", record.get("length"), made.count.total),
        ("tokens.text", said.get("text"), made.count.text),
        ("tokens.image", said.get("image"), made.count.image),
    )
    has_claims = not dataset.variant and (dataset.is_locked or isinstance(tokens, dict))
    for kind, claimed, counted in claims if has_claims else ():
        if claimed != counted:
            found.problem(f"{kind} differs from the recount", f"{where}: {claimed} against {counted}")
    return made


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
