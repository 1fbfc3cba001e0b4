"""Runs shards with Ray on the nodes of a cluster. The nodes share the folder of the release, or use its URL.

Needs the extra `ray`. A Ray worker lives longer than a build. So each call says which build it belongs to, and a worker
closes the session of an earlier build.
"""

import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.executors import Done, Executor
from mmlongbench.building.remote_release import Remote, outputs
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import run_shard
from mmlongbench.errors import BuildError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress

WAITING, PAUSE = 2000, 0.1
"""How many shards Ray is given at once, and the seconds after which it is asked which are done. `ray.wait` looks at all
tasks that it is given, so asking about all shards after each one would take quadratic time."""


@dataclass(slots=True)
class RayExecutor(Executor):
    """Runs shards as tasks of one CPU each; a shard whose worker dies is run once more."""

    progress: Progress
    address: str | None = None
    """The address of a running cluster; `auto` finds the one on this machine. None starts a new cluster, which has only
    this machine."""
    remote: Remote | None = None
    """The URL of the release, if the nodes share no folder."""
    nodes: Counter[str] = field(default_factory=Counter)
    _rounds: int = field(default=0, init=False)
    _connection: ExitStack = field(default_factory=ExitStack, init=False)

    @property
    def has_all_files(self) -> bool:
        """Whether the nodes share the folder."""
        return self.remote is None

    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Run all shards, and yield (shard, seconds) whenever a shard is done; raise the first error."""
        if not shards:
            return
        try:
            ray = import_module("ray")  # it has no types
        except ImportError as error:
            raise BuildError('--engine ray: Ray is not installed: pip install "mmlongbench[ray]"') from error
        self._connect(ray)
        out, plan = session.build_dir.out, session.build_dir.plan
        self._rounds += 1
        known = f"{sha256_of(plan) if plan.is_file() else ''} {self._rounds}"
        task = ray.remote(num_cpus=1, max_retries=1, scheduling_strategy="SPREAD")(_run)
        left, waiting = iter(shards), dict[object, Shard]()
        try:
            while True:
                waiting |= {task.remote(out, s, known, self.remote): s for s in islice(left, WAITING - len(waiting))}
                if not waiting:
                    return
                try:
                    ended, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=PAUSE)
                except ray.exceptions.RayError as error:
                    raise BuildError(
                        f"--engine ray: the cluster does not answer ({_first_line(error)}); run the command again to "
                        "continue"
                    ) from error
                for done in ended:
                    shard = waiting.pop(done)
                    try:
                        node, seconds = ray.get(done)
                    except ray.exceptions.RayTaskError as error:
                        raise error.cause from None
                    except ray.exceptions.RayError as error:
                        why = f"its process died twice, perhaps out of memory ({_first_line(error)})"
                        raise BuildError(f"{shard}: {why}; run the command again to continue") from error
                    self.nodes[node] += 1
                    yield shard, seconds
        finally:
            for running in waiting:
                ray.cancel(running, force=True)

    def _connect(self, ray: ModuleType) -> None:
        """Connect to the cluster until `close`; a connection that was open before stays open."""
        if ray.is_initialized():
            return
        try:
            ray.init(
                address=self.address, include_dashboard=False if self.address is None else None, log_to_driver=False
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = "--engine ray" if self.address is None else f"--ray-address {self.address}"
            raise BuildError(f"{where}: Ray cannot be started: {_first_line(error)}") from error
        self._connection.callback(ray.shutdown)

    def close(self) -> None:
        """Close the connection if this executor opened it."""
        self._connection.close()


# What follows runs in a worker of Ray.


class _Worker:
    """The build that this worker has last worked for; it is replaced when the worker gets another build."""

    known = ""
    """The SHA-256 of the plan, and the number of the call of `RayExecutor.run`."""
    session: Session | None = None


def _run(out: Path, shard: Shard, known: str, remote: Remote | None) -> tuple[str, float]:
    """Run a shard on a node, and return (node, seconds); `known` is what `_Worker.known` becomes.

    If the release has a URL, first download the results that are new since the last call of `RayExecutor.run`.
    """
    import ray

    node, plan = str(ray.get_runtime_context().get_node_id()), known.split()[0]
    here = Path(tempfile.gettempdir()) / f"mmlongbench-{node}-{plan}" if remote else out
    if remote and _Worker.known != known:
        remote.pull(here, BuildDir(here).root.name)
    if _Worker.session is None or _Worker.known.split()[:1] != [plan]:
        if _Worker.session is not None:
            _Worker.session.close()
        _Worker.session = Session(here)
    _Worker.known = known
    seconds = run_shard(_Worker.session, shard)
    if remote:
        remote.push(here, outputs(BuildDir(here), shard))
    return node, seconds


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
