"""Builds whose rows are read and whose questions are chosen."""

from pathlib import Path

from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.planning import check_manifest, plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import PREPARED
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest


def prepared(manifest: Manifest, out: Path) -> Session:
    """Read the sources and choose the questions of all datasets in this process; the session is to be closed."""
    build_dir, executor = BuildDir(out), LocalExecutor(1, Progress(is_shown=False))
    build_dir.root.mkdir(parents=True, exist_ok=True)
    plans, _ = plan_build(check_manifest(manifest), build_dir, executor)
    session = Session(out, plans)
    do_stages(session, executor, stages=PREPARED)
    return session
