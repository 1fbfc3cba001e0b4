"""Runs a build: saves the plan, runs the shards of each stage, and finishes the release. A killed build can be
continued.
"""

import shutil
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import DatasetPlan, load_interrupted_plan, plan_datasets, save_plans
from mmlongbench.building.differences import Described, differences, joined, of_plans, of_saved
from mmlongbench.building.executors.base import Executor
from mmlongbench.building.finish import finish
from mmlongbench.building.lines import Reject
from mmlongbench.building.made import refuse_damage
from mmlongbench.building.out_folder import discard_made, discard_work, has_expensive_results, locked
from mmlongbench.building.rejects import sentence
from mmlongbench.building.run_log import logged
from mmlongbench.building.running import do_shards
from mmlongbench.building.session import Session
from mmlongbench.building.shortfalls import Shortfall, refuse_losses, refuse_losses_of, shortfalls_of
from mmlongbench.building.source_files import SourceFile, SourceFiles
from mmlongbench.building.stages.table import STAGES, Stage
from mmlongbench.errors import BuildError, StrictStop
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.registry import reader_type
from mmlongbench.manifest.resolve import bind_builder, check_plugins, check_reserve, missing_metrics, placements_of
from mmlongbench.release.layout import LOCK
from mmlongbench.release.lock import Lock, read_lock, versions


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build."""

    out: Path | str
    """The folder or the URL of the release."""
    lock: Lock
    """The contents of the release: files, counts, versions."""
    was_complete: bool
    """Whether nothing was built, because the folder already had the release of the same manifest and sources."""
    notes: tuple[str, ...] = ()
    """What a user must know about the manifest or the build, one sentence each."""
    shortfalls: tuple[Shortfall, ...] = ()
    """The datasets that lost many of their questions, with the reasons."""


@dataclass(frozen=True, slots=True)
class Demands:
    """When a build stops because of rejected rows."""

    is_strict: bool = False
    """Whether it stops at the first reject."""
    min_kept: float = 0.0
    """The smallest share of its questions that each dataset must keep, from 0 to 1."""


NO_DEMANDS = Demands()


def build(
    manifest: Manifest, out: Path, executor: Executor, demands: Demands = NO_DEMANDS, *, is_restart: bool = False
) -> Built:
    """Build a release, or finish one that was interrupted.

    `is_restart` discards an unfinished build first; a finished release is never discarded.

    Raises:
        ManifestError: the manifest names something that does not exist.
        BuildError: the folder cannot be used.
        StrictStop: something was rejected, and `demands` is strict.
        TooFewKept: a dataset kept fewer questions than `demands` asks for; the release is not finished.

    """
    check_manifest(manifest)
    with locked(out) as build_dir:
        if (build_dir.out / LOCK).is_file():
            return _complete(manifest, build_dir, executor, demands)
        plans, notes = plan_build(manifest, build_dir, executor, is_restart=is_restart)
        with logged(build_dir.out), Session(build_dir.out) as session:
            do_stages(plans, session, executor, demands)
            lock = finish(plans, session, executor)
        shutil.rmtree(build_dir.root)
    return Built(build_dir.out, lock, False, notes, shortfalls_of(lock, build_dir.out))


def _complete(manifest: Manifest, build_dir: BuildDir, executor: Executor, demands: Demands) -> Built:
    """Return a finished release without changing it; refuse one that differs, or is damaged."""
    try:
        lock = read_lock(build_dir.out)
        plans = plan_datasets(manifest, build_dir, executor.progress)
        if found := differences(Described(lock.manifest, lock.versions), of_plans(plans, versions())):
            raise BuildError(
                f"--out {build_dir.out}: holds a finished release that differs ({joined(found)}); use another folder, "
                "or remove this one to build it again (--restart discards unfinished builds only)"
            )
        refuse_damage(lock.files, build_dir.out)
        refuse_losses_of(lock, build_dir.out, demands.min_kept)
    finally:
        shutil.rmtree(build_dir.root)
    return Built(build_dir.out, lock, was_complete=True, shortfalls=shortfalls_of(lock, build_dir.out))


def check_manifest(manifest: Manifest) -> None:
    """Refuse a manifest whose plug-ins, placements or reserves cannot work, before anything is written."""
    for spec in manifest.datasets:
        refuse_secrets(spec)
        builder = bind_builder(spec)
        reader_type(spec.reader)
        check_plugins(spec, builder)
        placements_of(spec, builder)
        check_reserve(spec, builder)


def notes_on(manifest: Manifest) -> list[str]:
    """Return what a user must know about a manifest that can be built, one sentence each."""
    return [
        f"dataset {spec.name!r}: metric {name!r} of builder {spec.builder!r} is not installed; the release can be "
        "built, but not scored by this metric"
        for spec in manifest.datasets
        for name in missing_metrics(bind_builder(spec))
    ]


def plan_build(
    manifest: Manifest, build_dir: BuildDir, executor: Executor, *, is_restart: bool = False
) -> tuple[list[DatasetPlan], tuple[str, ...]]:
    """Find and fingerprint the sources, and save the plan. Return the plans, and notes for the user.

    If the folder has the plan of an unfinished build that differs, and that build has made nothing expensive
    (`has_expensive_results`), the build starts again; a note says what changed.

    Raises:
        BuildError: the folder holds results of a build with another plan, and `is_restart` is false.

    """
    check_manifest(manifest)
    if is_restart:
        _discard(build_dir, executor)
    load_interrupted_plan(build_dir)  # refuses a plan of another format before anything is changed
    plans = plan_datasets(manifest, build_dir, executor.progress)
    note = _go_on(plans, build_dir, executor)
    save_plans(plans, build_dir)  # if the plan is the same, the sources may have been moved
    return plans, (note,) if note else ()


def _discard(build_dir: BuildDir, executor: Executor) -> None:
    discard_work(build_dir)
    discard_made(build_dir.out)
    executor.discard_elsewhere(build_dir)


def _go_on(plans: list[DatasetPlan], build_dir: BuildDir, executor: Executor) -> str:
    """Make sure that the results in a folder belong to these plans, so that two builds are never mixed: discard cheap
    results of another plan, and return a note about that; refuse a folder with expensive ones.

    Raises:
        BuildError: the folder holds an unfinished build that differs; the error says what differs.

    """
    before = load_interrupted_plan(build_dir)
    if before is None:
        build_dir.discard_all()
        if build_dir.plan.is_file():  # the plan is damaged; its build may have made files
            discard_made(build_dir.out)
        return ""
    files: list[SourceFile] = []
    with suppress(BuildError), closing(SourceFiles(build_dir)) as saved:  # without it, only the manifests are compared
        files = saved.all()
    if not (found := differences(of_saved(before, files), of_plans(plans, versions()))):
        return ""
    if has_expensive_results(build_dir, before.plans):
        raise BuildError(
            f"--out {build_dir.out}: already holds an unfinished build that differs ({joined(found)}); use another "
            "folder, or --restart to discard the unfinished build"
        )
    build_dir.discard_all()
    discard_made(build_dir.out)
    executor.discard_elsewhere(build_dir)
    return f"the unfinished build in this folder was started again, because it differed ({joined(found)})"


def do_stages(plans: list[DatasetPlan], session: Session, executor: Executor, demands: Demands = NO_DEMANDS) -> None:
    """Run every stage for all datasets, one stage after the other."""
    with closing(executor):
        for stage in STAGES:
            shards = [shard for plan in plans for shard in stage.shards(session, plan.spec.name)]
            do_shards(stage, shards, session, executor)
            if demands.is_strict and stage.name in ("questions", "records"):
                _refuse_rejects(stage, shards, session.build_dir)
            if stage.name == "questions":
                names = [plan.spec.name for plan in plans]
                refuse_losses(names, session.build_dir, demands.min_kept, is_here=executor.has_all_files)


def _refuse_rejects(stage: Stage, shards: list[Shard], build_dir: BuildDir) -> None:
    for line in (line for shard in shards for line in build_dir.read(shard, stage.lines)):
        if isinstance(line, Reject) and not line.fault.is_expected:
            raise StrictStop(f"--strict: {sentence(line)}")
