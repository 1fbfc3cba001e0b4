"""Whether a lock agrees with itself and with the rejects: datasets, lengths, counts, versions. Reads no public file."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from mmlongbench.errors import ManifestError
from mmlongbench.lengths import format_length
from mmlongbench.manifest.resolve import placements_of
from mmlongbench.release.layout import DATA, REJECTS
from mmlongbench.release.loading import AuditedDataset
from mmlongbench.release.lock import MAKERS

Fault = tuple[str, str]
"""(kind, where)."""


def lock_faults(
    lock: Mapping[str, Any], datasets: Sequence[AuditedDataset], rejects: Iterable[tuple[str, str, int | None]] | None
) -> Iterator[Fault]:
    """Yield what a lock says that cannot be.

    Args:
        lock: the lock.
        datasets: those of its manifest.
        rejects: (dataset, id, length) of each reject of the release; None where they are not those of the lock.

    """
    versions = lock.get("versions")
    said = versions if isinstance(versions, dict) else {}
    is_of_this_version = said.get(MAKERS[0]) == version(MAKERS[0])
    named_makers = MAKERS if is_of_this_version else (MAKERS[0], *said)  # another version may use other packages
    if missing := [name for name in named_makers if not isinstance(said.get(name), str)]:
        yield "versions: expected the version of each package that makes bytes", f"none of {missing[0]}"
    if REJECTS not in lock["files"]:
        yield "the lock names no file of rejects, which every build writes", REJECTS
    named = [dataset.spec.name for dataset in datasets if dataset.spec]
    if sorted(lock["datasets"]) != sorted(named):
        other = sorted(set(lock["datasets"]) ^ set(named))
        yield "the datasets that are counted are not those of the manifest", ", ".join(other)[:200]
    lines = None if rejects is None else list(rejects)
    for dataset in datasets:
        counts = lock["datasets"].get(dataset.spec.name if dataset.spec else "")
        if isinstance(counts, dict):
            yield from _counted(dataset, counts, lock["files"], lines)


def _counted(
    dataset: AuditedDataset,
    counts: Mapping[str, Any],
    files: Mapping[str, Any],
    rejects: Sequence[tuple[str, str, int | None]] | None,
) -> Iterator[Fault]:
    spec = dataset.spec
    if spec is None:
        return
    try:
        placements = placements_of(spec, dataset.builder)
    except ManifestError as error:
        yield "the placements of the lock cannot be", str(error)
        return
    cells, questions = counts.get("cells"), counts.get("questions")
    wanted = [format_length(length) for length in spec.lengths]
    if not isinstance(cells, dict) or not all(isinstance(cell, dict) for cell in cells.values()):
        yield "cells: expected the counts of each length", spec.name
        return
    if sorted(cells) != sorted(wanted):
        yield "the lengths that are counted are not those of the manifest", f"{spec.name}: {', '.join(cells)}"
    kept = questions.get("kept") if isinstance(questions, dict) else None
    turned_away = Counter(length for name, _, length in rejects or () if name == spec.name)
    for length in spec.lengths:
        public = dataset.builder.spec.files.write(spec.name, length, kept if type(kept) is int else 0, len(placements))
        where, cell = f"{spec.name} {format_length(length)}", cells.get(format_length(length), {})
        for kind, said in _cell(cell, kept, len(placements), f"{DATA}/{public}" in files):
            yield kind, f"{where}: {said}"
        if rejects is not None and cell.get("rejected") != turned_away[length]:
            yield (
                "the rejects are not those of the lock",
                f"{where}: {turned_away[length]} against {cell.get('rejected')}",
            )
    reasons = [questions.get(key, {}) for key in ("rejected", "skipped")] if isinstance(questions, dict) else []
    if rejects is not None and turned_away[None] != sum(sum(each.values()) for each in reasons):
        yield "the rejects are not those of the lock", f"{spec.name}: rows"


def _cell(cell: Mapping[str, Any], kept: object, placements: int, has_file: bool) -> Iterator[Fault]:
    """What the counts of one length say that cannot be."""
    examples, rejected, not_asked = (cell.get(key, 0) for key in ("examples", "rejected", "not_asked"))
    if not all(type(number) is int and number >= 0 for number in (kept, examples, rejected, not_asked)):
        yield "counts: expected whole numbers", f"{kept!r:.40}, {examples!r:.40}, {rejected!r:.40}, {not_asked!r:.40}"
        return
    dry = cell.get("ran_dry", 0)
    if type(dry) is not int or not 0 <= dry <= examples or (not dry and "missing_units" in cell):
        missing = cell.get("missing_units", 0)
        yield (
            "the examples that ran out of units cannot be",
            f"{dry!r:.40} of {examples}, {missing!r:.40} units missing",
        )
    expected = (int(str(kept)) - rejected - not_asked) * placements
    if examples != expected:
        said = f"{examples}, {kept} questions at {placements} placements are {expected}"
        yield "the number of examples is not that of the questions", said
    if has_file != (examples > 0):
        yield "the files of the lock are not those of its counts", f"{examples} examples"
