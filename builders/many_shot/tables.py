"""Classified pictures in Parquet, as in Hugging Face datasets: the columns are `image` and `label`, and file names
contain the name of the split.

Food101, Stanford Cars and SUN397 have this form (`hub:ethz/food101`). Labels are whole numbers; their names are in the
file's metadata. Tests come from the split `test` or, without it, from `validation`; exemplars come from `train`.
Pictures are read by row groups of Parquet; only a few of these groups are in memory at a time.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from builders.many_shot.rows import ClassifiedImage
from mmlongbench.task import (
    Fault,
    ImageClass,
    ImageClasses,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    raw_row,
    visible_files,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_TESTS = ("test", "validation", "valid", "val")
_GROUPS = 8
"""The number of row groups in memory at a time."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A picture in a table; like a file, it has a name and bytes."""

    file: Path
    group: int
    row: int
    """The row inside the group."""
    name: str

    def read_bytes(self) -> bytes:
        """Return the picture's bytes; empty if the cell is empty."""
        import pyarrow as pa

        try:
            value = _pictures(self.file, self.group)[self.row].as_py()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise OSError(f"{self.file.name}: {error}") from error
        found = value.get("bytes") if isinstance(value, dict) else value
        return found if isinstance(found, bytes) else b""


@dataclass(frozen=True, slots=True)
class Split:
    """The rows of one split, file after file."""

    name: str
    labels: tuple[int | None, ...]
    names: tuple[str, ...]
    """The names of the classes, by label; empty if the file has none."""
    cells: tuple[Cell, ...]

    def kind(self, label: int | None) -> str | None:
        """Return the id of a label's class, or None if there is no such class."""
        is_label = label is not None and label >= 0 and (label < len(self.names) or not self.names)
        return f"{label:05}" if is_label else None


