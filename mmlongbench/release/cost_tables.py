"""Writes what examples or units cost to a table, a row each, while they are counted: CSV, JSON Lines or Parquet."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_write
from mmlongbench.release.example_cost import Measured, Model
from mmlongbench.release.items import Item
from mmlongbench.release.release import PublicFile
from mmlongbench.task.formats import to_json
from tokenization import TokenizationError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 20_000
"""The rows that are kept in memory before they are written."""


AddRow: TypeAlias = Callable[[Mapping[str, object]], None]
"""Writes one row; every row of a table has the same columns."""


def example_row(file: PublicFile, made: Measured, models: Sequence[Model]) -> dict[str, object]:
    """Return the row with the cost of one example; the columns of a model that refuses an image have None."""
    row: dict[str, object] = {
        "file": file.name,
        "id": made.id,
        "placement": made.placement,
        "set": made.set,
        "length": file.length,
        "text_tokens": made.count.text,
        "image_tokens": made.count.image,
        "images": len(made.sizes),
        "reserve": made.reserve,
        "total": made.count.total,
        "fill": made.total / file.length,
    }
    for model in models:
        try:
            costs: tuple[int | None, ...] = made.tokens(model)
        except TokenizationError:
            costs = (None, None)
        row[f"{model.name}_text"], row[f"{model.name}_image"] = costs
        row[f"{model.name}_total"] = None if None in costs else sum(cost or 0 for cost in costs)
    return row


def unit_rows(
    file: PublicFile, made: Measured, items: Sequence[Item], models: Sequence[Model]
) -> Iterator[dict[str, object]]:
    """Yield a row for each unit of the context, from the items of the release. Without items, yield a row for each
    image, without a role.

    `start` is the number of tokens before the unit. The column of a model has the tokens that the unit's image costs on
    this model.
    """
    common = {"file": file.name, "id": made.id, "placement": made.placement, "set": made.set}
    places = {path: place for place, path in enumerate(made.prompt.images)}
    for item in items or _images(file, made):
        costs = {model.name: _cost(model, made, places.get(item["image"] or "")) for model in models}
        yield {
            **common,
            "position": item["position"],
            "unit": item["unit"],
            "role": item["role"],
            "image": item["image"],
            "start": item["start"],
            "text_tokens": item["text_tokens"],
            "image_tokens": item["image_tokens"],
            **costs,
        }


def _cost(model: Model, made: Measured, place: int | None) -> int | None:
    """Return the tokens of the image at a place (from 0) on a model; None if the model refuses the image, 0 if `place`
    is None.
    """
    if place is None:
        return 0
    try:
        return model.rule.tokens(*made.sizes[place], place + 1 if model.rule.by_place else len(made.sizes))
    except TokenizationError:
        return None


def _images(file: PublicFile, made: Measured) -> Iterator[Item]:
    """Yield each image of a prompt with the tokens before it; each text is counted as if it followed a newline."""
    if file.dataset is None:
        return
    counter, start, position = file.dataset.counter, 0, 0
    for part in made.prompt.parts:
        if isinstance(part, str):
            start += counter.text.price(part)
        else:
            cost = counter.image.tokens(*made.sizes[position])
            yield {
                "id": made.id,
                "placement": made.placement,
                "position": position,
                "unit": part.path,
                "role": "",
                "image": part.path,
                "start": start,
                "text_tokens": 0,
                "image_tokens": cost,
            }
            start, position = start + cost, position + 1


@contextmanager
def writing(path: Path) -> Iterator[AddRow]:
    """Give a function that writes rows, in the format that belongs to the path's ending.

    The file appears when it is complete, or not at all.

    Raises:
        ReleaseError: the ending is not `.csv`, `.jsonl` or `.parquet`.

    """
    writers = {".csv": _writing_csv, ".jsonl": _writing_lines, ".parquet": _writing_parquet}
    if path.suffix not in writers:
        raise ReleaseError(f"{path}: expected a file that ends in {', '.join(writers)}")
    with atomic_write(path) as file, writers[path.suffix](file) as add:
        yield add


@contextmanager
def _writing_csv(file: BinaryIO) -> Iterator[AddRow]:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    writer: csv.DictWriter[str] | None = None

    def add(row: Mapping[str, object]) -> None:
        nonlocal writer
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)

    yield add
    text.detach()


@contextmanager
def _writing_lines(file: BinaryIO) -> Iterator[AddRow]:
    def add(row: Mapping[str, object]) -> None:
        file.write(to_json(row))

    yield add


@contextmanager
def _writing_parquet(file: BinaryIO) -> Iterator[AddRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[Mapping[str, object]] = []
    schema: pa.Schema | None = None
    writer: pq.ParquetWriter | None = None

    def flush() -> pq.ParquetWriter:
        nonlocal schema, writer
        if schema is None or writer is None:
            schema = pa.schema([(key, _kind(key)) for key in (rows[0] if rows else {})])
            writer = pq.ParquetWriter(file, schema)
        writer.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema))
        rows.clear()
        return writer

    def add(row: Mapping[str, object]) -> None:
        rows.append(row)
        if len(rows) >= _BATCH:
            flush()

    yield add
    flush().close()


def _kind(column: str) -> "pa.DataType":
    import pyarrow as pa

    if column in ("file", "id", "unit", "role", "image"):
        return pa.string()
    if column in ("placement", "fill"):
        return pa.float64()
    return pa.int64()
