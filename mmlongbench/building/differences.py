"""Says in words how two plans differ: the manifests, the files of the sources, the code of the plug-ins, the versions.

Used where a folder holds a build or a release of another plan. No hash is ever shown.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.source_files import SourceFile
from mmlongbench.lengths import format_length

Public: TypeAlias = Mapping[str, Any]
"""A dataset as `DatasetPlan.public` describes it."""
Files: TypeAlias = Mapping[tuple[str, str], Mapping[str, str]]
"""The SHA-256 of each file, by the path of the file below its source, by (dataset, `SourceFile.source`)."""
_UNKNOWN: Files = {}
_HASHES = ("corpus", "errata")
"""The keys that have a hash and are not called so."""
_LENGTHS = ("lengths", "admission_length", "reference_length")
_MOST_DIFFERENCES = 8
_MOST_CHARACTERS = 60
"""The characters of a value in a message."""


@dataclass(frozen=True, slots=True)
class Described:
    """The datasets of a plan or of a lock, for a comparison."""

    public: Sequence[Public]
    versions: Mapping[str, object] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    """The files of each source; a lock has none."""


def of_plans(plans: Sequence[DatasetPlan], versions: Mapping[str, object]) -> Described:
    """Describe the plans of this command."""
    files = by_source((file for plan in plans for file in plan.files), plans)
    return Described([plan.public() for plan in plans], versions, files)


def by_source(files: Iterable[SourceFile], plans: Iterable[DatasetPlan]) -> Files:
    """Return the files of some plans, for `Described.files`."""
    roots = {(plan.spec.name, f"source.{name}"): path for plan in plans for name, path in plan.sources.items()}
    hashes: dict[tuple[str, str], dict[str, str]] = {}
    for file in files:
        root = roots.get((file.dataset, file.source), file.path)
        is_below = file.path != root and file.path.is_relative_to(root)
        name = file.path.relative_to(root).as_posix() if is_below else file.path.name
        hashes.setdefault((file.dataset, file.source), {})[name] = file.hashed.sha256
    return hashes


def joined(changes: Sequence[str]) -> str:
    """Return differences as one text; if there are many, the first ones and the number of the others."""
    more = f"; and {len(changes) - _MOST_DIFFERENCES:,} more" if len(changes) > _MOST_DIFFERENCES else ""
    return "; ".join(changes[:_MOST_DIFFERENCES]) + more


def differences(before: Described, now: Described) -> list[str]:
    """Return how two plans differ, one phrase for each difference, such as `seed: 42 → 7`; empty if they are equal."""
    changes = [
        f"{name} {before.versions.get(name, '(not recorded)')} → {version}"
        for name, version in now.versions.items()
        if before.versions.get(name) != version
    ]
    old, new = ({str(data.get("name")): data for data in each.public} for each in (before, now))
    if len(old) == len(new) == 1 and old.keys() != new.keys():
        return [*changes, f"name: {next(iter(old))} → {next(iter(new))}"]
    for name, data in new.items():
        prefix = f"{name}: " if max(len(old), len(new)) > 1 else ""
        if name in old:
            changes += (f"{prefix}{change}" for change in _of_dataset(old[name], data, before.files, now.files))
        else:
            changes.append(f"dataset {name!r} is new")
    changes += (f"dataset {name!r} is gone" for name in old if name not in new)
    if old.keys() == new.keys() and list(old) != list(new):
        changes.append("the datasets have another order")
    return changes


def _of_dataset(old: Public, new: Public, before: Files, now: Files) -> Iterator[str]:
    yield from changed_sources(old, new, before, now)
    code: list[str] = []
    there, here = old.get("code"), new.get("code")
    if isinstance(there, Mapping) and isinstance(here, Mapping):  # a lock of an older version has none
        for kind, plugin in here.items():
            earlier = there.get(kind)
            if plugin != earlier:
                was = earlier.get("version") if isinstance(earlier, Mapping) else None
                is_newer = was != plugin.get("version")
                name = str(plugin.get("name")).rpartition("/")[2].partition(":")[0]
                version = f" ({was} → {plugin.get('version')})" if is_newer and was else ""
                code.append(f"metric changed: {name}" if kind == "metric" else f"task code changed: {name}{version}")
    yield from dict.fromkeys(code)
    for key in dict.fromkeys((*new, *old)):
        if key not in ("source", "source_sha256", "code", "name"):
            yield from _of_values(key, old.get(key), new.get(key))


def changed_sources(old: Public, new: Public, before: Files = _UNKNOWN, now: Files = _UNKNOWN) -> Iterator[str]:
    """Yield how the sources of a dataset differ, such as `source.documents: ash.pdf changed`; `before` and `now` are
    the files of all datasets, as far as they are known. A lock does not name its files, only how many they were.
    """
    was_drawn, is_drawn = (not isinstance(data.get("source"), Mapping) for data in (old, new))
    if was_drawn != is_drawn:
        yield "source: now a drawn sample" if is_drawn else "source: a drawn sample before, now files"
        return
    there, here = (hashes if isinstance(hashes := data.get("source_sha256"), Mapping) else {} for data in (old, new))
    fingerprints: Mapping[str, object] = {} if was_drawn else old["source"]
    for name in dict.fromkeys((*here, *there)):
        key, fingerprint = f"source.{name}", fingerprints.get(name)
        was = fingerprint.get("files") if isinstance(fingerprint, Mapping) else None
        files, others = before.get((new["name"], key)), now.get((new["name"], key))
        if there.get(name) == here.get(name):
            continue
        if files and others and files != others:
            for file in sorted({*files, *others}):
                yield from _of_hashes(f"{key}: {file}", files.get(file), others.get(file))
        elif others and not files and isinstance(was, int):
            (file, sha256), *_ = others.items()
            # the hash of a file is that of its source; a folder with one file may have had another one
            same = f": {file} changed" if sha256 == here.get(name) else f" changed ({was:,} file{'s' * (was != 1)})"
            yield f"{key}{same}" if was == len(others) else f"{key}: {was:,} → {len(others):,} files"
        else:
            yield from _of_hashes(key, there.get(name), here.get(name))


def _of_hashes(name: str, old: object, new: object) -> Iterator[str]:
    if old != new:
        yield f"{name} {'changed' if old and new else 'is new' if new else 'is gone'}"


def _of_values(key: str, old: object, new: object) -> Iterator[str]:
    if old == new:
        return
    if key.endswith(".sha256"):
        yield f"{key.removesuffix('.sha256')}: the file changed"
    elif key in _HASHES or key.endswith("_sha256"):
        yield from _of_hashes(key.removesuffix("_sha256"), old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        changed = [each for each in dict.fromkeys((*old, *new)) if old.get(each) != new.get(each)]
        for each in changed:
            if each != "sha256" or changed == [each]:  # of a file with another name, the name says enough
                yield from _of_values(f"{key}.{each}", old.get(each), new.get(each))
    else:
        yield f"{key}: {_text(key, old)} → {_text(key, new)}"


def _text(key: str, value: object) -> str:
    values = value if isinstance(value, list) else [value]
    if value is None:
        return "not set"
    if key in _LENGTHS and all(type(each) is int for each in values):
        return ", ".join(map(format_length, values))
    if isinstance(value, list) and value and all(isinstance(each, str | int | float) for each in value):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
