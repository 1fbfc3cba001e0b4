"""SlideVQA (Tanaka et al. 2023, arXiv:2301.04883): questions over decks of slides, which are image files.

A deck may lack slides: the others keep their numbers. The hub's Parquet files have one row for each question, which
repeats the pages of its deck. They are written once, as files, from the first row of the deck; one column of one row
group is read at a time. A cell without bytes is a missing page. Other content is not judged here: a page that is no
picture or too large is refused later, like any file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar

import mmlongbench.task as mt
from builders.common import is_table, source_error, source_rows, split_files
from builders.docvqa.rows import PAGES, DocumentQuestion, clean, first_five, read_list, strings_of, write_list

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAX_PAGES = 100
"""The maximum number of page columns; the dataset has 20."""
_PAGE = re.compile(r"page_([0-9]{1,3})")
_UNREAD = tuple(f"page_{number:0{width}}" for number in range(1, MAX_PAGES + 1) for width in (1, 2, 3))
_ROWS = 8
"""How many pages of one column are in memory at a time."""
_MAX_CHUNK = 4 * 1024**3
"""The maximum bytes that one column has in one row group, unpacked; the dataset has some tens of megabytes."""
_MAX_MISSING = 100
"""If more slides of a deck are missing, the deck is refused, because its slides are numbered wrongly."""
_SLIDE = re.compile(r"(.+)-(\d+)-\d+\.(?:jpe?g|png)", re.IGNORECASE)
"""Matches the name of a slide's file."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,150}")
_PNG = b"\x89PNG"


