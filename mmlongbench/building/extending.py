"""Extends a finished release: decides what may be added, and moves the new files to their places.

An extension is built beside the finished release, in `.build/extension` of its folder, like any other build: it can be
killed and continued. What the release already has is taken from it (`released`). Until everything is made, the finished
release is not touched. Then the old lock is set aside, the files are moved to their places, and the new lock is moved
last. So a folder with a lock always holds a whole release. A move that was killed is completed by the next build in the
folder, before it does anything else.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from mmlongbench.building.build_dir import WORKING, BuildDir
from mmlongbench.building.build_plan import DatasetPlan, load_interrupted_plan
from mmlongbench.building.damage import refuse_changed, refuse_damage
from mmlongbench.building.dataset import Dataset, open_dataset
from mmlongbench.building.differences import Described, Public, changed_sources, differences, joined, of_plans
from mmlongbench.building.executors.executor import Executor
from mmlongbench.building.lines import PackedRecord
from mmlongbench.building.out_folder import would_be_lost
from mmlongbench.building.planning import plan_anew
from mmlongbench.building.released import Released, ReleasedCell
from mmlongbench.building.session import Session
from mmlongbench.building.stages.cells import Tally
from mmlongbench.building.stages.records import pack_lines
from mmlongbench.errors import BuildError, MMLongBenchError, TooFewKept
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import Bound
from mmlongbench.release.assets import ASSETS, has_assets
from mmlongbench.release.layout import IMAGES, LOCK, TOMBSTONES
from mmlongbench.release.lock import Lock, LockedFile, is_release_path, leads_out, read_lock, versions
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.formats import to_json
from mmlongbench.task.rows import Row


def refuse_changed_examples(plans: Sequence[DatasetPlan], session: Session) -> None:
    """Refuse an extension that would change or remove existing examples; nothing was changed before.

    Raises:
        BuildError: the error names the dataset and the question.

    """
    released = session.released
    if released is None:
        return
    for plan in plans:
        if released.kept(plan.spec.name) is None:
            continue
        _refuse_lost(plan, session)
        if released.source_hashes(plan.spec.name) != plan.source_hashes:
            _refuse_changed(plan, session, released)


def _refuse_lost(plan: DatasetPlan, session: Session) -> None:
    """Refuse if a question of the release is not chosen any more, or stands in another order."""
    name = plan.spec.name
    places = {row.id: place for place, row in enumerate(session.questions(name))}
    for length in plan.spec.lengths:
        if (cell := session.taken(name, length)) is None or session.takes_whole(name, length):
            continue
        for ids in (cell.ids, tuple(cell.rejected)):
            if (lost := next((id for id in ids if id not in places), None)) is not None:
                raise _refused(plan, f"question {lost!r} would no longer be in the release")
            if sorted(ids, key=places.__getitem__) != list(ids):
                raise _refused(plan, "the order of its questions would change")


def _refuse_changed(plan: DatasetPlan, session: Session, released: Released) -> None:
    """Pack the existing questions again, and refuse if an example differs, or depends on more than its own row."""
    watched = _Watched(plan.sources)
    opened = open_dataset(replace(plan, sources=watched), session.build_dir, session.source_files)
    dataset = replace(opened, canary=session.dataset(plan.spec.name).canary)
    rows = _WatchedRows(dataset.sources.rows)
    dataset.sources.rows = rows
    if dataset.sources.has_documents:
        dataset.reader.documents(watched)  # opening a dataset lists no documents; they were listed for the plan
    try:
        cells = [session.taken(plan.spec.name, length) for length in released.lengths(plan.spec.name)]
        different = next((found for cell in cells if cell for found in _different(dataset, cell, session)), None)
    finally:
        dataset.close()
    before = released.source_hashes(plan.spec.name)
    changed = [name for name, sha256 in plan.source_hashes.items() if sha256 != before.get(name)]
    found = changed_sources(released.dataset(plan.spec.name), plan.public(), {}, of_plans([plan], {}).files)
    said = joined(list(found))
    if rows.are_used:
        names = ", ".join(f"source.{name}" for name in changed)
        raise _refused(plan, f"{said}; every example of this dataset depends on all rows of {names}")
    is_extracted = bool(watched.used - plan.source_hashes.keys())  # may be of any source
    if used := [name for name in changed if is_extracted or name in watched.used]:
        raise _refused(plan, f"{said}; every context may show something from source.{used[0]}")
    if different is not None:
        raise _refused(plan, f"{different} ({said})", "; rows without an id are numbered: put new ones at the end")


def _different(dataset: Dataset, cell: ReleasedCell, session: Session) -> Iterator[str]:
    """Yield which examples, and which of their counts, differ at a length."""
    rows = {row.id: row for row in session.questions(dataset.spec.name)}
    tally = Tally(dataset.builder.spec.balance)
    for id, examples in cell.examples():
        if _packed(dataset, rows[id], cell.length, tally) != [_comparable(each) for each in examples]:
            yield f"question {id!r} changed"
    for id in cell.rejected:
        if _packed(dataset, rows[id], cell.length, tally):
            yield f"question {id!r} changed"
    before, now = cell.counts.model_dump(), tally.cell().model_dump()
    for key in (key for key in now if now[key] != before.get(key)):
        yield f"the count {key} of the examples at {format_length(cell.length)} changed"


def _packed(dataset: Dataset, row: Row, length: int, tally: Tally) -> list[bytes]:
    """Return the examples of a question, and count them."""
    made = tally.counted(pack_lines(dataset, (row,), length))
    return [_comparable(line) for line in made if isinstance(line, PackedRecord)]


def _comparable(line: PackedRecord) -> bytes:
    """Return the record and the items of an example in one form, whether it was packed or read."""
    items: list[dict[str, Any]] = [{"inside": None, **item} for item in line.items]
    return to_json([line.record, [sorted(item.items()) for item in items]])


def _refused(plan: DatasetPlan, why: str, more: str = "") -> BuildError:
    return BuildError(
        f"dataset {plan.spec.name!r}: the finished release cannot be extended: {why}; nothing was changed; build into "
        f"another folder{more}"
    )


class _Watched(dict[str, Path]):
    """The paths of sources; remembers which of them were read."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        super().__init__(paths)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Path:
        self.used.add(name)
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        self.used.update(super().keys())
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  (as of a dict)
        self.used.add(name)
        return super().get(name, default)

    def items(self) -> Any:  # noqa: ANN401  (as of a dict)
        self.used.update(super().keys())
        return super().items()

    def values(self) -> Any:  # noqa: ANN401  (as of a dict)
        self.used.update(super().keys())
        return super().values()


