"""Threads of a run, which stop soon after an error."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


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
