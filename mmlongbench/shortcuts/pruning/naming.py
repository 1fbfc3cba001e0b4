"""Names a pruned dataset anew, so that it is not taken for the original one, and writes its drops as errata.

A manifest applies the errata and the name. `drawn_as` keeps the draws of the original, so that questions that are left
keep their contexts; a sample is smaller by the drops, so that no question comes in for a dropped one.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_write
from mmlongbench.manifest.errata import errata_text
from mmlongbench.release.lock import DatasetCounts, Lock
from mmlongbench.shortcuts.pruning.results import Drop, Effect, Pruned

_PRUNED = re.compile(r"(.+_pruned)(\d*)")


def named(
    lock: Lock | None,
    dataset: str,
    questions: int,
    drops: Sequence[Drop],
    effects: Sequence[Effect] = (),
    notes: Sequence[str] = (),
) -> Pruned:
    """Return the drops of a dataset with the name of the set that is left.

    Args:
        lock: the lock of the release; None for public files of other origin.
        dataset: the name of the dataset.
        questions: the number of its questions.
        drops: its drops.
        effects: what they do to findings.
        notes: sentences that a reader must know.

    """
    entry = next((each for each in lock.manifest if each.get("name") == dataset), {}) if lock else {}
    sample = entry.get("sample")
    size = sample.get("n") if isinstance(sample, dict) else None
    return Pruned(
        dataset=dataset,
        name=pruned_name(dataset),
        drawn_as=str(entry.get("drawn_as") or dataset),
        sample=max(1, size - len(drops)) if isinstance(size, int) else None,
        questions=questions,
        drops=tuple(drops),
        effects=tuple(effects),
        notes=tuple(notes),
    )


def pruned_name(name: str) -> str:
    """Return the name of a dataset without its drops.

    >>> pruned_name("walks"), pruned_name("walks_pruned"), pruned_name("walks_pruned2")
    ('walks_pruned', 'walks_pruned2', 'walks_pruned3')
    """
    again = _PRUNED.fullmatch(name)
    return f"{again[1]}{int(again[2] or 1) + 1}" if again else f"{name}_pruned"


def earlier_errata(lock: Lock | None, dataset: str) -> Mapping[str, Mapping[str, JsonValue]]:
    """Return the errata that a dataset was built with, by row id."""
    counts = lock.datasets.get(dataset) if lock else None
    return counts.errata if isinstance(counts, DatasetCounts) else {}


def errata_files(path: Path, datasets: Sequence[str]) -> dict[str, Path]:
    """Return the file for the drops of each dataset: the given one for a single dataset; for several, its name is
    followed by that of the dataset, since each dataset of a manifest has errata of its own.

    Raises:
        ReleaseError: a file is already there.

    """
    several = {name: path.with_name(f"{path.stem}.{name}{path.suffix}") for name in datasets}
    files = several if len(datasets) > 1 else dict.fromkeys(datasets, path)
    for file in (path, *files.values()):
        if file.exists():
            raise ReleaseError(f"{file}: already exists, and is not overwritten; give --prune another file")
    return files


def write_errata(pruned: Pruned, lock: Lock | None, path: Path) -> None:
    """Write the drops of a dataset as errata, with the errata that it was built with and a comment about its name."""
    errata: dict[str, Mapping[str, object]] = {**earlier_errata(lock, pruned.dataset)}
    for drop in pruned.drops:
        errata[drop.id] = {"source": drop.reason, "drop": True}
    with atomic_write(path) as file:
        file.write(errata_text(errata, _head(pruned, path)).encode("utf-8"))


def settings(pruned: Pruned, path: Path) -> dict[str, str]:
    """Return the keys of the manifest that make a pruned dataset of the original one. The name is the last of them, so
    that all can be set by the name of the original.
    """
    sample = {} if pruned.sample is None else {"sample.n": str(pruned.sample)}
    return {"errata": str(path), "drawn_as": pruned.drawn_as, **sample, "name": pruned.name}


def options(pruned: Pruned, path: Path) -> str:
    """Return the same as options of `mmlongbench build`."""
    pairs = settings(pruned, path).items()
    return " ".join(f"--set {shlex.quote(f'{pruned.dataset}.{key}={value}')}" for key, value in pairs)


def _head(pruned: Pruned, path: Path) -> str:
    keys = "".join(f"#   {key}: {value}\n" for key, value in settings(pruned, Path(path.name)).items())
    return (
        f"# Drops of {len(pruned.drops)} of {pruned.questions} questions of {pruned.dataset}, made by "
        "`mmlongbench shortcuts --prune`.\n"
        f"# What is left is another set with a name of its own: in the manifest, set these keys of {pruned.dataset}.\n"
        f"{keys}"
    )
