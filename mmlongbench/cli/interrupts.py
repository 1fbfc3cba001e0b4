"""Makes Ctrl-C end a command within two seconds, whatever it is doing; no file is left half-written."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 1.5
"""How many seconds a command may still take to end after Ctrl-C; then the process is ended."""


@contextmanager
def interrupted_soon(said: str) -> Iterator[None]:
    """End the block with KeyboardInterrupt on Ctrl-C; if the block does not end in time, print `said` and end the
    process.

    Python handles a signal only between two steps of Python code, and not during a long call into another language
    (such as writing an index). So the signal is also written to a pipe at once, and a thread reads it there.
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
        os.close(told)  # this ends the thread
        watch.join()
        os.close(heard)


def _watch(heard: int, ended: threading.Event, said: str) -> None:
    while number := os.read(heard, 1):
        if number[0] == signal.SIGINT and not ended.wait(SECONDS):
            sys.stderr.write(f"\n{said}\n")
            sys.stderr.flush()
            os._exit(130)
