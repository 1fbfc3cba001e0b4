"""The Arrow table of passages, through `datasets`: written in batches, and mapped into memory without being loaded."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias

from mmlongbench.corpus.articles import key_of
from mmlongbench.corpus.info import CorpusError, Passage
from mmlongbench.io.files import atomic_write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyarrow import RecordBatch
    from pyarrow import Table as ArrowTable

_TABLES = ("documents", "titles", "passages", "wikidata")
_STARTS = "starts"


class IndexWriter:
    """Collects runs (neighbouring rows of one document) in temporary files on disk; `writing` sorts them at the end."""

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
        """Add a passage that has an id of its own, and its row."""
        self._pair("passages", key_of(id), row)

    def _pair(self, table: str, key: int, value: int) -> None:
        self._put(f"{table}.keys", key)
        self._put(f"{table}.values", value)

    def _put(self, spool: str, number: int) -> None:
        self._spools[spool].write(number.to_bytes(8, "little"))


@contextmanager
def writing(folder: Path, spool: Path) -> Iterator[IndexWriter]:
    """Write an index. Temporary files go to `spool`; if the `with` block has no error, the sorted index is then written
    to `folder`.
    """
    names = [_STARTS, *(f"{table}.{part}" for table in _TABLES for part in ("keys", "values"))]
    spool.mkdir(parents=True)
    with ExitStack() as stack:
        yield IndexWriter({name: stack.enter_context((spool / name).open("wb")) for name in names})
    _sort(folder, spool)


def _sort(folder: Path, spool: Path) -> None:
    import numpy as np

    _save(folder / _STARTS, np.fromfile(spool / _STARTS, "<u8"))
    for table in _TABLES:
        keys = np.fromfile(spool / f"{table}.keys", "<u8")
        if len(keys):
            order = np.argsort(keys, kind="stable")
            _save(folder / f"{table}.keys", keys[order])
            _save(folder / f"{table}.values", np.fromfile(spool / f"{table}.values", "<u8")[order])


def _save(path: Path, numbers: "NDArray[np.uint64]") -> None:
    import numpy as np

    with atomic_write(path.with_name(f"{path.name}.npy")) as file:
        np.save(file, numbers)


class Index:
    """An index on disk, mapped into memory."""

    def __init__(self, folder: Path) -> None:
        self._starts = _map(folder / _STARTS)
        there = [table for table in _TABLES if (folder / f"{table}.keys.npy").is_file()]
        self._tables = {table: (_map(folder / f"{table}.keys"), _map(folder / f"{table}.values")) for table in there}

    def runs(self, table: str, text: str, rows: int) -> Iterator[range]:
        """Yield the rows of each run that may belong to a document or title, in a corpus with `rows` rows."""
        return self._runs(table, key_of(text), rows)

    def runs_of_wikidata(self, number: int, rows: int) -> Iterator[range]:
        """Yield the rows of each run whose document has the Wikidata id with this number. The number itself is the key,
        not a hash.
        """
        return self._runs("wikidata", number, rows)

    def values(self, table: str, text: str) -> list[int]:
        """Return the numbers stored under a text, or under a text with the same hash, in rising order."""
        return self._values(table, key_of(text))

    def _runs(self, table: str, key: int, rows: int) -> Iterator[range]:
        for run in self._values(table, key):
            end = int(self._starts[run + 1]) if run + 1 < len(self._starts) else rows
            yield range(int(self._starts[run]), end)

    def _values(self, table: str, filed: int) -> list[int]:
        import numpy as np

        if table not in self._tables:
            return []
        keys, values = self._tables[table]
        key = np.uint64(filed)  # with another type, numpy would convert the whole table
        low, high = np.searchsorted(keys, key, "left"), np.searchsorted(keys, key, "right")
        return [int(value) for value in values[low:high]]


def _map(path: Path) -> "NDArray[np.uint64]":
    import numpy as np

    numbers: NDArray[np.uint64] = np.load(path.with_name(f"{path.name}.npy"), mmap_mode="r")
    return numbers


Row: TypeAlias = tuple[str, str, str, str, int, int, int]
COLUMNS = {
    "passage_id": "string",
    "doc_id": "string",
    "title": "string",
    "text": "string",
    "section": "int32",
    "first_paragraph": "int32",
    "last_paragraph": "int32",
}
_BATCH = 1_000
_BATCH_CHARACTERS = 16_000_000
"""A batch of more characters than this is written early."""


class _ArrowWriter(Protocol):
    """The part of the writer of `datasets` that is used here; it has no types."""

    pa_writer: object | None

    def write_table(self, table: "ArrowTable", batch: int, /) -> None: ...

    def finalize(self, *, close_stream: bool) -> object: ...


class TableWriter:
    """Takes rows and writes them in batches."""

    def __init__(self, arrow: _ArrowWriter) -> None:
        self._arrow = arrow
        self._rows: list[Row] = []
        self._characters = 0

    def add(self, row: Row) -> None:
        """Append a row."""
        self._rows.append(row)
        self._characters += len(row[3])
        if len(self._rows) == _BATCH or self._characters > _BATCH_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are not written yet."""
        import pyarrow as pa

        if self._rows:
            columns = dict(zip(COLUMNS, zip(*self._rows, strict=True), strict=True))
            types = {name: getattr(pa, kind)() for name, kind in COLUMNS.items()}
            arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
            self._arrow.write_table(pa.table(arrays), len(self._rows))
            self._rows, self._characters = [], 0


@contextmanager
def table_writer(file: BinaryIO) -> Iterator[TableWriter]:
    """Write an Arrow table of passages to an open file."""
    from datasets import Features, Value
    from datasets.arrow_writer import ArrowWriter

    features = Features({name: Value(kind) for name, kind in COLUMNS.items()})
    arrow: _ArrowWriter = ArrowWriter(features=features, stream=file)
    writer = TableWriter(arrow)
    yield writer
    writer.flush()
    if arrow.pa_writer is not None:  # without any row there is no table to finish
        arrow.finalize(close_stream=False)


class Table:
    """A table of passages on disk, mapped into memory."""

    def __init__(self, path: Path, rows: int) -> None:
        """Open a table, which must have `rows` rows."""
        import pyarrow as pa

        try:
            with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
                self._batches: list[RecordBatch] = list(stream)
        except (OSError, pa.ArrowInvalid) as error:
            raise CorpusError(f"{path}: {error}; build the corpus again") from error
        self._ends = list(accumulate(batch.num_rows for batch in self._batches))
        if len(self) != rows:
            raise CorpusError(
                f"{path}: has {len(self):,} passages, but its corpus has {rows:,}; build the corpus again"
            )

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, row: int) -> Passage:
        batch, at = self._at(row)
        return Passage(*(column[at].as_py() for column in batch.columns))

    def __iter__(self) -> Iterator[Passage]:
        for batch in self._batches:
            yield from map(Passage, *(column.to_pylist() for column in batch.columns))

    def value(self, row: int, column: str) -> str:
        """Return one field of one row."""
        batch, at = self._at(row)
        return str(batch.column(list(COLUMNS).index(column))[at])

    def _at(self, row: int) -> "tuple[RecordBatch, int]":
        if not 0 <= row < len(self):
            raise IndexError(f"there is no passage {row} in a corpus of {len(self)}")
        number = bisect_right(self._ends, row)
        batch = self._batches[number]
        return batch, row - self._ends[number] + batch.num_rows
