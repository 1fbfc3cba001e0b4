"""Reads the first sheet of an Excel file (.xlsx) as texts, within limits. A cell with a formula gives the value that
was saved with it; no formula is computed.
"""

import datetime
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from mmlongbench.errors import Fault, SourceError

MAX_ROWS = 200_000
"""The maximum number of rows of a sheet."""
MAX_COLUMNS = 100
"""The maximum number of columns of a sheet."""
MAX_PARTS = 5_000
"""The maximum number of files in the archive that an Excel file is."""
MAX_UNPACKED = 128 * 1024 * 1024
"""The maximum size of the texts in this archive in bytes, after unpacking; media are not unpacked."""
ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
"""The values of cells whose formulas failed."""
_PLAIN = re.compile(r"(?P<thousands>#,##)?0(?P<decimals>\.0+)?(?P<percent>%?)")
"""Matches the number formats that are applied; numbers in other formats are written as short as possible."""
_NEEDED = 'reading .xlsx needs openpyxl: pip install "mmlongbench[xlsx]", or save the table as CSV UTF-8'


def sheet_rows(path: Path) -> list[list[str]]:
    """Return the cells of each row of the first sheet, without the empty cells after the last header.

    Raises:
        SourceError: the file is no Excel file or is too large, or openpyxl is not installed.

    """
    try:
        import openpyxl
    except ImportError as error:
        raise SourceError(_fault(path, "the package openpyxl", "nothing", _NEEDED)) from error
    _check_archive(path)
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts of a file that do not matter here, such as drop-down lists
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            with closing(book):
                return list(_rows(book, path))
    except SourceError:
        raise
    except Exception as error:
        todo = "open it, and save it again as .xlsx or as CSV UTF-8"
        found = f"{type(error).__name__}: {' '.join(str(error).split())}"[:120]
        raise SourceError(_fault(path, "an Excel file", found, todo)) from error


def _rows(book: Any, path: Path) -> Iterator[list[str]]:  # noqa: ANN401  (openpyxl has no types)
    if not book.worksheets:
        raise SourceError(_fault(path, "a sheet with a table", "none", "put the table into the first sheet"))
    sheet = book.worksheets[0]
    sheet.reset_dimensions()  # the file may lie about them
    width = 0
    for number, cells in enumerate(sheet.iter_rows(max_col=MAX_COLUMNS + 1), 1):
        if number > MAX_ROWS:
            raise SourceError(_fault(path, f"at most {MAX_ROWS:,} rows", "more", "split the table"))
        texts = list(map(_text, cells))
        while len(texts) > width and not texts[-1]:
            texts.pop()
        if number == 1:
            width = len(texts)
        if len(texts) > MAX_COLUMNS:
            raise SourceError(_fault(path, f"at most {MAX_COLUMNS} columns", "more", "remove columns"))
        yield texts + [""] * (width - len(texts))


def _check_archive(path: Path) -> None:
    """Refuse a file that is no archive, or that would unpack to more than a table has."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_UNPACKED:
            raise ValueError(f"no file of at most {MAX_UNPACKED:,} bytes")
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        todo = "save it as .xlsx or as CSV UTF-8"
        raise SourceError(_fault(path, "an Excel file", str(error)[:120] or "another file", todo)) from error
    unpacked = sum(part.file_size for part in parts if not part.filename.startswith("xl/media/"))
    if len(parts) > MAX_PARTS or unpacked > MAX_UNPACKED:
        expected = f"at most {MAX_PARTS:,} parts and {MAX_UNPACKED:,} bytes after unpacking"
        found = f"{len(parts):,} parts, {unpacked:,} bytes"
        raise SourceError(_fault(path, expected, found, "save the table alone, as CSV UTF-8"))


def _text(cell: Any) -> str:  # noqa: ANN401  (a cell of openpyxl)
    """Return a cell as a person sees it: 2019 and not 2019.0, a date as 2019-04-01."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return number_text(value, str(cell.number_format))
    if isinstance(value, datetime.datetime):
        return str(value.date()) if value.time() == datetime.time() else value.isoformat(" ")
    return str(value)


def number_text(value: float, shape: str) -> str:
    """Return a number as a cell of the number format `shape` shows it, if the format is a simple one.

    >>> number_text(2019.0, "General"), number_text(3927, "#,##0"), number_text(0.125, "0.0%"), number_text(3.5, "0.00")
    ('2019', '3,927', '12.5%', '3.50')
    """
    found = _PLAIN.fullmatch(shape)
    if not found:
        is_whole = value == int(value) if abs(value) < 1e15 else False
        return str(int(value)) if is_whole else f"{value:.15g}"
    decimals = max(0, len(found["decimals"] or "") - 1)
    grouping = "," if found["thousands"] else ""
    if found["percent"]:
        return f"{value * 100:{grouping}.{decimals}f}%"
    return f"{value:{grouping}.{decimals}f}"


def _fault(path: Path, expected: str, found: str, todo: str) -> Fault:
    return Fault("unreadable-source", expected, found, path.name, todo=todo)
