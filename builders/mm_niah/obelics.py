"""Local OBELICS pages (Laurençon et al. 2023, arXiv:2306.16527): each row has two parallel lists, `images` (URLs) and
`texts`.

The source is a file or a folder of JSON Lines (`.jsonl`, `.json`) or Parquet. Pictures are found by file name, which is
`formatted_filename` of the metadata or, without it, the last part of the URL.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from builders.mm_niah.pages import WebPage
from mmlongbench.task import Fault, Image, SourceError, json_line_at, json_lines, visible_files

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

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
    metadata = _parquet(file).metadata
    for group in range(metadata.num_row_groups):
        yield from ((group, row) for row in range(metadata.row_group(group).num_rows))


@lru_cache(maxsize=4)
def _group(file: Path, group: int) -> Sequence[_Row]:
    parquet = _parquet(file)
    columns = [name for name in ("texts", "images", "metadata") if name in parquet.schema_arrow.names]
    return parquet.read_row_group(group, columns).to_pylist()


def _parquet(file: Path) -> "ParquetFile":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            Fault("unreadable-source", "a Parquet file", str(error)[:200], file.name, todo="download the file again")
        ) from error
