"""Checks that the parts of a lock fit each other and the rejects: versions, code of plug-ins, counts, placements."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from mmlongbench.errors import ManifestError, ReleaseError
from mmlongbench.io.files import MAX_OF_A_FILE, Links
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import placements_of
from mmlongbench.manifest.model import SAMPLE
from mmlongbench.manifest.plugins import ENGINE, PluginCode
from mmlongbench.manifest.strict_model import explain
from mmlongbench.manifest.task_files import task_file
from mmlongbench.release.file_audit import FileAudit, Finding
from mmlongbench.release.layout import DATA, LOCK, REJECTS
from mmlongbench.release.lock import MAKERS, DatasetCounts, Lock, UnreadableCounts, problem_of
from mmlongbench.release.read_dataset import ReadDataset
from mmlongbench.release.release import Release
from mmlongbench.task.file_formats import JSON_LINES

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
    is_damaged = described is None or problem_of(Links(root), REJECTS, described) is not None
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
    """Return (dataset, id, length) of each readable line of the rejects, which have a line for each row of one id; a
    `ReleaseError` if the file is too large to be read.
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


def _faults(lock: Lock, datasets: Sequence[ReadDataset], rejects: Sequence[RejectKey] | None) -> Iterator[Finding]:
    """Yield the entries of a lock that are impossible; with None, the rejects are not compared.

    Older locks name no code, so a lock may do without it if no dataset names its code and none was built with a task
    file: nothing finds that the code of installed plug-ins was taken out of all datasets.
    """
    engine = lock.versions.get(ENGINE)
    # other versions may use other packages
    makers = MAKERS if engine == version(ENGINE) else (ENGINE, *lock.versions)
    if missing := [name for name in makers if not isinstance(lock.versions.get(name), str)]:
        yield "versions: expected the version of each package that makes bytes", f"none of {missing[0]}"
    if REJECTS not in lock.files:
        yield "the lock names no file of rejects, which every build writes", REJECTS
    names = [dataset.spec.name for dataset in datasets]
    if sorted(lock.datasets) != sorted(names):
        other = sorted(set(lock.datasets) ^ set(names))
        yield "the datasets that are counted are not those of the manifest", ", ".join(other)[:200]
    names_code = any("code" in data for data in lock.manifest)
    for data in lock.manifest:
        if names_code or any(task_file(str(data.get(kind))) for kind in ("builder", "reader")):
            for fault in _code_faults(data, str(engine)):
                yield "the code of the plug-ins is not that of the manifest", f"{data.get('name')}: {fault}"
    for dataset in datasets:
        counts = lock.datasets.get(dataset.spec.name)
        if isinstance(counts, UnreadableCounts):
            yield "the counts cannot be read", f"{dataset.spec.name}: {counts.fault}"
        elif counts:
            yield from _count_faults(dataset, counts, lock, rejects)


def _code_faults(data: Mapping[str, object], engine: str) -> Iterator[str]:
    try:
        code = _CODE.validate_python(data.get("code"))
    except ValidationError as error:
        yield f"code: {explain(error, '', PluginCode, [])[2:]}"
        return
    wanted = {"builder": data.get("builder"), "reader": data.get("reader")}
    if data.get("source") == SAMPLE:
        wanted["sample"] = data.get("reader")
    for kind in (*wanted, "metric"):
        if (plugin := code.get(kind)) is None:
            yield f"none is named for the {kind}"
        elif kind in wanted and plugin.name != wanted[kind]:
            yield f"{kind} {wanted[kind]!r}, found {plugin.name!r}"
        elif plugin.distribution == ENGINE and (plugin.version != engine or plugin.sha256):
            yield f"{kind}: expected version {engine} of the engine, found {plugin.version}"
        elif plugin.distribution != ENGINE and not _SHA256.fullmatch(plugin.sha256):
            yield f"{kind}: expected a SHA-256, found {plugin.sha256!r:.80}"


def _count_faults(
    dataset: ReadDataset, counts: DatasetCounts, lock: Lock, rejects: Sequence[RejectKey] | None
) -> Iterator[Finding]:
    spec, questions = dataset.spec, counts.questions
    try:
        placements = len(placements_of(spec, dataset.builder))
    except ManifestError as error:
        yield "the placements of the lock are not valid", str(error)
        return
    if sorted(counts.cells) != sorted(map(format_length, spec.lengths)):
        where = f"{spec.name}: {', '.join(counts.cells)}"
        yield "the lengths that are counted are not those of the manifest", where
    rejected = Counter(length for name, _, length in rejects or () if name == spec.name)
    for length in spec.lengths:
        cell = counts.cells.get(format_length(length))
        if cell is None:
            continue
        where, examples, dry = f"{spec.name} {format_length(length)}", cell.examples, cell.ran_dry
        if dry > examples or (not dry and cell.missing_units):
            said = f"{dry} of {examples}, {cell.missing_units} units missing"
            yield "the count of examples that ran out of units is impossible", f"{where}: {said}"
        expected = (questions.kept - cell.rejected - cell.not_asked) * placements
        if examples != expected:
            said = f"{examples} examples, {questions.kept} questions at {placements} placements give {expected}"
            yield "the number of examples does not fit the number of questions", f"{where}: {said}"
        public = dataset.builder.spec.files.write(spec.name, length, questions.kept, placements)
        if (f"{DATA}/{public}" in lock.files) != (examples > 0):
            yield "the files of the lock are not those of its counts", f"{where}: {examples} examples"
        if rejects is not None and cell.rejected != rejected[length]:
            yield "the rejects are not those of the lock", f"{where}: {rejected[length]} against {cell.rejected}"
    rows = sum(questions.rejected.values()) + sum(questions.skipped.values())
    if rejects is not None and rejected[None] != rows:
        yield "the rejects are not those of the lock", f"{spec.name}: rows"
