"""Engines map shards to processes. A shard's result does not depend on which engine, in which order, how many."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.building.shards import run_shard
from mmlongbench.building.work import Shard
from mmlongbench.processes import each_done
from mmlongbench.progress import Progress


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
            with closing(each_done(self.workers, run_shard, [(out, shard) for shard in shards], shards)) as done:
                for _ in done:
                    advance()
