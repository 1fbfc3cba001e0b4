"""Keeps answers on disk: a call that was answered is not made again, in this run or another.

Each good answer is written at once. Threads and processes may share a file: one of them makes a call, the others wait
for its answer. They wait for a file lock; the operating system releases it if the process that holds it ends.
"""

import fcntl
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import ClassVar

from mmlongbench.io.sqlite_rows import MEMORY, Store
from mmlongbench.models.settings import Caller, EndpointError

_PAUSE = 0.05
"""The seconds between two checks whether another process has finished a call."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, and how many tokens the call took."""

    model: str
    value: str
    """The answer as JSON."""
    input_tokens: int
    output_tokens: int


class CallStore(Store):
    """The answers in a file; the key of an answer is the hash of its call."""

    table: ClassVar[str] = "answers"
    columns: ClassVar[str] = (
        "call TEXT, model TEXT NOT NULL, verdict TEXT NOT NULL, "
        "input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL"
    )
    replaces: ClassVar[bool] = True
    writes_ahead: ClassVar[bool] = True

    def __init__(self, path: Path | None, caller: Caller) -> None:
        """Open or make a file; without a path, answers are kept in memory."""
        self._caller = caller
        super().__init__(path or MEMORY)
        self._callers: dict[str, tuple[threading.Lock, int]] = {}
        with self._usable():
            self._locks = path.with_name(f"{path.name}.lock").open("ab") if path else None
        if self._locks:
            weakref.finalize(self, self._locks.close)

    def unusable(self, error: Exception) -> EndpointError:
        """Return the error to raise when the file cannot be used."""
        role, options = self._caller.role, self._caller.options
        return self._caller.error(
            f"the {role}'s answers {self.path} cannot be used: {error}; name another file with {options}cache"
        )

    def get(self, key: str) -> Answer | None:
        """Return the answer to the call with this key, or None if there is none."""
        found = self.row(key)
        return Answer(*found[1:]) if found else None

    def keep(self, key: str, answer: Answer) -> None:
        """Save an answer; it is on disk when this returns."""
        self.write([(key, *astuple(answer))])

    @contextmanager
    def alone(self, key: str, wait: Callable[[float], bool]) -> Iterator[None]:
        """Make sure that, for each call, only one thread of all processes runs the block at a time. `wait` waits for
        some seconds, and returns whether to stop waiting.
        """
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
        """Lock one byte of the lock file. A thread tries this again and again, because a thread that waits in the
        kernel may get an error about a deadlock.
        """
        while self._locks:
            with suppress(BlockingIOError):
                fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                break
            if wait(_PAUSE):
                break
        try:
            yield
        finally:
            if self._locks:
                fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Close the file."""
        super().close()
        if self._locks:
            self._locks.close()
