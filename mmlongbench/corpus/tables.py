"""Reads sources made of rows: Parquet files, datasets saved by `datasets`, and datasets of the Hugging Face hub. Only
known columns are read.
"""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from mmlongbench.corpus.articles import FIELDS, IDS, TEXTS, TITLES, Article, article_of
from mmlongbench.errors import Fault, SourceError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

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


class _Saved(Protocol):
    """The part of a saved dataset that is used here; its package has no types."""

    column_names: list[str]

    def __len__(self) -> int: ...

    def with_format(self, kind: None, /) -> "_Saved": ...

    def select_columns(self, names: list[str], /) -> Iterable[Mapping[str, object]]: ...


_ROWS = 256
"""How many rows of a Parquet file are in memory at a time."""
HUB = re.compile(
    r"(?P<name>[\w.-]+/[\w.-]+)(?::(?P<config>[\w.-]+))?(?::(?P<split>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?"
)
"""The name of a dataset of the hub: owner/name[:config[:split]][@revision]."""


def read_parquet(path: Path, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            columns = _known(file.schema_arrow.names, path.name)
            batches = file.iter_batches(_ROWS, columns=columns)
            yield from _articles(_rows(batches, path.name), path.name, advance)
    except (pa.ArrowInvalid, OSError) as error:
        found = str(error).splitlines()[0]
        raise SourceError(
            Fault("broken-parquet", "a Parquet file that can be read", found, path.name, todo="download the file again")
        ) from error


def parquet_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file; 0 if it cannot be read, which `read_parquet` reports."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError):
        return 0


def read_dataset(path: Path, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of a dataset that `datasets` saved to a folder."""
    dataset = _saved(path).with_format(None)
    rows = dataset.select_columns(_known(dataset.column_names, path.name))
    yield from _articles(rows, path.name, advance)


def dataset_rows(path: Path) -> int:
    """Return the number of rows of a saved dataset."""
    return len(_saved(path))


def read_hub(source: str, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of a dataset on the hub as they are downloaded; nothing is kept on disk."""
    parts = _hub_parts(source)
    try:
        yield from _articles(_streamed(source, parts), parts["name"], advance)
    except SourceError:
        raise
    except Exception as error:
        raise _unreachable(source, error) from error


def hub_commit(source: str) -> str:
    """Return the commit that the revision of a dataset stands for at present."""
    from huggingface_hub import HfApi

    parts = _hub_parts(source)
    try:
        return str(HfApi().dataset_info(parts["name"], revision=parts["revision"] or None).sha)
    except Exception as error:
        raise _unreachable(source, error) from error


def _streamed(source: str, parts: dict[str, str]) -> Iterable[Mapping[str, object]]:
    from datasets import load_dataset

    options = {"revision": parts["revision"] or None, "streaming": True}
    splits: Mapping[str, Iterable[Mapping[str, object]]] = load_dataset(
        parts["name"], parts["config"] or None, **options
    )
    chosen = parts["split"] or next(iter(splits))
    if chosen not in splits or (len(splits) > 1 and not parts["split"]):
        names = ", ".join(splits)
        raise SourceError(
            Fault(
                "unknown-split",
                f"one of the splits {names}",
                parts["split"] or "none",
                source,
                todo="name one of these splits",
            )
        )
    return splits[chosen]


def _hub_parts(source: str) -> dict[str, str]:
    if (match := HUB.fullmatch(source)) is None:
        expected = "owner/name[:config[:split]][@revision]"
        raise SourceError(Fault("unknown-source", expected, repr(source), todo="correct the name of the source"))
    return {name: part or "" for name, part in match.groupdict().items()}


def _unreachable(source: str, error: Exception) -> SourceError:
    """Turn any error of the hub's client into a one-line error; these errors have no common base class."""
    found = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    todo = "download it and give its path, or check its name and the network"
    return SourceError(Fault("unreachable-dataset", "a dataset of the hub that can be read", found, source, todo=todo))


def _saved(path: Path) -> _Saved:
    from datasets import Dataset, load_from_disk

    try:
        found = load_from_disk(str(path))
    except Exception as error:
        what = str(error).splitlines()[0].replace(str(path), path.name)
        raise SourceError(
            Fault(
                "broken-dataset",
                "a dataset saved by `datasets`",
                what,
                path.name,
                todo="save the dataset again with save_to_disk()",
            )
        ) from error
    if not isinstance(found, Dataset):
        todo = "give the folder of one of them"
        raise SourceError(Fault("several-splits", "one split", ", ".join(found), path.name, todo=todo))
    saved: _Saved = found
    return saved


def _known(names: list[str], file: str) -> list[str]:
    """Return the columns to read. An id, a title and a text are needed; a column `contents` may hold title and text."""
    for kind in (IDS, TITLES, TEXTS):
        if not set(kind) & set(names) and not (kind is TITLES and "contents" in names):
            raise SourceError(
                Fault(
                    "missing-column",
                    f"a column {' or '.join(kind)}",
                    ", ".join(names),
                    file,
                    todo="give the column one of these names",
                )
            )
    return [name for name in names if name in FIELDS]


def _rows(batches: "Iterable[RecordBatch]", name: str) -> Iterator[Mapping[str, object] | Fault]:
    number = 0
    for batch in batches:
        for at in range(batch.num_rows):
            try:
                yield {field: batch.column(field)[at].as_py() for field in batch.schema.names}
            except UnicodeDecodeError as error:
                found = f"byte 0x{error.object[error.start]:02X} at byte {error.start}"
                yield Fault(
                    "invalid-utf-8",
                    "UTF-8",
                    found,
                    name,
                    f"row {number}",
                    todo="write the text in UTF-8, or take the row out",
                )
            number += 1


def _articles(rows: Iterable[Mapping[str, object] | Fault], file: str, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of rows, which are numbered from 0."""
    for number, row in enumerate(rows):
        yield row if isinstance(row, Fault) else article_of(row, file, f"row {number}")
        advance()
