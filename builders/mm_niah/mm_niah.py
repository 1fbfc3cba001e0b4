"""MM-NIAH's own files: annotation rows whose contexts already contain their needles, and their pictures.

`questions` is one of the six annotation files. `images` is the folder with the pictures of these files, or a folder
above this folder. `obelics` (optional) has more web pages: a file or a folder of OBELICS (Laurençon et al. 2023,
arXiv:2306.16527), JSON Lines or Parquet, whose rows have two parallel lists, `images` (URLs) and `texts`. Their
pictures are found by `formatted_filename` of the metadata or the last part of the URL. The fields of a row say what
it asks; the name of the file is not used. The needles are removed from a row's own context, which then becomes the
first page of its haystack.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import ClassVar, TypeAlias
from urllib.parse import urlsplit

from builders.common import open_parquet, picture_below
from builders.mm_niah.annotations import (
    Annotation,
    asked_by,
    asked_by_refused,
    own_page,
    page_of_skipped,
    read_annotation,
)
from builders.mm_niah.rows import HaystackQuestion, Pages, WebPage, picture_root
from mmlongbench.task import (
    Fault,
    Image,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    json_line_at,
    json_lines,
    raw_row,
    visible_files,
)

_Row: TypeAlias = Mapping[str, object]
"""A page as it is in its file: a line of JSON or a row of Parquet."""

END = "END_OF_DOCUMENT_TOKEN_TO_BE_REPLACED"
FOLDER = "obelics"
"""The folder in which the pictures of web pages are released, below the reader's `image_folder`."""


def obelics_pages(source: Path) -> dict[str, Callable[[], WebPage]]:
    """Return, for the id of each page (`obelics/<file>-<row from 0>`), a function that reads the page. The pages are in
    the order of the files.
    """
    return {id: read for file in _files(source) for id, read, _ in _pages(source, file)}


def obelics_faults(source: Path) -> Iterator[tuple[str, Fault]]:
    """Yield (id, fault) of each page that cannot be read; no haystack uses these pages."""
    for file in _files(source):
        for id, _, raw in _pages(source, file, is_checked=True):
            found = raw if isinstance(raw, Fault) else page_of(raw)
            if isinstance(found, Fault):
                yield id, found


def page_of(raw: _Row) -> list[str | Image] | Fault:
    """Return the texts and pictures of a row, or what is wrong with it."""
    texts, images = raw.get("texts"), raw.get("images")
    if not isinstance(texts, list) or not isinstance(images, list) or len(texts) != len(images):
        return Fault(
            "missing-or-mistyped-field",
            "two lists of one length",
            "something else",
            field="texts, images",
            todo="take the page out, or download the file again",
        )
    names = _names(raw.get("metadata"), len(texts))
    parts: list[str | Image] = []
    for number, (text, url) in enumerate(zip(texts, images, strict=True)):
        given = text if url is None else url
        if (text is None) == (url is None) or not isinstance(given, str):
            return Fault(
                "text-or-image",
                "a text or a URL, the other null",
                repr((text, url))[:80],
                field=f"[{number}]",
                todo="take the page out, or download the file again",
            )
        if url is None:
            parts.append(given.replace(END, " "))
        else:
            parts.append(Image(f"{FOLDER}/{names[number] or PurePosixPath(urlsplit(given).path).name or 'image'}"))
    return parts


def _names(metadata: object, count: int) -> list[str]:
    """Return the file names in the metadata, a list that the source stores as a string; empty texts where a name is
    missing.
    """
    try:
        found = json.loads(metadata) if isinstance(metadata, str) else metadata
    except (ValueError, RecursionError):
        found = None
    listed = found if isinstance(found, list) and len(found) == count else [None] * count
    names = [entry.get("formatted_filename") if isinstance(entry, dict) else None for entry in listed]
    return [PurePosixPath(name).name if isinstance(name, str) else "" for name in names]


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    found = [path for path in visible_files(source) if path.suffix in (".jsonl", ".json", ".parquet")]
    if not found:
        raise SourceError(
            Fault(
                "no-pages",
                "JSON Lines or Parquet files",
                "none in it",
                source.name,
                todo="give the folder that has these files",
            )
        )
    return found


def _pages(
    source: Path, file: Path, *, is_checked: bool = False
) -> Iterator[tuple[str, Callable[[], WebPage], _Row | Fault]]:
    """Yield (id, function that reads the page, row or fault) of each page; without `is_checked`, a row of Parquet is
    not read, and an empty dict stands for it.
    """
    stem = f"{FOLDER}/{file.relative_to(source).as_posix() if source.is_dir() else file.name}"
    if file.suffix == ".parquet":
        for number, (group, row) in enumerate(_places(file)):
            read = _row(file, group, row) if is_checked else {}
            yield f"{stem}-{number}", partial(_from_parquet, file, group, row), read
        return
    for number, (_, offset, raw) in enumerate(json_lines(file)):
        yield f"{stem}-{number}", partial(_from_line, file, offset), raw


