"""Reads sources made of rows: Parquet files, datasets saved by `datasets`, and datasets of the Hugging Face hub. Only
known columns are read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mmlongbench.corpus.articles import Article
from mmlongbench.corpus.lines import Advance
from mmlongbench.corpus.rows import FIELDS, IDS, TEXTS, TITLES, article_of
from mmlongbench.errors import Fault, SourceError

if TYPE_CHECKING:
    from pyarrow import RecordBatch


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
