"""SlideVQA (Tanaka et al. 2023, arXiv:2301.04883): questions over decks of slides, which are image files.

The authors' repository has a split of `annotations/qa` and a folder such as `images/test`, which holds the files
`<deck_name>/<slug>-<page from 1>-1024.jpg`. A deck may lack slides: the others keep their numbers.

The hub has Parquet files with one row for each question, which repeats the pages of its deck. A deck's pages are
written once, as files, from the first row of the deck. One column of one row group is read at a time. A cell without
bytes is a missing page. Other content is not judged here: a page that is no picture or too large is refused later, like
any file.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from builders.common import PARQUET, split_files
from builders.docvqa.rows import DocumentQuestion, clean, format_of, strings_of
from mmlongbench.task import (
    Columns,
    Fault,
    Options,
    PageImages,
    Pages,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    file_inside,
    json_lines,
    parquet_file,
    raw_row,
    table_rows,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

SLIDE = re.compile(r"(.+)-(\d+)-\d+\.(?:jpe?g|png)", re.IGNORECASE)
"""Matches the name of a slide's file."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,150}")
_PNG = b"\x89PNG"
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


def slide_number(name: str) -> int:
    """Return a slide's number, from 1, from its file's name; 0 for any other name."""
    match = SLIDE.fullmatch(name)
    return int(match[2]) if match and len(match[2]) < 9 else 0


def released_name(name: str, deck: str, number: int, data: bytes = b"") -> str:
    """Return a slide's name in the release: `name`, the name of its file, if loaders accept this name and the name has
    the slide's number; otherwise a name made from the deck and the number. `data` has the first bytes of the picture,
    if the file has no name that tells its format.

    >>> released_name("tea-4-1024.jpg", "tea", 4), released_name("", "Tea & co", 4), released_name("x", "tea", 4, _PNG)
    ('tea-4-1024.jpg', 'tea-co-4-1024.jpg', 'tea-4-1024.png')
    """
    if slide_number(name) == number and _SAFE.fullmatch(name):
        return name
    slug = re.sub(r"[^A-Za-z0-9]+", "-", deck).strip("-").lower()[:100] or "deck"
    return f"{slug}-{number}-1024.{'png' if data.startswith(_PNG) else 'jpg'}"


_MAX_MISSING = 100
"""If more slides of a deck are missing, the deck is refused, because its slides are numbered wrongly."""
_NAME = 100
"""How many characters of a deck's name a message has."""
_SHOWN = 5
"""How many slides or decks a message lists."""


class SlideVQA(Reader[DocumentQuestion]):
    """SlideVQA: decks of twenty slides."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
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

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each row of the source; its id is `slideVQA_<row>`, from 0."""
        for number, (file, place, raw) in enumerate(_questions(sources["questions"])):
            yield raw_row(f"slideVQA_{number}", raw, file, place)

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return one row cleaned; the answer's format is derived from the answer."""
        fields = raw.fields
        strings = strings_of(fields, ("deck_name", "question"))
        if isinstance(strings, Fault):
            return strings
        answer = fields.get("answer")
        return clean(
            raw.id,
            strings["deck_name"],
            strings["question"],
            answer,
            format_of(answer),
            fields.get("evidence_pages"),
            question_type=str(fields.get("reasoning_type") or ""),
        )

    def extract(self, sources: SourcePaths, folder: Path) -> None:
        """Write the slides in Parquet files as files, each deck once, unless the manifest gives the decks."""
        if "decks" not in sources and _is_table(sources["questions"]):
            write_pages(sources["questions"], folder / PAGES)

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return the decks, each with its slides in order.

        The slides of a deck are those that the questions about it name. If these questions name no slides, they are all
        in the deck's folder, and have numbers from 1, each number once. A deck may lack slides, but not all of them.
        """
        if PAGES in sources:
            return written_decks(sources[PAGES])
        if "decks" not in sources:
            expected = "source.decks: a folder with a folder of slides for each deck"
            name = sources["questions"].name
            todo = "set it, or give the hub's Parquet files as source.questions"
            raise SourceError(Fault("missing-source", expected, "none", name, todo=todo))
        folder = sources["decks"]
        if not folder.is_dir():
            raise SourceError(
                Fault(
                    "unreadable-source",
                    "a folder of decks",
                    "a file",
                    folder.name,
                    todo="give the folder that holds the decks",
                )
            )
        named = _named_slides(sources["questions"])
        decks = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return {deck.name: _deck(deck, folder, named.get(deck.name, ())) for deck in decks}

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return which split is read, and which decks lack slides."""
        questions = sources["questions"]
        notes = split_files(questions).notes if _is_table(questions) else ()
        lacking = {
            deck: found.missing
            for deck, found in self.documents(sources).items()
            if isinstance(found, PageImages) and found.missing
        }
        if not lacking:
            return notes
        listed = ", ".join(f"{deck[:_NAME]} ({_numbers(missing)})" for deck, missing in islice(lacking.items(), _SHOWN))
        more = " …" if len(lacking) > _SHOWN else ""
        return (*notes, f"slides that the source lacks are shown in no context: {listed}{more}")


