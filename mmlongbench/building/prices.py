"""Prices on disk, beside a corpus: a passage is tokenised once for all lengths, workers and builds.

Kept by (tokenizer hash, text hash), one SQLite file a tokenizer; the text is the rendered one, of which the corpus
knows nothing. Processes may write at once. A file that is lost costs time, nothing else.
"""

import errno
import hashlib
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmlongbench.errors import BuildError

PRICES = "prices"
"""The folder beside the passages."""
SAVED = 2048
"""Prices that are written by one commit: what a kill can cost."""
HELD = 1 << 16
"""Texts whose prices are held in memory."""
PATIENCE = 60.0
"""Seconds to wait for another process that writes."""


class KeptPrices:
    """The prices of texts by one tokenizer, in tokens."""

    def __init__(self, folder: Path, tokenizer: str) -> None:
        """Open or make the file of a tokenizer, given by its SHA-256, in a folder."""
        self.path = folder / f"{tokenizer[:32]}.sqlite"
        self._held: dict[str, int] = {}
        self._new: dict[bytes, int] = {}
        with self._readable():
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, PATIENCE, check_same_thread=False)  # closed by any thread
            self._closing = weakref.finalize(self, _close, self._database, self._new)
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS prices (text BLOB PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID"
            )

    def get(self, text: str) -> int | None:
        """The price of a text, if it was ever kept."""
        price = self._held.get(text)
        if price is None:
            with self._readable():
                found = self._database.execute("SELECT tokens FROM prices WHERE text = ?", (_key(text),)).fetchone()
            price = self._hold(text, int(found[0])) if found else None
        return price

    def __setitem__(self, text: str, price: int) -> None:
        self._new[_key(text)] = self._hold(text, price)
        if len(self._new) >= SAVED:
            self.save()

    def save(self) -> None:
        """Write what is new; at the latest this happens when the prices are let go, or the process ends."""
        with self._readable():
            _save(self._database, self._new)

    def close(self) -> None:
        """Write what is new, and close the file; nothing can be asked afterwards."""
        self._closing()

    def _hold(self, text: str, price: int) -> int:
        if len(self._held) >= HELD:
            self._held.clear()
            self.save()  # what is not held is looked for on disk
        self._held[text] = price
        return price

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path)) from error
            raise BuildError(f"the prices {self.path} cannot be used: {error}; remove that file") from error


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _save(database: sqlite3.Connection, new: dict[bytes, int]) -> None:
    if new:
        with database:
            database.executemany("INSERT OR IGNORE INTO prices VALUES (?, ?)", new.items())
        new.clear()


def _close(database: sqlite3.Connection, new: dict[bytes, int]) -> None:
    with suppress(sqlite3.Error):  # the build itself is whole; these prices will be found again
        _save(database, new)
    database.close()
