"""Engines map shards to processes. A shard's result does not depend on which engine, in which order, how many."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
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
            else:
                _run_all(min(self.workers, len(shards)), out, shards, advance)


def _run_all(workers: int, out: Path, shards: Sequence[Shard], advance: Callable[[], None]) -> None:
    """Do the shards in other processes; an interrupt ends these at once, since what they leave is whole."""
    context = multiprocessing.get_context("spawn")  # a fork would share MuPDF's and the tokenizer's threads
    waiting: dict[Future[None], Shard] = {}
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, context, initializer=_end_with_parent) as pool:
        try:
            with _interrupts_held():
                for shard in shards:
                    waiting[pool.submit(run_shard, out, shard)] = shard
            for done in as_completed(waiting):
                done.result()
                advance()
        except BrokenProcessPool as error:
            left = [str(shard) for future, shard in waiting.items() if not future.done() or future.exception()]
            first = f" (from {left[0]})" if left else ""
            raise BuildError(f"a worker died, perhaps for want of memory; run again to go on{first}") from error
        except KeyboardInterrupt:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes that are started here never see Ctrl-C: the terminal sends it to all, one is to speak of it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """A worker ends when its parent was killed: it would wait for ever, and might hold a shard."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
