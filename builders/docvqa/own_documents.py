"""Your own documents: a folder of PDFs, and a table of questions about them.

The table is CSV (with a header), JSON Lines or a JSON array of `doc, question, answer, pages`: the document's file
name, and the answer pages from 1 (`4`, `3; 5` or `[3, 5]`). The answer's format is derived from the answer; a list is
written `["a", "b"]`, a question that the document does not answer has the answer `Not answerable` and no page.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from builders.docvqa.answers import format_of
from builders.docvqa.cleaning import clean, faulty_text
from builders.docvqa.rows import DocumentQuestion
from mmlongbench import (
    Fault,
    Pages,
    RawRow,
    Row,
    RowFault,
    SourceError,
    Sources,
    json_lines,
    json_object,
    load_json,
    pdfs_by_name,
    read_rows,
)

_MOST_BYTES = 256 * 1024 * 1024
"""Of a table in CSV, which is read whole."""
FIELDS = ("doc", "question", "answer", "pages")


class OwnDocuments:
    """PDFs and questions of your own."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "documents")
    image_folder: ClassVar[str] = "own-documents"

    def rows(self, sources: Sources) -> Iterator[Row | RowFault]:
        """Each question; its id is its own, or `own_<row>`, from 0."""
        return read_rows(self, sources)

    def raw_rows(self, sources: Sources) -> Iterator[RawRow]:
        """Each question as it stands there."""
        path = sources["questions"]
        for number, (place, raw) in enumerate(_rows(path)):
            given = None if isinstance(raw, Fault) else raw.get("id")
            id = str(given) if isinstance(given, str | int) and str(given).strip() else f"own_{number}"
            yield RawRow(id, raw, path.name, place)

    def row(self, id: str, raw: dict[str, Any]) -> DocumentQuestion | Fault:
        """One question cleaned."""
        if fault := faulty_text(raw, ("doc", "question")):
            return fault
        name = raw["doc"].strip()
        return clean(
            id,
            name[:-4] if name.lower().endswith(".pdf") else name,
            raw["question"],
            raw.get("answer"),
            format_of(raw.get("answer")),
            _pages(raw.get("pages")),
            pages_field="pages",
            doc_type=str(raw.get("doc_type") or ""),
        )

    def documents(self, sources: Sources) -> Mapping[str, Pages | Fault]:
        """Every visible PDF below the folder, by its name without the ending."""
        return pdfs_by_name(sources["documents"])

    def draw_sample(self, folder: Path) -> dict[str, Path]:
        """Drawn reports with a table of questions."""
        from builders.docvqa.sample_others import draw_own_documents

        return draw_own_documents(folder)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | Fault]]:
    """(place, fields or what is wrong) of each row of the table."""
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


def _of_csv(path: Path) -> Iterator[tuple[str, dict[str, Any] | Fault]]:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"no file of at most {_MOST_BYTES} bytes")
        text = path.read_bytes().decode("utf-8-sig")
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        lacking = [field for field in FIELDS if field not in (table.fieldnames or ())]
        rows = [] if lacking else [(table.line_num, row) for row in table]
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(Fault("unreadable-source", "CSV in UTF-8", str(error)[:120], path.name)) from error
    if lacking:
        expected = f"a header with {', '.join(FIELDS)}"
        raise SourceError(Fault("wrong-columns", expected, f"no {', '.join(lacking)}", path.name, "line 1"))
    for line, row in rows:
        if None in row or None in row.values():
            yield f"line {line}", Fault("wrong-columns", f"{len(table.fieldnames or ())} cells", "more or fewer")
        else:
            yield f"line {line}", row


def _pages(value: object) -> object:
    """Pages as a list, of `4`, `3; 5`, `3, 5`, `[3, 5]`, a number, or nothing."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    if isinstance(value, int):
        return [value]
    if isinstance(value, str) and not value.strip().startswith("["):
        parts = [part.strip() for part in value.replace(";", ",").split(",")]
        return [int(part) if part.isdecimal() and len(part) < 9 else part for part in parts]
    return value
