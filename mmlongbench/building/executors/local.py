"""Shards mapped to processes on this machine. A shard's result does not depend on how many, or in which order."""

import logging
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.executors.base import Done, Executor
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import run_shard
from mmlongbench.errors import BuildError
from mmlongbench.io.process_pool import Processes, WorkerDiedError
from mmlongbench.io.progress import Progress

PATIENCE = 1.0
"""Seconds that a build goes on in one process before others are started, where nobody said how many to use."""


@dataclass(slots=True)
class LocalExecutor(Executor):
    """Processes on this machine, started once for all stages; with one worker, this process itself."""

    workers: int
    progress: Progress
    patience: float = 0.0
    """Seconds of work that are done in this process first: a small build ends before others would have started."""
    _processes: Processes | None = field(default=None, init=False)
    _served: Path | None = field(default=None, init=False)
    """The release that the processes build."""

    @property
    def has_all_files(self) -> bool:
        """Always: the processes share the folder."""
        return True

    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Do all shards, each told as it ends; or raise the first error."""
        left = deque(shards)
        while left and (self.workers == 1 or len(shards) < 2 or self.patience > 0):
            shard = left.popleft()
            begun = time.perf_counter()
            yield shard, run_shard(session, shard)
            self.patience -= time.perf_counter() - begun
        if left:
            yield from self._spread(session.build_dir, list(left))

    def close(self) -> None:
        """End the processes."""
        if self._processes:
            self._processes.close()
        self._processes = None

    def _spread(self, build_dir: BuildDir, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        if self._served != build_dir.out:  # the workers of another build know nothing of this one
            self.close()
        self._processes = self._processes or Processes(self.workers, _open_session, build_dir.out)
        self._served = build_dir.out
        try:
            yield from _each_done(self._processes, shards)
        except WorkerDiedError:
            yield from _once_more(build_dir, shards)


def _once_more(build_dir: BuildDir, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """What is left after a worker died, in one process: it has the memory alone, and its end tells the shard.

    Raises:
        BuildError: a worker died again, over this shard.

    """
    left = [shard for shard in shards if not build_dir.is_done(shard)]
    logging.getLogger(__name__).info("a worker died; %d shards are done in one process", len(left))
    try:
        with closing(Processes(1, _open_session, build_dir.out)) as alone:
            yield from _each_done(alone, left)
    except WorkerDiedError as error:
        shard = next(shard for shard in left if not build_dir.is_done(shard))
        raise BuildError(
            f"{shard}: the process that did it died, alone too: it was killed, by somebody or by the system "
            "for want of memory; run again to go on, on a larger machine or without what it reads"
        ) from error


def _each_done(processes: Processes, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    with closing(processes.each_done(_run_shard, [(shard,) for shard in shards], shards)) as done:
        for place, seconds in done:
            yield shards[place], seconds


_worker: list[Session] = []
"""The session of this process, where it is a worker: the one thing that is kept between its shards."""


def _open_session(out: Path) -> None:
    """Begin as a worker of the build of a folder."""
    _worker.append(Session(out))


def _run_shard(shard: Shard) -> float:
    """Do one shard as a worker."""
    return run_shard(_worker[0], shard)
