"""Reads tables of rows: JSON Lines, a JSON array, CSV, TSV and Parquet. A row that cannot be read gives a fault, not an
exception.
"""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.json_lines import json_lines, json_object, load_json
from mmlongbench.io.safe_read import source_file

MAX_BYTES = 256 * 1024 * 1024
"""The maximum size of a CSV or TSV file in bytes; it is read whole."""
ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""The endings of files that are read, optionally with `.gz` after `.jsonl` or `.json`."""
_BATCH = 256
"""How many rows of a Parquet file are in memory at a time."""
_SEPARATORS = {".csv": (",", ";", "\t"), ".tsv": ("\t",)}
"""The separators that the header of a file may have, by its ending."""

TableRow: TypeAlias = tuple[str, dict[str, object] | Fault]
"""The place of a row in its file, such as `line 3`, and its fields by name, or what is wrong with it."""


def table_rows(path: Path) -> Iterator[TableRow]:
    """Yield each row of a table, in its order.

    Raises:
        SourceError: the file cannot be read, or has an unknown ending.

    """
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending in (".jsonl", ".ndjson"):
        yield from ((f"line {number}", fields) for number, _, fields in json_lines(path))
    elif ending == ".json":
        yield from _array(path)
    elif ending in _SEPARATORS:
        yield from _separated(path, _SEPARATORS[ending])
    elif ending == ".parquet":
        yield from _parquet(path)
    else:
        found = "a folder" if path.is_dir() else f"the ending {ending!r}"
        raise SourceError(Fault("unreadable-source", f"a table ({', '.join(ENDINGS)})", found, path.name))


def _array(path: Path) -> Iterator[TableRow]:
    found = load_json(path, "a JSON array of rows")
    if not isinstance(found, list):
        raise SourceError(Fault("invalid-source", "a JSON array of rows", type(found).__name__, path.name))
    yield from ((f"row {number}", json_object(json.dumps(raw).encode())) for number, raw in enumerate(found))


def _separated(path: Path, separators: tuple[str, ...]) -> Iterator[TableRow]:
    """Yield the rows of a CSV or TSV file; the separator is the one that its header has most often."""
    with source_file(path, "a CSV file") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SourceError(Fault("unreadable-source", f"a table of at most {MAX_BYTES} bytes", "more", path.name))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found, todo = f"the byte 0x{data[error.start]:02x}", "save it as CSV UTF-8"
        raise SourceError(Fault("unreadable-source", "UTF-8", found, path.name, f"line {line}", todo=todo)) from error
    head = text.partition("\n")[0]
    separator = max(separators, key=head.count)
    try:
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
        header = list(table.fieldnames or ())
        rows = [(table.line_num, row) for row in table]
    except csv.Error as error:
        raise SourceError(Fault("unreadable-source", "a CSV file", str(error)[:120], path.name)) from error
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise SourceError(Fault("wrong-columns", "each column once", f"{twice!r} twice", path.name, "line 1"))
    for line, row in rows:
        if None in row or None in row.values():
            todo = "put a cell that contains the separator into double quotes"
            yield f"line {line}", Fault("wrong-columns", f"{len(header)} cells", "more or fewer", todo=todo)
        else:
            yield f"line {line}", dict(row)


def _parquet(path: Path) -> Iterator[TableRow]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with source_file(path, "a Parquet file"), parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    yield f"row {number}", row
                    number += 1
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceError(Fault("broken-parquet", "a Parquet file that can be read", found, path.name)) from error
