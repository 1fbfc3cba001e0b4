"""Reads tables of rows: CSV with commas, semicolons or tabs, spreadsheets, JSON Lines, a JSON array, and Parquet. A row
that cannot be read gives a fault, not an exception.

CSV files and spreadsheets have a header. Some columns are known by name; blanks and capital letters in these names do
not matter. All other columns keep their names.

A row without an `id` of its own is named by a hash of its cells, so a change of how a cell is read changes ids.
"""

import codecs
import csv
import datetime
import difflib
import io
import json
import re
import unicodedata
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import source_file
from mmlongbench.io.json_lines import json_lines, json_object, load_json

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

PlacedRow: TypeAlias = tuple[str, dict[str, object] | Fault]
"""A place in the table, such as `line 3`, and the fields of the row there, or what is wrong with it."""

ENDINGS = (".csv", ".tsv", ".xlsx", ".jsonl", ".json", ".parquet")
_SHEETS = (".xlsx", ".xlsm")
_CSV = (".csv", ".tsv", ".tab")
_LINES = (".jsonl", ".ndjson")
MAX_ROWS = 200_000  # maximum number of rows of a sheet
MAX_COLUMNS = 100  # maximum number of columns of a sheet
MAX_PARTS = 5_000  # maximum number of files in the archive that an Excel file is
MAX_UNPACKED = 128 * 1024 * 1024
"""The maximum size of the texts in this archive in bytes, after unpacking; media are not unpacked."""
_MAX_BYTES = 256 * 1024 * 1024  # the maximum size of a CSV table, which is read whole
_HEAD = 65_536  # maximum number of characters of a header
_BATCH = 256  # how many rows of a Parquet file are in memory at a time
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
"""The values of cells whose formulas failed."""
_SIMPLE_FORMAT = re.compile(r"(?P<thousands>#,##)?0(?P<decimals>\.0+)?(?P<percent>%?)")
"""Matches the number formats that are applied; numbers in other formats are written as short as possible."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table that a reader uses."""

    needed: tuple[str, ...] = ()
    """The columns that a header must have."""
    optional: tuple[str, ...] = ()
    """The columns that it may have."""
    unread: tuple[str, ...] = ()
    """The columns of a Parquet file that are not read, such as pictures."""

    @property
    def known(self) -> tuple[str, ...]:
        """Return all columns that a reader uses."""
        return (*self.needed, *self.optional)


def table_rows(path: Path, columns: Columns) -> Iterator[PlacedRow]:
    """Yield each row of a table, in its order. A row with a NUL character in a text gives a fault.

    Raises:
        SourceError: the table cannot be read, has an unknown ending, or lacks a column.

    """
    for place, raw in _rows_of(path, columns):
        field = None if isinstance(raw, Fault) else next((name for name, cell in raw.items() if _has_nul(cell)), None)
        if field is not None:
            raw = Fault("invalid-text", "a cell of text", "a NUL character", field=field, todo="remove the character")
        yield place, raw


def _rows_of(path: Path, columns: Columns) -> Iterator[PlacedRow]:
    ending = path.suffix.lower()
    if ending in _SHEETS:
        yield from _sheet_rows(path, columns)
    elif ending in _CSV:
        yield from _csv_rows(path, columns)
    elif ending == ".parquet":
        yield from _parquet_rows(path, columns.unread)
    elif ending in _LINES:
        yield from ((f"line {number}", raw) for number, _, raw in json_lines(path))
    elif ending == ".json":
        rows = load_json(path, "a JSON array of rows")
        if not isinstance(rows, list):
            todo = "write [{…}, {…}], or one object a line in a file that ends in .jsonl"
            fault = Fault("invalid-source", "a JSON array of rows", type(rows).__name__, path.name, todo=todo)
            raise SourceError(fault)
        yield from ((f"row {number}", json_object(json.dumps(raw).encode())) for number, raw in enumerate(rows))
    else:
        said = "a folder" if path.is_dir() else f"the ending {ending!r}" if ending else "no ending"
        todo = "save it as .xlsx or as CSV UTF-8" if ending == ".xls" else "give the file one of these endings"
        raise _unreadable(path, f"a table ({', '.join(ENDINGS)})", said, todo)


def _has_nul(value: object) -> bool:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str) and "\0" in each:
            return True
        if isinstance(each, dict):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            left += each
    return False


def id_in(fields: Mapping[str, object]) -> str | Fault:
    """Return the `id` of a row without the blanks around it; empty if the row has none. A whole number is an id.

    >>> id_in({"id": " x-1 "}), id_in({"id": 7}), id_in({"id": 7.0}), id_in({})
    ('x-1', '7', '7', '')
    """
    given = fields.get("id")
    if given is None:
        return ""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    expected, todo = "a text or a whole number", "write the id as a text, or leave it empty"
    if isinstance(given, bool) or not isinstance(given, str | int):
        return Fault("wrong-id", expected, repr(given)[:80], field="id", todo=todo)
    text = str(given).strip()
    if any(unicodedata.category(char) == "Cc" and char not in "\t\n" for char in text):
        return Fault("wrong-id", "an id without control characters", repr(text)[:80], field="id", todo="remove them")
    return text


