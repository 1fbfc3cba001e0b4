"""Engines map shards to processes. A shard's result does not depend on which engine, in which order, how many."""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.building.shards import run_shard
from mmlongbench.building.work import Shard
from mmlongbench.errors import BuildError
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
            context = multiprocessing.get_context("spawn")  # a fork would share MuPDF's and the tokenizer's threads
            with ProcessPoolExecutor(min(self.workers, len(shards)), context) as pool:
                waiting = {pool.submit(run_shard, out, shard): shard for shard in shards}
                try:
                    for done in as_completed(waiting):
                        done.result()
                        advance()
                except BrokenProcessPool as error:
                    left = next(
                        str(shard) for future, shard in waiting.items() if not future.done() or future.exception()
                    )
                    raise BuildError(
                        f"a worker died, perhaps for want of memory; run again to go on (from {left})"
                    ) from error
                finally:
                    pool.shutdown(wait=True, cancel_futures=True)
