"""Rules about the rows that a reader gives: they are the same each time, and their ids are unique and stay."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from mmlongbench.building.build_dir import questions_shard
from mmlongbench.building.lines import QUESTIONS, Reject
from mmlongbench.building.session import Session
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.checking.findings import Failure, Note, Outcome, two_values
from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.files import read_regular
from mmlongbench.manifest.code import ENGINE, plugin_code
from mmlongbench.manifest.plugins import reader_type
from mmlongbench.task.rows import Row, RowFault, SourcePaths

_FEW = 3
"""With fewer rows, ids that look like row numbers may be chance."""
_CSV, _LINES = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson")
_MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of a table that is copied without its first row."""
_NUMBER = re.compile(r"[0-9]+\Z")


def rows_are_the_same_twice(reader: str, sources: SourcePaths) -> Iterator[Outcome]:
    """Yield the first row that differs when a source is read again with a new reader."""
    kind = reader_type(reader)
    readings = (read_rows(kind(), sources, name=reader) for _ in range(2))
    for number, (one, other) in enumerate(zip_longest(*readings), 1):
        if one != other:
            yield Failure(f"row {number} differs when the source is read again: {_row_difference(one, other)}", "row()")
            return


def _row_difference(one: Row | RowFault | None, other: Row | RowFault | None) -> str:
    if isinstance(one, Row) and isinstance(other, Row):
        before, after = one.model_dump(), other.model_dump()
        name = next((name for name in before if before[name] != after.get(name)), "")
        return f"field {name!r} is {two_values(before.get(name), after.get(name))}"
    return two_values(one, other) if one and other else "it is there only once"


def ids_are_unique(session: Session, name: str) -> Iterator[Outcome]:
    """Yield every id that a second row of the source has too."""
    for line in session.build_dir.read(questions_shard(name), QUESTIONS):
        if isinstance(line, Reject) and line.fault.reason == "duplicate-id":
            yield Failure("another row of the source has the same id; give each row an id of its own", "row()", line.id)


def ids_stay(reader: str, sources: SourcePaths, ids: Sequence[str], folder: Path) -> Iterator[Outcome]:
    """Yield the first id that changes when the first row of a table is taken out; `folder` is for the shorter table.

    Public data sets that the engine reads number their rows and do not change. For a reader of the engine, and where no
    source is such a table, yield a note if the ids are the numbers of rows.
    """
    is_ours = plugin_code("reader", reader).distribution == ENGINE
    shorter = {} if is_ours else _shorter_tables(sources, folder)
    if not shorter:
        if len(ids) >= _FEW and (_numbered(ids, 0) or _numbered(ids, 1)):
            yield Note("ids are the numbers of rows: they move when a row is added above them")
        return
    before = _ids(reader, sources)
    for name, path in shorter.items():
        after: dict[str, str] = {}
        with suppress(MMLongBenchError):  # a table without this row may be refused; then nothing is known
            after = _ids(reader, {**sources, name: path})
        moved = ((before[row], id) for row, id in after.items() if before.get(row, id) != id)
        if found := next(moved, None):
            said = f"without the first row of {path.name}, the row has the id {found[1]!r}"
            yield Failure(f"{said}; use an id of the source, or a hash of the row's fields", "raw_rows()", found[0])
            return


def _ids(reader: str, sources: SourcePaths) -> dict[str, str]:
    """Return the id of each row by its other fields; rows whose other fields are equal are left out."""
    rows = [row for row in read_rows(reader_type(reader)(), sources, name=reader) if isinstance(row, Row)]
    fields = [row.model_dump_json(exclude={"id", "file", "place"}) for row in rows]
    times = Counter(fields)
    return {each: row.id for each, row in zip(fields, rows, strict=True) if times[each] == 1}


def _shorter_tables(sources: SourcePaths, folder: Path) -> dict[str, Path]:
    """Write a copy of every text table without its first row, and return the copies by the names of the sources."""
    shorter = {}
    for name, path in sources.items():
        with suppress(OSError, ValueError, csv.Error):  # what cannot be read is reported elsewhere
            if path.suffix.lower() in (*_CSV, *_LINES) and path.is_file():
                text = read_regular(path, _MAX_BYTES).decode("latin-1")  # every byte stays as it is
                lines = list(io.StringIO(text, newline=""))
                first, end = _first_row(lines) if path.suffix.lower() in _CSV else _first_line(lines)
                shorter[name] = folder / name / path.name
                shorter[name].parent.mkdir(parents=True)
                shorter[name].write_bytes("".join([*lines[:first], *lines[end:]]).encode("latin-1"))
    return shorter


def _first_line(lines: Sequence[str]) -> tuple[int, int]:
    """Return where the first line that is not blank begins and ends."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return first, first + 1


def _first_row(lines: Sequence[str]) -> tuple[int, int]:
    """Return the lines at which the first row below the header of a CSV table begins and ends."""
    if any("\0" in line for line in lines[:1]):
        raise ValueError("UTF-16")
    separator = max(",;\t", key=lambda each: lines[0].count(each) if lines else 0)
    table = csv.reader(iter(lines), delimiter=separator)
    next(table, None)
    first = table.line_num
    next((row for row in table if row), None)
    return first, table.line_num


def _numbered(ids: Sequence[str], first: int) -> bool:
    """Return whether ids are a common text and the number of the row, with or without zeros before it.

    >>> _numbered(["a1", "a2"], 1), _numbered(["a0001", "a0002"], 1), _numbered(["a1", "b2"], 1)
    (True, True, False)
    """
    common = ids[0].removesuffix(str(first))
    if all(id == f"{common}{number}" for number, id in enumerate(ids, first)):
        return True
    numbers = [_NUMBER.search(id) for id in ids]
    texts = {_NUMBER.sub("", id) for id in ids}
    return len(texts) == 1 and all(found and int(found[0]) == n for n, found in enumerate(numbers, first))
