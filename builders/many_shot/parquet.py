"""Classified pictures in Parquet, as in Hugging Face datasets: the columns are `image` and `label`, and file names
contain the name of the split.

Labels are whole numbers; their names are in the file's metadata. Tests come from the split `test` or, without it, from
`validation`; exemplars come from `train`. Other splits and columns are not read. Pictures are read by row groups of
Parquet; only a few of these groups are in memory at a time.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from builders.common import SplitFiles, open_parquet
from builders.many_shot.splits import Entry, Split, Splits
from builders.many_shot.sun397 import scene_name
from mmlongbench.task import Fault, SourceError, visible_files

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

TESTS = ("test", "validation", "valid", "val")
"""The names of a split of tests; the first one that there is counts."""
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


def read(source: Path) -> Splits:
    """Return the splits of a folder of Parquet files.

    Raises:
        SourceError: a split or a column is missing, or the splits have other classes.

    """
    split = _files_by_split(source)
    tests = next((name for name in TESTS if name in split), "")
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
    notes = (note for name in ("train", tests) for note in SplitFiles(name, tuple(split[name])).notes)
    return Splits(replace(shown, names=names), replace(asked, names=names), tuple(notes))


def _files_by_split(source: Path) -> Mapping[str, list[Path]]:
    """Return the Parquet files of each split; under the empty name, those of other splits.

    The split is named by the file or, if the file names none, by the nearest folder that names one.
    """
    root = source if source.is_dir() else source.parent
    files = [file for file in visible_files(source) if file.suffix == ".parquet"] if source.is_dir() else [source]
    split: dict[str, list[Path]] = {}
    for file in files:
        parts = reversed(file.relative_to(root).parts)
        words = (word for part in parts for word in re.findall(r"[a-z]+", part.lower()))
        named = next((word for word in words if word in ("train", *TESTS)), "")
        split.setdefault(named, []).append(file)
    return split


def _split(name: str, files: tuple[Path, ...]) -> Split:
    entries: list[Entry] = []
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
        sizes = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
        cells = [(group, row) for group, size in enumerate(sizes) for row in range(size)]
        for number, (cell, label) in enumerate(zip(cells, _labels(table, file), strict=True)):
            place = f"row {number}"
            entries.append(Entry(Cell(file, *cell, f"{file.name}, {place}"), label, file.name, place))
    return Split(name, names, tuple(entries))


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
        names = tuple(scene_name(str(name)) for name in label.get("names") or ())
        "".join(names).encode()
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):  # a lone surrogate is a ValueError
        return ()
    return names


_table = lru_cache(maxsize=64)(open_parquet)


@lru_cache(maxsize=_GROUPS)
def _pictures(file: Path, group: int) -> "pa.Array[pa.Scalar[pa.DataType]]":
    return _table(file).read_row_group(group, ["image"]).column("image").combine_chunks()