class ImageTables(Reader[ClassifiedImage]):
    """Reads the Parquet files of a dataset of the hub."""

    row_type: ClassVar[type[Row]] = ClassifiedImage
    sources: ClassVar[tuple[str, ...]] = ("data",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "data": (
            "A folder of Parquet files, or a dataset of the hub (`hub:owner/name@revision`); files have the "
            "columns image and label, and their names contain `train`, or `test` or `validation`."
        ),
    }
    image_folder: ClassVar[str] = "image-tables"
    hub_files: ClassVar[tuple[str, ...]] = ("*.parquet", "**/*.parquet")
    names_images_by_content: ClassVar[bool] = True
    fixed_fields: ClassVar[tuple[str, ...]] = ("image", "label")

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each picture of the test split with the id `<split>-<row>`; then, as faults, the exemplar rows without
        a valid label.
        """
        exemplars, tests = _splits(sources["data"])
        for number, label in enumerate(tests.labels):
            fields = {"image": f"tests/{number}", "label": label}
            yield raw_row(f"{tests.name}-{number}", fields, *_place(tests.cells[number]))
        for number, label in enumerate(exemplars.labels):
            if exemplars.kind(label) is None:
                fault = _unlabelled(label, exemplars)
                yield raw_row(f"{exemplars.name}-{number}", fault, *_place(exemplars.cells[number]))

    def row(self, raw: RawRow, sources: SourcePaths) -> ClassifiedImage | Fault:
        """Return one test picture with its class."""
        _, tests = _splits(sources["data"])
        label = raw.fields["label"]
        kind = tests.kind(label)
        if kind is None:
            return _unlabelled(label, tests)
        return ClassifiedImage(id=raw.id, image=raw.fields["image"], kind=kind)

    def image(self, sources: SourcePaths, name: str) -> Cell | None:
        """Return a picture by `exemplars/<row>` or `tests/<row>`."""
        found = re.fullmatch(r"(exemplars|tests)/(\d{1,12})", name)
        split = _splits(sources["data"])[found[1] == "tests"] if found else None
        return split.cells[int(found[2])] if split and found and int(found[2]) < len(split.cells) else None

    def image_classes(self, sources: SourcePaths) -> ImageClasses:
        """Return every class of the two splits."""
        exemplars, tests = _splits(sources["data"])
        shown: dict[str, list[str]] = {}
        asked: dict[str, int] = {}
        for number, label in enumerate(exemplars.labels):
            if kind := exemplars.kind(label):
                shown.setdefault(kind, []).append(f"exemplars/{number}")
        for kind in filter(None, map(tests.kind, tests.labels)):
            asked[kind] = asked.get(kind, 0) + 1
        kinds = sorted({*shown, *asked})
        names = {kind: exemplars.names[int(kind)] if exemplars.names else str(int(kind)) for kind in kinds}
        found = {kind: ImageClass(names[kind], "", tuple(shown.get(kind, ())), asked.get(kind, 0)) for kind in kinds}
        return ImageClasses(exemplars.name, tests.name, found)


def _unlabelled(label: int | None, split: Split) -> Fault:
    expected = f"a whole number from 0 to {len(split.names) - 1}" if split.names else "a whole number from 0"
    return Fault(
        "no-label",
        expected,
        "nothing" if label is None else str(label),
        field="label",
        todo="give the picture a label, or take the row out",
    )


def _place(cell: Cell) -> tuple[str, str]:
    file, _, place = cell.name.partition(", ")
    return file, place


@lru_cache(maxsize=4)
def _splits(source: Path) -> tuple[Split, Split]:
    """Return the split of exemplars and the split of tests."""
    root = source if source.is_dir() else source.parent
    files = [file for file in visible_files(source) if file.suffix == ".parquet"] if source.is_dir() else [source]
    split: dict[str, list[Path]] = {}
    for file in files:
        words = re.findall(r"[a-z]+", file.relative_to(root).as_posix().lower())
        named = next((word for word in words if word in ("train", *_TESTS)), "")
        split.setdefault(named, []).append(file)
    tests = next((name for name in _TESTS if name in split), "")
    if "train" not in split or not tests:
        found = ", ".join(sorted(filter(None, split))) or "none in the names of Parquet files"
        expected = "files of a split `train`, and of `test` or `validation`"
        raise SourceError(
            Fault("missing-split", expected, found, source.name, todo="give a folder or file that has this split")
        )
    shown, asked = _split("train", tuple(split["train"])), _split(tests, tuple(split[tests]))
    if shown.names and asked.names and shown.names != asked.names:
        raise SourceError(
            Fault(
                "two-lists-of-names",
                "the same classes in both splits",
                "others",
                source.name,
                todo="use two splits of the same dataset",
            )
        )
    names = shown.names or asked.names
    return replace(shown, names=names), replace(asked, names=names)


def _split(name: str, files: tuple[Path, ...]) -> Split:
    labels: list[int | None] = []
    cells: list[Cell] = []
    names: tuple[str, ...] = ()
    for file in files:
        table = _table(file)
        kinds = table.schema_arrow
        for column in ("image", "label"):
            if column not in kinds.names:
                raise SourceError(
                    Fault(
                        "missing-column",
                        f"a column {column}",
                        ", ".join(kinds.names),
                        file.name,
                        todo="give a file with this column",
                    )
                )
        if not str(kinds.field("label").type).startswith(("int", "uint")):
            found = f"{kinds.field('label').type}"
            raise SourceError(
                Fault(
                    "labels-not-integers",
                    "a column of integers",
                    found,
                    file.name,
                    field="label",
                    todo="write the labels as integers, or leave out the list of names",
                )
            )
        names = names or _names(kinds.metadata or {})
        labels += _labels(table, file)
        sizes = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
        places = [(group, row) for group, size in enumerate(sizes) for row in range(size)]
        cells += [Cell(file, *place, f"{file.name}, row {number}") for number, place in enumerate(places)]
    return Split(name, tuple(labels), names, tuple(cells))


def _labels(table: "pq.ParquetFile", file: Path) -> list[int | None]:
    import pyarrow as pa

    try:
        labels: list[int | None] = table.read(["label"]).column("label").to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(
            Fault(
                "unreadable-source",
                "labels that can be read",
                str(error)[:200],
                file.name,
                todo="download the file again",
            )
        ) from error
    return labels


def _names(metadata: Mapping[bytes, bytes]) -> tuple[str, ...]:
    """Return the names of the classes from a schema that `datasets` has written."""
    try:
        label = json.loads(metadata[b"huggingface"])["info"]["features"]["label"]
        names = tuple(map(str, label.get("names") or ()))
        "".join(names).encode()
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):  # a lone surrogate is a ValueError
        return ()
    return names


@lru_cache(maxsize=_GROUPS)
def _pictures(file: Path, group: int) -> "pa.Array[pa.Scalar[pa.DataType]]":
    return _table(file).read_row_group(group, ["image"]).column("image").combine_chunks()


@lru_cache(maxsize=64)
def _table(file: Path) -> "pq.ParquetFile":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            Fault("unreadable-source", "a Parquet file", str(error)[:200], file.name, todo="download the file again")
        ) from error
