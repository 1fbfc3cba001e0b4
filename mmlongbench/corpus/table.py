"""The Arrow table of passages, through `datasets`: written in batches, and mapped into memory without being loaded."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias

from mmlongbench.corpus.info import CorpusError, Passage

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow import Table as ArrowTable

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
