"""Checks that a lock agrees with itself and with the rejects: datasets, lengths, counts, versions. It reads no public
file.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version

from pydantic import TypeAdapter, ValidationError

from mmlongbench.errors import ManifestError
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import placements_of
from mmlongbench.manifest.code import ENGINE, PluginCode
from mmlongbench.manifest.model import SAMPLE
from mmlongbench.manifest.task_files import task_file
from mmlongbench.manifest.validation import explain
from mmlongbench.release.layout import DATA, REJECTS
from mmlongbench.release.loading import AuditedDataset
from mmlongbench.release.lock import MAKERS, CellCounts, DatasetCounts, Lock, UnreadableCounts

Fault = tuple[str, str]
"""A fault: (kind, where)."""
_CODE: TypeAdapter[dict[str, PluginCode]] = TypeAdapter(dict[str, PluginCode])
_SHA256 = re.compile(r"[0-9a-f]{64}")


def lock_faults(
    lock: Lock, datasets: Sequence[AuditedDataset], rejects: Iterable[tuple[str, str, int | None]] | None
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
    named = [dataset.spec.name for dataset in datasets if dataset.spec]
    if sorted(lock.datasets) != sorted(named):
        other = sorted(set(lock.datasets) ^ set(named))
        yield "the datasets that are counted are not those of the manifest", ", ".join(other)[:200]
    names_code = any("code" in data for data in lock.manifest)
    for data in lock.manifest:
        if names_code or any(task_file(str(data.get(kind))) for kind in ("builder", "reader")):
            yield from _code_faults(data, str(lock.versions.get(MAKERS[0])))
    lines = None if rejects is None else list(rejects)
    for dataset in datasets:
        counts = lock.datasets.get(dataset.spec.name) if dataset.spec else None
        if isinstance(counts, UnreadableCounts):
            yield "the counts cannot be read", f"{dataset.spec.name if dataset.spec else ''}: {counts.fault}"
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
    dataset: AuditedDataset,
    counts: DatasetCounts,
    files: Collection[str],
    rejects: Sequence[tuple[str, str, int | None]] | None,
) -> Iterator[Fault]:
    spec = dataset.spec
    if spec is None:
        return
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
