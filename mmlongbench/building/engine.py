"""Engines map shards to processes. A shard's result does not depend on which engine, in which order, how many."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mmlongbench.building.shards import run_shard
from mmlongbench.building.work import Shard, Work
from mmlongbench.errors import BuildError
from mmlongbench.processes import WorkerDiedError, each_done
from mmlongbench.progress import Progress


class Engine(Protocol):
    """Maps shards to processes."""

    @property
    def progress(self) -> Progress:
        """Where bars are shown."""
        ...

    def run(self, out: Path, shards: Sequence[Shard], label: str) -> None:
        """Do all shards, or raise the first error."""
        ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Processes on this machine; with one worker, this process itself."""

    workers: int
    progress: Progress

    def run(self, out: Path, shards: Sequence[Shard], label: str) -> None:
        """Do all shards, or raise the first error."""
        with self.progress.bar(label, len(shards)) as advance:
            if self.workers == 1 or len(shards) < 2:
                for shard in shards:
                    run_shard(out, shard)
                    advance()
                return
            try:
                _spread(self.workers, out, shards, advance)
            except WorkerDiedError:
                _once_more(out, shards, advance)


def _once_more(out: Path, shards: Sequence[Shard], advance: Callable[[], None]) -> None:
    """What is left after a worker died, in one process: it has the memory alone, and its end tells the shard.

    Raises:
        BuildError: a worker died again, over this shard.

    """
    work = Work(out)
    left = [shard for shard in shards if not work.is_done(shard)]
    try:
        _spread(1, out, left, advance)
    except WorkerDiedError as error:
        shard = next(shard for shard in left if not work.is_done(shard))
        raise BuildError(
            f"{shard}: the process that did it died, alone too, perhaps for want of memory; run again to go on, on a "
            "larger machine or without what it reads"
        ) from error


def _spread(workers: int, out: Path, shards: Sequence[Shard], advance: Callable[[], None]) -> None:
    with closing(each_done(workers, run_shard, [(out, shard) for shard in shards], shards)) as done:
        for _ in done:
            advance()