def columns_of(rows: Iterator[PlacedRow]) -> tuple[str, ...]:
    """Return the names of all columns that the rows have, in the order in which they first occur."""
    return tuple(dict.fromkeys(name for _, raw in rows if not isinstance(raw, Fault) for name in raw))


def _csv_rows(path: Path, columns: Columns) -> Iterator[PlacedRow]:
    expected, todo, rows = "CSV in UTF-8", "save it as CSV UTF-8", []
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"no file of at most {_MAX_BYTES} bytes")
        text = _decoded(path.read_bytes(), path)
        table = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text, columns), strict=True)
        header = _header(next(table, []), path, "line 1", columns)
    except (OSError, ValueError, csv.Error) as error:
        raise _unreadable(path, expected, str(error)[:120], todo) from error
    try:
        for cells in table:
            if cells:
                rows.append((f"line {table.line_num}", _fields(header, cells)))
    except csv.Error as error:
        found, todo = str(error)[:120], "correct the quotes there, or save it as CSV UTF-8"
        if "field limit" in found:
            expected, found = f"cells of at most {csv.field_size_limit():,} characters", "a longer one"
            todo = "close its quotes if they are open; if its text is so long, save the table as JSON Lines (.jsonl)"
        raise _unreadable(path, expected, found, todo, f"line {table.line_num}") from error
    yield from rows


def _decoded(data: bytes, path: Path) -> str:
    """Return the text of a table in UTF-8, or in UTF-16 with a byte order mark."""
    expected, todo = "CSV in UTF-8", "save it as CSV UTF-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    if b"\0" in data[:4096].partition(b"\n")[0]:
        raise _unreadable(path, expected, "UTF-16", todo)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x}, as Latin-1 or Windows-1252 have it"
        raise _unreadable(path, expected, found, todo, f"line {line}") from error


def _separator(text: str, columns: Columns) -> str:
    """Return the separator with which the header has most of the known columns; a comma if none has any."""

    def known(separator: str) -> int:
        try:
            names = next(csv.reader(io.StringIO(text[:_HEAD], newline=""), delimiter=separator), [])
        except csv.Error:
            names = []
        return len({*_plain(names)} & {*columns.known})

    return max(_SEPARATORS, key=known)


def _header(names: Sequence[str], path: Path, place: str, columns: Columns) -> list[str]:
    known = {name.lower(): name for name in columns.known}
    header = [known.get(plain, name.strip()) for name, plain in zip(names, _plain(names), strict=True)]
    if twice := next((name for name in header if name and header.count(name) > 1), None):
        raise _column_twice(twice, path, place)
    lacking = [name for name in columns.needed if name not in header]
    if not lacking:
        return header
    expected, shown = f"a header with {', '.join(columns.needed)}", ", ".join(header)[:120] or "nothing"
    todo = _renaming(lacking, header, columns) or f"name the columns in the first row; there are: {shown}"
    raise SourceError(Fault("wrong-columns", expected, f"no {', '.join(lacking)}", path.name, place, todo=todo))


def _renaming(lacking: Sequence[str], header: Sequence[str], columns: Columns) -> str:
    others = {name.lower()[:40]: name for name in header if name and name not in columns.known}
    near: Mapping[str, list[str]] = {name: difflib.get_close_matches(name, others, 1, 0.5) for name in lacking}
    named = [f"{others[found[0]]!r} to {name!r}" for name, found in near.items() if found]
    left = [name for key, name in others.items() if [key] not in near.values()]
    if named and left:  # nothing resembles `doc` in `PDF file`
        named += [f"{' or '.join(map(repr, left[:3]))} to {name!r}" for name, found in near.items() if not found]
    return f"rename {', '.join(named)}" if named else ""


def _plain(names: Sequence[str]) -> list[str]:
    return [name.strip().strip('"').strip().lower() for name in names]


def _fields(header: Sequence[str], cells: Sequence[str]) -> dict[str, object] | Fault:
    """Return the cells of a row by the names of their columns; a column without a name is left out."""
    if len(cells) != len(header):
        todo = "put cells that hold the separator into quotes"
        return Fault("wrong-columns", f"{len(header)} cells", f"{len(cells)}", todo=todo)
    return {name: cell for name, cell in zip(header, cells, strict=True) if name}


def _sheet_rows(path: Path, columns: Columns) -> Iterator[PlacedRow]:
    rows = _sheet_cells(path)
    header = _header(rows[0] if rows else [], path, "row 1", columns)
    for number, cells in enumerate(rows[1:], 2):
        if not any(cells):
            continue
        row = _fields(header, cells)
        for name, cell in () if isinstance(row, Fault) else row.items():
            if name in columns.known and cell in _ERRORS:
                todo = "write the value into the cell"
                row = Fault("invalid-text", "a value", f"the error {cell}", field=name, todo=todo)
                break
        yield f"row {number}", row


