"""One row an example, or a row a unit, written as they are counted: CSV, JSON Lines or Parquet by the file's ending."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from mmlongbench.errors import ReleaseError
from mmlongbench.io.atomic import atomic_write
from mmlongbench.release.items import Item
from mmlongbench.release.loading import PublicFile
from mmlongbench.release.measuring import Measured
from mmlongbench.release.models import Model
from mmlongbench.task.formats import to_json
from tokenization import TokenizationError

_BATCH = 20_000
"""Rows that are held before they are written."""


class Writer(Protocol):
    """Takes rows in."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row; every row has the same columns."""
        ...


def example_row(file: PublicFile, made: Measured, models: Sequence[Model]) -> dict[str, Any]:
    """What one example costs; a model that refuses an image has no number."""
    row: dict[str, Any] = {
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
) -> Iterator[dict[str, Any]]:
    """One row a unit of the context: from the release's own items; else each image, without a role.

    `start` is the token before it; a model's column has the tokens of the unit's image on it.
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
    """Tokens of the image at a place (from 0) on a model; none where it is refused."""
    if place is None:
        return 0
    try:
        return model.rule.tokens(*made.sizes[place], place + 1 if model.rule.by_place else len(made.sizes))
    except TokenizationError:
        return None


def _images(file: PublicFile, made: Measured) -> Iterator[Item]:
    """Each image of a prompt with the tokens before it, texts priced between newlines."""
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
def writing(path: Path) -> Iterator[Writer]:
    """A writer of rows by the ending of the file, which appears whole or not at all.

    Raises:
        ReleaseError: the ending is none of `.csv`, `.jsonl`, `.parquet`.

    """
    kinds: dict[str, type[_Csv | _JsonLines | _Parquet]] = {".csv": _Csv, ".jsonl": _JsonLines, ".parquet": _Parquet}
    if path.suffix not in kinds:
        raise ReleaseError(f"{path}: expected a file that ends in {', '.join(kinds)}")
    with atomic_write(path) as file:
        writer = kinds[path.suffix](file)
        yield writer
        writer.close()


class _Csv:
    def __init__(self, file: BinaryIO) -> None:
        self._file = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
        self._writer: Any = None

    def add(self, row: Mapping[str, Any]) -> None:
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row), lineterminator="\n")
            self._writer.writeheader()
        self._writer.writerow(row)

    def close(self) -> None:
        self._file.detach()


class _JsonLines:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, row: Mapping[str, Any]) -> None:
        self._file.write(to_json(row))

    def close(self) -> None:
        """Nothing is held back."""


class _Parquet:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rows: list[Mapping[str, Any]] = []
        self._writer: Any = None

    def add(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            schema = pa.schema([(key, _kind(key)) for key in (self._rows[0] if self._rows else {})])
            self._writer = pq.ParquetWriter(self._file, schema)
        self._writer.write_table(pa.Table.from_pylist([dict(row) for row in self._rows], self._writer.schema))
        self._rows = []

    def close(self) -> None:
        self._flush()
        self._writer.close()


def _kind(column: str) -> Any:  # noqa: ANN401  (a type of Arrow)
    import pyarrow as pa

    if column in ("file", "id", "unit", "role", "image"):
        return pa.string()
    if column in ("placement", "fill"):
        return pa.float64()
    return pa.int64()
