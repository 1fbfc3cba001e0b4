"""The examples of a file by name: an index is kept in memory, and examples are read when needed."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Protocol

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import MAX_BYTES, MAX_OF_A_FILE, bounded_lines, read_regular
from mmlongbench.release.layout import name_of
from mmlongbench.task.formats import to_json

_ROWS = 5_000
"""The rows of items that are in memory at a time."""


class Examples(Protocol):
    """The examples of a file."""

    @property
    def digests(self) -> Mapping[str, bytes]:
        """A digest of each example's bytes, by name, in the order of the file."""
        ...

    def read(self, names: Collection[str]) -> dict[str, object]:
        """Return some of the examples, by name."""
        ...


class Lines:
    """The examples of a file with one JSON object a line; any other line is read as text and named by its number."""

    def __init__(self, path: Path) -> None:
        """Read the whole file once."""
        self._path = path
        self._starts: dict[str, int] = {}
        self.digests: dict[str, bytes] = {}
        self.unreadable: list[str] = []
        """The names of the lines that are not JSON objects."""
        names = _Names()
        with path.open("rb") as file:
            for number, start, whole in bounded_lines(file):
                line = b"" if whole is None else whole
                value = _value(line)
                name = names.free(name_of(value) if isinstance(value, dict) else f"line {number}")
                if isinstance(value, str):
                    self.unreadable.append(name)
                self._starts[name], self.digests[name] = start, _digest(line)

    def read(self, names: Collection[str]) -> dict[str, object]:
        """Return some of the examples, by name."""
        found: dict[str, object] = {}
        with self._path.open("rb") as file:
            for name in names:
                file.seek(self._starts[name])
                found[name] = _value(file.readline(MAX_BYTES + 1))
        return found


class Units:
    """The examples of a file of items; an example is the list of its units' rows, in the order of the context.

    Of the table of assets, each row is an example of its own.
    """

    def __init__(self, path: Path) -> None:
        """Read the whole file once.

        Raises:
            ReleaseError: the file is not a Parquet file of items.

        """
        self._path = path
        self.digests = {name: _digest(repr(rows).encode("utf-8", "backslashreplace")) for name, rows in self._all()}

    def read(self, names: Collection[str]) -> dict[str, object]:
        """Return some of the examples, by name."""
        return {name: rows for name, rows in self._all() if name in names} if names else {}

    def _all(self) -> Iterator[tuple[str, object]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = _Names()
        try:
            with self._path.open("rb") as opened, pq.ParquetFile(opened) as file:
                rows = (row for batch in file.iter_batches(_ROWS) for row in batch.to_pylist())
                if {"dataset", "kind", "name", "sha256"} <= set(file.schema_arrow.names):
                    for row in rows:
                        asset = {**row, "sha256": row["sha256"].hex()}
                        yield names.free(f"{row['dataset']}: {row['kind']} {row['name']}"), asset
                    return
                for _, group in groupby(rows, key=lambda row: (row["id"], row["placement"])):
                    units = list(group)
                    yield names.free(name_of(units[0])), units
        except (pa.ArrowException, OSError, ValueError, KeyError, AttributeError) as error:
            raise ReleaseError(f"{self._path.name}: is no Parquet file of items: {type(error).__name__}") from error


class Members:
    """The members of one JSON object, for a public file that does not have one example a line; kept in memory."""

    def __init__(self, path: Path) -> None:
        """Read the whole file.

        Raises:
            ReleaseError: the file is not a JSON object.

        """
        try:
            value = _value(read_regular(path, MAX_OF_A_FILE))
        except (OSError, ValueError) as error:
            raise ReleaseError(f"{path.name}: {error}") from error
        if isinstance(value, str):
            raise ReleaseError(f"{path.name}: is no JSON object")
        self._members = value
        self.digests = {name: _digest(to_json(member)) for name, member in value.items()}

    def read(self, names: Collection[str]) -> dict[str, object]:
        """Return some of the members, by name."""
        return {name: self._members[name] for name in names}


class _Names:
    """Makes names distinct: a repeated name gets a number."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def free(self, name: str) -> str:
        self._times[name] += 1
        return name if self._times[name] == 1 else f"{name} ({self._times[name]})"


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _value(line: bytes) -> dict[str, object] | str:
    """Return the JSON object of a line, or the line itself as text if it has none."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else line.decode("utf-8", "backslashreplace").removesuffix("\n")
