"""The Ray executor: the same shards, spread over the nodes of a cluster that all see the release's folder.

Needs the extra `ray`. A worker outlives a build, so each call says which build it is of, and what a worker knows of
another is forgotten.
"""

import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.executors.base import Done, Executor
from mmlongbench.building.remote import Remote, outputs
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import run_shard
from mmlongbench.errors import BuildError
from mmlongbench.io.atomic import sha256_of
from mmlongbench.io.progress import Progress


@dataclass(slots=True)
class RayExecutor(Executor):
    """Tasks of one CPU each; a shard whose worker dies is done once more."""

    progress: Progress
    address: str | None = None
    """Of a cluster (`auto`: the one of this machine); None starts one on this machine alone."""
    remote: Remote | None = None
    """Where the release is to stand, if the nodes see no common folder."""
    nodes: Counter[str] = field(default_factory=Counter)
    """How many shards each node has done."""
    _rounds: int = field(default=0, init=False)
    _connection: ExitStack = field(default_factory=ExitStack, init=False)

    @property
    def has_all_files(self) -> bool:
        """Where the nodes share the folder."""
        return self.remote is None

    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Do all shards, each told as it ends; or raise the first error."""
        if not shards:
            return
        ray = _ray()
        self._connection.enter_context(_connected(self.address))
        out, plan = session.build_dir.out, session.build_dir.plan
        build = sha256_of(plan) if plan.is_file() else ""
        task = ray.remote(num_cpus=1, max_retries=1, scheduling_strategy="SPREAD")(_run)
        self._rounds += 1
        known = f"{build} {self._rounds}"
        waiting = {task.remote(out, shard, known, self.remote): shard for shard in shards}
        try:
            while waiting:
                done = _first_done(ray, list(waiting))
                shard = waiting.pop(done)
                node, seconds = _result(ray, done, shard)
                self.nodes[node] += 1
                yield shard, seconds
        finally:
            for left in waiting:
                ray.cancel(left, force=True)

    def close(self) -> None:
        """End the connection, if it was made here."""
        self._connection.close()


@dataclass(slots=True)
class _Worker:
    """What a worker holds: the session of one build, which a build of another plan replaces."""

    known: str = ""
    """The build, and the round of it, that this worker knows of."""
    session: Session | None = None

    def opened(self, out: Path, known: str, remote: Remote | None) -> Session:
        """Return the session of a build, with what was done before this round."""
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
    """Do a shard on a node: (which, seconds)."""
    import ray

    node = str(ray.get_runtime_context().get_node_id())
    here = Path(tempfile.gettempdir()) / f"mmlongbench-{node}-{known.split()[0]}" if remote else out
    seconds = run_shard(_worker.opened(here, known, remote), shard)
    if remote:
        remote.push(here, outputs(BuildDir(here), shard))
    return node, seconds


def _first_done(ray: Any, waiting: list[Any]) -> Any:  # noqa: ANN401
    try:
        (done,), _ = ray.wait(waiting, num_returns=1)
    except ray.exceptions.RayError as error:
        raise BuildError(f"--engine ray: the cluster cannot be asked ({_said(error)}); run again to go on") from error
    return done


def _said(error: Exception) -> str:
    """Return the first line of what an error says, or its kind where it says nothing."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _result(ray: Any, done: Any, shard: Shard) -> tuple[str, float]:  # noqa: ANN401  (Ray has no types of its own here)
    try:
        node, seconds = ray.get(done)
        return str(node), float(seconds)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        why = f"its process died twice, perhaps for want of memory ({_said(error)}); run again to go on"
        raise BuildError(f"{shard}: {why}") from error


def _ray() -> Any:  # noqa: ANN401
    try:
        import ray
    except ImportError as error:
        raise BuildError('--engine ray: Ray is not installed: pip install "mmlongbench[ray]"') from error
    return ray


@contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """Connected to the cluster; a connection that was there stays."""
    ray = _ray()
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = "--engine ray" if address is None else f"--ray-address {address}"
        raise BuildError(f"{where}: Ray does not start: {_said(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()