def _numbers(missing: Sequence[int]) -> str:
    """Return the numbers of missing slides, from 1, such as `3, 7 …`."""
    return ", ".join(str(number + 1) for number in missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")


def _is_table(questions: Path) -> bool:
    return questions.is_dir() or questions.suffix.lower() == PARQUET


def _questions(path: Path) -> Iterator[tuple[str, str, dict[str, object] | Fault]]:
    """Yield (file, place, fields) of each row."""
    if _is_table(path):
        yield from table_questions(path)
    else:
        yield from ((path.name, f"line {line}", raw) for line, _, raw in json_lines(path))


def _named_slides(questions: Path) -> dict[str, tuple[str, ...]]:
    """Return the file names of each deck's slides, in order, from `image_urls` of the deck's first question that has
    them.
    """
    found: dict[str, tuple[str, ...]] = {}
    for _, _, raw in _questions(questions):
        if isinstance(raw, Fault):
            continue
        urls = raw.get("image_urls")
        if urls and isinstance(urls, list) and all(isinstance(url, str) for url in urls):
            found.setdefault(str(raw.get("deck_name")), tuple(PurePosixPath(url.split("?")[0]).name for url in urls))
    return found


def _deck(deck: Path, root: Path, named: tuple[str, ...]) -> PageImages | Fault:
    """Return the slides of a deck: the slides that the questions name (`named`) or, if `named` is empty, all slides in
    the deck's folder. Return a fault if no slide is there, or too many are missing. If `named` is empty, two slides
    must not have one number.
    """
    there = {
        path.name for path in deck.iterdir() if SLIDE.fullmatch(path.name) and file_inside(root, path.relative_to(root))
    }
    if named:
        numbered = {number: name for number, name in enumerate(named, 1) if name in there}
    else:
        numbered = {}
        for name in sorted(there):
            number = slide_number(name)
            if numbered.setdefault(number, name) != name:
                both = f"{numbered[number]}, {name}"
                return Fault("two-slides-of-one-number", "one file a slide", both, deck.name, todo="remove one")
        if 0 in numbered:
            return Fault("slide-number", "slides numbered from 1", numbered[0], deck.name, todo="number them from 1")
    count = len(named) or max(numbered, default=0)
    if not numbered or count - len(numbered) > _MAX_MISSING:
        lacking = (number for number in range(1, count + 1) if number not in numbered)
        missing = [named[number - 1] if named else f"slide {number}" for number in islice(lacking, _SHOWN)]
        found = f"no {', '.join(missing)}" if missing else "no slide"
        return Fault("missing-pages", f"slides of {deck.name}", found, deck.name, todo="fetch them")
    present = [(number, numbered[number]) for number in range(1, count + 1) if number in numbered]
    return PageImages(
        tuple(deck / name for _, name in present),
        tuple(released_name(name, deck.name, number) for number, name in present),
        missing=tuple(number - 1 for number in range(1, count + 1) if number not in numbered),
    )


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
