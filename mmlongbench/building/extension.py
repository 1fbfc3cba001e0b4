"""Extends a finished release: decides what may be added, and moves the new files to their places.

An extension is built beside the finished release, in `.build/extension` of its folder, like any other build: it can be
killed and continued. Images, and files whose examples cannot change, are taken from the finished release (`Released`);
what else has existing examples is packed again, and refused if one of them differs. Until everything is made, the
finished release is not touched. Then the old lock is set aside, the files are moved to their places, and the new lock
is moved last. So a folder with a lock always holds a whole release. A move that was killed is completed by the next
build in the folder, before it does anything else.
"""

import shutil
from collections import UserDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path

from mmlongbench.building.build_dir import WORKING, BuildDir
from mmlongbench.building.build_plan import DatasetPlan, load_interrupted_plan
from mmlongbench.building.differences import Described, Public, changed_sources, differences, joined, of_plans
from mmlongbench.building.executors import Executor
from mmlongbench.building.finished_release import Released, ReleasedCell, refuse_damage
from mmlongbench.building.out_folder import would_be_lost
from mmlongbench.building.planning import plan_datasets
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import RECORDS, PackedRecord
from mmlongbench.errors import BuildError, MMLongBenchError, TooFewKept
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import Bound
from mmlongbench.release.assets import ASSETS
from mmlongbench.release.items import Item
from mmlongbench.release.layout import LOCK, TOMBSTONES
from mmlongbench.release.lock import Lock, is_release_path, leads_out, read_lock, versions
from mmlongbench.release.rejects import Reject
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.file_formats import to_json
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
    datasets: Sequence[Bound], lock: Lock, inner: BuildDir, executor: Executor
) -> tuple[list[DatasetPlan], str]:
    """Return the plans of a release, and a note that says what is added to the finished one; the note is empty if the
    finished release is what the manifest asks for. A release that differs in another way, was cut or is damaged is a
    `BuildError`.
    """
    out = inner.extended or inner.out
    inner.root.mkdir(parents=True, exist_ok=True)
    plans = plan_datasets(datasets, inner, executor.progress)
    before, now = Described(lock.manifest, lock.versions), of_plans(plans, versions())
    changes = differences(before, now)
    if not changes:
        return plans, ""
    if why := _why_not(before, now, plans, lock):
        raise BuildError(
            f"--out {out}: holds a finished release that differs ({joined(changes)}); {why}; use another folder, or "
            "remove this one to build it again (--restart discards unfinished builds only)"
        )
    if not executor.has_all_files:
        raise BuildError(
            f"the finished release at this URL differs ({joined(changes)}), and a release is extended only in a "
            "folder: copy it into one, extend it there, and upload it; or use another URL"
        )
    if lock.cut:
        raise BuildError(
            f"--out {out}: the finished release was cut for models; extend the one that it was cut from, and cut that"
        )
    if (out / TOMBSTONES).is_file():
        raise BuildError(
            f"--out {out}: {TOMBSTONES} says that examples were taken out of the finished release; an extension would "
            "put them back: build into another folder, with `exclude` in the manifest"
        )
    if not (out / ASSETS).is_file():
        raise BuildError(
            f"--out {out}: the finished release has no table of assets ({ASSETS}), because an older version built it; "
            "it cannot be extended: use another folder, or remove this one to build it again"
        )
    refuse_damage(lock.files, out, is_hashed=True)
    return plans, f"the finished release was extended ({joined(changes)}); its examples stay as they were"


def _why_not(before: Described, now: Described, plans: Sequence[DatasetPlan], lock: Lock) -> str:
    if any(before.versions.get(name) != version for name, version in now.versions.items()):
        return "other versions may change its examples"
    old = {str(data.get("name")): data for data in before.public}
    if gone := next((name for name in old if name not in {plan.spec.name for plan in plans}), None):
        return f"dataset {gone!r} would be removed"
    for plan, new in zip(plans, now.public, strict=True):
        name = plan.spec.name
        if name in old and lock.counts(name) is None:
            return f"the lock has no readable counts of dataset {name!r}"
        if name in old and (why := _why_not_dataset(old[name], new, plan, now)):
            return f"dataset {name!r}: {why}"
    return ""


def _why_not_dataset(old: Public, new: Public, plan: DatasetPlan, described: Described) -> str:
    if isinstance(code := old.get("code"), Mapping):
        own = (
            each["name"] for kind, each in new["code"].items() if not each["distribution"] and each != code.get(kind)
        )
        if changed := list(dict.fromkeys(name.partition(":")[0] for name in own)):
            return f"restore {' and '.join(changed)} to extend it"
    if any(old.get(key) != new.get(key) for key in (old.keys() | new.keys()).difference(_MAY_DIFFER)):
        return "only lengths, datasets and questions can be added to it"
    for length in old["lengths"] if isinstance(old.get("lengths"), list) else [old.get("lengths")]:
        if length not in new["lengths"]:
            return f"the length {format_length(length) if isinstance(length, int) else length} would be removed"
    is_shared = isinstance(plan.bound.builder, SharedContextBuilder)
    together = "its questions share contexts, so that further questions change the existing examples"
    before, now = old.get("sample"), new["sample"]
    if before != now:
        if is_shared:
            return together
        is_larger = (
            isinstance(before, Mapping)
            and isinstance(before.get("n"), int)
            and {**before, "n": now["n"]} == now
            and (now["n"] is None or now["n"] > before["n"])
        )
        if not is_larger:
            return "another sample does not contain all questions of the release"
    change = next(changed_sources(old, new, now=described.files), "")
    there, here = old.get("source"), new["source"]
    if change and not (isinstance(there, Mapping) and isinstance(here, Mapping) and there.keys() == here.keys()):
        return f"{change}: only rows can be added to a source"
    if change and (is_shared or plan.corpus):
        return f"{change}: {together if is_shared else 'the passages of existing examples may come from it'}"
    return ""


