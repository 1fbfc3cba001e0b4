"""Extends a finished release: decides what may be added, and moves the new files to their places.

An extension is built beside the finished release, in `.build/extension` of its folder, like any other build: it can be
killed and continued. Images, and files whose examples cannot change, are taken from the finished release (`Released`);
what else has existing examples is packed again, and refused if one of them differs. Until everything is made, the
finished release is not touched. Then the old lock is set aside, the files are moved to their places, and the new lock
is moved last. So a folder with a lock always holds a whole release. A move that was killed is completed by the next
build in the folder, before it does anything else.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path

from mmlongbench.building.build_dir import WORKING, BuildDir
from mmlongbench.building.build_plan import DatasetPlan, load_interrupted_plan
from mmlongbench.building.damage import refuse_changed, refuse_damage
from mmlongbench.building.differences import Described, Public, changed_sources, differences, joined, of_plans
from mmlongbench.building.executors.executor import Executor
from mmlongbench.building.lines import RECORDS, PackedRecord
from mmlongbench.building.out_folder import would_be_lost
from mmlongbench.building.planning import plan_anew
from mmlongbench.building.released import Released, ReleasedCell
from mmlongbench.building.session import Session
from mmlongbench.errors import BuildError, MMLongBenchError, TooFewKept
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import Bound
from mmlongbench.release.assets import ASSETS, has_assets
from mmlongbench.release.items import Item
from mmlongbench.release.layout import IMAGES, LOCK, TOMBSTONES
from mmlongbench.release.lock import Lock, LockedFile, is_release_path, leads_out, read_lock, versions
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.formats import to_json
from mmlongbench.task.rows import Record

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


# Before anything is made: what may be added


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
    if why := _why_not(before, now, plans, lock):
        raise BuildError(
            f"--out {out}: holds a finished release that differs ({joined(found)}); {why}; use another folder, or "
            "remove this one to build it again (--restart discards unfinished builds only)"
        )
    if not executor.has_all_files:
        raise BuildError(
            f"the finished release at this URL differs ({joined(found)}), and a release is extended only in a folder: "
            "copy it into one, extend it there, and upload it; or use another URL"
        )
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
    refuse_damage(lock.files, out)
    refuse_changed({name: file for name, file in lock.files.items() if not name.startswith(f"{IMAGES}/")}, out)
    return plans, f"the finished release was extended ({joined(found)}); its examples stay as they were"


def _why_not(before: Described, now: Described, plans: Sequence[DatasetPlan], lock: Lock) -> str:
    """Return why a release cannot be extended; empty if it can."""
    if any(before.versions.get(name) != version for name, version in now.versions.items()):
        return "other versions may change its examples"
    old = {str(data.get("name")): data for data in before.public}
    names = {plan.spec.name for plan in plans}
    if gone := next((name for name in old if name not in names), None):
        return f"dataset {gone!r} would be removed"
    for plan, new in zip(plans, now.public, strict=True):
        name = plan.spec.name
        if name in old and lock.counts(name) is None:
            return f"the lock has no readable counts of dataset {name!r}"
        if name in old and (why := _why_not_dataset(old[name], new, plan, before, now)):
            return f"dataset {name!r}: {why}"
    return ""


def _why_not_dataset(old: Public, new: Public, plan: DatasetPlan, before: Described, now: Described) -> str:
    if files := _changed_task_files(old, new):
        return f"restore {' and '.join(files)} to extend it"
    fixed = ({key: value for key, value in data.items() if key not in _MAY_DIFFER} for data in (old, new))
    if differences(*(Described([data]) for data in fixed)):
        return "only lengths, datasets and questions can be added to it"
    lengths = old["lengths"] if isinstance(old.get("lengths"), list) else [old.get("lengths")]
    for length in lengths:
        if length not in new["lengths"]:
            return f"the length {format_length(length) if isinstance(length, int) else length} would be removed"
    together = "its questions share contexts, so that further questions change the existing examples"
    is_shared = isinstance(plan.bound.builder, SharedContextBuilder)
    if old.get("sample") != new["sample"]:
        if is_shared:
            return together
        if not _is_larger(old.get("sample"), new["sample"]):
            return "another sample does not contain all questions of the release"
    changed = next(changed_sources(old, new, before.files, now.files), None)
    if changed is None:
        return ""
    there, here = old.get("source"), new["source"]
    if not isinstance(there, Mapping) or not isinstance(here, Mapping) or there.keys() != here.keys():
        return f"{changed}: only rows can be added to a source"
    if is_shared:
        return f"{changed}: {together}"
    return f"{changed}: the passages of existing examples may come from it" if plan.corpus else ""


def _changed_task_files(old: Public, new: Public) -> list[str]:
    """Return the names of the task files of a dataset whose code is not that of the release."""
    before, now = old.get("code"), new.get("code")
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return []
    changed = [code["name"] for kind, code in now.items() if not code["distribution"] and code != before.get(kind)]
    return list(dict.fromkeys(name.partition(":")[0] for name in changed))


def _is_larger(old: object, new: object) -> bool:
    """Return whether a sample contains another one: it has another number of questions, and it has more."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping) or {**old, "n": 0} != {**new, "n": 0}:
        return False
    before, now = old.get("n"), new.get("n")
    return isinstance(before, int) and (now is None or now > before)


