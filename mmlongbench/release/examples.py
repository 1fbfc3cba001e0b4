"""The examples of a file by name, without the builder that made them: `diff` and `verify` compare files with them."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import MAX_BYTES, MAX_OF_A_FILE, bounded_lines, read_regular
from mmlongbench.release.layout import name_of
from mmlongbench.task.formats import to_json

_ROWS = 5_000
"""The rows of items that are in memory at a time."""
_Named: TypeAlias = tuple[str, bytes, object, int]
"""The name of an example, its bytes, its value (a text if it is no JSON object), and where its line begins."""


class ExampleFile:
    """The examples of a file. An index of them is kept in memory; examples are read when needed.

    A `.jsonl` file has an example a line. In a file of items, an example is the list of its units' rows; in the table
    of assets, it is a row; in a `.json` file, a member of the object.
    """

    def __init__(self, path: Path) -> None:
        """Read the whole file once.

        Raises:
            ReleaseError: the file cannot be read as what its ending says.

        """
        self._path = path
        self._starts: dict[str, int] = {}
        self.digests: dict[str, bytes] = {}
        """A digest of each example's bytes, by name, in the order of the file."""
        self.unreadable: list[str] = []
        """The names of the lines that are not JSON objects."""
        for name, data, value, start in _named(path):
            self.digests[name], self._starts[name] = blake2b(data, digest_size=16).digest(), start
            if isinstance(value, str):
                self.unreadable.append(name)

    @staticmethod
    def has_examples(path: Path) -> bool:
        """Return whether files with this ending have examples."""
        return path.suffix in (".jsonl", ".parquet", ".json")

    def read(self, names: Collection[str]) -> dict[str, object]:
        """Return some of the examples, by name."""
        if not names:
            return {}
        if self._path.suffix != ".jsonl":
            return {name: value for name, _, value, _ in _named(self._path) if name in names}
        found: dict[str, object] = {}
        with self._path.open("rb") as file:
            for name in names:
                file.seek(self._starts[name])
                found[name] = _value(file.readline(MAX_BYTES + 1))
        return found


def _named(path: Path) -> Iterator[_Named]:
    """Yield the examples of a file; a repeated name gets a number."""
    examples = {".jsonl": _lines, ".parquet": _rows, ".json": _members}[path.suffix](path)
    times: Counter[str] = Counter()
    for name, data, value, start in examples:
        times[name] += 1
        yield (name if times[name] == 1 else f"{name} ({times[name]})"), data, value, start


def _lines(path: Path) -> Iterator[_Named]:
    with path.open("rb") as file:
        for number, start, whole in bounded_lines(file):
            line = b"" if whole is None else whole
            value = _value(line)
            yield (name_of(value) if isinstance(value, dict) else f"line {number}"), line, value, start


def _rows(path: Path) -> Iterator[_Named]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened, pq.ParquetFile(opened) as file:
            rows = (row for batch in file.iter_batches(_ROWS) for row in batch.to_pylist())
            if {"dataset", "kind", "name", "sha256"} <= set(file.schema_arrow.names):
                for row in rows:
                    asset = {**row, "sha256": row["sha256"].hex()}
                    yield f"{row['dataset']}: {row['kind']} {row['name']}", _bytes(asset), asset, 0
                return
            for _, group in groupby(rows, key=lambda row: (row["id"], row["placement"])):
                units = list(group)
                yield name_of(units[0]), _bytes(units), units, 0
    except (pa.ArrowException, OSError, ValueError, KeyError, AttributeError) as error:
        raise ReleaseError(f"{path.name}: is no Parquet file of items: {type(error).__name__}") from error


def _bytes(value: object) -> bytes:
    return repr(value).encode("utf-8", "backslashreplace")


def _members(path: Path) -> Iterator[_Named]:
    try:
        value = _value(read_regular(path, MAX_OF_A_FILE))
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path.name}: {error}") from error
    if isinstance(value, str):
        raise ReleaseError(f"{path.name}: is no JSON object")
    yield from ((name, to_json(member), member, 0) for name, member in value.items())


def _value(line: bytes) -> dict[str, object] | str:
    """Return the JSON object of a line, or the line itself as text if it has none."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else line.decode("utf-8", "backslashreplace").removesuffix("\n")
