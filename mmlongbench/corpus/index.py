"""The index of a corpus: finds the rows of a document, a title, a passage's own id or a Wikidata id on disk."""

import hashlib
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mmlongbench.io.files import atomic_write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TABLES = ("documents", "titles", "passages", "wikidata")
_STARTS = "starts"


def key_of(text: str) -> int:
    """Return 64 bits of a text's hash, never 0. Two ids rarely have the same key: this is expected in one of 80,000
    corpora with 21 million articles each.
    """
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


class Keys:
    """A set of non-zero 64-bit keys, an open-addressed table at most two thirds full: it takes 12 to 24 bytes a key."""

    def __init__(self) -> None:
        self.slots = array("Q", bytes(8 * 1024))
        self.count = 0

    def add(self, key: int) -> bool:
        if 3 * self.count >= 2 * len(self.slots):
            keys = self.slots
            self.slots = array("Q", bytes(16 * len(keys)))
            for old in filter(None, keys):
                self.slots[self._find(old)] = old
        at = self._find(key)
        if self.slots[at] == key:
            return False
        self.slots[at] = key
        self.count += 1
        return True

    def _find(self, key: int) -> int:
        slots, mask = self.slots, len(self.slots) - 1
        at = key & mask
        while slots[at] not in (0, key):
            at = (at + 1) & mask
        return at


class IndexWriter:
    """Collects runs (neighbouring rows of one document) in temporary files; `index_writer` sorts them at the end."""

    def __init__(self, spools: dict[str, BinaryIO]) -> None:
        self._spools = spools
        self._runs = 0

    def run(self, doc_id: str, title: str, row: int, wikidata: int = 0) -> None:
        """Add a run that begins at a row; `wikidata` is the number of the document's Wikidata id, 0 if it has none."""
        self._put(_STARTS, row)
        self._pair("documents", key_of(doc_id), self._runs)
        self._pair("titles", key_of(title), self._runs)
        if wikidata:
            self._pair("wikidata", wikidata, self._runs)
        self._runs += 1

    def passage(self, id: str, row: int) -> None:
        self._pair("passages", key_of(id), row)

    def _pair(self, table: str, key: int, value: int) -> None:
        self._put(f"{table}.keys", key)
        self._put(f"{table}.values", value)

    def _put(self, spool: str, number: int) -> None:
        self._spools[spool].write(number.to_bytes(8, "little"))


@contextmanager
def index_writer(folder: Path, spool: Path) -> Iterator[IndexWriter]:
    """Write an index. Temporary files go to `spool`; if the `with` block has no error, the sorted index is then written
    to `folder`.
    """
    import numpy as np

    def save(name: str, numbers: "NDArray[np.uint64]") -> None:
        with atomic_write(folder / f"{name}.npy") as file:
            np.save(file, numbers)

    names = [_STARTS, *(f"{table}.{part}" for table in _TABLES for part in ("keys", "values"))]
    spool.mkdir(parents=True)
    with ExitStack() as stack:
        yield IndexWriter({name: stack.enter_context((spool / name).open("wb")) for name in names})
    save(_STARTS, np.fromfile(spool / _STARTS, "<u8"))
    for table in _TABLES:
        keys = np.fromfile(spool / f"{table}.keys", "<u8")
        if len(keys):
            order = np.argsort(keys, kind="stable")
            save(f"{table}.keys", keys[order])
            save(f"{table}.values", np.fromfile(spool / f"{table}.values", "<u8")[order])


class Index:
    """An index on disk, mapped into memory, of a corpus with `rows` passages."""

    def __init__(self, folder: Path, rows: int) -> None:
        import numpy as np

        def mapped(name: str) -> "NDArray[np.uint64]":
            numbers: NDArray[np.uint64] = np.load(folder / f"{name}.npy", mmap_mode="r")
            return numbers

        self._rows, self._starts = rows, mapped(_STARTS)
        there = [table for table in _TABLES if (folder / f"{table}.keys.npy").is_file()]
        self._tables = {table: (mapped(f"{table}.keys"), mapped(f"{table}.values")) for table in there}

    def runs(self, table: str, key: int) -> Iterator[range]:
        """Yield the rows of each run that is stored under a key: `key_of` a document's id or title, or the number of a
        Wikidata id. Other texts may have the same `key_of`.
        """
        for run in self.values(table, key):
            end = self._starts[run + 1] if run + 1 < len(self._starts) else self._rows
            yield range(int(self._starts[run]), int(end))

    def values(self, table: str, key: int) -> list[int]:
        """Return the numbers stored under a key, in rising order."""
        import numpy as np

        if table not in self._tables:
            return []
        keys, values = self._tables[table]
        wanted = np.uint64(key)  # with another type, numpy would convert the whole table
        low, high = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
        return [int(value) for value in values[low:high]]
