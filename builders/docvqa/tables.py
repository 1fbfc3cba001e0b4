"""Reads the rows of a table of questions: CSV with commas, semicolons or tabs, a spreadsheet, JSON Lines, or JSON.

CSV files and spreadsheets have a header. The reader knows some columns by name; blanks and capital letters in these
names do not matter. All other columns keep their names.
"""

import codecs
import csv
import difflib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from builders.docvqa.sheets import ERRORS, sheet_rows
from mmlongbench.task import Fault, SourceError, json_lines, json_object, load_json

PlacedRow: TypeAlias = tuple[str, dict[str, object] | Fault]
"""A place in the table, such as `line 3`, and the fields of the row there, or what is wrong with it."""

NEEDED = ("doc", "question", "answer", "pages")
"""The columns that a table must have."""
OPTIONAL = ("id", "answer_format", "accepted", "sources", "doc_type")
"""The columns that the reader knows besides."""
KNOWN = (*NEEDED, *OPTIONAL)
_SHEETS = (".xlsx", ".xlsm")
_CSV = (".csv", ".tsv", ".tab")
_MAX_BYTES = 256 * 1024 * 1024
"""The maximum size of a CSV table, which is read whole."""
_HEAD = 65_536
"""The maximum number of characters of a header."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def table_rows(path: Path) -> Iterator[PlacedRow]:
    """Yield each row of a table.

    Raises:
        SourceError: the table cannot be read, or a column is missing.

    """
    ending = path.suffix.lower()
    if ending in _SHEETS:
        yield from _of_sheet(path)
    elif ending in _CSV:
        yield from _of_csv(path)
    elif ending == ".json":
        yield from _of_json(path)
    elif ending == ".xls":
        found, todo = "a spreadsheet of an old format", "save it as .xlsx or as CSV UTF-8"
        raise SourceError(Fault("unreadable-source", "CSV, .xlsx, JSON Lines or JSON", found, path.name, todo=todo))
    else:
        yield from ((f"line {number}", raw) for number, _, raw in json_lines(path))


def columns_of(rows: Iterator[PlacedRow]) -> tuple[str, ...]:
    """Return the names of all columns that the rows have, in the order in which they first occur."""
    return tuple(dict.fromkeys(name for _, raw in rows if not isinstance(raw, Fault) for name in raw))


def _of_json(path: Path) -> Iterator[PlacedRow]:
    found = load_json(path, "a JSON array of questions")
    if not isinstance(found, list):
        todo = "write [{…}, {…}], or one object a line in a file that ends in .jsonl"
        fault = Fault("invalid-source", "a JSON array of questions", type(found).__name__, path.name, todo=todo)
        raise SourceError(fault)
    for number, raw in enumerate(found):
        yield f"row {number}", json_object(json.dumps(raw).encode())


def _of_sheet(path: Path) -> Iterator[PlacedRow]:
    rows = sheet_rows(path)
    header = _header(rows[0] if rows else [], path, "row 1")
    for number, cells in enumerate(rows[1:], 2):
        if any(cells):
            yield f"row {number}", _without_errors(_fields(header, cells))


def _without_errors(row: dict[str, object] | Fault) -> dict[str, object] | Fault:
    """Return a row of a sheet; a fault if the value of a known column is the error of a formula."""
    for name, cell in () if isinstance(row, Fault) else row.items():
        if name in KNOWN and cell in ERRORS:
            return Fault(
                "invalid-text", "a value", f"the error {cell}", field=name, todo="write the value into the cell"
            )
    return row


def _of_csv(path: Path) -> Iterator[PlacedRow]:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"no file of at most {_MAX_BYTES} bytes")
        text = _decoded(path.read_bytes(), path)
        table = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
        header = _header(next(table, []), path, "line 1")
        rows = [(table.line_num, cells) for cells in table if cells]
    except (OSError, ValueError, csv.Error) as error:
        todo = "save it as CSV UTF-8"
        raise SourceError(Fault("unreadable-source", "CSV in UTF-8", str(error)[:120], path.name, todo=todo)) from error
    for line, cells in rows:
        yield f"line {line}", _fields(header, cells)


def _fields(header: Sequence[str], cells: Sequence[str]) -> dict[str, object] | Fault:
    """Return the cells of a row by the names of their columns; a column without a name is left out."""
    if len(cells) != len(header):
        todo = "put cells that hold the separator into quotes"
        return Fault("wrong-columns", f"{len(header)} cells", f"{len(cells)}", todo=todo)
    row: dict[str, object] = {name: cell for name, cell in zip(header, cells, strict=True) if name}
    if found := next((name for name, cell in row.items() if "\0" in str(cell)), None):
        return Fault("invalid-text", "a cell of text", "a NUL character", field=found, todo="remove the character")
    return row


def _decoded(data: bytes, path: Path) -> str:
    """Return the text of a table in UTF-8, or in UTF-16 with a byte order mark.

    Raises:
        SourceError: the table has another encoding; the error names the encoding if it is recognised.

    """
    todo = "save it as CSV UTF-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    if b"\0" in data[:4096].partition(b"\n")[0]:
        raise SourceError(Fault("unreadable-source", "CSV in UTF-8", "UTF-16", path.name, todo=todo))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x}, as Latin-1 or Windows-1252 have it"
        fault = Fault("unreadable-source", "CSV in UTF-8", found, path.name, f"line {line}", todo=todo)
        raise SourceError(fault) from error


def _separator(text: str) -> str:
    """Return the separator with which the header has most of the known columns; a comma if none has any."""
    return max(_SEPARATORS, key=lambda separator: len({*_plain(_first_row(text, separator))} & {*KNOWN}))


def _first_row(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text[:_HEAD], newline=""), delimiter=separator), [])
    except csv.Error:
        return []


def _header(names: Sequence[str], path: Path, place: str) -> list[str]:
    """Return the names of the columns, with known ones in small letters and without blanks.

    Raises:
        SourceError: a needed column is missing, or a column occurs twice.

    """
    header = [plain if plain in KNOWN else name.strip() for name, plain in zip(names, _plain(names), strict=True)]
    if twice := next((name for name in header if name and header.count(name) > 1), None):
        todo = "rename or remove one of them"
        raise SourceError(Fault("wrong-columns", "each column once", f"{twice!r} twice", path.name, place, todo=todo))
    lacking = [name for name in NEEDED if name not in header]
    if not lacking:
        return header
    expected, shown = f"a header with {', '.join(NEEDED)}", ", ".join(header)[:120] or "nothing"
    todo = _renaming(lacking, header) or f"name the columns in the first row; there are: {shown}"
    raise SourceError(Fault("wrong-columns", expected, f"no {', '.join(lacking)}", path.name, place, todo=todo))


def _renaming(lacking: Sequence[str], header: Sequence[str]) -> str:
    """Return how to rename the columns that resemble those that are missing; empty if none does."""
    others = {name.lower()[:40]: name for name in header if name and name not in KNOWN}
    near: Mapping[str, list[str]] = {name: difflib.get_close_matches(name, others, 1, 0.5) for name in lacking}
    named = [f"{others[found[0]]!r} to {name!r}" for name, found in near.items() if found]
    return f"rename {', '.join(named)}" if named else ""


def _plain(names: Sequence[str]) -> list[str]:
    """Return names of columns without blanks, quotes and capital letters."""
    return [name.strip().strip('"').strip().lower() for name in names]
