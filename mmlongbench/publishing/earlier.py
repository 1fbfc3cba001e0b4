"""Finds what an earlier publication already has: tables that a new one can keep as they are.

A table is kept if the new publication has every row of it, so an upload sends only the tables with what is new.
"""

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema
from mmlongbench.release.layout import PUBLISHED_EXAMPLES, PUBLISHED_IMAGES

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 32
"""How many rows are read at once."""
Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table of an earlier publication that stays as it is."""

    file: Path
    """The file."""
    keys: frozenset[str]
    """The digests of its examples (`row_digest`), or the SHA-256 of its images."""
    bytes: int = 0
    """The bytes of its images."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier publication, from which tables are kept."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> "Earlier":
        """Open a folder that `publish` made.

        Raises:
            ReleaseError: the folder has no tables of examples.

        """
        if next((folder / PUBLISHED_EXAMPLES).glob("*/*.parquet"), None) is None:
            raise ReleaseError(
                f"--after: {folder}: has no tables in {PUBLISHED_EXAMPLES}/; give a folder that publish made"
            )
        return cls(folder)

    def examples(self, dataset: str, split: str) -> list[Path]:
        """Return the tables of examples of a dataset at a length."""
        folder = self.folder / PUBLISHED_EXAMPLES / dataset
        return list(filter(Path.is_file, (folder / f"{split}.parquet", *sorted(folder.glob(f"{split}-*.parquet")))))

    def images(self) -> list[Path]:
        """Return the tables of images."""
        return sorted(filter(Path.is_file, (self.folder / PUBLISHED_IMAGES).glob("*.parquet")))

    def keep_images(self, wanted: Mapping[str, str]) -> Iterator[KeptTable]:
        """Yield the tables of which every image is wanted; `wanted` has the path of each by its SHA-256.

        Raises:
            ReleaseError: a table cannot be read, or an image is not the one of its SHA-256.

        """
        known, schema = set[str](), picture_schema("sha256", "path")
        for file in self.images():
            sizes = dict[str, int]()
            for row in _rows(file, schema):
                digest, path, data = str(row["sha256"]), str(row["path"]), _bytes_of(row["image"])
                is_wanted = wanted.get(digest) == path and row["image"] == picture_of(data, digest, path)
                if not is_wanted or digest in known or digest in sizes:
                    break
                if sha256(data).hexdigest() != digest:
                    raise ReleaseError(f"--after: {file}: image {digest} is damaged; give another publication")
                sizes[digest] = len(data)
            else:
                if sizes:
                    known |= sizes.keys()
                    yield KeptTable(file, frozenset(sizes), sum(sizes.values()))


def keep_examples(files: list[Path], schema: "pa.Schema", wanted: Set[str]) -> Iterator[KeptTable]:
    """Yield the tables of which every row is wanted; `wanted` has the digests of rows (`row_digest`).

    Raises:
        ReleaseError: a table cannot be read.

    """
    known = set[str]()
    for file in files:
        digests = [row_digest(row) for row in _rows(file, schema)]
        keys = frozenset(digests)
        if keys and len(keys) == len(digests) and keys <= wanted and keys.isdisjoint(known):
            known |= keys
            yield KeptTable(file, keys)


def row_digest(row: Row) -> str:
    """Return a digest of all values of a row.

    >>> row_digest({"id": "a", "depth": 0}) == row_digest({"depth": 0.0, "id": "a"})
    True
    """
    values = {name: float(value) if type(value) is int else value for name, value in row.items()}
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _bytes_of(image: object) -> bytes:
    data = image.get("bytes") if isinstance(image, dict) else None
    return data if isinstance(data, bytes) else b""


def _rows(file: Path, schema: "pa.Schema") -> Iterator[dict[str, object]]:
    """Yield the rows of a table; none if its schema is another one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            found = table.schema_arrow
            # compared apart: with metadata, also the names of list elements, which Parquet changes, would have to agree
            if found.equals(schema) and (found.metadata or {}) == (schema.metadata or {}):
                for batch in table.iter_batches(_BATCH):
                    yield from batch.to_pylist()
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise ReleaseError(f"--after: {file}: cannot be read as Parquet: {error}; give another publication") from error
