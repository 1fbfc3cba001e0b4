"""Runs shards with Ray on the nodes of a cluster. The nodes share the folder of the release, or use its URL.

Needs the extra `ray`. A Ray worker lives longer than a build. So each call says which build it belongs to, and a worker
closes the session of an earlier build.
"""

import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.executors.executor import Done, Executor
from mmlongbench.building.remote_release import Remote, outputs
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import run_shard
from mmlongbench.errors import BuildError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress


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
    """How many shards each node has run."""
    _rounds: int = field(default=0, init=False)
    _connection: ExitStack = field(default_factory=ExitStack, init=False)

    @property
    def has_all_files(self) -> bool:
        """Return whether the nodes share the folder."""
        return self.remote is None

    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Run all shards, and yield (shard, seconds) whenever a shard is done; raise the first error."""
        if not shards:
            return
        ray = _imported()
        self._connection.enter_context(_connected(self.address))
        out, plan = session.build_dir.out, session.build_dir.plan
        build = sha256_of(plan) if plan.is_file() else ""
        task = ray.remote(num_cpus=1, max_retries=1, scheduling_strategy="SPREAD")(_run)
        self._rounds += 1
        known = f"{build} {self._rounds}"
        waiting = {task.remote(out, shard, known, self.remote): shard for shard in shards}
        try:
            while waiting:
                try:
                    (done,), _ = ray.wait(list(waiting), num_returns=1)
                except ray.exceptions.RayError as error:
                    raise BuildError(
                        f"--engine ray: the cluster does not answer ({_first_line(error)}); run the command again to "
                        "continue"
                    ) from error
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
            for left in waiting:
                ray.cancel(left, force=True)

    def close(self) -> None:
        """Close the connection if this executor opened it."""
        self._connection.close()


@dataclass(slots=True)
class _Worker:
    """The state of a Ray worker: the session of one build, which is replaced when the worker gets another build."""

    known: str = ""
    """The hash of the build's plan and the number of the call of `RayExecutor.run` for which the session was last
    used."""
    session: Session | None = None

    def opened(self, out: Path, known: str, remote: Remote | None) -> Session:
        """Return the session of a build. If the release has a URL, first download the results that are new since the
        last call of `RayExecutor.run`.
        """
        if remote and self.known != known:
            remote.pull(out, BuildDir(out).root.name)
        if self.session is None or self.known.split()[:1] != known.split()[:1]:
            if self.session is not None:
                self.session.close()
            self.session = Session(out)
        self.known = known
        return self.session


_worker = _Worker()


def _run(out: Path, shard: Shard, known: str, remote: Remote | None) -> tuple[str, float]:
    """Run a shard on a node, and return (node, seconds)."""
    import ray

    node = str(ray.get_runtime_context().get_node_id())
    here = Path(tempfile.gettempdir()) / f"mmlongbench-{node}-{known.split()[0]}" if remote else out
    seconds = run_shard(_worker.opened(here, known, remote), shard)
    if remote:
        remote.push(here, outputs(BuildDir(here), shard))
    return node, seconds


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its type if the message is empty."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _imported() -> ModuleType:
    """Return Ray, which has no types."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise BuildError('--engine ray: Ray is not installed: pip install "mmlongbench[ray]"') from error


@contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """Connect to the cluster for the block; a connection that was open before stays open."""
    ray = _imported()
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = "--engine ray" if address is None else f"--ray-address {address}"
        raise BuildError(f"{where}: Ray cannot be started: {_first_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()
