"""Reads sources made of lines, plain or gzipped: JSON lines (KILT, Wiki6M, …) and DPR's quoted TSV. One line is in
memory at a time.
"""

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias

from mmlongbench.corpus.articles import Article
from mmlongbench.corpus.rows import article_of
from mmlongbench.errors import Fault, SourceError

MAX_BYTES = 32 * 1024 * 1024
"""The maximum length of a line in bytes."""
STEP = 1024 * 1024
"""The number of bytes that one step of the progress bar stands for."""
Advance: TypeAlias = Callable[[], None]
_Bytes: TypeAlias = gzip.GzipFile | BufferedReader
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


def read_json_lines(path: Path, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of a file with one JSON object a line."""
    yield from _json_lines(path, advance, is_kilt=False)


def read_kilt(path: Path, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of KILT's knowledge source, whose paragraph 0 is the title."""
    yield from _json_lines(path, advance, is_kilt=True)


def read_tsv(path: Path, advance: Advance) -> Iterator[Article | Fault]:
    """Yield each row of a quoted TSV as an article that is already a passage. The columns are id, text and title,
    unless the first line gives them in another order.

    DPR has no ids of articles, so the title is the id of the document. Each row is one line.
    """
    columns = ["id", "text", "title"]
    for number, line in numbered_lines(path, advance):
        if isinstance(line, Fault):
            yield line
            continue
        row = _cells(line, columns, path.name, f"line {number}")
        if isinstance(row, Fault):
            yield row
        elif number == 1 and set(row.values()) >= {"id", "text", "title"}:
            columns = list(row.values())
        else:
            title = row["title"]
            doc_id = " ".join(title.split()) if row["id"].strip() else ""
            id = row["id"].strip()
            yield Article(doc_id, title, (row["text"],), passage_id=id, file=path.name, place=f"line {number}")


def numbered_lines(path: Path, advance: Advance) -> Iterator[tuple[int, str | Fault]]:
    """Yield (number, line) for a file, counted from 1. Blank lines are left out; an unreadable line becomes a fault.

    Raises:
        SourceError: the rest of the file cannot be read, for example because its gzip stream is cut off.

    """
    number = 0
    with opened(path) as (file, raw):
        done = 0
        while line := _next(file, path, number + 1):
            number += 1
            if len(line) > MAX_BYTES:
                _skip(file, path, line, number)
                bound = f"at most {MAX_BYTES:,} bytes a line"
                yield (
                    number,
                    Fault(
                        "line-too-long",
                        bound,
                        "more",
                        path.name,
                        f"line {number}",
                        todo="cut the article into several lines",
                    ),
                )
            elif line.strip():
                yield number, _text(line.removeprefix(_BOM) if number == 1 else line, path.name, number)
            while done < raw.tell() // STEP:
                done += 1
                advance()


@contextmanager
def opened(path: Path) -> Iterator[tuple[_Bytes, BufferedReader]]:
    """Open a file, and yield two files: one to read from, which unpacks gzip, and the file on disk."""
    with path.open("rb") as raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        if not is_packed:
            yield raw, raw
            return
        with gzip.open(raw) as file:
            yield file, raw


def _next(file: _Bytes, path: Path, number: int) -> bytes:
    try:
        return file.readline(MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fault = Fault(
            "broken-gzip", "a whole gzip stream", str(error), path.name, f"line {number}", todo="fetch it anew"
        )
        raise SourceError(fault) from error


def _skip(file: _Bytes, path: Path, line: bytes, number: int) -> None:
    while line and not line.endswith(b"\n"):
        line = _next(file, path, number)


def _text(line: bytes, name: str, number: int) -> str | Fault:
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        found = f"byte 0x{line[error.start]:02X} at byte {error.start}"
        return Fault("invalid-utf-8", "UTF-8", found, name, f"line {number}", todo="save the file in UTF-8")


def _json_lines(path: Path, advance: Advance, *, is_kilt: bool) -> Iterator[Article | Fault]:
    for number, line in numbered_lines(path, advance):
        if isinstance(line, Fault):
            yield line
            continue
        place = f"line {number}"
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            found = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
            yield Fault(
                "invalid-json",
                "one JSON object a line",
                found,
                path.name,
                place,
                todo="correct the line, or take it out",
            )
            continue
        if isinstance(row, dict):
            yield article_of(row, path.name, place, is_kilt=is_kilt)
        else:
            yield Fault(
                "not-an-object",
                "one JSON object a line",
                type(row).__name__,
                path.name,
                place,
                todo="correct the line, or take it out",
            )


def _cells(line: str, columns: list[str], name: str, place: str) -> dict[str, str] | Fault:
    try:
        cells = next(csv.reader([line], delimiter="\t", strict=True))
    except csv.Error as error:
        return Fault(
            "invalid-tsv",
            "one row of quoted TSV a line",
            str(error),
            name,
            place,
            todo="correct the line, or take it out",
        )
    if len(cells) != len(columns):
        return Fault(
            "wrong-columns",
            f"{len(columns)} columns ({', '.join(columns)})",
            str(len(cells)),
            name,
            place,
            todo="correct the line, or take it out",
        )
    return dict(zip(columns, cells, strict=True))
