"""Says in words how two plans differ: the manifests, the files of the sources, the code of the plug-ins, the versions.

Used where a folder holds a build or a release of another plan. No hash is ever shown.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mmlongbench.building.build_plan import DatasetPlan, SavedPlan
from mmlongbench.building.source_files import SourceFile
from mmlongbench.lengths import format_length

Public: TypeAlias = Mapping[str, Any]
"""A dataset as `DatasetPlan.public` describes it."""
Files: TypeAlias = Mapping[tuple[str, str], Mapping[str, str]]
"""The SHA-256 of each file, by the path of the file below its source, by (dataset, `SourceFile.source`)."""
_LENGTHS = ("lengths", "admission_length", "reference_length")
_MAX_NAMES = 2
"""How many files a difference names; of more files it gives the number."""
_MAX_SAID = 8
"""How many differences a message has."""
_MAX_VALUE = 60
"""How many characters of a value a message has."""


@dataclass(frozen=True, slots=True)
class Described:
    """The datasets of a plan or of a lock, for a comparison."""

    public: Sequence[Public]
    """Each dataset, in order."""
    versions: Mapping[str, object] = field(default_factory=dict)
    """The versions of the packages."""
    files: Files = field(default_factory=dict)
    """The files of each source; a lock has none."""


def of_plans(plans: Sequence[DatasetPlan], versions: Mapping[str, object]) -> Described:
    """Describe the plans of this command."""
    files = _by_source((file for plan in plans for file in plan.files), plans)
    return Described([plan.public() for plan in plans], versions, files)


def of_saved(saved: SavedPlan, files: Sequence[SourceFile]) -> Described:
    """Describe the plan of an unfinished build; `files` are its fingerprinted files, if they can be read."""
    return Described(saved.public, saved.versions, _by_source(files, saved.plans.values()))


def _by_source(files: Iterable[SourceFile], plans: Iterable[DatasetPlan]) -> Files:
    roots = {(plan.spec.name, f"source.{name}"): path for plan in plans for name, path in plan.sources.items()}
    hashes: dict[tuple[str, str], dict[str, str]] = {}
    for file in files:
        root = roots.get((file.dataset, file.source), file.path)
        is_below = file.path != root and file.path.is_relative_to(root)
        name = file.path.relative_to(root).as_posix() if is_below else file.path.name
        hashes.setdefault((file.dataset, file.source), {})[name] = file.hashed.sha256
    return hashes


def joined(found: Sequence[str]) -> str:
    """Return differences as one text; if there are many, the first ones and the number of the others."""
    more = f"; and {len(found) - _MAX_SAID} more" if len(found) > _MAX_SAID else ""
    return "; ".join(found[:_MAX_SAID]) + more


def differences(before: Described, now: Described) -> list[str]:
    """Return how two plans differ, one phrase for each difference, such as `seed: 42 → 7`; empty if they are equal."""
    found = [
        f"{name} {before.versions.get(name, '(not recorded)')} → {version}"
        for name, version in now.versions.items()
        if before.versions.get(name) != version
    ]
    old, new = ({str(data.get("name")): data for data in each.public} for each in (before, now))
    if len(old) == len(new) == 1 and old.keys() != new.keys():
        return [*found, f"name: {next(iter(old))} → {next(iter(new))}"]
    for name, data in new.items():
        if name in old:
            prefix = f"{name}: " if max(len(old), len(new)) > 1 else ""
            found += (f"{prefix}{said}" for said in _dataset(old[name], data, before.files, now.files))
        else:
            found.append(f"dataset {name!r} is new")
    found += (f"dataset {name!r} is gone" for name in old if name not in new)
    if old.keys() == new.keys() and list(old) != list(new):
        found.append("the datasets have another order")
    return found


def _dataset(old: Public, new: Public, before: Files, now: Files) -> Iterator[str]:
    yield from changed_sources(old, new, before, now)
    yield from _code(old.get("code"), new.get("code"))
    for key in dict.fromkeys((*new, *old)):
        there, here = old.get(key), new.get(key)
        if there == here or key in ("source", "source_sha256", "code", "name"):
            continue
        if key in ("corpus", "errata"):
            files = list(now.get((new["name"], key), {}))
            named = files[0] if len(files) == 1 else f"the {key}"
            yield f"{named} changed" if there and here else f"{key} is {'new' if here else 'gone'}"
        elif key == "reranker_sha256":
            yield "the model of the reranker changed"
        else:
            yield from _values(key, there, here)


def changed_sources(old: Public, new: Public, before: Files, now: Files) -> Iterator[str]:
    """Yield how the sources of a dataset differ, such as `questions.csv changed`; `before` and `now` are the files of
    all datasets, as far as they are known.
    """
    there, here = old.get("source"), new.get("source")
    if there != here and not (isinstance(there, Mapping) and isinstance(here, Mapping)):
        yield "source: now a drawn sample" if here == "sample" else "source: a drawn sample before, now files"
    elif not isinstance(there, Mapping) or not isinstance(here, Mapping):
        drawn, again = (data.get("source_sha256") or {} for data in (old, new))
        yield from (f"the drawn {name} changed" for name in again if again[name] != drawn.get(name))
    else:
        for name in here:
            if name not in there:
                yield f"source.{name} is new"
            elif here[name] != there[name]:
                place = (new["name"], f"source.{name}")
                yield _files(name, before.get(place, {}), now.get(place, {}), there[name])
        yield from (f"source.{name} is gone" for name in there if name not in here)


def _files(source: str, before: Mapping[str, str], now: Mapping[str, str], there: object) -> str:
    """Return how the files of one source differ. If those before are not known, `there` has at least their number."""
    count = there.get("files") if isinstance(there, Mapping) else None
    if len(now) == 1 and len(before) <= 1 and count == 1:
        return f"{next(iter(now))} changed"
    if not before:
        is_same = count == len(now) or not isinstance(count, int)
        return (
            f"{source}: files changed ({len(now):,} files)" if is_same else f"{source}: {count:,} → {len(now):,} files"
        )
    parts = (
        _counted([file for file in now if file in before and now[file] != before[file]], "changed", "changed"),
        _counted([file for file in now if file not in before], "is new", "are new"),
        _counted([file for file in before if file not in now], "is gone", "are gone"),
    )
    return f"{source}: {', '.join(filter(None, parts)) or 'another folder'}"


def _counted(files: Sequence[str], one: str, many: str) -> str:
    if len(files) > _MAX_NAMES:
        return f"{len(files):,} files {many}"
    return f"{' and '.join(files)} {one if len(files) == 1 else many}" if files else ""


def _code(old: object, new: object) -> Iterator[str]:
    """Yield the plug-ins whose code changed; a lock of an older version does not have them, and is not compared."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return
    changed = []
    for kind, plugin in new.items():
        earlier = old.get(kind)
        if plugin == earlier:
            continue
        was = earlier.get("version") if isinstance(earlier, Mapping) else None
        is_newer = was != plugin.get("version")
        named = str(plugin.get("name")).rpartition("/")[2].partition(":")[0]
        version = f" ({was} → {plugin.get('version')})" if is_newer and was else ""
        changed.append(f"task code changed: {named}{version}" if kind != "metric" else f"metric changed: {named}")
    yield from dict.fromkeys(changed)


def _values(key: str, there: object, here: object) -> Iterator[str]:
    """Yield the differences of a value; of mappings, the differences of each key."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        yield f"{key}: {_said(key, there)} → {_said(key, here)}"
    elif there.keys() == {"name", "sha256"}:
        is_same = there["name"] == here.get("name")
        yield f"{key}: the file changed" if is_same else f"{key}: {there['name']} → {here.get('name')}"
    else:
        for each in dict.fromkeys((*there, *here)):
            if there.get(each) != here.get(each):
                yield from _values(f"{key}.{each}", there.get(each), here.get(each))


def _said(key: str, value: object) -> str:
    """Return a value as a manifest would have it, in one line."""
    if value is None:
        return "not set"
    values = value if isinstance(value, list) else [value]
    if key in _LENGTHS and all(type(each) is int for each in values):
        return ", ".join(map(format_length, values))
    if isinstance(value, list) and value and all(isinstance(each, str | int | float) for each in value):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"
