"""Writes tables of Parquet in row groups of bounded size, with images that `datasets` and the Hub decode."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mmlongbench.io.files import atomic_write

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS = 100
"""The maximum number of rows of a row group; so many are in memory at a time."""
GROUP_BYTES = 32 * 1024 * 1024
"""A row group ends when its rows have so many bytes. The viewer of the Hub reads whole row groups, and those of more
than about 100 MB fail."""
_ONE_IMAGE = {"min_chunk_size": 1024, "max_chunk_size": 2048, "norm_level": 0}
"""A chunk ends after the value with which it has so many bytes, and an image has more."""


def picture_schema(key: str, *others: str, numbers: Iterable[str] = ()) -> "pa.Schema":
    """Return the columns of a table of images: a key, `image`, and more texts and whole numbers; its metadata say that
    `image` is an image.
    """
    import pyarrow as pa

    texts = {name: {"dtype": "string", "_type": "Value"} for name in (key, *others)}
    whole = {name: {"dtype": "int64", "_type": "Value"} for name in numbers}
    described = json.dumps({"info": {"features": {**texts, "image": {"_type": "Image"}, **whole}}})
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = [(key, pa.string()), ("image", picture), *((name, pa.string()) for name in others)]
    return pa.schema([*columns, *((name, pa.int64()) for name in whole)], metadata={"huggingface": described})


def picture_of(data: bytes, name: str, path: str) -> Mapping[str, object]:
    """Return an image as a value of the column `image`; its name has the ending of `path`."""
    return {"bytes": data, "path": f"{name}{Path(path).suffix.lower()}"}


def write_rows(
    path: Path, schema: "pa.Schema", rows: Iterable[tuple[Mapping[str, object], int]], *, is_packed: bool = False
) -> None:
    """Write rows, of each of which the size in bytes is given, in row groups of bounded size; no row gives no file.
    `is_packed`: the bytes are compressed, such as those of images.
    """
    import pyarrow as pa

    with ExitStack() as stack:
        writer: pq.ParquetWriter | None = None
        for group in _groups(rows):
            if writer is None:
                file = stack.enter_context(atomic_write(path))
                writer = stack.enter_context(_writer(file, schema, is_packed=is_packed))
            writer.write_table(pa.Table.from_pylist(group, schema))


def _writer(file: BinaryIO, schema: "pa.Schema", *, is_packed: bool) -> "pq.ParquetWriter":
    """Return a writer; its chunks depend on content, so that the Hub stores equal parts of two files once.

    Every image is a chunk of its own. Otherwise the header of a chunk, which may stand between any two images, would
    move wherever an image is added or moved.
    """
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        file,
        schema,
        compression="none" if is_packed else "zstd",
        use_dictionary=not is_packed,
        write_page_index=True,
        use_content_defined_chunking=_ONE_IMAGE if is_packed else True,
    )


def _groups(rows: Iterable[tuple[Mapping[str, object], int]]) -> Iterator[list[Mapping[str, object]]]:
    group: list[Mapping[str, object]] = []
    size = 0
    for row, bytes_ in rows:
        group.append(row)
        size += bytes_
        if len(group) >= ROWS or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
