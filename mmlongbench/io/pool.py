"""Spreads calls over processes of this machine; an interrupt ends the processes at once, and so does the end of their
parent process.
"""

import ctypes
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from mmlongbench.errors import BuildError


@contextmanager
def threads(number: int, stops: Iterable[Callable[[], None]]) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of threads, and wait for the threads at the end. After an error, call each of `stops` before
    waiting, so that the threads give up.
    """
    pool = ThreadPoolExecutor(number)
    try:
        yield pool
    except BaseException:  # especially Ctrl-C
        for stop in stops:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


T = TypeVar("T")
_SIGNAL_OF_PARENTS_END = 1  # the number of the option PR_SET_PDEATHSIG


class WorkerDiedError(BuildError):
    """A process ended without an error of its own, for example because the kernel killed it when memory ran out."""


class Processes:
    """Processes that are started once and used for several rounds of calls."""

    def __init__(self, workers: int, begin: Callable[..., None] | None = None, *arguments: Any) -> None:  # noqa: ANN401
        """Use at most `workers` processes; they are started when first needed, and each calls `begin` first."""
        self._workers = workers
        self._begin, self._arguments = begin, arguments
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[Any] = set()

    def each_done(
        self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], names: Sequence[object]
    ) -> Generator[tuple[int, T], None, None]:
        """Call a function once with the arguments of each of the `calls`. Yield (index of the call, result) in the
        order in which calls end.

        Raises:
            WorkerDiedError: a worker died. `names` has a name for each call; the message has the name of the first call
                that is not done.

        """
        waiting: dict[Future[T], int] = {}
        try:
            pool = self._opened()
            with _interrupts_held():
                for place, arguments in enumerate(calls):
                    waiting[pool.submit(function, *arguments)] = place
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool as error:
            self.close()
            left = [names[place] for future, place in waiting.items() if not future.done() or future.exception()]
            first = f" (from {left[0]})" if left else ""
            raise WorkerDiedError(
                "a worker process was killed, by a user or by the system, perhaps because memory ran out; "
                f"run the command again to continue{first}"
            ) from error
        except (KeyboardInterrupt, GeneratorExit):
            self._terminate()
            raise
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the processes after their current calls."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            pool.shutdown(wait=True, cancel_futures=True)
        except KeyboardInterrupt:  # Ctrl-C while the other calls end after an error
            self._terminate()
            raise

    def _opened(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # a fork would copy the state of MuPDF's and the tokenizer's threads
            context = multiprocessing.get_context("spawn")
            self._others = set(multiprocessing.active_children())
            self._pool = ProcessPoolExecutor(
                self._workers, context, initializer=_begin, initargs=(self._begin, self._arguments)
            )
        return self._pool

    def _terminate(self) -> None:
        for worker in set(multiprocessing.active_children()) - self._others:
            worker.kill()
        self.close()  # returns at once, because the processes are gone


def each_done(
    workers: int, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], names: Sequence[object]
) -> Generator[tuple[int, T], None, None]:
    """Run one round of `Processes.each_done` in new processes."""
    with closing(Processes(max(1, min(workers, len(calls))))) as processes:  # there may be nothing to do
        yield from processes.each_done(function, calls, names)


def cores() -> int:
    """Return how many processes can run at once on this machine."""
    return len(os.sched_getaffinity(0))


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C while processes start, so that they inherit the block. The terminal sends Ctrl-C to all processes,
    but only this one should handle it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with(parent: int) -> None:
    """Ask the kernel to end this process when its parent ends, whatever this process is doing. Only Linux can do this.

    Python code in this process could notice the end too late, because MuPDF holds the interpreter while it draws.
    """
    try:
        ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_END, signal.SIGKILL, 0, 0, 0)
    except AttributeError:  # not Linux
        return
    if os.getppid() != parent:
        os._exit(1)


def _begin(begin: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    """Prepare this process as a worker, and call `begin` if it is given. It ends when its parent ends; otherwise it
    would wait for ever, and might keep a lock.
    """
    if parent := multiprocessing.parent_process():
        end_with(parent.pid or 0)

        def watch() -> None:  # for systems other than Linux
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
    if begin is not None:
        begin(*arguments)