# While it is made: whether the existing examples stay


def refuse_lost_questions(plans: Sequence[DatasetPlan], session: Session) -> None:
    """Refuse an extension, once its questions are chosen, if a question of the release is not chosen any more or stands
    in another order, or if the pages of documents may have changed.

    Raises:
        BuildError: the error names the dataset and the question, or the source.

    """
    for plan in plans:
        if session.released is None or session.released.kept(plan.spec.name) is None:
            continue
        places = {row.id: place for place, row in enumerate(session.questions(plan.spec.name))}
        for cell in _packed_again(plan, session):
            for ids in (cell.ids, tuple(cell.rejected)):
                if (lost := next((id for id in ids if id not in places), None)) is not None:
                    raise _refused(session, plan, f"question {lost!r} would no longer be in the release")
                if sorted(ids, key=places.__getitem__) != list(ids):
                    raise _refused(session, plan, "the order of its questions would change")
        _refuse_changed_pages(plan, session, session.released)


def _refuse_changed_pages(plan: DatasetPlan, session: Session, released: Released) -> None:
    """Refuse if a source that changed has documents: existing images of pages are kept, and no record shows whether a
    page has changed. Pictures are compared when they are made.
    """
    before = released.source_hashes(plan.spec.name)
    changed = [name for name, sha256 in plan.source_hashes.items() if sha256 != before.get(name)]
    if not changed or not plan.documents:
        return
    watched = _WatchedPaths(plan.sources)
    plan.bound.reader_type().documents(watched)
    is_extracted = bool(watched.read - plan.source_hashes.keys())  # may be of any source
    if found := [name for name in changed if is_extracted or name in watched.read]:
        said = _said(plan, released)
        raise _refused(session, plan, f"{said}; every context may show something from source.{found[0]}")


class _WatchedPaths(Mapping[str, Path]):
    """The paths of sources; remembers which of them were read."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Path:
        path = self._paths[name]
        self.read.add(name)
        return path

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def refuse_changed_examples(plans: Sequence[DatasetPlan], session: Session) -> None:
    """Refuse an extension, once its examples are packed, if an example of the release differs from the new one.

    Raises:
        BuildError: the error names the dataset and the question.

    """
    for plan in plans:
        for cell in _packed_again(plan, session):
            shards = session.record_shards(plan.spec.name, (cell.length,))
            lines = (line for shard in shards for line in session.build_dir.read(shard, RECORDS))
            known = {*cell.ids, *cell.rejected}
            packed = (
                (line.record, line.items)
                for line in lines
                if isinstance(line, PackedRecord) and str(line.record.get("id")) in known
            )
            for before, now in zip_longest(cell.examples(), packed):
                example = before or now
                if example and not (before and now and _in_one_form(*before) == _in_one_form(*now)):
                    said = f"question {str(example[0].get('id'))!r} changed"
                    if session.released and (source := _said(plan, session.released)):
                        said += f" ({source})"
                    more = "; most readers number rows without an id: put new ones at the end"
                    raise _refused(session, plan, said, more)


def _packed_again(plan: DatasetPlan, session: Session) -> Iterator[ReleasedCell]:
    """Yield what the release has at each length whose questions are packed again."""
    for length in plan.spec.lengths:
        cell = session.taken(plan.spec.name, length)
        if cell and not session.takes_whole(plan.spec.name, length):
            yield cell


def _in_one_form(record: Record, items: Sequence[Item]) -> bytes:
    return to_json([record, [sorted(({"inside": None} | item).items()) for item in items]])


def _said(plan: DatasetPlan, released: Released) -> str:
    """Return which sources of a dataset have changed; empty if none has."""
    now = of_plans([plan], {}).files
    return joined(list(changed_sources(released.dataset(plan.spec.name), plan.public(), {}, now)))


def _refused(session: Session, plan: DatasetPlan, why: str, more: str = "") -> BuildError:
    """Discard what an extension has made of the questions, since it cannot be continued, and return the error to raise.
    What was read of sources stays, such as the texts of scanned pages.
    """
    for name in session.plans:
        session.build_dir.discard_from("questions", name)
    return BuildError(
        f"dataset {plan.spec.name!r}: the finished release cannot be extended: {why}; nothing was changed; build into "
        f"another folder{more}"
    )


# When everything is made: the move


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
    out, inner = build_dir.out, build_dir.extension.out
    if not build_dir.is_moving:
        return
    if (inner / LOCK).is_file():
        files, before = (_files_in(read_lock(folder), out, inner) for folder in (inner, build_dir.before))
        for name in files:
            if (inner / name).is_file():
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (inner / name).replace(out / name)
        for name in before.keys() - files.keys():  # they have another name in the extended release
            (out / name).unlink(missing_ok=True)
            with suppress(OSError):  # the folder has other files
                (out / name).parent.rmdir()
        refuse_damage(files, out)
        (inner / LOCK).replace(out / LOCK)
    if not (out / LOCK).is_file():
        raise BuildError(
            f"--out {out}: the lock of the extended release is gone; move {build_dir.before / LOCK} back to {out}, and "
            f"remove {build_dir.root}"
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
