"""One row an example, or a row a unit, written as they are counted: CSV, JSON Lines or Parquet by the file's ending."""

import csv
import io
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.io.atomic import atomic_write
from mmlongbench.release.layout import ITEMS
from mmlongbench.release.loading import PublicFile
from mmlongbench.release.measuring import Measured
from mmlongbench.release.models import Model
from mmlongbench.task.formats import to_json
from tokenization import TokenizationError

_Key: TypeAlias = tuple[str, float | None]
_AHEAD = 16
"""Examples by which the items may be ahead of what can be counted."""
_BATCH = 20_000
"""Rows that are held before they are written."""
_READ = 1024
"""Rows of items that are read at once."""
_MAX_UNITS = 2
"""Units an example may have for each token of its length; those that cost nothing are rare."""
_MAX_ROW = 4096
"""Bytes a row of items may have on average: ids, a path, numbers."""
_MAX_TEXT = 16 * 1024
"""Bytes of one text of a row."""
_TEXTS = ["id", "unit", "role", "inside", "image"]
_NUMBERS = ["placement", "position", "start", "text_tokens", "image_tokens"]
_MAX_FIRST = 256 * 1024
"""Bytes a file of items may have however few its rows are."""


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
    file: PublicFile, made: Measured, items: Sequence[Mapping[str, Any]], models: Sequence[Model]
) -> Iterator[dict[str, Any]]:
    """One row a unit of the context: from the release's own items; else each image, without a role.

    `start` is the token before it; a model's column has the tokens of the unit's image on it.
    """
    common = {"file": file.name, "id": made.id, "placement": made.placement, "set": made.set}
    places = {path: place for place, path in enumerate(made.prompt.images)}
    for item in items or _images(file, made):
        kept = {key: item[key] for key in ("position", "unit", "role", "image", "start", "text_tokens", "image_tokens")}
        costs = {model.name: _cost(model, made, places.get(item["image"])) for model in models}
        yield {**common, **kept, **costs}


def _cost(model: Model, made: Measured, place: int | None) -> int | None:
    """Tokens of the image at a place (from 0) on a model; none where it is refused."""
    if place is None:
        return 0
    try:
        return model.rule.tokens(*made.sizes[place], place + 1 if model.rule.by_place else len(made.sizes))
    except TokenizationError:
        return None


def _images(file: PublicFile, made: Measured) -> Iterator[dict[str, Any]]:
    """Each image of a prompt with the tokens before it, texts priced between newlines."""
    if file.dataset is None:
        return
    counter, start, position = file.dataset.counter, 0, 0
    for part in made.prompt.parts:
        if isinstance(part, str):
            start += counter.text.price(part)
        else:
            cost = counter.image.tokens(*made.sizes[position])
            unit = {"unit": part.path, "role": "", "image": part.path, "start": start}
            yield {"position": position, **unit, "text_tokens": 0, "image_tokens": cost}
            start, position = start + cost, position + 1


