"""Rows in an SQLite file: one table, searched by its first column. This is the only module that uses SQLite.

Threads of a process may share a store, and processes may open the same file at the same time. Subclasses say what the
rows mean and what to do when a file cannot be used.
"""

import errno
import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

BATCH = 2048
"""Rows that `put` collects for one commit; at most so many are lost when the process is killed."""
MAX_KEYS = 500  # maximum number of keys that one SQL statement looks up
PATIENCE = 60.0  # the seconds to wait for another process that writes
_PAUSE = 0.01  # the seconds between two attempts to open a new file that another process opens too
_PRIMARY = 0xFF  # the bits of an SQLite error code that say what happened; the others say where
MEMORY = Path(":memory:")
"""The path of a store without a file: its rows are kept as long as the store is open."""
Value: TypeAlias = bytes | str | int
Row: TypeAlias = tuple[Any, ...]
"""The values of a row; the key comes first."""


class Store(ABC):
    """The rows of one file. Any thread may close the store; it is also closed when the interpreter ends."""

    table: ClassVar[str]
    columns: ClassVar[str]
    """The columns, as SQL declares them; rows are searched by the first one."""
    unique: ClassVar[int] = 1
    """How many of the first columns are the key: no two rows have the same values in all of these."""
    replaces: ClassVar[bool] = False
    """Whether a new row replaces the row with the same values in the columns of `unique`; otherwise the old row
    stays."""
    writes_ahead: ClassVar[bool] = False
    """Whether rows are first written to a log beside the file, so that readers and writers do not wait for each
    other."""

    def __init__(self, path: Path, *, is_frozen: bool = False) -> None:
        """Open or make a file. A frozen file is only read, without locks, because nobody writes it any more."""
        self.path, self.is_frozen = path, is_frozen
        names = [column.split()[0] for column in self.columns.split(",")]
        verb, marks = "REPLACE" if self.replaces else "IGNORE", ", ".join("?" * len(names))
        self._insert = f"INSERT OR {verb} INTO {self.table} VALUES ({marks})"
        self._key = names[0]
        self._one = f"SELECT * FROM {self.table} WHERE {self._key} = ?"
        self._guard = threading.RLock()
        self._waiting: dict[Value, Row] = {}
        with self._usable():
            if is_frozen:
                address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
                self._database = sqlite3.connect(address, uri=True, check_same_thread=False)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._database = sqlite3.connect(path, PATIENCE, check_same_thread=False)
            self._closing = weakref.finalize(self, _close, self._database, self._insert, self._waiting)
            if self.writes_ahead:
                self._database.execute("PRAGMA synchronous=FULL")  # so that a row survives a power failure
                # if two processes do this to a new file at once, SQLite refuses one of them without waiting
                end = time.monotonic() + PATIENCE
                while True:
                    try:
                        self._database.execute("PRAGMA journal_mode=WAL")
                        break
                    except sqlite3.OperationalError as error:
                        if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                            raise
                    time.sleep(_PAUSE)
            if not is_frozen:
                key = f"PRIMARY KEY ({', '.join(names[: self.unique])})"
                self._database.execute(f"CREATE TABLE IF NOT EXISTS {self.table} ({self.columns}, {key}) WITHOUT ROWID")

    @abstractmethod
    def unusable(self, error: Exception) -> Exception:
        """Return the error to raise when the file cannot be used; it names the file and says what to do."""

    def row(self, key: Value) -> Row | None:
        if row := self._waiting.get(key):
            return row
        try:
            with self._guard:
                saved: Row | None = self._database.execute(self._one, (key,)).fetchone()
        except sqlite3.Error as error:  # without `_usable`, which would take ten times as long
            raise self._fault(error) from error
        return saved

    def rows(self, keys: Sequence[Value]) -> Iterator[Row]:
        """Yield the rows of the given keys, in any order."""
        self.save()
        for at in range(0, len(keys), MAX_KEYS):
            batch = keys[at : at + MAX_KEYS]
            yield from self.select(f"WHERE {self._key} IN ({', '.join('?' * len(batch))})", *batch)

    def select(self, where: str, *values: Value) -> Iterator[Row]:
        """Yield the rows that meet an SQL condition, in which a `?` stands for each value; rows that are not saved yet
        are not searched.
        """
        with self._usable():
            yield from self._database.execute(f"SELECT * FROM {self.table} {where}", values)

    def put(self, *row: Value) -> None:
        """Add a row; it is on disk after `save` or when the store is closed, and lost if the process is killed
        before.
        """
        with self._guard:
            if self.replaces or row[0] not in self._waiting:
                self._waiting[row[0]] = row
        if len(self._waiting) >= BATCH:
            self.save()

    def save(self) -> None:
        with self._guard:
            if self._waiting:
                self.write(self._waiting.values())
                self._waiting.clear()

    def write(self, rows: Iterable[Row]) -> None:
        """Write rows in one commit, which survives a kill once this returns; raises OSError if the disk is full."""
        with self._usable(), self._guard, self._database:
            self._database.executemany(self._insert, rows)

    def close(self) -> None:
        """Write the rows that were added, if possible, and close the file."""
        self._closing()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._fault(error) from error

    def _fault(self, error: sqlite3.Error | OSError) -> Exception:
        """Return the error to raise for an SQLite error; for a full disk it is the same OSError that writing any other
        file raises.
        """
        code = getattr(error, "sqlite_errorcode", 0)  # Python's own errors have none
        if code & _PRIMARY == sqlite3.SQLITE_FULL:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        return self.unusable(error)


def _close(database: sqlite3.Connection, insert: str, waiting: dict[Value, Row]) -> None:
    with suppress(sqlite3.Error), database:  # rows that were not saved can be made again
        database.executemany(insert, waiting.values())
    database.close()
