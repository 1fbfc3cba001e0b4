"""Checks a manifest, finds its sources, and saves the plan, unless the folder holds a different build."""

import shutil
from contextlib import closing, suppress
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan, plan_datasets
from mmlongbench.building.differences import differences, joined, of_plans, of_saved
from mmlongbench.building.executors.executor import Executor
from mmlongbench.building.ocr_texts import check_ocr
from mmlongbench.building.out_folder import discard_made, has_expensive_results
from mmlongbench.building.saved_plan import load_interrupted_plan, save_plans
from mmlongbench.building.source_files import SourceFile, SourceFiles
from mmlongbench.errors import BuildError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import (
    bind_builder,
    check_plugins,
    check_reserve,
    missing_metrics,
    placements_of,
    refuse_secrets,
)
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.plugins import reader_type
from mmlongbench.release.lock import versions


def check_manifest(manifest: Manifest) -> None:
    """Refuse a manifest whose plug-ins, placements or reserves cannot work, before anything is written."""
    for spec in manifest.datasets:
        refuse_secrets(spec)
        builder = bind_builder(spec)
        reader_type(spec.reader)
        check_plugins(spec, builder)
        placements_of(spec, builder)
        check_reserve(spec, builder)
        check_ocr(spec)


def notes_on(manifest: Manifest) -> list[str]:
    """Return what a user must know about a manifest that can be built, one sentence each."""
    return [
        f"dataset {spec.name!r}: metric {name!r} of builder {spec.shown_builder!r} is not installed; the release can "
        "be built, but not scored by this metric"
        for spec in manifest.datasets
        for name in missing_metrics(bind_builder(spec))
    ]


def plan_build(
    manifest: Manifest,
    build_dir: BuildDir,
    executor: Executor,
    *,
    is_restart: bool = False,
    shared: Path | None = None,
) -> tuple[list[DatasetPlan], tuple[str, ...]]:
    """Find and fingerprint the sources, and save the plan. Return the plans, and notes for the user.

    If the folder has the plan of an unfinished build that differs, and that build has made nothing expensive
    (`has_expensive_results`), the build starts again; a note says what changed. `is_restart` discards the results of an
    unfinished build, whatever they are, but only after the new build is planned; so a manifest that cannot be built
    discards nothing. Samples, corpora and caches that the new build uses stay. `shared`: see `plan_datasets`.

    Raises:
        BuildError: the folder holds results of a build with another plan, and `is_restart` is false.

    """
    check_manifest(manifest)
    if not is_restart:
        load_interrupted_plan(build_dir)  # refuses a plan of another format before anything is changed
    plans = plan_anew(manifest, build_dir, executor.progress, is_restart=is_restart, shared=shared)
    return plans, saved_or_refused(plans, build_dir, executor, is_restart=is_restart)


def plan_anew(
    manifest: Manifest, build_dir: BuildDir, progress: Progress, *, is_restart: bool, shared: Path | None = None
) -> list[DatasetPlan]:
    """Find and fingerprint the sources. With `is_restart`, corpora of an unfinished build that were made from other
    articles are made again; if the new build cannot be planned, the old corpora stay. `shared`: see `plan_datasets`.
    """
    from mmlongbench.corpus.build import OtherCorpusError

    try:
        return plan_datasets(manifest, build_dir, progress, shared)
    except OtherCorpusError:
        if not is_restart:
            raise
    corpora = build_dir.corpora
    aside = corpora.with_name("corpus-before")
    shutil.rmtree(aside, ignore_errors=True)
    corpora.rename(aside)
    try:
        plans = plan_datasets(manifest, build_dir, progress, shared)
    except BaseException:
        shutil.rmtree(corpora, ignore_errors=True)
        aside.rename(corpora)
        raise
    shutil.rmtree(aside)
    return plans


def saved_or_refused(
    plans: list[DatasetPlan], build_dir: BuildDir, executor: Executor, *, is_restart: bool = False
) -> tuple[str, ...]:
    """Save the plans. If the folder has results of other plans, discard cheap ones, and return a note about that;
    refuse a folder with expensive ones, so that two builds are never mixed. `is_restart` discards all results.

    Raises:
        BuildError: the folder holds an unfinished build that differs, or one whose plan is lost; the error says what
            differs.

    """
    if is_restart:
        _start_again(plans, build_dir, executor)
        return ()
    before = load_interrupted_plan(build_dir)
    if before is None:
        if has_expensive_results(build_dir, {plan.spec.name: plan for plan in plans}):
            state = "is damaged" if build_dir.plan.is_file() else "is gone"
            raise BuildError(
                f"--out {build_dir.out}: holds an unfinished build whose plan {state} ({build_dir.plan}), so that its "
                "results cannot be continued; put the plan back, use another folder, or --restart to discard them"
            )
        build_dir.discard_all()
        if build_dir.plan.is_file():  # the plan is damaged; its build may have made files
            discard_made(build_dir.out)
        save_plans(plans, build_dir)
        return ()
    files: list[SourceFile] = []
    with suppress(BuildError), closing(SourceFiles(build_dir)) as saved:  # without it, only the manifests are compared
        files = saved.all()
    found = differences(of_saved(before, files), of_plans(plans, versions()))
    if not found:
        save_plans(plans, build_dir)  # the sources may have been moved
        return ()
    if has_expensive_results(build_dir, before.plans):
        raise BuildError(
            f"--out {build_dir.out}: already holds an unfinished build that differs ({joined(found)}); use another "
            "folder, or --restart to discard the unfinished build"
        )
    _start_again(plans, build_dir, executor)
    return (f"the unfinished build in this folder was started again, because it differed ({joined(found)})",)


def _start_again(plans: list[DatasetPlan], build_dir: BuildDir, executor: Executor) -> None:
    """Discard the results of an unfinished build, here and elsewhere, and save the new plans."""
    build_dir.discard_all()
    discard_made(build_dir.out)
    executor.discard_elsewhere(build_dir)
    save_plans(plans, build_dir)