def _sheet_cells(path: Path) -> list[list[str]]:
    """Return the cells of each row of the first sheet, without the empty cells after the last header."""
    expected = "an Excel file"
    try:
        import openpyxl
    except ImportError as error:
        todo = 'reading .xlsx needs openpyxl: pip install "mmlongbench[xlsx]", or save the table as CSV UTF-8'
        raise _unreadable(path, "the package openpyxl", "nothing", todo) from error
    try:
        if not path.is_file() or path.stat().st_size > MAX_UNPACKED:
            raise ValueError(f"no file of at most {MAX_UNPACKED:,} bytes")
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        todo = "save it as .xlsx or as CSV UTF-8"
        raise _unreadable(path, expected, str(error)[:120] or "another file", todo) from error
    unpacked = sum(part.file_size for part in parts if not part.filename.startswith("xl/media/"))
    if len(parts) > MAX_PARTS or unpacked > MAX_UNPACKED:
        limits = f"at most {MAX_PARTS:,} parts and {MAX_UNPACKED:,} bytes after unpacking"
        found = f"{len(parts):,} parts, {unpacked:,} bytes"
        raise _unreadable(path, limits, found, "save the table alone, as CSV UTF-8")
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts of a file that do not matter here, such as drop-down lists
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            with closing(book):
                return list(_first_sheet(book, path))
    except SourceError:
        raise
    except Exception as error:
        todo = "open it, and save it again as .xlsx or as CSV UTF-8"
        found = f"{type(error).__name__}: {' '.join(str(error).split())}"[:120]
        raise _unreadable(path, expected, found, todo) from error


def _first_sheet(book: Any, path: Path) -> Iterator[list[str]]:  # noqa: ANN401  (openpyxl has no types)
    if not book.worksheets:
        raise _unreadable(path, "a sheet with a table", "none", "put the table into the first sheet")
    sheet = book.worksheets[0]
    sheet.reset_dimensions()  # the file may lie about them
    width = 0
    for number, cells in enumerate(sheet.iter_rows(max_col=MAX_COLUMNS + 1), 1):
        if number > MAX_ROWS:
            raise _unreadable(path, f"at most {MAX_ROWS:,} rows", "more", "split the table")
        texts = list(map(_cell_text, cells))
        while len(texts) > width and not texts[-1]:
            texts.pop()
        if number == 1:
            width = len(texts)
        if len(texts) > MAX_COLUMNS:
            raise _unreadable(path, f"at most {MAX_COLUMNS} columns", "more", "remove columns")
        yield texts + [""] * (width - len(texts))


def _cell_text(cell: Any) -> str:  # noqa: ANN401  (a cell of openpyxl)
    """Return a cell as a person sees it: 2019 and not 2019.0, a date as 2019-04-01."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return _number_text(value, str(cell.number_format))
    if isinstance(value, datetime.datetime):
        return str(value.date()) if value.time() == datetime.time() else value.isoformat(" ")
    return str(value)


def _number_text(value: float, shape: str) -> str:
    """Return a number as a cell of the number format `shape` shows it, if the format is a simple one.

    >>> _number_text(2019.0, "General"), _number_text(3927, "#,##0"), _number_text(0.125, "0.0%")
    ('2019', '3,927', '12.5%')
    """
    simple = _SIMPLE_FORMAT.fullmatch(shape)
    if not simple:
        is_whole = value == int(value) if abs(value) < 1e15 else False
        return str(int(value)) if is_whole else f"{value:.15g}"
    decimals = max(0, len(simple["decimals"] or "") - 1)
    grouping = "," if simple["thousands"] else ""
    if simple["percent"]:
        return f"{value * 100:{grouping}.{decimals}f}%"
    return f"{value:{grouping}.{decimals}f}"


@contextmanager
def parquet_file(path: Path, known: Collection[str] | None = None) -> "Iterator[ParquetFile]":
    """Open a Parquet file; an error while the block reads it becomes an error that names the file.

    Raises:
        SourceError: the file cannot be read, or has two columns of one name, of those `known` if these are given.

    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with source_file(path, "a Parquet file") as opened, parquet.ParquetFile(opened, buffer_size=1 << 20) as file:
            names = [name for name in file.schema_arrow.names if known is None or name in known]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise _column_twice(twice, path)
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = (str(error).splitlines() or [type(error).__name__])[0]
        expected, todo = "a Parquet file that can be read", "write or download the file again"
        raise SourceError(Fault("broken-parquet", expected, found, path.name, todo=todo)) from error


def _parquet_rows(path: Path, unread: Collection[str]) -> Iterator[tuple[str, dict[str, object]]]:
    with parquet_file(path) as file:
        number = 0
        wanted = [name for name in file.schema_arrow.names if name not in unread]
        for batch in file.iter_batches(_BATCH, columns=wanted):
            for row in batch.to_pylist():
                yield f"row {number}", row
                number += 1


def _column_twice(name: str, path: Path, place: str = "") -> SourceError:
    todo = "rename or remove one of them"
    return SourceError(Fault("wrong-columns", "each column once", f"{name!r} twice", path.name, place, todo=todo))


def _unreadable(path: Path, expected: str, found: str, todo: str, place: str = "") -> SourceError:
    return SourceError(Fault("unreadable-source", expected, found, path.name, place, todo=todo))
