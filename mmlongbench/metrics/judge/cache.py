"""Answers on disk: a call that was answered is not made again, in this run or another.

One SQLite file, written at once when an answer is good. Threads and processes may share it; one of them makes a call,
the others wait for its answer. What makes them wait is the kernel's, and dies with its owner.
"""

import fcntl
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mmlongbench.metrics.judge.errors import JudgeError

_PATIENCE = 60.0
"""Seconds to wait for another process that writes."""
_LOOK = 0.05
"""Seconds between two looks whether another process has ended a call."""
_OPENING = 1 << 61
"""The byte of the lock file that is held to open the other; those of calls lie below, under way in any process."""
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    call TEXT PRIMARY KEY, model TEXT NOT NULL, verdict TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict, as JSON, and what it cost."""

    model: str
    verdict: str
    input_tokens: int
    output_tokens: int


class Cache:
    """Answers by the hash of their call."""

    def __init__(self, path: Path | None) -> None:
        """Open or make a file; without one, answers are kept as long as this object."""
        self.path = path
        self._guard = threading.Lock()
        self._callers: dict[str, tuple[threading.Lock, int]] = {}
        self._lock: IO[bytes] | None = None
        with self._usable():
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = path.with_name(f"{path.name}.lock").open("ab")
                fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, _OPENING)  # two that open a new file at once
            self._database = sqlite3.connect(
                path or ":memory:", timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._closing = weakref.finalize(self, _close, self._database, self._lock)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")  # what is written outlives the process
            self._database.execute(_TABLE)
            if self._lock:
                fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _OPENING)

    def get(self, key: str) -> Answer | None:
        """The answer to a call, if there is one."""
        query = "SELECT model, verdict, input_tokens, output_tokens FROM answers WHERE call = ?"
        with self._usable(), self._guard:
            found = self._database.execute(query, (key,)).fetchone()
        return Answer(*found) if found else None

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer; it is on disk when this returns."""
        row = (key, answer.model, answer.verdict, answer.input_tokens, answer.output_tokens)
        with self._usable(), self._guard:
            self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)

    @contextmanager
    def alone(self, key: str, wait: Callable[[float], bool]) -> Iterator[None]:
        """Be the only one, of all threads and processes, that makes a call; `wait` tells whether to give up."""
        with self._guard:
            lock, callers = self._callers.get(key, (threading.Lock(), 0))
            self._callers[key] = (lock, callers + 1)
        try:
            with lock, self._alone_of_processes(int(key[:15], 16), wait):
                yield
        finally:
            with self._guard:
                lock, callers = self._callers.pop(key)
                if callers > 1:
                    self._callers[key] = (lock, callers - 1)

    @contextmanager
    def _alone_of_processes(self, place: int, wait: Callable[[float], bool]) -> Iterator[None]:
        """Hold one byte of the lock file. Asked for again and again: who waits may hold none that others wait for."""
        if self._lock is None:
            yield
            return
        while not self._taken(self._lock, place):
            if wait(_LOOK):
                break
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, place)

    @staticmethod
    def _taken(file: IO[bytes], place: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Close the file."""
        self._closing()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise JudgeError(
                f"the judge's answers {self.path} cannot be used: {error}; name another file with --judge-cache"
            ) from error


def _close(database: sqlite3.Connection, lock: IO[bytes] | None) -> None:
    database.close()
    if lock:
        lock.close()