class Items:
    """The items of a release, read beside the public files, example after example."""

    def __init__(self, root: Path, examples: int | None = None) -> None:
        """`root` is the release; `examples` are those that a file has, where its items must not be more than fit."""
        self._root, self._examples = root, examples
        self._name = ""
        self._groups: Iterator[tuple[_Key, list[dict[str, Any]]]] = iter(())
        self._ahead: deque[tuple[_Key, list[dict[str, Any]]]] = deque()
        self._passed = ""

    def left(self) -> str:
        """Return the first example of which there are items and that was not asked for; empty if there is none."""
        keys = (key for key, _ in (*self._ahead, *self._groups))
        return self._passed or next((f"{id}, {placement}" for id, placement in keys), "")

    def of(self, file: PublicFile, made: Measured) -> Sequence[Mapping[str, Any]]:
        """The items of one example; none where the release has none of it. Examples come in the order of the file."""
        if file.name != self._name:
            self._name, self._groups, self._ahead = file.name, self._read(file), deque()
        while len(self._ahead) < _AHEAD and (group := next(self._groups, None)):
            self._ahead.append(group)
        place = next((n for n, (key, _) in enumerate(self._ahead) if key == (made.id, made.placement)), None)
        if place is None:
            return ()
        for _ in range(place):  # of examples that could not be counted
            (id, placement), _ = self._ahead.popleft()
            self._passed = self._passed or f"{id}, {placement}"
        return self._ahead.popleft()[1]

    def _read(self, file: PublicFile) -> Iterator[tuple[_Key, list[dict[str, Any]]]]:
        """The rows of each example.

        Raises:
            ReleaseError: they are more, or larger, than examples of this length can have.

        """
        import pyarrow.parquet as pq

        path = self._root / ITEMS / Path(file.name).with_suffix(".parquet")
        if not path.is_file():
            return
        table, most = pq.ParquetFile(path, read_dictionary=_text_columns(path)), _MAX_UNITS * file.length
        rows = table.metadata.num_rows
        size = sum(table.metadata.row_group(number).total_byte_size for number in range(table.metadata.num_row_groups))
        if self._examples is not None and rows > (bound := most * self._examples):
            raise ReleaseError(f"{path.name}: {rows:,} rows, {self._examples:,} examples have at most {bound:,}")
        if size > (bound := _MAX_FIRST + rows * _MAX_ROW):
            raise ReleaseError(f"{path.name}: {size:,} bytes unpacked, {rows:,} rows have at most {bound:,}")
        units = (row for batch in _batches(table, path) for row in _rows(batch))
        for key, group in groupby(units, key=lambda row: (row["id"], row["placement"])):
            found = list(islice(group, most + 1))
            if len(found) > most:
                raise ReleaseError(f"{path.name}: {key[0]}, {key[1]}: more than {most:,} units")
            yield key, found


def _text_columns(path: Path) -> list[str]:
    """Return the columns of texts that a table of items has.

    Raises:
        ReleaseError: a column has values of another type than items have.

    """
    import pyarrow.parquet as pq
    import pyarrow.types as types

    found = []
    for field in pq.read_schema(path):
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        is_text, is_number = types.is_string(kind) or types.is_large_string(kind), types.is_integer(kind)
        if field.name in _TEXTS and is_text:
            found.append(field.name)
        is_known = is_text if field.name in _TEXTS else is_number or types.is_floating(kind)
        if field.name in (*_TEXTS, *_NUMBERS) and not is_known and not types.is_null(kind):
            raise ReleaseError(f"{path.name}: {field.name} is {field.type}, expected a text or a number")
    return found


def _batches(table: Any, path: Path) -> Iterator[Any]:  # noqa: ANN401  (of Arrow, which has no types)
    """Return the rows of a table of items, some at a time, without other columns.

    Raises:
        ReleaseError: a text is too long.

    """
    import pyarrow.compute as pc

    known = [name for name in table.schema_arrow.names if name in (*_TEXTS, *_NUMBERS)]
    for batch in table.iter_batches(_READ, columns=known):
        for name in batch.schema.names:
            texts = getattr(batch[name], "dictionary", None)
            longest = 0 if texts is None else pc.max(pc.binary_length(texts)).as_py() or 0
            if longest > _MAX_TEXT:
                raise ReleaseError(f"{path.name}: {name}: a text of {longest:,} bytes, at most {_MAX_TEXT:,} are read")
        yield batch


def _rows(batch: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Return the rows of a batch; equal texts are one object, since a few bytes may repeat a text in each row."""
    columns = []
    for name in batch.schema.names:
        column = batch[name]
        texts = getattr(column, "dictionary", None)
        if texts is None:
            columns.append(column.to_pylist())
        else:
            known = texts.to_pylist()
            columns.append([None if at is None else known[at] for at in column.indices.to_pylist()])
    return (dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True))


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
