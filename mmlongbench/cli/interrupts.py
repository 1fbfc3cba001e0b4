"""Ctrl-C ends a command within two seconds, whatever it is in the middle of: no file is ever half there."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 1.5
"""What is under way may take so long to end in good order; then the process ends as it is."""


@contextmanager
def interrupted_soon(said: str) -> Iterator[None]:
    """Interrupts end the block by KeyboardInterrupt; one that is not heard in time ends the process, with `said`.

    Python hears of a signal between two of its own steps; a long call of another language (an index that is written)
    is none. The kernel's handler tells a thread of it through a pipe at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    ended = threading.Event()
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(heard, ended, said), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(told)  # which ends the thread
        watch.join()
        os.close(heard)


def _watch(heard: int, ended: threading.Event, said: str) -> None:
    while number := os.read(heard, 1):
        if number[0] == signal.SIGINT and not ended.wait(SECONDS):
            sys.stderr.write(f"\n{said}\n")
            sys.stderr.flush()
            os._exit(130)
