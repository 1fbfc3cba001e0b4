"""The audit: counts every example again, from its public record and the headers of its images alone.

Tokens are counted without anything that the build computed; the items of the release are only compared with the prompt.
One example is in memory at a time. Of each earlier example, about a hundred bytes are kept: its id, and digests of the
values that other examples must agree with.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import Links, sha256_of
from mmlongbench.io.pool import each_done
from mmlongbench.io.progress import Advance, Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.prompt import commands_in
from mmlongbench.release.assets import audit_assets
from mmlongbench.release.example_cost import ExampleCost, Model, small_reserve, tokens_as
from mmlongbench.release.file_audit import FileAudit, ModelTally
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, LOCK, REJECTS
from mmlongbench.release.lock import inventory, leads_out, problem_of, read_lock
from mmlongbench.release.lock_checks import RecordChecks, audit_lock, compare_files, rejects_of
from mmlongbench.release.read_dataset import ReadDataset
from mmlongbench.release.release import PublicFile, Release
from mmlongbench.task.rows import Record
from mmlongbench.task.spec import Remark
from tokenization import TokenizationError

Visit = Callable[[PublicFile, ExampleCost], None]
STEPS = 100
"""The factors that `fit` tries are hundredths."""
_WHOLE = "the whole file"
_UNREBUILT = (MMLongBenchError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, StopIteration)
"""The errors of a builder that is given a damaged record."""


@dataclass(frozen=True, slots=True)
class Target:
    """What to audit: what `Release.open` takes, as plain values that can be sent to a process. Of a variant, counts are
    compared with the length, not with the counts that the build recorded.
    """

    paths: tuple[Path, ...]
    images: Path | None = None
    tokenizer: str | None = None
    variant: str = ""
    builder: str = ""
    tasks: TaskFiles = NO_TASK_FILES

    def open(self) -> Release:
        """Open the release, or the files; raises ReleaseError."""
        first, paths = self.paths[0], self.paths
        if locked := next((path for path in paths if (path / LOCK).is_file()), None):
            if self.images or len(paths) > 1:
                raise ReleaseError(f"{locked}: a release with a lock is audited alone, without --images or other paths")
            if self.builder:
                raise ReleaseError(f"--builder: only for files of other origin; the lock of {first} names builders")
        elif not self.images and len(paths) == 1 and first.is_dir() and DATA not in first.resolve().parts:
            if not is_download(first):
                read_lock(first)  # says what is missing
            paths = (first / DATA,)
        return Release.open(
            *paths,
            images=self.images,
            tokenizer=self.tokenizer,
            variant=self.variant,
            builder=self.builder,
            tasks=self.tasks,
        )


def is_download(folder: Path) -> bool:
    """Return whether a folder holds `mmlb_data/` of other origin, without a lock or any other file of a build."""
    ours = (LOCK, ITEMS, REJECTS, ".build")
    return (folder / DATA).is_dir() and not any((folder / name).exists() for name in ours)


def audit(
    target: Target,
    progress: Progress,
    workers: int = 1,
    models: Sequence[Model] = (),
    visit: Visit | None = None,
) -> list[FileAudit]:
    """Audit every file; raises ReleaseError if the target cannot be read. The cost of each example is counted on
    `models` too. `visit` is called with every example that could be counted; then there is one process, whatever
    `workers` says.
    """
    for model in models:
        _ = model.text  # a wrong tokenizer is named before the first example is read
    release = target.open()
    lock, files = release.lock, release.files
    audits: dict[str, FileAudit] = {}
    expected = sum(cell.examples for counts in lock.readable.values() for cell in counts.cells.values())
    with progress.meter("audit: examples", expected) as advance:
        release.load_tokenizers()  # a wrong one is named before a file is read; behind the bar, as it takes a moment
        if workers == 1 or len(files) < 2 or visit:
            for file in files:
                audits[file.name] = audit_file(release, file, models, advance, visit)
        else:
            names = [file.name for file in sorted(files, key=lambda file: -file.path.stat().st_size)]  # largest first
            calls = [(target, tuple(models), name) for name in names]
            with closing(each_done(workers, _audit_here, calls, names)) as ended:
                for place, found in ended:
                    audits[names[place]] = found
                    advance(found.examples)
    listed = [audits[file.name] for file in files]
    missing = [FileAudit(name) for name in release.missing]
    for found in missing:
        found.problem("missing file", "the lock names it")
    if not release.is_locked:
        return listed + missing
    try:
        rejects = None if release.is_publication else frozenset(rejects_of(release.path))
    except ReleaseError:  # reported as a problem of the lock
        rejects = None
    compare_files([(file, audits[file.name]) for file in files], lock, rejects)
    facts = [found.facts for found in listed if found.facts]
    is_whole = len(facts) == len(files) and not missing and all(known.is_read for known in facts)
    shown = frozenset[str]().union(*(known.shown for known in facts)) if is_whole else None
    others = _audit_others(release, progress, shown)
    assets = [] if target.variant else audit_assets(release, audits)
    return [*listed, *missing, *audit_lock(release), *others, *assets]


_open_once = cache(Target.open)
"""Opens a release once in each worker; a worker lives as long as one audit."""


def _audit_here(target: Target, models: tuple[Model, ...], name: str) -> FileAudit:
    release = _open_once(target)
    return audit_file(release, next(file for file in release.files if file.name == name), models)


def _audit_others(release: Release, progress: Progress, shown: frozenset[str] | None) -> list[FileAudit]:
    """Return what is wrong outside `mmlb_data/`: one entry for each folder or file at the top that has a problem.

    `shown` are the images that prompts show; None if this is not known for all prompts. A publication has a part of the
    release; its examples name the images that they need, and one image may have several paths.
    """
    lock, root = release.lock, release.path
    files = {path: file for path, file in inventory(root, lock).items() if path.split("/")[0] != DATA}
    if release.is_publication:
        files, shown = {path: file for path, file in files.items() if (root / path).exists()}, None
    audits, links = dict[str, FileAudit](), Links(root)
    with progress.bar("audit: files", len(files)) as advance:
        for path, file in files.items():
            part, problem = path.split("/")[0], None
            if file is not None or part in (IMAGES, ITEMS, REJECTS):  # other files are of the user
                problem = problem_of(links, path, file)
            if not problem and part == IMAGES and shown is not None and path.removeprefix(f"{IMAGES}/") not in shown:
                problem = "no example shows the image"
            if problem:
                audits.setdefault(part, FileAudit(part)).problem(problem, path)
            advance()
    return list(audits.values())


def audit_file(
    release: Release,
    file: PublicFile,
    models: Sequence[Model],
    advance: Advance | None = None,
    visit: Visit | None = None,
) -> FileAudit:
    """Count every example of one file again."""
    audit = FileAudit(file.name, file.length, models={model.name: ModelTally() for model in models})
    if file.dataset is None:
        known = "dataset of the lock" if release.is_locked else "known dataset"
        audit.problem(f"no {known} has a file of this name", _WHOLE)
        return audit
    audit.dataset, audit.tokenizer = file.dataset.name, file.dataset.tokenizer
    audit.counted_as, audit.also_counted_as = file.dataset.counted_as, file.dataset.also_counted_as
    checks = None
    if release.is_locked:
        if file.sha256 is None:
            audit.problem("file is not in the lock", _WHOLE)
        elif not file.is_part and file.sha256 != sha256_of(file.path):
            audit.problem("the bytes are not those of the lock", _WHOLE)
        if leads_out(release.path, f"{DATA}/{file.name}"):
            audit.problem("is a link out of the release", _WHOLE)
        if file.sha256 is not None and not file.dataset.variant:
            checks = RecordChecks(file, file.dataset, release)
            audit.facts = checks.facts
    for where, cost in counted_examples(file, file.dataset, audit, checks):
        audit.add(where, cost, models)
        if visit:
            visit(file, cost)
        if advance:
            advance(1)
    for kind, where in checks.end(audit.examples) if checks else ():
        audit.problem(kind, where)
    if not audit.examples:
        audit.problem("no examples", _WHOLE)
    return audit


def counted_examples(
    file: PublicFile, dataset: ReadDataset, audit: FileAudit, checks: RecordChecks | None = None
) -> Iterator[tuple[str, ExampleCost]]:
    """Yield (where it is, its cost) of each example of a file that can be counted; any other example, and what is wrong
    with its record, becomes a problem of the audit.
    """
    try:
        for line, record in file.form.read(file.path):
            audit.examples += 1
            if isinstance(record, ReleaseError):
                audit.problem("the record cannot be read", str(record))
                continue
            where = f"{line}, {record.get('id')}"
            if (cost := _count(audit, where, record, dataset, file)) is None:
                continue
            if checks and checks.unplaced:
                audit.remark(Remark("places in the prompt", checks.unplaced), where, is_ours=True)
            try:
                for kind, more in checks.look(record, cost) if checks else ():
                    audit.problem(kind, f"{where}: {more}" if more else where)
            except (MMLongBenchError, TypeError, ValueError, LookupError, AttributeError) as error:
                more = f"{where}: {type(error).__name__}: {error}"
                audit.problem("the needles or the answer cannot be read", more)
            yield where, cost
    except (ReleaseError, OSError) as error:
        audit.problem("the file cannot be read", str(error))


def _count(audit: FileAudit, where: str, record: Record, dataset: ReadDataset, file: PublicFile) -> ExampleCost | None:
    reserve = None if dataset.is_locked else dataset.reserve
    try:
        cost = ExampleCost.of(record, dataset.prompt(record), dataset.counter, file.sizes, reserve)
        remarks = [*dataset.builder.remarks(record)]
        # a bundle has no place for them
        is_counted_too = dataset.is_locked and not file.is_bundle
        further = tokens_as(dataset.count_as, cost.prompt, file.sizes) if is_counted_too else None
        ranks = dataset.builder.gold_ranks(record)
        if ranks is not None and any(type(rank) is not int or rank < 0 for rank in ranks):
            raise TypeError(f"gold_ranks() of the builder gives {ranks!r:.80}, and no whole numbers from 0")
    except KeyError as error:
        audit.problem(f"the field {error} is missing", where)
        return None
    except _UNREBUILT as error:
        audit.problem("the prompt cannot be rebuilt and counted", f"{where}: {error}")
        return None
    if ranks is not None:
        audit.gold_ranks.append(tuple(ranks))
    # odd images are no problems, because a build releases photographs unchanged
    images = cost.prompt.images if file.sizes.odd else ()
    odd = dict.fromkeys(oddity for path in images for oddity in file.sizes.odd.get(path, ()))
    remarks += (Remark("examples of odd images", f"with an image {oddity}") for oddity in odd)
    if len(cost.prompt.turns) > 1:
        remarks.append(Remark("conversations", small_reserve(cost.prompt, cost.reserve, dataset.counter)))
    for command in commands_in(cost.prompt.text)[:1]:
        remarks.append(Remark("examples with texts that models read as commands", f"with {command}"))
    for remark in remarks:
        audit.remark(remark, where, is_ours=dataset.is_locked)
    if dataset.is_locked and dataset.reserve not in (None, cost.reserve):
        audit.problem("tokens.reserve differs from the lock", f"{where}: {cost.reserve} against {dataset.reserve}")
    tokens = record.get("tokens")
    stated = tokens if isinstance(tokens, dict) else {}
    if not dataset.variant and (dataset.is_locked or isinstance(tokens, dict)):
        for kind, claimed, counted in (
            ("length", record.get("length"), cost.count.total),
            ("tokens.text", stated.get("text"), cost.count.text),
            ("tokens.image", stated.get("image"), cost.count.image),
        ):
            if claimed != counted:
                audit.problem(f"{kind} differs from the recount", f"{where}: {claimed} against {counted}")
        if further is not None and further != stated.get("as", {}):
            more = f"{where}: {str(stated.get('as'))[:200]} against {further}"
            audit.problem("tokens.as differs from the recount", more)
    return cost


@dataclass(frozen=True, slots=True)
class Costliest:
    """What one pass finds with all images scaled by one factor: the example with the most tokens, and two counts."""

    tokens: int
    """Its tokens, with its reserve."""
    where: str
    over_images: int
    """The number of examples with more images than a request may hold: no size helps these."""
    refused: int
    """The number of examples with an image whose size the model refuses."""


def fit(target: Target, model: Model, window: int) -> tuple[float | None, Costliest, Costliest]:
    """Find a factor for the sides of all images at which every example fits the window of a model, while at a factor
    larger by 0.01 some example does not; 1 if every example fits unchanged, None if even a hundredth is too large.
    Return it, the costliest example at that factor (or at a hundredth), and the costliest example as it is.

    Examples with an image that the model refuses are only counted. Trying a factor takes one pass over the release.
    With rules that cut images into tiles, a larger factor may fit again.
    """
    release = target.open()
    whole = _costliest(release, model, STEPS)
    if whole.tokens <= window:
        return 1.0, whole, whole
    fitting = _costliest(release, model, 1)
    if fitting.tokens > window:
        return None, fitting, whole
    low, high = 1, STEPS  # fits at low, but not at high
    while high - low > 1:
        middle = (low + high) // 2
        found = _costliest(release, model, middle)
        if found.tokens <= window:
            low, fitting = middle, found
        else:
            high = middle
    return low / STEPS, fitting, whole


def resized(size: tuple[int, int], hundredths: int) -> tuple[int, int]:
    """Return (width, height) scaled by hundredths, rounded down as `--image_resize` rounds.

    >>> resized((640, 3), 25)
    (160, 1)
    """
    return max(1, math.floor(size[0] * hundredths / STEPS)), max(1, math.floor(size[1] * hundredths / STEPS))


def _costliest(release: Release, model: Model, hundredths: int) -> Costliest:
    most, where, over_images, refused = 0, "", 0, 0
    most_images = model.rule.max_images
    for file in release.files:
        if file.dataset is None:
            continue
        for _, cost in counted_examples(file, file.dataset, FileAudit(file.name)):
            over_images += most_images is not None and len(cost.sizes) > most_images
            smaller = replace(cost, sizes=tuple(resized(size, hundredths) for size in cost.sizes))
            try:
                total = sum(smaller.tokens(model)) + cost.reserve
            except TokenizationError:
                refused += 1
                continue
            if total > most:
                most, where = total, f"{file.name}, {cost.id}"
    return Costliest(most, where, over_images, refused)