class _WatchedRows(Sequence[Row]):
    """The rows of a source; remembers whether any of them were read."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.are_used = False

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        self.are_used = True
        return self._rows[place]

    def __len__(self) -> int:
        self.are_used = True
        return len(self._rows)


_MAY_DIFFER = ("lengths", "sample", "source", "source_sha256")
"""The keys of a resolved dataset that an extension may change, within bounds."""


@contextmanager
def extension(build_dir: BuildDir) -> Iterator[BuildDir]:
    """Yield the folder in which a finished release is extended. Remove the folder at the end, unless it has a plan, or
    something that takes long to make again. After an error a plan alone does not keep the folder, but the list of
    rejects that the error names does.
    """
    inner = build_dir.extension
    inner.root.mkdir(parents=True, exist_ok=True)
    try:
        yield inner
    except TooFewKept:
        raise
    except (MMLongBenchError, OSError):
        with suppress(BuildError):  # a plan of another format is kept
            saved = load_interrupted_plan(inner)
            if not would_be_lost(inner, saved.plans if saved else {}):
                shutil.rmtree(inner.out, ignore_errors=True)
        raise
    finally:
        if not inner.plan.is_file() and not would_be_lost(inner, {}):
            shutil.rmtree(build_dir.root, ignore_errors=True)


def plan_extension(
    datasets: Sequence[Bound], lock: Lock, inner: BuildDir, executor: Executor, *, is_restart: bool = False
) -> tuple[list[DatasetPlan], str]:
    """Return the plans of a release, and a note that says what is added to the finished one; the note is empty if the
    finished release is what the manifest asks for. `is_restart`: see `plan_anew`.

    Raises:
        BuildError: the release differs in a way that would change its examples, or it is damaged.

    """
    out = inner.extended or inner.out
    inner.root.mkdir(parents=True, exist_ok=True)
    plans = plan_anew(datasets, inner, executor.progress, is_restart=is_restart)
    before, now = Described(lock.manifest, lock.versions), of_plans(plans, versions())
    found = differences(before, now)
    if not found:
        return plans, ""
    refused = [*_not_only_more(before, now), *_changes_of_datasets(before, now, plans, lock)]
    if refused:
        raise BuildError(
            f"--out {out}: holds a finished release that differs ({joined(found)}); {refused[0]}; use another folder, "
            "or remove this one to build it again (--restart discards unfinished builds only)"
        )
    if not executor.has_all_files:
        raise BuildError(
            f"the finished release at this URL differs ({joined(found)}), and a release is extended only in a folder: "
            "copy it into one, extend it there, and upload it; or use another URL"
        )
    _refuse_unextendable(out)
    refuse_damage(lock.files, out)
    refuse_changed({name: file for name, file in lock.files.items() if not name.startswith(f"{IMAGES}/")}, out)
    return plans, f"the finished release was extended ({joined(found)}); its examples stay as they were"


def _refuse_unextendable(out: Path) -> None:
    """Refuse to extend a release that has no table of assets, or of which something was taken out, because an extension
    would put it back.
    """
    if (out / TOMBSTONES).is_file():
        raise BuildError(
            f"--out {out}: {TOMBSTONES} says that examples were taken out of the finished release; an extension would "
            "put them back: build into another folder, with `exclude` in the manifest"
        )
    if not has_assets(out):
        raise BuildError(
            f"--out {out}: the finished release has no table of assets ({ASSETS}), because an older version built it; "
            "it cannot be extended: use another folder, or remove this one to build it again"
        )


def _not_only_more(before: Described, now: Described) -> Iterator[str]:
    """Yield what is not an addition: other versions, and datasets that are gone."""
    if any(before.versions.get(name) != version for name, version in now.versions.items()):
        yield "other versions may change its examples"
    names = {data["name"] for data in now.public}
    gone = (data.get("name") for data in before.public if data.get("name") not in names)
    yield from (f"dataset {name!r} would be removed" for name in gone)


def _changes_of_datasets(before: Described, now: Described, plans: Sequence[DatasetPlan], lock: Lock) -> Iterator[str]:
    """Yield why datasets of the release cannot be extended."""
    old = {str(data.get("name")): data for data in before.public}
    for plan, data in zip(plans, now.public, strict=True):
        name = plan.spec.name
        if name in old:
            if lock.counts(name) is None:
                yield f"the lock has no readable counts of dataset {name!r}"
            yield from (f"dataset {name!r}: {why}" for why in _changes(old[name], data, plan, before, now))


def _changes(old: Public, new: Public, plan: DatasetPlan, before: Described, now: Described) -> Iterator[str]:
    """Yield why one dataset cannot be extended."""
    alone = (Described([{"name": "x", **_fixed(old)}]), Described([{"name": "x", **_fixed(new)}]))
    if files := _changed_task_files(old, new):
        yield f"restore {' and '.join(files)} to extend it"
    if differences(*alone):
        yield "only lengths, datasets and questions can be added to it"
    is_shared = isinstance(plan.bound.builder, SharedContextBuilder)
    together = "its questions share contexts, so that further questions change the existing examples"
    lengths = old.get("lengths")
    if gone := [each for each in lengths if each not in new["lengths"]] if isinstance(lengths, list) else [""]:
        yield f"the length {format_length(gone[0]) if isinstance(gone[0], int) else gone[0]} would be removed"
    if old.get("sample") != new["sample"]:
        if is_shared:
            yield together
        elif not _is_larger(old.get("sample"), new["sample"]):
            yield "another sample does not contain all questions of the release"
    sources = list(changed_sources(old, new, before.files, now.files))
    if sources and not _has_same_sources(old.get("source"), new["source"]):
        yield f"{sources[0]}: only rows can be added to a source"
    elif sources and is_shared:
        yield f"{sources[0]}: {together}"
    elif sources and plan.corpus:
        yield f"{sources[0]}: the passages of existing examples may come from it"


def _changed_task_files(old: Public, new: Public) -> list[str]:
    """Return the names of the task files of a dataset whose code is not that of the release."""
    before, now = old.get("code"), new.get("code")
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return []
    changed = [code["name"] for kind, code in now.items() if not code["distribution"] and code != before.get(kind)]
    return list(dict.fromkeys(name.partition(":")[0] for name in changed))


def _has_same_sources(old: object, new: object) -> bool:
    """Return whether a dataset has sources of its own, under the same names as before."""
    return isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() == new.keys()


def _fixed(data: Public) -> dict[str, object]:
    """Return what an extension must not change in a dataset."""
    return {key: value for key, value in data.items() if key not in (*_MAY_DIFFER, "name")}


def _is_larger(old: object, new: object) -> bool:
    """Return whether a sample contains another one: it has another number of questions, and it has more."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping) or {**old, "n": 0} != {**new, "n": 0}:
        return False
    before, now = old.get("n"), new.get("n")
    return isinstance(before, int) and (now is None or now > before)


