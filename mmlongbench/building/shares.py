"""Builds in parts: several machines share a folder, and each runs every n-th shard of a stage. The stages are run one
after the other; then `finish` completes the release.

mmlongbench build M --out R --stage prepare
mmlongbench build M --out R --stage records --shard 3/64      (each of 1/64 … 64/64, in any order, also at once)
mmlongbench build M --out R --stage images --shard 3/64
mmlongbench finish R
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmlongbench.building.build import NO_DEMANDS, Built, Demands, do_shards, do_stages, logged, rejects_of
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan, load_plan, portable, save_page_seconds
from mmlongbench.building.differences import Described, differences, joined
from mmlongbench.building.executors import Executor
from mmlongbench.building.finish import finish
from mmlongbench.building.out_folder import refuse_links, refuse_moving, resolved
from mmlongbench.building.planning import check_manifest, plan_build, with_kept_code
from mmlongbench.building.session import Session
from mmlongbench.building.shortfalls import shortfalls_of
from mmlongbench.building.stages.documents import needs_ocr
from mmlongbench.building.stages.table import PREPARED, STAGES, Stage, stage_named
from mmlongbench.errors import BuildError
from mmlongbench.io.files import file_lock
from mmlongbench.manifest.binding import bind
from mmlongbench.manifest.model import CounterSpec, DatasetSpec, Manifest
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFile, TaskFiles, task_files_of
from mmlongbench.release.layout import LOCK
from mmlongbench.release.lock import LockedCounter, versions


def run_stage(
    manifest: Manifest,
    out: Path,
    executor: Executor,
    stage: str,
    share: str | None = None,
    *,
    demands: Demands = NO_DEMANDS,
    is_restart: bool = False,
) -> tuple[int, tuple[str, ...]]:
    """Run one share of one stage (see `mmlongbench build --help`), or all stages up to the questions (`prepare`).
    Return how many shards the share has, and notes for the user.

    `share` is such as `3/64`, the third of 64 shares; None is the whole. Of `demands`, `min_kept` is for `prepare`
    only; questions that do not fit at a length are not counted there. `is_restart`: `prepare` discards an unfinished
    build.
    """
    number, slash, of = (share or "1/1").partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) < 10**6):
        raise BuildError(f"--shard {share!r}: expected N/OF, from 1/OF to OF/OF, such as 3/64")
    build_dir = BuildDir(resolved(out))
    if (build_dir.out / LOCK).is_file():
        raise BuildError(
            f"--out {out}: the release is finished, and --stage cannot change it; run the command without --stage to "
            "extend it, or use another folder"
        )
    if stage == "prepare":
        if int(of) != 1:
            raise BuildError("--stage prepare reads all rows at once; leave out --shard")
        with _locked(build_dir, is_alone=True):
            plans, notes = plan_build(check_manifest(manifest), build_dir, executor, is_restart=is_restart)
            with logged(build_dir.out), Session(build_dir.out, plans) as session:
                return do_stages(session, executor, demands, PREPARED), notes
    if is_restart or demands.min_kept:
        raise BuildError(f"--stage {stage}: --restart and --min-kept are options of --stage prepare")
    with _locked(build_dir, is_alone=False):
        _refuse_other_manifest(manifest, build_dir)
        save_page_seconds(build_dir, {spec.name: spec.limits.seconds_a_page for spec in manifest.datasets})
        asked = next((known for known in STAGES if known.name == stage), None)
        if asked is None:
            raise BuildError(f"there is no stage {stage!r}; the stages are {', '.join(known.name for known in STAGES)}")
        with Session(build_dir.out) as session:
            for name in session.plans:
                _refuse_undone(STAGES[: STAGES.index(asked)], name, session)
            shards = [shard for name in session.plans for shard in asked.shards(session, name)]
            chosen = shards[int(number) - 1 :: int(of)]
            with logged(build_dir.out), closing(executor):
                do_shards(asked, chosen, session, executor, f"{number}/{of}")
                if demands.is_strict:
                    for _ in rejects_of(asked, chosen, session, is_strict=True):
                        pass
        return len(chosen), ()


def finish_release(out: Path, executor: Executor, tasks: TaskFiles = NO_TASK_FILES) -> Built:
    """Run the cells stage of a release whose other stages are done, and write the lock last. `tasks` are the task files
    of the manifest, as the build was prepared with; a folder never makes code run by itself.
    """
    build_dir = BuildDir(resolved(out))
    with _locked(build_dir, is_alone=True):
        given = [TaskFile(path, "") for path in tasks.paths]
        with Session(build_dir.out) as session:
            _refuse_other_code(session.plans.values(), given, build_dir, "add --task {} to the command")
            cells = stage_named("cells")
            for name in session.plans:
                _refuse_undone(STAGES[: STAGES.index(cells)], name, session)
            with logged(build_dir.out):
                do_stages(session, executor, stages=[cells])
                lock = finish(session, executor)
        shutil.rmtree(build_dir.root)
    return Built(build_dir.out, lock, False, (), shortfalls_of(lock, build_dir.out))


def _refuse_undone(stages: Sequence[Stage], name: str, session: Session) -> None:
    for stage in stages:
        shards = stage.shards(session, name)
        missing = [shard for shard in shards if not session.build_dir.is_done(shard)]
        if missing:
            said = "prepare" if stage.is_prepared else stage.name
            raise BuildError(
                f"stage {said}: {len(missing)} of {len(shards)} shards of {name!r} are not done, first {missing[0]}; "
                f"run `mmlongbench build … --stage {said}`"
            )


def _refuse_other_manifest(manifest: Manifest, build_dir: BuildDir) -> None:
    """Refuse a manifest that differs from the one that the folder was prepared with, also in its code or in the
    versions of packages. The files of the sources are not read here: each shard checks those that it reads.
    """
    saved = load_plan(build_dir)
    plans = saved.plans
    given = [file for spec in manifest.datasets for file in task_files_of(spec.builder, spec.reader)]
    _refuse_other_code(plans.values(), given, build_dir, "give the manifest that names {}")
    known = (spec for spec in manifest.datasets if spec.name in plans)
    before = {str(public.get("name")): public for public in saved.public}
    now = {spec.name: _replanned(plans[spec.name], before[spec.name], spec, build_dir) for spec in known}
    public = [now.get(spec.name, {"name": spec.name}) for spec in manifest.datasets]
    if found := differences(Described(saved.public, saved.versions), Described(public, versions())):
        raise BuildError(
            f"--out {build_dir.out}: was prepared with a manifest that differs ({joined(found)}); give the manifest "
            "and settings that --stage prepare was given, or run --stage prepare with these in a new folder"
        )


def _replanned(saved: DatasetPlan, public: Mapping[str, Any], spec: DatasetSpec, build_dir: BuildDir) -> dict[str, Any]:
    """Return what `DatasetPlan.public` is for a dataset of a manifest if its sources are those of a saved plan, whose
    `public` is given. No file is read except task files, and neither OCR nor the model of a reranker has to be
    installed, so that any share of a build can compare its manifest with the saved plan.
    """
    bound = bind(with_kept_code(spec, build_dir))
    spec = bound.spec
    before = {each.name: each for each in saved.spec.count_as}
    plan = replace(
        saved,
        spec=spec,
        counter=_replanned_counter(spec.counter, saved.spec.counter, saved.counter),
        count_as={
            each.name: _replanned_counter(each, before.get(each.name, CounterSpec()), saved.count_as.get(each.name, {}))
            for each in spec.count_as
        },
        corpus=saved.corpus if (spec.corpus is None) == (saved.spec.corpus is None) else None,
        errata=(saved.errata or "given") if spec.errata else None,  # says only that there are some
        code=bound.code,
        ocr=saved.ocr if needs_ocr(bound) else None,
    )
    now = plan.public(ocr=str(public["pages"]["ocr"]) if saved.spec.pages.ocr is True else "true")
    reranker, former = spec.retrieval.reranker, saved.spec.retrieval.reranker
    if reranker and former and _is_same_file(reranker.model, former.model):
        now["retrieval"]["reranker"]["model"] = public["retrieval"]["reranker"]["model"]
    return now


def _replanned_counter(given: CounterSpec, before: CounterSpec, locked: LockedCounter) -> LockedCounter:
    counter = dict(locked)
    if not _is_same_file(given.text_name, before.text_name):
        counter["tokenizer"] = {"name": portable(given.text_name), "sha256": ""}
    if given.image != before.image:
        counter["image"] = given.model_dump(mode="json")["image"]
    if not _is_same_file(given.template or "", before.template or ""):
        counter["template"] = {"name": portable(given.template or ""), "sha256": ""}
    return counter


def _is_same_file(name: str, before: str) -> bool:
    """Return whether two names are equal, or are paths that may lead to the same file on two machines."""
    path, other = Path(name), Path(before)
    return path == other or (path.is_absolute() and other.is_absolute() and path.name == other.name)


def _refuse_other_code(
    plans: Iterable[DatasetPlan], given: Sequence[TaskFile], build_dir: BuildDir, remedy: str
) -> None:
    """Refuse to run task files that a folder holds, unless the user gives the same files.

    `remedy` says how to give a file; it has `{}` where the name of the file goes.
    """
    known = {(file.path.name, file.sha256) for file in given}
    for file in (file for plan in plans for file in task_files_of(plan.spec.builder, plan.spec.reader)):
        if (file.path.name, file.sha256) in known:
            continue
        name = file.path.name
        if any(name == other for other, _ in known):
            raise BuildError(
                f"--out {build_dir.out}: task code changed: {name}; restore the file, or run --stage prepare in a new "
                "folder"
            )
        raise BuildError(
            f"--out {build_dir.out}: this folder was prepared with the task file {name}; {remedy.format(name)}"
        )


@contextmanager
def _locked(build_dir: BuildDir, *, is_alone: bool) -> Iterator[None]:
    """Hold the lock of a folder: alone or, if `is_alone` is false, together with processes that run other shards."""
    if not is_alone and not build_dir.root.is_dir():
        raise BuildError(f"--out {build_dir.out}: nothing is prepared there; run --stage prepare first")
    refuse_links(build_dir)
    refuse_moving(build_dir)
    with file_lock(build_dir.root / "claims" / "build", f"the release {build_dir.out}", is_shared=not is_alone):
        yield
