"""Builds whose stages are done, for measurements of one stage."""

from pathlib import Path

from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.planning import check_manifest, plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import PREPARED
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest


def run_stages(manifest: Manifest, out: Path) -> Session:
    """Do every stage of all datasets in this process; the session is to be closed."""
    plans, session, executor = _planned(manifest, out)
    do_stages(plans, session, executor)
    return session


def chosen(manifest: Manifest, out: Path) -> Session:
    """Read the documents and choose the questions of all datasets in this process; the session is to be closed."""
    plans, session, executor = _planned(manifest, out)
    do_stages(plans, session, executor, stages=PREPARED)
    return session


def _planned(manifest: Manifest, out: Path) -> tuple[list[DatasetPlan], Session, LocalExecutor]:
    """Save the plan of a build, of which no stage is done."""
    build_dir, executor = BuildDir(out), LocalExecutor(1, Progress(is_shown=False))
    build_dir.root.mkdir(parents=True, exist_ok=True)
    return plan_build(check_manifest(manifest), build_dir, executor)[0], Session(out), executor
