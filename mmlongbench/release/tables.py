"""Writes a table while examples are counted, with a row for each example or unit. The ending of the file's name decides
the format: CSV, JSON Lines or Parquet.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_write
from mmlongbench.lengths import STANDARD_LENGTHS
from mmlongbench.release.audit import Target, measured_examples
from mmlongbench.release.findings import FileAudit
from mmlongbench.release.items import Item
from mmlongbench.release.measuring import Measured, Model, ModelOptions
from mmlongbench.release.release import PublicFile, Release
from mmlongbench.task.formats import to_json
from tokenization import TokenizationError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Row:
    """One dataset: (mean, standard deviation) of the images per example, by length in tokens."""

    dataset: str
    images: Mapping[int, tuple[float, float]]
    paper: Mapping[int, float]


def table(audits: Iterable[FileAudit], paper: Mapping[str, Sequence[float]]) -> list[Row]:
    """Return a row for each dataset. Datasets with a `.json` file come first, the others are in the given order.

    If a length has both a `.json` file and another file of the same records, only the other file is counted. `paper`
    has the paper's numbers of each dataset, at the standard lengths.
    """
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for audit in sorted(audits, key=lambda audit: not audit.file.endswith(".json")):
        if audit.images.n:
            found.setdefault(audit.dataset, {})[audit.length] = (audit.images.mean, audit.images.deviation)
    return [
        Row(name, images, dict(zip(STANDARD_LENGTHS, paper.get(name, ()), strict=False)))
        for name, images in found.items()
    ]


STEPS = 100
"""The number of steps: factors are hundredths."""


@dataclass(frozen=True, slots=True)
class Costliest:
    """What one pass finds with all images scaled by one factor: the example with the most tokens, and two counts."""

    tokens: int
    """Its tokens, with its reserve."""
    where: str
    """Its file and id."""
    over_images: int
    """The number of examples with more images than a request may hold: no size helps these."""
    refused: int
    """The number of examples with an image whose size the model refuses."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The factor that was found."""

    model: str
    window: int
    factor: float | None
    """The factor for both sides of every image; None if even a hundredth is too large."""
    at: Costliest
    """The costliest example at that factor; at a hundredth if there is no factor."""
    as_it_is: Costliest


def fit(target: Target, asked: ModelOptions) -> Fit:
    """Find a factor at which every example fits the window, while at a factor larger by 0.01 some example does not.

    The factor is 1 if every example fits unchanged. Examples with an image that the model refuses are only counted.
    Trying a factor takes one pass over the release. Sides are rounded down, to at least one pixel. With rules that cut
    images into tiles, a larger factor may fit again.

    Raises:
        ReleaseError: the model has no window.

    """
    if asked.window is None:
        raise ReleaseError(f"--fit {asked.name}: its window is not known; give it with --window {asked.name}=TOKENS")
    model, opened = asked.open(), target.open()
    whole = _most(opened, model, STEPS)
    if whole.tokens <= asked.window:
        return Fit(asked.name, asked.window, 1.0, whole, whole)
    least = _most(opened, model, 1)
    if least.tokens > asked.window:
        return Fit(asked.name, asked.window, None, least, whole)
    low, high = 1, STEPS  # fits at low, but not at high
    while high - low > 1:
        middle = (low + high) // 2
        tried = _most(opened, model, middle)
        if tried.tokens <= asked.window:
            low, least = middle, tried
        else:
            high = middle
    return Fit(asked.name, asked.window, low / STEPS, least, whole)


def resized(size: tuple[int, int], hundredths: int) -> tuple[int, int]:
    """Return (width, height) scaled by hundredths, rounded down as `--image_resize` rounds.

    >>> resized((640, 3), 25)
    (160, 1)
    """
    return max(1, math.floor(size[0] * hundredths / STEPS)), max(1, math.floor(size[1] * hundredths / STEPS))


def _most(opened: Release, model: Model, hundredths: int) -> Costliest:
    """Return the costliest example if images are scaled by `hundredths`; headers of images are read only once."""
    most, where, too_many, refused = 0, "", 0, 0
    for file in opened.files:
        for _, made in measured_examples(file, FileAudit(file.name, file.length)):
            smaller = replace(made, sizes=tuple(resized(size, hundredths) for size in made.sizes))
            too_many += model.max_images is not None and len(made.sizes) > model.max_images
            try:
                total = sum(smaller.tokens(model)) + made.reserve
            except TokenizationError:
                refused += 1
                continue
            if total > most:
                most, where = total, f"{file.name}, {made.id}"
    return Costliest(most, where, too_many, refused)


_BATCH = 20_000
"""The rows that are kept in memory before they are written."""


class Writer(Protocol):
    """Writes rows to a file."""

    def add(self, row: Mapping[str, object]) -> None:
        """Write one row; every row has the same columns."""
        ...


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
def writing(path: Path) -> Iterator[Writer]:
    """Give a writer for the format that belongs to the path's ending.

    The file appears when it is complete, or not at all.

    Raises:
        ReleaseError: the ending is not `.csv`, `.jsonl` or `.parquet`.

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
        self._writer: csv.DictWriter[str] | None = None

    def add(self, row: Mapping[str, object]) -> None:
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row), lineterminator="\n")
            self._writer.writeheader()
        self._writer.writerow(row)

    def close(self) -> None:
        self._file.detach()


class _JsonLines:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, row: Mapping[str, object]) -> None:
        self._file.write(to_json(row))

    def close(self) -> None:
        """Do nothing: all rows are already written."""


class _Parquet:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rows: list[Mapping[str, object]] = []
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None

    def add(self, row: Mapping[str, object]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _BATCH:
            self._flush()

    def _flush(self) -> "pq.ParquetWriter":
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            self._schema = pa.schema([(key, _kind(key)) for key in (self._rows[0] if self._rows else {})])
            self._writer = pq.ParquetWriter(self._file, self._schema)
        self._writer.write_table(pa.Table.from_pylist([dict(row) for row in self._rows], self._schema))
        self._rows = []
        return self._writer

    def close(self) -> None:
        self._flush().close()


def _kind(column: str) -> "pa.DataType":
    import pyarrow as pa

    if column in ("file", "id", "unit", "role", "image"):
        return pa.string()
    if column in ("placement", "fill"):
        return pa.float64()
    return pa.int64()