def _from_line(file: Path, offset: int) -> WebPage:
    return _readable(json_line_at(file, offset))


def _from_parquet(file: Path, group: int, row: int) -> WebPage:
    return _readable(_row(file, group, row))


def _row(file: Path, group: int, row: int) -> _Row | Fault:
    import pyarrow as pa

    try:
        return _group(file, group)[row]
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        return Fault(
            "unreadable-row",
            "a row that can be read",
            str(error)[:200],
            todo="take the page out, or download the file again",
        )


def _readable(raw: _Row | Fault) -> WebPage:
    found = raw if isinstance(raw, Fault) else page_of(raw)
    return [] if isinstance(found, Fault) else found


def _places(file: Path) -> Iterator[tuple[int, int]]:
    metadata = open_parquet(file).metadata
    for group in range(metadata.num_row_groups):
        yield from ((group, row) for row in range(metadata.row_group(group).num_rows))


@lru_cache(maxsize=4)
def _group(file: Path, group: int) -> Sequence[_Row]:
    parquet = open_parquet(file)
    columns = [name for name in ("texts", "images", "metadata") if name in parquet.schema_arrow.names]
    return parquet.read_row_group(group, columns).to_pylist()


class MMNIAHRows(Reader[HaystackQuestion]):
    """MM-NIAH: questions about needles in interleaved web pages, each with a context of its own."""

    row_type: ClassVar[type[Row]] = HaystackQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("obelics",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines, one of the six annotation files such as `retrieval-text.jsonl`; a line has id, "
            "context, question, answer, images_list and meta."
        ),
        "images": (
            "The folder with the pictures of the annotation files, or a folder at most two levels above the "
            "one that holds `obelics/`."
        ),
        "obelics": (
            "More web pages of OBELICS: JSON Lines or Parquet, a file or a folder of files; a row has the "
            "lists texts and images, and may have metadata."
        ),
    }
    image_folder: ClassVar[str] = "mm-niah"
    fixed_fields: ClassVar[tuple[str, ...]] = ("id", "question", "answer", "context", "images_list", "meta")

    def __init__(self) -> None:
        """Start without a folder of pictures. It is searched for when it is first needed, and again each time rows are
        read.
        """
        self._roots: dict[Path, Path] = {}

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question, with the id `mm-niah-<id>`; then, as faults, the pages of `obelics` that cannot be read.

        Raises:
            SourceError: several folders could be the folder of pictures.

        """
        path = sources["questions"]
        self._roots[sources["images"]] = picture_root(sources["images"])
        for number, _, raw in json_lines(path):
            yield raw_row(f"mm-niah-{_id(raw, number)}", raw, path.name, f"line {number}")
        for id, fault in obelics_faults(sources["obelics"]) if "obelics" in sources else ():
            yield raw_row(id, fault, sources["obelics"].name, id)

    def row(self, raw: RawRow, sources: SourcePaths) -> HaystackQuestion | Fault:
        """Return one question cleaned."""
        found = read_annotation(raw.fields)
        return found.question if isinstance(found, Annotation) else found

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return a picture of a context, a question or a web page."""
        folder = sources["images"]
        if folder not in self._roots:
            self._roots[folder] = picture_root(folder)
        return picture_below(folder, name, self._roots[folder])

    def asked_pictures(self, sources: SourcePaths) -> Iterator[str]:
        """Yield the needles, patterns and options of all rows, including refused ones."""
        for _, _, raw in json_lines(sources["questions"]):
            found = read_annotation(raw)
            yield from asked_by(found) if isinstance(found, Annotation) else asked_by_refused(raw)

    def web_pages(self, sources: SourcePaths) -> Mapping[str, WebPage]:
        """Return the web pages by id: the contexts of rows, from which the needles are removed (`row-<id>`), then the
        pages of `obelics`.
        """
        path, found = sources["questions"], dict[str, Callable[[], WebPage]]()
        for number, offset, raw in json_lines(path):
            if not isinstance(raw, Fault):
                found.setdefault(f"row-{_id(raw, number)}", partial(_own_page, path, offset))
        return Pages(found | (obelics_pages(sources["obelics"]) if "obelics" in sources else {}))


def _id(raw: Mapping[str, object] | Fault, number: int) -> str:
    id = None if isinstance(raw, Fault) else raw.get("id")
    return str(id) if isinstance(id, int) and not isinstance(id, bool) else f"line-{number}"


def _own_page(path: Path, offset: int) -> WebPage:
    """Return a row's context without its needles, also for a skipped row; empty for a row that cannot be read."""
    raw = json_line_at(path, offset)
    found = read_annotation(raw)
    if isinstance(found, Annotation):
        return own_page(found)
    return page_of_skipped(raw) if found.is_expected and not isinstance(raw, Fault) else []
