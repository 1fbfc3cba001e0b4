"""Your own documents: a folder of PDFs, and a table of questions about them.

The table is CSV (with a header), JSON Lines or a JSON array with the fields `doc, question, answer, pages`. `doc` is
the document's file name; `pages` are the answer pages, counted from 1 (`4`, `3; 5` or `[3, 5]`). The answer's format is
derived from the answer. Write a list as `["a", "b"]`. If the document does not answer a question, write `Not
answerable` and no page.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from builders.docvqa.rows import DocumentQuestion, clean, format_of, strings_of
from mmlongbench.task import (
    Fault,
    Pages,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    json_lines,
    json_object,
    load_json,
    pdfs_by_name,
    raw_row,
)

_MAX_BYTES = 256 * 1024 * 1024
"""The maximum size of a CSV table, which is read whole."""
_HEAD = 4096
"""The maximum number of bytes of the header that are searched for a NUL byte, which is a sign of UTF-16."""
_SPAN = re.compile(r"(?P<first>[0-9]{1,8})\s*(?P<sign>-|–|—|to|and|&)\s*(?P<last>[0-9]{1,8})", re.IGNORECASE)
"""Matches two page numbers as people often write them: `3-5`, `3 to 5`, `3 and 5`."""
_MAX_NAMED = 20
"""A message lists every page of a range of at most so many pages; of a longer range, only the first and the last."""
FIELDS = ("doc", "question", "answer", "pages")


class OwnDocuments(Reader[DocumentQuestion]):
    """PDFs and questions of your own."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "documents")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "A table with the columns doc, question, answer and pages (from 1), and optionally id and "
            "doc_type: CSV in UTF-8 with a header (`.csv`), a JSON array (`.json`), or JSON Lines (any other "
            "ending)."
        ),
        "documents": "A folder of PDFs, also in subfolders; the column doc has the name of a PDF.",
    }
    image_folder: ClassVar[str] = "own-documents"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question. Its id is the table's field `id` or, without this field, `own_<row>`, from 0."""
        path = sources["questions"]
        for number, (place, raw) in enumerate(_rows(path)):
            given = None if isinstance(raw, Fault) else raw.get("id")
            id = str(given) if isinstance(given, str | int) and str(given).strip() else f"own_{number}"
            yield raw_row(id, raw, path.name, place)

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return one question cleaned."""
        fields = raw.fields
        strings = strings_of(fields, ("doc", "question"))
        if isinstance(strings, Fault):
            return strings
        if fault := _faulty_pages(fields.get("pages")):
            return fault
        name = strings["doc"].strip()
        return clean(
            raw.id,
            name[:-4] if name.lower().endswith(".pdf") else name,
            strings["question"],
            fields.get("answer"),
            format_of(fields.get("answer")),
            _pages(fields.get("pages")),
            pages_field="pages",
            doc_type=str(fields.get("doc_type") or ""),
        )

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return all PDFs below the folder except hidden ones, by their names without the ending."""
        return pdfs_by_name(sources["documents"])


def _rows(path: Path) -> Iterator[tuple[str, dict[str, object] | Fault]]:
    """Yield (place, fields or fault) of each row of the table."""
    if path.suffix.lower() == ".csv":
        yield from _of_csv(path)
    elif path.suffix.lower() == ".json":
        found = load_json(path, "a JSON array of questions")
        if not isinstance(found, list):
            raise SourceError(Fault("invalid-source", "a JSON array of questions", type(found).__name__, path.name))
        for number, raw in enumerate(found):
            yield f"row {number}", json_object(json.dumps(raw).encode())
    else:
        yield from ((f"line {number}", raw) for number, _, raw in json_lines(path))


def _of_csv(path: Path) -> Iterator[tuple[str, dict[str, object] | Fault]]:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"no file of at most {_MAX_BYTES} bytes")
        text = _decoded(path.read_bytes(), path)
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        header = list(table.fieldnames or ())
        _check_header(header, text.partition("\n")[0], path)
        rows = [(table.line_num, row) for row in table]
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(Fault("unreadable-source", "CSV in UTF-8", str(error)[:120], path.name)) from error
    for line, row in rows:
        if None in row or None in row.values():
            yield f"line {line}", Fault("wrong-columns", f"{len(header)} cells", "more or fewer")
        elif found := next((field for field, cell in row.items() if "\0" in cell), None):
            yield f"line {line}", Fault("invalid-text", "a cell of text", "a NUL character", field=found)
        else:
            yield f"line {line}", row


def _decoded(data: bytes, path: Path) -> str:
    """Return the text of a table in UTF-8.

    Raises:
        SourceError: the table is not in UTF-8; the error names the encoding if it is recognised.

    """
    todo = "save it as CSV UTF-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:_HEAD].partition(b"\n")[0]:
        raise SourceError(Fault("unreadable-source", "CSV in UTF-8", "UTF-16", path.name, todo=todo))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x}, as Latin-1 or Windows-1252 have it"
        fault = Fault("unreadable-source", "CSV in UTF-8", found, path.name, f"line {line}", todo=todo)
        raise SourceError(fault) from error


def _check_header(header: Sequence[str], line: str, path: Path) -> None:
    """Refuse a header that lacks a column or has one twice.

    Raises:
        SourceError: the error says what is wrong, and how to correct it.

    """
    if twice := next((name for name in header if name and header.count(name) > 1), None):
        raise SourceError(Fault("wrong-columns", "each column once", f"{twice!r} twice", path.name, "line 1"))
    lacking = [field for field in FIELDS if field not in header]
    if not lacking:
        return
    found, todo = f"no {', '.join(lacking)}", ""
    for character, name in ((";", "semicolons"), ("\t", "tabs")):
        if set(FIELDS) <= {*_plain(line.split(character))}:
            found, todo = f"columns separated by {name}", "save it with commas, or as JSON Lines"
    if close := [name for name in header if _plain([name])[0] in lacking]:
        found = ", ".join(map(repr, close))
        todo = f"write {', '.join(_plain(close))}: in small letters, without blanks"
    expected = f"a header with {', '.join(FIELDS)}"
    raise SourceError(Fault("wrong-columns", expected, found, path.name, "line 1", todo=todo))


def _plain(names: Sequence[str]) -> list[str]:
    """Return names of columns without blanks, quotes and capital letters."""
    return [name.strip().strip('"').strip().lower() for name in names]


def _faulty_pages(value: object) -> Fault | None:
    """Return the fault of two page numbers that are written as `3-5`, `3 to 5` or `3 and 5`; None for other values."""
    found = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    first, last = int(found["first"]), int(found["last"])
    is_range = found["sign"].lower() not in ("and", "&") and first < last < first + _MAX_NAMED
    pages = range(first, last + 1) if is_range else (first, last)
    todo = f"write {'; '.join(map(str, pages))}"
    expected = "page numbers with semicolons between them"
    return Fault("answer-pages-not-a-list", expected, repr(value)[:80], field="pages", todo=todo)


def _pages(value: object) -> object:
    """Return a list of pages if the value is a text such as `4`, `3; 5` or `3, 5`, a number, or empty. Any other
    value, such as the text `[3, 5]`, is returned unchanged.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    if isinstance(value, int):
        return [value]
    if isinstance(value, str) and not value.strip().startswith("["):
        parts = [part.strip() for part in value.replace(";", ",").split(",")]
        return [int(part) if part.isdecimal() and len(part) < 9 else part for part in parts]
    return value