def move_into_place(build_dir: BuildDir) -> None:
    """Replace a finished release by its extension, whose lock is written."""
    (build_dir.before / LOCK).parent.mkdir(exist_ok=True)
    (build_dir.out / LOCK).replace(build_dir.before / LOCK)
    finish_move(build_dir)


def finish_move(build_dir: BuildDir) -> None:
    """Move the files of an extension to their places, if this was begun. The lock is moved last.

    Raises:
        BuildError: a file of the extended release is missing, or a lock names a file outside the release.
        ReleaseError: a lock cannot be read.

    """
    inner = build_dir.extension.out
    if not build_dir.is_moving:
        return
    if (inner / LOCK).is_file():
        files, gone = (_files_in(read_lock(folder), build_dir.out, inner) for folder in (inner, build_dir.before))
        for name in files:
            if (inner / name).is_file():
                (build_dir.out / name).parent.mkdir(parents=True, exist_ok=True)
                (inner / name).replace(build_dir.out / name)
        _remove(gone, files, build_dir.out)
        refuse_damage(files, build_dir.out)
        (inner / LOCK).replace(build_dir.out / LOCK)
    if not (build_dir.out / LOCK).is_file():
        raise BuildError(
            f"--out {build_dir.out}: the lock of the extended release is gone; move {build_dir.before / LOCK} back to "
            f"{build_dir.out}, and remove {build_dir.root}"
        )
    shutil.rmtree(inner, ignore_errors=True)
    shutil.rmtree(build_dir.before)


def _files_in(lock: Lock, *folders: Path) -> Mapping[str, LockedFile]:
    """Return the files of a lock, whose names are those of files of a release.

    Raises:
        BuildError: a name leads out of the release, or a file is a link that does.

    """
    for name in lock.files:
        if not is_release_path(name) or any(leads_out(folder, name) for folder in folders):
            raise BuildError(
                f"--out {folders[0]}: the folder was changed: a lock in {WORKING} names {name!r:.120}, which leads out "
                f"of the release; remove {folders[0] / WORKING}"
            )
    return lock.files


def _remove(before: Mapping[str, LockedFile], now: Mapping[str, LockedFile], out: Path) -> None:
    """Remove the files that have another name in the extended release, and folders that are empty then."""
    for name in before.keys() - now.keys():
        (out / name).unlink(missing_ok=True)
        with suppress(OSError):  # the folder has other files
            (out / name).parent.rmdir()
