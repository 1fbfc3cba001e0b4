"""Writes what examples or units cost to a table, a row each, while they are counted: CSV, JSON Lines or Parquet."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_write
from mmlongbench.release.example_cost import ExampleCost, Model
from mmlongbench.release.items import Item
from mmlongbench.release.release import PublicFile
from mmlongbench.task.file_formats import to_json
from tokenization import TokenizationError

_BATCH = 20_000
_TEXTS = ("file", "id", "unit", "role", "image")
_FRACTIONS = ("placement", "fill")

Row: TypeAlias = Mapping[str, object]
"""A row by the names of its columns; every row of a table has the same columns."""


def example_row(file: PublicFile, cost: ExampleCost, models: Sequence[Model]) -> Row:
    """Return the row with the cost of one example; the columns of a model that refuses an image have None."""
    row: dict[str, object] = {
        "file": file.name,
        "id": cost.id,
        "placement": cost.placement,
        "set": cost.set,
        "length": file.length,
        "text_tokens": cost.count.text,
        "image_tokens": cost.count.image,
        "images": len(cost.sizes),
        "reserve": cost.reserve,
        "total": cost.count.total,
        "fill": cost.total / file.length,
    }
    for model in models:
        try:
            text, image = cost.tokens(model)
            row |= {f"{model.name}_text": text, f"{model.name}_image": image, f"{model.name}_total": text + image}
        except TokenizationError:
            row |= dict.fromkeys((f"{model.name}_text", f"{model.name}_image", f"{model.name}_total"))
    return row


def unit_rows(file: PublicFile, cost: ExampleCost, items: Sequence[Item], models: Sequence[Model]) -> Iterator[Row]:
    """Yield a row for each unit of the context, from the items of the release. Without items, yield a row for each
    image, without a role.

    `start` is the number of tokens before the unit. The column of a model has the tokens that the unit's image costs on
    this model; None if the model refuses the image.
    """
    places = {path: place for place, path in enumerate(cost.prompt.images)}
    for item in items or _images(file, cost):
        on_models: dict[str, int | None] = {}
        for model in models:
            rule, place = model.rule, places.get(item["image"] or "")
            try:
                number = len(cost.sizes) if place is None or not rule.by_place else place + 1
                on_models[model.name] = 0 if place is None else rule.tokens(*cost.sizes[place], number)
            except TokenizationError:
                on_models[model.name] = None
        yield {
            "file": file.name,
            "id": cost.id,
            "placement": cost.placement,
            "set": cost.set,
            "position": item["position"],
            "unit": item["unit"],
            "role": item["role"],
            "image": item["image"],
            "start": item["start"],
            "text_tokens": item["text_tokens"],
            "image_tokens": item["image_tokens"],
            **on_models,
        }


def _images(file: PublicFile, cost: ExampleCost) -> Iterator[Item]:
    """Yield each image of a prompt with the tokens before it; each text is counted as if it followed a newline."""
    if file.dataset is None:
        return
    counter, start, position = file.dataset.counter, 0, 0
    images = counter.image.each(cost.sizes)
    for part in cost.prompt.parts:
        if isinstance(part, str):
            start += counter.text.price(part)
        else:
            tokens = images[position]
            yield {
                "id": cost.id,
                "placement": cost.placement,
                "position": position,
                "unit": part.path,
                "role": "",
                "image": part.path,
                "start": start,
                "text_tokens": 0,
                "image_tokens": tokens,
            }
            start, position = start + tokens, position + 1


@contextmanager
def writing(path: Path) -> Iterator[Callable[[Row], object]]:
    """Give a function that writes a row, in the format that belongs to the path's ending. The file appears when it is
    complete, or not at all.
    """
    if path.suffix not in (".csv", ".jsonl", ".parquet"):
        raise ReleaseError(f"{path}: expected a file that ends in .csv, .jsonl, .parquet")
    with atomic_write(path) as file:
        if path.suffix == ".jsonl":
            yield lambda row: file.write(to_json(row))
        elif path.suffix == ".csv":
            text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
            writer: csv.DictWriter[str] = csv.DictWriter(text, (), lineterminator="\n")

            def add(row: Row) -> None:
                if not writer.fieldnames:
                    writer.fieldnames = list(row)
                    writer.writeheader()
                writer.writerow(row)

            yield add
            text.detach()
        else:
            with _writing_parquet(file) as add_row:
                yield add_row


@contextmanager
def _writing_parquet(file: BinaryIO) -> Iterator[Callable[[Row], object]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[Row] = []
    writers: list[tuple[pq.ParquetWriter, pa.Schema]] = []  # one, once the first rows have named the columns

    def flush() -> None:
        if not writers:  # a column that is empty in the first rows has a type, too
            kinds = dict.fromkeys(_TEXTS, pa.string()) | dict.fromkeys(_FRACTIONS, pa.float64())
            schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in (rows[0] if rows else ())])
            writers.append((pq.ParquetWriter(file, schema), schema))
        writer, schema = writers[0]
        writer.write_table(pa.Table.from_pylist(list(map(dict, rows)), schema))
        rows.clear()

    def add(row: Row) -> None:
        rows.append(row)
        if len(rows) >= _BATCH:
            flush()

    yield add
    flush()
    writers[0][0].close()
