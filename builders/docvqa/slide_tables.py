"""SlideVQA as the hub has it: Parquet files with one row for each question, which repeats the pages of its deck.

A deck's pages are written once, as files, from the first row of the deck. One column of one row group is read at a
time. A cell without bytes is a missing page. Other content is not judged here: a page that is no picture or too large
is refused later, like any file.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from builders.common.splits import split_files
from builders.docvqa.slide_names import released_name
from mmlongbench.task import Columns, Fault, PageImages, Pages, SourceError, json_lines, parquet_file, table_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

PAGES = "pages"
"""The name of the source that `write_pages` makes."""
MAX_PAGES = 100
"""The maximum number of page columns; the dataset has 20."""
_PAGE = re.compile(r"page_([0-9]{1,3})")
_COLUMNS = Columns(unread=tuple(f"page_{number:0{width}}" for number in range(1, MAX_PAGES + 1) for width in (1, 2, 3)))
_LIST = "decks.jsonl"
"""The file with the name of each deck and the files of its pages."""
_ROWS = 8
"""How many pages of one column are in memory at a time."""
_MAX_CHUNK = 4 * 1024**3
"""The maximum bytes that one column has in one row group, unpacked; the dataset has some tens of megabytes."""


def table_questions(source: Path) -> Iterator[tuple[str, str, dict[str, object] | Fault]]:
    """Yield (file, place, fields without pages) of each row of a split."""
    for file in split_files(source).files:
        yield from ((file.name, place, raw) for place, raw in table_rows(file, _COLUMNS))


def write_pages(source: Path, folder: Path) -> None:
    """Write the pages of each deck into a subfolder, and the list of all decks.

    Raises:
        SourceError: a file cannot be read, or has no columns with pages.

    """
    folder.mkdir(parents=True)
    listed: dict[str, list[str | None]] = {}
    subfolders: dict[str, str] = {}
    for file in split_files(source).files:
        new: dict[str, int] = {}
        for place, deck in enumerate(_decks(file)):
            if deck is not None and deck not in listed:
                new.setdefault(deck, place)
        for deck, number, data, name in _cells(file, {place: deck for deck, place in new.items()}):
            pages = listed.setdefault(deck, [])
            pages.extend([None] * (number - len(pages)))
            if data:
                subfolder = subfolders.setdefault(deck, f"{len(subfolders):05d}")
                (folder / subfolder).mkdir(exist_ok=True)
                (folder / subfolder / name).write_bytes(data)
                pages[number - 1] = f"{subfolder}/{name}"
    lines = (json.dumps({"deck_name": deck, "pages": pages}, ensure_ascii=False) for deck, pages in listed.items())
    (folder / _LIST).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def written_decks(folder: Path) -> Mapping[str, Pages | Fault]:
    """Return the decks that `write_pages` wrote, by name; a deck without any page is a fault."""
    found: dict[str, Pages | Fault] = {}
    for _, _, line in json_lines(folder / _LIST):
        deck, pages = (None, None) if isinstance(line, Fault) else (line.get("deck_name"), line.get("pages"))
        if isinstance(deck, str) and isinstance(pages, list):
            files = tuple(folder / page for page in pages if page)
            missing = tuple(number for number, page in enumerate(pages) if not page)
            no_page = Fault("missing-pages", "at least one page", "none", deck[:100], todo="add its pages")
            found[deck] = PageImages(files, tuple(file.name for file in files), missing=missing) if files else no_page
    return found


def _decks(file: Path) -> list[str | None]:
    """Return the deck of each row; None if the row names none."""
    with parquet_file(file) as table:
        if "deck_name" not in table.schema_arrow.names:
            raise _wrong_columns(file, "deck_name", ", ".join(table.schema_arrow.names)[:120])
        names = table.read(["deck_name"]).column(0).to_pylist()
    return [name if isinstance(name, str) else None for name in names]


def _cells(file: Path, decks: Mapping[int, str]) -> Iterator[tuple[str, int, bytes, str]]:
    """Yield (deck, page from 1, bytes, name of the file) of each page in the rows of `decks`, by the row's number."""
    with parquet_file(file) as table:
        pages = _page_columns(file, table)
        first = 0
        for group in range(table.num_row_groups):
            count = table.metadata.row_group(group).num_rows
            rows = {row - first: decks[row] for row in range(first, first + count) if row in decks}
            first += count
            for number, column in pages.items() if rows else ():
                for row, value in _column(table, group, column, rows):
                    data, name = _content(value)
                    yield rows[row], number, data, released_name(name, rows[row], number, data)


def _column(table: "ParquetFile", group: int, column: str, rows: Mapping[int, str]) -> Iterator[tuple[int, object]]:
    """Yield (row in the group, value) of the wanted cells of one column."""
    first = 0
    for batch in table.iter_batches(_ROWS, row_groups=[group], columns=[column], use_threads=False):
        wanted = [row for row in range(first, first + batch.num_rows) if row in rows]
        yield from ((row, batch.column(0)[row - first].as_py()) for row in wanted)
        first += batch.num_rows


def _content(value: object) -> tuple[bytes, str]:
    """Return the bytes of a page, which are empty for a missing page, and the name of its file, if the cell has one."""
    data, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
    return data if isinstance(data, bytes) else b"", PurePosixPath(path).name if isinstance(path, str) else ""


def _page_columns(file: Path, table: "ParquetFile") -> dict[int, str]:
    """Return the columns with pages by their number, in order; refuse columns of other types, and too large ones."""
    named = sorted((int(match[1]), name) for name in table.schema_arrow.names if (match := _PAGE.fullmatch(name)))
    found = dict(each for each in named if 1 <= each[0] <= MAX_PAGES)
    if twice := [name for number, name in named if name != found.get(number, name)]:
        raise _wrong_columns(file, "one column for each page", "two", twice[0])
    if not found:
        raise _wrong_columns(
            file, f"columns page_1 to page_{MAX_PAGES} at most", ", ".join(table.schema_arrow.names)[:120]
        )
    for name in found.values():
        kind = table.schema_arrow.field(name).type
        if not _holds_pictures(kind):
            raise _wrong_columns(file, "pictures: bytes, or an object with `bytes` and `path`", f"{kind}", name)
    for group in range(table.num_row_groups):
        part = table.metadata.row_group(group)
        for place in range(part.num_columns):
            if part.column(place).total_uncompressed_size > _MAX_CHUNK:
                found_there = f"{part.column(place).total_uncompressed_size} in row group {group}"
                todo = "write the file with smaller row groups"
                expected = f"at most {_MAX_CHUNK} bytes of a column in a row group"
                field = part.column(place).path_in_schema.partition(".")[0]
                raise SourceError(Fault("size-of-a-page", expected, found_there, file.name, field=field, todo=todo))
    return found


def _holds_pictures(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        kind = kind.field("bytes").type if names.count("bytes") == 1 else pa.string()
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind)


def _wrong_columns(file: Path, expected: str, found: str, field: str = "") -> SourceError:
    return SourceError(
        Fault("wrong-columns", expected, found, file.name, field=field, todo="give the Parquet files of SlideVQA")
    )