# While it is made: whether the existing examples stay


class _ReadPaths(UserDict[str, Path]):
    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.read: set[str] = set()
        super().__init__(paths)

    def __getitem__(self, name: str) -> Path:
        self.read.add(name)
        return super().__getitem__(name)


def refuse_lost_questions(session: Session) -> None:
    """Refuse an extension, once its questions are chosen, if a question of the release is not chosen any more or stands
    in another order, or if the pages of documents may have changed. The `BuildError` names the dataset and the
    question, or the source.
    """
    for name, plan in session.plans.items():
        released = session.released
        if released is None or released.kept(name) is None:
            continue
        places = {row.id: place for place, row in enumerate(session.questions(name))}
        for cell in _packed_again(plan, session):
            for ids in (cell.ids, tuple(cell.rejects)):
                if (lost := next((id for id in ids if id not in places), None)) is not None:
                    raise _refused(session, plan, f"question {lost!r} would no longer be in the release")
                if sorted(ids, key=places.__getitem__) != list(ids):
                    raise _refused(session, plan, "the order of its questions would change")
        # Images of pages are kept, and no record shows whether a page has changed; pictures are compared when they are
        # made. So no source may change from which the reader finds documents. What is extracted may be of any source.
        before = released.source_hashes(name)
        changed = [source for source, sha256 in plan.source_hashes.items() if sha256 != before.get(source)]
        if changed and plan.documents:
            paths = _ReadPaths(plan.sources)
            plan.bound.reader_type().documents(paths)
            is_extracted = bool(paths.read - plan.source_hashes.keys())
            if risky := [source for source in changed if is_extracted or source in paths.read]:
                said = f"{_changes(plan, released)}; every context may show something from source.{risky[0]}"
                raise _refused(session, plan, said)


def refuse_changed_examples(session: Session) -> None:
    """Refuse an extension, once its examples are packed, if an example of the release differs from the new one; the
    `BuildError` names the dataset and the question.
    """

    def in_one_form(record: Record, items: Sequence[Item]) -> bytes:
        return to_json([record, [sorted(({"inside": None} | item).items()) for item in items]])

    for name, plan in session.plans.items():
        for cell in _packed_again(plan, session):
            shards = session.record_shards(name, (cell.length,))
            lines = (line for shard in shards for line in session.build_dir.read(shard, RECORDS))
            known = {*cell.ids, *cell.rejects}
            packed = (
                (line.record, line.item_rows)
                for line in lines
                if isinstance(line, PackedRecord) and line.items["id"] in known
            )
            for before, now in zip_longest(cell.examples(), packed):
                example = before or now
                if example and not (before and now and in_one_form(*before) == in_one_form(*now)):
                    id = str(example[0].get("id"))
                    rejects = (line for shard in shards for line in session.build_dir.read(shard, RECORDS))
                    if lost := next((line for line in rejects if isinstance(line, Reject) and line.id == id), None):
                        said = f"expected {lost.fault.expected}, found {lost.fault.found}"
                        raise _refused(session, plan, f"question {id!r} would be left out ({said})")
                    said = f"question {id!r} changed"
                    if session.released and (source := _changes(plan, session.released)):
                        said += f" ({source})"
                    more = "; most readers number rows without an id: put new ones at the end"
                    raise _refused(session, plan, said, more)


def _packed_again(plan: DatasetPlan, session: Session) -> Iterator[ReleasedCell]:
    for length in plan.spec.lengths:
        cell = session.taken(plan.spec.name, length)
        if cell and not session.takes_whole(plan.spec.name, length):
            yield cell


def _changes(plan: DatasetPlan, released: Released) -> str:
    now = of_plans([plan], {})
    return joined(list(changed_sources(released.dataset(plan.spec.name), now.public[0], now=now.files)))


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
    """Move the files of an extension to their places, if this was begun. The lock is moved last. Raises BuildError if a
    file of the extended release is missing, or a lock names a file outside the release.
    """
    out, inner = build_dir.out, build_dir.extension.out
    if not build_dir.is_moving:
        return
    if (inner / LOCK).is_file():
        files, before = (read_lock(folder).files for folder in (inner, build_dir.before))
        for name in (*files, *before):
            if not is_release_path(name) or leads_out(out, name) or leads_out(inner, name):
                raise BuildError(
                    f"--out {out}: the folder was changed: a lock in {WORKING} names {name!r:.120}, which leads out of "
                    f"the release; remove {out / WORKING}"
                )
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
