"""Checks that the parts of a lock fit each other and the rejects: versions, code of plug-ins, counts, placements."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from mmlongbench.errors import ManifestError, ReleaseError
from mmlongbench.io.files import MAX_OF_A_FILE
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import placements_of
from mmlongbench.manifest.model import SAMPLE
from mmlongbench.manifest.plugins import ENGINE, PluginCode
from mmlongbench.manifest.task_files import task_file
from mmlongbench.manifest.validation import explain
from mmlongbench.release.figures import Fault, FileAudit
from mmlongbench.release.layout import DATA, LOCK, REJECTS
from mmlongbench.release.lock import MAKERS, CellCounts, DatasetCounts, Lock, UnreadableCounts, problem_of
from mmlongbench.release.release import ReadDataset, Release
from mmlongbench.task.formats import JSON_LINES

RejectKey: TypeAlias = tuple[str, str, int | None]
"""The dataset, the id and the length of a reject; the length is None for a row that is in no file."""
_CODE: TypeAdapter[dict[str, PluginCode]] = TypeAdapter(dict[str, PluginCode])
_SHA256 = re.compile(r"[0-9a-f]{64}")


def audit_lock(opened: Release) -> list[FileAudit]:
    """Compare the parts of a lock with each other and with the rejects; a changed file of rejects is not compared.

    Returns a list with one entry if something differs, and an empty list otherwise.
    """
    lock, root = opened.lock, opened.path
    described = lock.files.get(REJECTS)
    is_damaged = described is None or problem_of(root, REJECTS, described) is not None
    found = FileAudit(LOCK, 0)
    rejects = None
    try:
        rejects = None if is_damaged else rejects_of(root)
    except ReleaseError as error:
        found.problem("the rejects are not compared", str(error))
    for kind, where in _faults(lock, [opened.dataset(name) for name in opened.datasets], rejects):
        found.problem(kind, where)
    return [found] if found.problems else []


def rejects_of(release: Path) -> tuple[RejectKey, ...]:
    """Return (dataset, id, length) of each readable line of the rejects; rows of one id have a line each.

    Raises:
        ReleaseError: the file is too large to be read.

    """
    found: list[RejectKey] = []
    path = release / REJECTS
    if not path.is_file():
        return ()
    if (size := path.stat().st_size) > MAX_OF_A_FILE:
        raise ReleaseError(f"{REJECTS}: {size:,} bytes, at most {MAX_OF_A_FILE:,} are read")
    for _, line in JSON_LINES.read(path):
        if isinstance(line, dict):
            length = line.get("length")
            found.append((str(line.get("dataset")), str(line.get("id")), length if isinstance(length, int) else None))
    return tuple(found)


def _faults(lock: Lock, datasets: Sequence[ReadDataset], rejects: Iterable[RejectKey] | None) -> Iterator[Fault]:
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
    rejects: Sequence[RejectKey] | None,
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
