"""Reads Parquet files: their rows in batches, or single columns of them. A file that cannot be read gives an error that
names it.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.safe_read import source_file

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_BATCH = 256
"""How many rows of a Parquet file are in memory at a time."""


@contextmanager
def parquet_file(path: Path) -> "Iterator[ParquetFile]":
    """Open a Parquet file; an error while the block reads it becomes an error that names the file.

    Raises:
        SourceError: the file cannot be read, or has two columns of one name.

    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with source_file(path, "a Parquet file") as opened, parquet.ParquetFile(opened, buffer_size=1 << 20) as file:
            names = file.schema_arrow.names
            if twice := next((name for name in names if names.count(name) > 1), None):
                todo = "rename or remove one of them"
                raise SourceError(Fault("wrong-columns", "each column once", f"{twice!r} twice", path.name, todo=todo))
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = (str(error).splitlines() or [type(error).__name__])[0]
        fault = Fault(
            "broken-parquet", "a Parquet file that can be read", found, path.name, todo="write the file again"
        )
        raise SourceError(fault) from error


def parquet_rows(path: Path, unread: Collection[str] = ()) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield (place such as `row 0`, fields) of each row. The columns in `unread` are not read.

    Raises:
        SourceError: the file cannot be read.

    """
    with parquet_file(path) as file:
        number = 0
        for batch in file.iter_batches(
            _BATCH, columns=[name for name in file.schema_arrow.names if name not in unread]
        ):
            for row in batch.to_pylist():
                yield f"row {number}", row
                number += 1
