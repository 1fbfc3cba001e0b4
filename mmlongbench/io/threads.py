"""Threads of a run, which end soon when it does not end well. Knows no metric."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def threads(number: int, stops: Iterable[Callable[[], None]]) -> Iterator[ThreadPoolExecutor]:
    """Threads that are waited for at the end; after an error `stops` are called first, which tell them to give up."""
    pool = ThreadPoolExecutor(number)
    try:
        yield pool
    except BaseException:  # Ctrl-C above all
        for stop in stops:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