class SlideVQA(mt.readers.Reader[DocumentQuestion]):
    """SlideVQA: decks of twenty slides."""

    row_type: ClassVar[type[mt.Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions",)
    optional_sources: ClassVar[tuple[str, ...]] = ("decks",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines, one split of `annotations/qa`, or the hub's Parquet files: a folder of them, or one file. "
            "A row has deck_name, question, answer and evidence_pages (from 1), and may have reasoning_type and "
            "image_urls; a row of Parquet has the slides, too, as page_1 to page_20. If the names of a folder's "
            "files name several splits, `test` is read."
        ),
        "decks": (
            "A folder such as `images/test`, with a folder for each deck that holds `<name>-<page from "
            "1>-1024.jpg` or `.png` files; not needed with Parquet files."
        ),
    }
    image_folder: ClassVar[str] = "slideVQA"
    extracted_from: ClassVar[Mapping[str, str]] = {PAGES: "questions"}
    hub_files: ClassVar[tuple[str, ...]] = ("data/test-*.parquet",)
    fixed_fields: ClassVar[tuple[str, ...]] = ("image_urls",)

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        for number, (file, place, raw) in enumerate(source_rows(sources["questions"], _UNREAD)):
            yield mt.readers.raw_row(f"slideVQA_{number}", raw, file, place)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> DocumentQuestion:
        fields = raw.fields
        deck, _ = strings_of(fields, "deck_name", "question")
        declared, kind = mt.metrics.format_of(fields.get("answer")), str(fields.get("reasoning_type") or "")
        return clean(raw, deck, declared, fields.get("evidence_pages"), question_type=kind)

    def extract(self, sources: mt.readers.SourcePaths, folder: Path) -> None:
        """Write the slides in Parquet files as files, each deck once, unless the manifest gives the decks."""
        if "decks" not in sources and is_table(sources["questions"]):
            _write_decks(split_files(sources["questions"])[0], folder / PAGES)

    def documents(self, sources: mt.readers.SourcePaths) -> Mapping[str, mt.readers.Pages | mt.Fault]:
        """Return the decks, each with its slides in order.

        The slides of a deck are those that the questions about it name. If these questions name no slides, they are all
        in the deck's folder, and have numbers from 1, each number once. A deck may lack slides, but not all of them.
        """
        if PAGES in sources:
            return read_list(sources[PAGES], keeps_names=True)
        if "decks" not in sources:
            expected = "source.decks: a folder with a folder of slides for each deck"
            name, todo = sources["questions"].name, "set it, or give the hub's Parquet files as source.questions"
            raise source_error("missing-source", expected, "none", name, todo)
        folder = sources["decks"]
        if not folder.is_dir():
            todo = "give the folder that holds the decks"
            raise source_error("unreadable-source", "a folder of decks", "a file", folder.name, todo)
        # The first question of a deck that has `image_urls` names the slides.
        named: dict[str, list[str]] = {}
        for _, _, raw in source_rows(sources["questions"], _UNREAD):
            deck, urls = (None, None) if isinstance(raw, mt.Fault) else (raw.get("deck_name"), raw.get("image_urls"))
            if isinstance(urls, list) and urls and all(isinstance(url, str) for url in urls):
                names = [PurePosixPath(url.split("?")[0]).name for url in urls]
                named.setdefault(str(deck), names)
        folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return {path.name: _of_folder(path, folder, named.get(path.name, [])) for path in folders}

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        questions = sources["questions"]
        notes = split_files(questions)[1] if is_table(questions) else []
        lacking = []
        for deck, pages in self.documents(sources).items():
            if isinstance(pages, mt.readers.PageImages) and pages.missing:
                lacking.append(f"{deck[:100]} ({first_five([str(number + 1) for number in pages.missing])})")
        if lacking:
            notes.append(f"slides that the source lacks are shown in no context: {first_five(lacking)}")
        return notes


# --- decks in folders -------------------------------------------------------------------------------------------------


def _slide_number(name: str) -> int:
    """Return a slide's number, from 1, from its file's name; 0 for any other name."""
    match = _SLIDE.fullmatch(name)
    return int(match[2]) if match and len(match[2]) < 9 else 0


def released_name(name: str, deck: str, number: int, data: bytes = b"") -> str:
    """Return a slide's name in the release: `name`, the name of its file, if loaders accept this name and the name has
    the slide's number; otherwise a name made from the deck and the number. `data` has the first bytes of the picture,
    if the file has no name that tells its format.

    >>> released_name("tea-4-1024.jpg", "tea", 4), released_name("", "Tea & co", 4), released_name("x", "tea", 4, _PNG)
    ('tea-4-1024.jpg', 'tea-co-4-1024.jpg', 'tea-4-1024.png')
    """
    if _slide_number(name) == number and _SAFE.fullmatch(name):
        return name
    slug = re.sub(r"[^A-Za-z0-9]+", "-", deck).strip("-").lower()[:100] or "deck"
    return f"{slug}-{number}-1024.{'png' if data.startswith(_PNG) else 'jpg'}"


def _of_folder(deck: Path, root: Path, named: Sequence[str]) -> mt.readers.PageImages | mt.Fault:
    """Return the slides of a deck that the questions name, or all in its folder if they name none; a fault if no slide
    is there, or too many are missing.
    """
    names = {path.name for path in deck.iterdir() if mt.readers.file_inside(root, path.relative_to(root))}
    slides = {number: name for number, name in enumerate(named, 1) if name in names and _SLIDE.fullmatch(name)}
    for name in () if named else sorted(filter(_SLIDE.fullmatch, names)):
        other = slides.setdefault(_slide_number(name), name)
        if other != name:
            both = f"{other}, {name}"
            return mt.Fault("two-slides-of-one-number", "one file a slide", both, deck.name, todo="remove one")
    if 0 in slides:
        return mt.Fault("slide-number", "slides numbered from 1", slides[0], deck.name, todo="number them from 1")
    count = len(named) or max(slides, default=0)
    if not slides or count - len(slides) > _MAX_MISSING:
        lacking = islice((number for number in range(1, count + 1) if number not in slides), 5)
        found = ", ".join(named[number - 1] if named else f"slide {number}" for number in lacking) or "slide"
        expected, todo = f"slides of {deck.name}", "fetch them"
        return mt.Fault("missing-pages", expected, f"no {found}", deck.name, todo=todo)
    present = sorted(slides)
    return mt.readers.PageImages(
        tuple(deck / slides[number] for number in present),
        tuple(released_name(slides[number], deck.name, number) for number in present),
        missing=tuple(number - 1 for number in range(1, count + 1) if number not in slides),
    )


# --- decks in Parquet files -------------------------------------------------------------------------------------------


def _write_decks(files: Sequence[Path], folder: Path) -> None:
    """Write the pages of each deck into a subfolder, and the list of all decks.

    Raises:
        SourceError: a file cannot be read, or has no columns with pages.

    """
    folder.mkdir(parents=True)
    decks: dict[str, list[str | None]] = {}
    subfolders: dict[str, str] = {}
    for file in files:
        with mt.readers.parquet_file(file) as table:
            columns = table.schema_arrow.names
            if "deck_name" not in columns:
                raise _wrong_columns(file, "deck_name", ", ".join(columns)[:120])
            first: dict[str, int] = {}  # the first row of each deck that no earlier file has
            for row, deck in enumerate(table.read(["deck_name"]).column(0).to_pylist()):
                if isinstance(deck, str) and deck not in decks:
                    first.setdefault(deck, row)
            for deck, number, cell in _cells(file, table, {row: deck for deck, row in first.items()}):
                data, path = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
                pages = decks.setdefault(deck, [])
                pages.extend([None] * (number - len(pages)))
                if isinstance(data, bytes) and data:
                    name = PurePosixPath(path).name if isinstance(path, str) else ""
                    subfolder = subfolders.setdefault(deck, f"{len(subfolders):05d}")
                    pages[number - 1] = f"{subfolder}/{released_name(name, deck, number, data)}"
                    (folder / subfolder).mkdir(exist_ok=True)
                    (folder / str(pages[number - 1])).write_bytes(data)
    write_list(folder, decks)


def _cells(file: Path, table: "ParquetFile", decks: Mapping[int, str]) -> Iterator[tuple[str, int, object]]:
    """Yield (deck, page from 1, cell) of each page in the rows of `decks`, by the row's number."""
    columns, start = _page_columns(file, table), 0
    for group in range(table.num_row_groups):
        end = start + table.metadata.row_group(group).num_rows
        is_wanted = any(row in decks for row in range(start, end))
        for number, column in columns.items() if is_wanted else ():
            row = start
            for batch in table.iter_batches(_ROWS, row_groups=[group], columns=[column], use_threads=False):
                for cell in batch.column(0):
                    if row in decks:
                        yield decks[row], number, cell.as_py()
                    row += 1
        start = end


def _page_columns(file: Path, table: "ParquetFile") -> dict[int, str]:
    """Return the columns with pages by their number, in order; refuse columns of other types, and too large ones."""
    import pyarrow as pa

    schema = table.schema_arrow
    named = sorted((int(match[1]), name) for name in schema.names if (match := _PAGE.fullmatch(name)))
    columns = {number: name for number, name in named if 1 <= number <= MAX_PAGES}
    if twice := [name for number, name in named if name != columns.get(number, name)]:
        raise _wrong_columns(file, "one column for each page", "two", twice[0])
    if not columns:
        raise _wrong_columns(file, f"columns page_1 to page_{MAX_PAGES} at most", ", ".join(schema.names)[:120])
    for name in columns.values():
        given = schema.field(name).type
        place = given.get_field_index("bytes") if pa.types.is_struct(given) else -1
        kind = given if place < 0 else given.field(place).type
        if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind)):
            raise _wrong_columns(file, "pictures: bytes, or an object with `bytes` and `path`", f"{given}", name)
    for group in range(table.num_row_groups):
        part = table.metadata.row_group(group)
        for chunk in map(part.column, range(part.num_columns)):
            if chunk.total_uncompressed_size > _MAX_CHUNK:
                expected = f"at most {_MAX_CHUNK} bytes of a column in a row group"
                found = f"{chunk.total_uncompressed_size} in row group {group}"
                field, todo = chunk.path_in_schema.split(".")[0], "write the file with smaller row groups"
                raise source_error("size-of-a-page", expected, found, file.name, todo, field)
    return columns


def _wrong_columns(file: Path, expected: str, found: str, field: str = "") -> mt.readers.SourceError:
    return source_error("wrong-columns", expected, found, file.name, "give the Parquet files of SlideVQA", field)
