"""Two workers against one, or with `--ray 2` two Ray nodes of one CPU each: seconds of whole builds of the same bytes.

Warm: sources are drawn, corpora indexed, rankings and prices kept, pages in the page cache, Ray's workers started; each
way has done a small build before. The ways take turns, first the one, then the other; medians are shown. The column
`cores` says how much of the machine they had, this process and its workers: on an idle machine 1 and 2.
"""

import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from worlds import draw_reports, draw_visual_questions, spread

from mmlongbench.building.build import build
from mmlongbench.building.executors import Executor, LocalExecutor
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.loading import narrowed
from mmlongbench.manifest.model import Manifest

QUIET = Progress(is_shown=False)
WORKERS, NODES = 1.6, 1.4
"""Targets: least ratios of two workers, and of two Ray nodes, to one worker."""
LEAST = 60
"""Seconds that one worker should need; in shorter builds the constant part would dominate."""


@dataclass(frozen=True, slots=True)
class Run:
    """One build."""

    seconds: float
    cores: float
    """CPU time of this process and its children, divided by the time; processes of Ray are not counted."""
    files: dict[str, str]
    """SHA-256 of the released files."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", default="", help="Builds whose names begin so.")
@click.option("--copies", default=14, show_default=True, help="Times that twelve reports are drawn anew.")
@click.option("--questions", default=400, show_default=True, help="About pictures.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--ray", "count", default=0, help="So many Ray nodes in place of two workers, such as 2.")
def main(only: str, copies: int, questions: int, rounds: int, count: int) -> None:
    """Print seconds of both ways, their ratio, and whether the bytes are the same."""
    worlds: dict[str, Callable[[Path], Mapping[str, Any]]] = {
        "docvqa": lambda root: draw_reports(root, copies),
        "vrag": lambda root: draw_visual_questions(root, questions),
    }
    with _nodes(count) if count else _two_workers() as (name, two, target):
        for builder in (each for each in worlds if each.startswith(only)):
            with tempfile.TemporaryDirectory() as folder:
                manifest = Manifest.model_validate({"datasets": [worlds[builder](Path(folder))]})
                ways = {"1 worker": _one_worker, name: two}
                for way in ways.values():
                    _run(narrowed(manifest, None, 2), Path(folder) / "release", way())
                if builder == "vrag":  # so that rankings and prices are kept
                    _run(manifest, Path(folder) / "release", two())
                done = [_round(manifest, Path(folder) / "release", ways, turn) for turn in range(rounds)]
            _show(builder, name, target, done)


def _one_worker() -> Executor:
    return LocalExecutor(1, QUIET)


@contextmanager
def _two_workers() -> Iterator[tuple[str, Callable[[], Executor], float]]:
    yield "2 workers", lambda: LocalExecutor(2, QUIET), WORKERS


@contextmanager
def _nodes(count: int) -> Iterator[tuple[str, Callable[[], Executor], float]]:
    """A Ray cluster of nodes of one CPU each on this machine."""
    import ray
    from ray.cluster_utils import Cluster

    from mmlongbench.building.ray_executor import RayExecutor

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 1024 * 1024}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    for _ in range(count - 1):
        cluster.add_node(num_cpus=1, object_store_memory=80 * 1024 * 1024)
    ray.init(
        address=cluster.address, log_to_driver=False, logging_level="ERROR"
    )  # kept for all builds: a new driver would start new workers
    try:
        yield f"{count} Ray nodes", lambda: RayExecutor(QUIET, cluster.address), NODES
    finally:
        ray.shutdown()
        cluster.shutdown()


def _round(manifest: Manifest, out: Path, ways: dict[str, Callable[[], Executor]], turn: int) -> dict[str, Run]:
    """One build each way; which one goes first changes from round to round."""
    order = list(ways) if turn % 2 == 0 else list(reversed(ways))
    return {name: _run(manifest, out, ways[name]()) for name in order}


def _run(manifest: Manifest, out: Path, executor: Executor) -> Run:
    cpu, begun = _cpu(), time.perf_counter()
    build(manifest, out, executor)
    executor.close()  # otherwise the time of its processes would not be counted
    seconds = time.perf_counter() - begun
    cores = (_cpu() - cpu) / seconds
    files = {path.relative_to(out).as_posix(): sha256_of(path) for path in out.rglob("*") if path.is_file()}
    shutil.rmtree(out)
    return Run(seconds, cores, files)


def _cpu() -> float:
    """CPU seconds of this process and those it started that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _show(builder: str, two: str, target: float, rounds: list[dict[str, Run]]) -> None:
    first = rounds[0]["1 worker"]
    print(f"{builder}: {len(first.files)} files, {len(rounds)} rounds: medians")
    for name in ("1 worker", two):
        runs = [each[name] for each in rounds]
        seconds, cores = (statistics.median(column) for column in ([r.seconds for r in runs], [r.cores for r in runs]))
        small = "" if seconds >= LEAST or name == two else f"   less than {LEAST} s: draw more"
        print(f"  {name:12}{seconds:8.1f} s   cores {cores:.2f}{small}")
    ratio = spread([each["1 worker"].seconds / each[two].seconds for each in rounds])
    is_same = all(run.files == first.files for each in rounds for run in each.values())
    print(f"  ratio {ratio}, target >= {target}; bytes {'the same' if is_same else 'DIFFER'}")


if __name__ == "__main__":
    main()
