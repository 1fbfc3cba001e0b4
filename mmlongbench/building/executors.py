"""Executors run shards: in processes on this machine (`LocalExecutor`), or elsewhere. The result of a shard depends
neither on the number of processes nor on the order of the shards.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import run_shard
from mmlongbench.errors import BuildError
from mmlongbench.io.pool import Processes, WorkerDiedError
from mmlongbench.io.progress import Progress

Done: TypeAlias = tuple[Shard, float]
"""A finished shard, and the seconds that it took."""
PATIENCE = 1.0
"""Seconds that a build runs in one process before more processes start, if the user did not set the number of
workers."""


class Executor(ABC):
    """Runs shards in processes."""

    progress: Progress

    @property
    def has_all_files(self) -> bool:
        """Whether the folder of the release on this machine has all files, not only those that this machine made."""
        return True

    @abstractmethod
    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Run all shards, and yield (shard, seconds) whenever a shard is done; raise the first error."""

    @abstractmethod
    def close(self) -> None:
        """End the processes that this executor started; a later `run` starts them again."""

    def discard_elsewhere(self, build_dir: BuildDir) -> None:  # noqa: B027  (most executors have nothing elsewhere)
        """Discard copies of an unfinished build that are not in its folder; the folder itself is discarded already."""


@dataclass(slots=True)
class LocalExecutor(Executor):
    """Processes on this machine, started once for all stages of a build; `close` ends them before another build. With
    one worker, the shards run in the current process.
    """

    workers: int
    progress: Progress
    patience: float = 0.0
    """Seconds of work in the current process before other processes start. A small build is done before they would be
    ready."""
    _processes: Processes | None = field(default=None, init=False)

    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Run all shards, and yield (shard, seconds) whenever a shard is done; raise the first error."""
        left, build_dir = deque(shards), session.build_dir
        while left and (self.workers == 1 or len(shards) < 2 or self.patience > 0):
            shard = left.popleft()
            begun = time.perf_counter()
            yield shard, run_shard(session, shard)
            self.patience -= time.perf_counter() - begun
        if not left:
            return
        rest = list(left)
        self._processes = self._processes or Processes(self.workers, _open_session, build_dir.out)
        try:
            yield from _each_done(self._processes, rest)
        except WorkerDiedError:
            yield from _once_more(build_dir, [shard for shard in rest if not build_dir.is_done(shard)])

    def close(self) -> None:
        """End the processes."""
        if self._processes:
            self._processes.close()
        self._processes = None


def _once_more(build_dir: BuildDir, left: Sequence[Shard]) -> Generator[Done, None, None]:
    """Run the remaining shards in one process after a worker died. This process can use all memory and, if it dies too,
    the error can name its shard.
    """
    logging.getLogger(__name__).info("a worker process died; the remaining %d shards run in one process", len(left))
    try:
        with closing(Processes(1, _open_session, build_dir.out)) as alone:
            yield from _each_done(alone, left)
    except WorkerDiedError as error:
        shard = next(shard for shard in left if not build_dir.is_done(shard))
        raise BuildError(
            f"{shard}: the process died at this shard again when it ran alone; it was killed by a user or by the "
            "system, perhaps because memory ran out; run the command again to continue, on a larger machine or "
            "without the data of this shard"
        ) from error


def _each_done(processes: Processes, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    with closing(processes.each_done(_run_shard, [(shard,) for shard in shards], shards)) as done:
        for place, seconds in done:
            yield shards[place], seconds


_worker: list[Session] = []
"""The session of this process if it is a worker; it is kept from one shard to the next."""


def _open_session(out: Path) -> None:
    _worker.append(Session(out))


def _run_shard(shard: Shard) -> float:
    return run_shard(_worker[0], shard)
