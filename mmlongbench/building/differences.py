"""Says in words how two plans differ: the manifests, the files of the sources, the code of the plug-ins, the versions.

Used where a folder holds a build or a release of another plan. No hash is ever shown.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.saved_plan import SavedPlan
from mmlongbench.building.source_files import SourceFile
from mmlongbench.lengths import format_length

Public: TypeAlias = Mapping[str, Any]
"""A dataset as `DatasetPlan.public` describes it."""
_Hashes: TypeAlias = Mapping[str, str]
"""The SHA-256 of the files of a source, by path below the source."""
_LENGTHS = ("lengths", "admission_length", "reference_length")
_MAX_NAMES = 2
"""How many files a difference names; of more files it gives the number."""
_MAX_SAID = 8
"""How many differences a message has."""
_MAX_VALUE = 60
"""How many characters of a value a message has."""
_UNSET = object()


@dataclass(frozen=True, slots=True)
class Described:
    """The datasets of a plan or of a lock, for a comparison."""

    public: Sequence[Public]
    """Each dataset, in order."""
    versions: Mapping[str, object] = field(default_factory=dict)
    """The versions of the packages."""
    files: Mapping[tuple[str, str], _Hashes] = field(default_factory=dict)
    """The files of each source, by (dataset, `SourceFile.source`); a lock has none."""


def of_plans(plans: Sequence[DatasetPlan], versions: Mapping[str, object]) -> Described:
    """Describe the plans of this command."""
    files = (file for plan in plans for file in plan.files)
    roots = {plan.spec.name: plan.sources for plan in plans}
    return Described([plan.public() for plan in plans], versions, _by_source(files, roots))


def of_saved(saved: SavedPlan, files: Sequence[SourceFile]) -> Described:
    """Describe the plan of an unfinished build; `files` are its fingerprinted files, if they can be read."""
    roots = {name: plan.sources for name, plan in saved.plans.items()}
    return Described(saved.public, saved.versions, _by_source(files, roots))


def _by_source(
    files: Iterator[SourceFile] | Sequence[SourceFile], roots: Mapping[str, Mapping[str, Path]]
) -> dict[tuple[str, str], dict[str, str]]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for file in files:
        root = roots.get(file.dataset, {}).get(file.source.removeprefix("source."))
        is_below = root is not None and file.path != root and file.path.is_relative_to(root)
        name = file.path.relative_to(root).as_posix() if is_below and root else file.path.name
        found.setdefault((file.dataset, file.source), {})[name] = file.hashed.sha256
    return found


def differences(before: Described, now: Described) -> list[str]:
    """Return how two plans differ, one phrase for each difference, such as `seed: 42 → 7`; empty if they are equal."""
    return [*_versions(before.versions, now.versions), *_datasets(before, now)]


def joined(found: Sequence[str]) -> str:
    """Return differences as one text; if there are many, the first ones and the number of the others."""
    more = f"; and {len(found) - _MAX_SAID} more" if len(found) > _MAX_SAID else ""
    return "; ".join(found[:_MAX_SAID]) + more


def _versions(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    for name, version in now.items():
        if before.get(name) != version:
            yield f"{name} {before.get(name, '(not recorded)')} → {version}"


def _datasets(before: Described, now: Described) -> Iterator[str]:
    old = {str(data.get("name")): data for data in before.public}
    new = {str(data.get("name")): data for data in now.public}
    if len(old) == len(new) == 1 and old.keys() != new.keys():
        yield f"name: {next(iter(old))} → {next(iter(new))}"
        return
    several = max(len(old), len(new)) > 1
    for name, data in new.items():
        if name in old:
            prefix = f"{name}: " if several else ""
            yield from (f"{prefix}{found}" for found in _dataset(old[name], data, name, before, now))
        else:
            yield f"dataset {name!r} is new"
    yield from (f"dataset {name!r} is gone" for name in old if name not in new)
    if old.keys() == new.keys() and list(old) != list(new):
        yield "the datasets have another order"


def _dataset(old: Public, new: Public, name: str, before: Described, now: Described) -> Iterator[str]:
    """Yield the differences of one dataset."""
    yield from changed_sources(old, new, name, before, now)
    yield from _code(old, new)
    for key in (key for key in new if key not in ("source", "source_sha256", "code", "name")):
        there, here = old.get(key, _UNSET), new[key]
        if there == here:
            continue
        if key in ("corpus", "errata"):
            is_both = isinstance(there, str) and isinstance(here, str)
            yield _file_changed(key, name, now) if is_both else f"{key} is {'new' if here else 'gone'}"
        elif key == "reranker_sha256":
            yield "the model of the reranker changed"
        else:
            yield from _values(key, there, here)
    yield from (f"{key}: {_said(key, old[key])} → not set" for key in old if key not in new and key != "code")


def _file_changed(source: str, dataset: str, now: Described) -> str:
    """Return that a corpus or a file of errata changed, with the name of the file if there is one."""
    names = list(now.files.get((dataset, source), {}))
    return f"{names[0]} changed" if len(names) == 1 else f"the {source} changed"


def _code(old: Public, new: Public) -> Iterator[str]:
    """Yield the plug-ins whose code changed; a lock of an older version does not have them, and is not compared."""
    there, here = old.get("code"), new.get("code")
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        return
    changed = []
    for kind in (kind for kind in here if here[kind] != there.get(kind) and isinstance(here[kind], Mapping)):
        plugin, earlier = here[kind], there.get(kind)
        was = earlier.get("version") if isinstance(earlier, Mapping) else None
        is_newer = was != plugin.get("version")
        named = str(plugin.get("name")).rpartition("/")[2].partition(":")[0]
        version = f" ({was} → {plugin.get('version')})" if is_newer and was else ""
        changed.append(f"task code changed: {named}{version}" if kind != "metric" else f"metric changed: {named}")
    yield from dict.fromkeys(changed)


def changed_sources(old: Public, new: Public, name: str, before: Described, now: Described) -> Iterator[str]:
    """Yield how the sources of a dataset differ, such as `questions.csv changed`."""
    there, here = old.get("source"), new.get("source")
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        if there != here:
            yield "source: now a drawn sample" if here == "sample" else "source: a drawn sample before, now files"
        else:
            sums, others = (data.get("source_sha256") or {} for data in (old, new))
            yield from (f"the drawn {each} changed" for each in others if others[each] != sums.get(each))
        return
    for each in here:
        if each not in there:
            yield f"source.{each} is new"
        elif here[each] != there[each]:
            place = (name, f"source.{each}")
            yield _files(each, before.files.get(place, {}), now.files.get(place, {}), there[each])
    yield from (f"source.{each} is gone" for each in there if each not in here)


def _files(source: str, before: _Hashes, now: _Hashes, there: object) -> str:
    """Return how the files of one source differ."""
    if len(now) == 1 and (len(before) == 1 or not before) and _count(there) == 1:
        return f"{next(iter(now))} changed"
    if not before:
        count = _count(there)
        if count == len(now) or count is None:
            return f"{source}: files changed ({len(now):,} files)"
        return f"{source}: {count:,} → {len(now):,} files"
    changed = [file for file in now if file in before and now[file] != before[file]]
    new, gone = [file for file in now if file not in before], [file for file in before if file not in now]
    parts = [_counted(changed, "changed", "changed"), _counted(new, "is new", "are new")]
    parts.append(_counted(gone, "is gone", "are gone"))
    return f"{source}: {', '.join(filter(None, parts)) or 'another folder'}"


def _count(source: object) -> int | None:
    found = source.get("files") if isinstance(source, Mapping) else None
    return found if isinstance(found, int) else None


def _counted(files: Sequence[str], one: str, many: str) -> str:
    if not files:
        return ""
    if len(files) == 1:
        return f"{files[0]} {one}"
    return f"{' and '.join(files)} {many}" if len(files) <= _MAX_NAMES else f"{len(files):,} files {many}"


def _values(key: str, there: object, here: object) -> Iterator[str]:
    """Yield the differences of a value; of mappings, the differences of each key."""
    if isinstance(there, Mapping) and there.keys() == {"name", "sha256"} and isinstance(here, Mapping):
        same = there["name"] == here.get("name")
        yield f"{key}: the file changed" if same else f"{key}: {there['name']} → {here.get('name')}"
    elif isinstance(there, Mapping) and isinstance(here, Mapping):
        for each in dict.fromkeys((*there, *here)):
            first, second = there.get(each, _UNSET), here.get(each, _UNSET)
            if first != second:
                yield from _values(f"{key}.{each}", first, second)
    else:
        yield f"{key}: {_said(key, there)} → {_said(key, here)}"


def _said(key: str, value: object) -> str:
    """Return a value as a manifest would have it, in one line."""
    if value is _UNSET or value is None:
        return "not set"
    values = value if isinstance(value, list) else [value]
    if key in _LENGTHS and all(type(each) is int for each in values):
        return ", ".join(map(format_length, values))
    if isinstance(value, list) and value and all(isinstance(each, str | int | float) for each in value):
        return _short(", ".join(map(str, value)))
    return _short(value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"
