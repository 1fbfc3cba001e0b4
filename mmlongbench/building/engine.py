"""Engines map shards to processes. A shard's result does not depend on which engine, in which order, how many."""

import logging
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.shards import run_shard
from mmlongbench.errors import BuildError
from mmlongbench.io.process_pool import Processes, WorkerDiedError
from mmlongbench.io.progress import Progress

Done: TypeAlias = tuple[Shard, float]
"""A shard that is done, and the seconds it took."""
PATIENCE = 1.0
"""Seconds that a build goes on in one process before others are started, where nobody said how many to use."""


class Engine(Protocol):
    """Maps shards to processes."""

    @property
    def progress(self) -> Progress:
        """Where bars are shown."""
        ...

    @property
    def has_all_files(self) -> bool:
        """Whether all files of the release are in its folder here, not only what this machine has made."""
        ...

    def run(self, out: Path, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Do all shards, each told as it ends; or raise the first error."""
        ...

    def close(self) -> None:
        """End what it has started; a later `run` starts it again."""
        ...


@dataclass(slots=True)
class LocalEngine:
    """Processes on this machine, started once for all stages; with one worker, this process itself."""

    workers: int
    progress: Progress
    patience: float = 0.0
    """Seconds of work that are done in this process first: a small build ends before others would have started."""
    _processes: Processes | None = field(default=None, init=False)

    @property
    def has_all_files(self) -> bool:
        """Always: the processes share the folder."""
        return True

    def run(self, out: Path, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Do all shards, each told as it ends; or raise the first error."""
        left = deque(shards)
        while left and (self.workers == 1 or len(shards) < 2 or self.patience > 0):
            shard = left.popleft()
            begun = time.perf_counter()
            yield shard, run_shard(out, shard)
            self.patience -= time.perf_counter() - begun
        if left:
            yield from self._spread(out, list(left))

    def close(self) -> None:
        """End the processes."""
        if self._processes:
            self._processes.close()
        self._processes = None

    def _spread(self, out: Path, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        self._processes = self._processes or Processes(self.workers)
        try:
            yield from _each_done(self._processes, out, shards)
        except WorkerDiedError:
            yield from _once_more(out, shards)


def _once_more(out: Path, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """What is left after a worker died, in one process: it has the memory alone, and its end tells the shard.

    Raises:
        BuildError: a worker died again, over this shard.

    """
    build_dir = BuildDir(out)
    left = [shard for shard in shards if not build_dir.is_done(shard)]
    logging.getLogger(__name__).info("a worker died; %d shards are done in one process", len(left))
    try:
        with closing(Processes(1)) as alone:
            yield from _each_done(alone, out, left)
    except WorkerDiedError as error:
        shard = next(shard for shard in left if not build_dir.is_done(shard))
        raise BuildError(
            f"{shard}: the process that did it died, alone too: it was killed, by somebody or by the system "
            "for want of memory; run again to go on, on a larger machine or without what it reads"
        ) from error


def _each_done(processes: Processes, out: Path, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    with closing(processes.each_done(run_shard, [(out, shard) for shard in shards], shards)) as done:
        for place, seconds in done:
            yield shards[place], seconds
