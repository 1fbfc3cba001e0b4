"""The cells stage: the shards of a dataset at a length, merged into the files of the release in one reading."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.checks import check_file
from mmlongbench.building.dataset import Dataset, open_dataset
from mmlongbench.building.records import record_shards, rows_of
from mmlongbench.io.atomic import atomic_write, sha256_of, write_whole
from mmlongbench.lengths import parse_length
from mmlongbench.release.layout import DATA, ITEMS
from mmlongbench.task.formats import JSON_LINES

_ROWS = 50_000
"""Rows of items that are written at once."""


def write_cell(build_dir: BuildDir, shard: Shard) -> Iterator[Any]:
    """The public files of a cell and its items, unless nothing fits; then what was counted, and its rejects."""
    dataset, length = open_dataset(build_dir.out, shard.dataset), parse_length(shard.name)
    tally = _Tally(dataset.builder.spec.balance)
    lines = tally.counted(_lines(build_dir, shard.dataset, length))
    first = next((line for line in lines if "record" in line), None)
    files = {} if first is None else _write_files(build_dir, dataset, length, first, lines)
    for _ in lines:  # all rejects, where there is no record
        pass
    yield {"files": files, "cell": tally.cell()}
    yield from ({"reject": reject} for reject in tally.rejects)


def described(path: Path) -> dict[str, Any]:
    """A file as the lock has it."""
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def _lines(build_dir: BuildDir, name: str, length: int) -> Iterator[dict[str, Any]]:
    for shard in record_shards(build_dir.out, name, (length,)):
        yield from build_dir.read(shard)


def _write_files(
    build_dir: BuildDir, dataset: Dataset, length: int, first: dict[str, Any], lines: Iterator[dict[str, Any]]
) -> dict[str, Any]:
    """The records with their items beside them, and the file that bundles them; each as the lock has it, by path."""
    spec, name = dataset.builder.spec, dataset.spec.name
    about = (name, length, len(rows_of(build_dir.out, name)), len(dataset.placements()))
    public = f"{DATA}/{spec.files.write(*about)}"
    items = f"{ITEMS}/{Path(spec.files.write(*about)).with_suffix('.parquet').as_posix()}"
    with _items_to(build_dir.out / items) as writer:

        def records() -> Iterator[dict[str, Any]]:
            for line in _chained(first, lines):
                writer.add(line.get("items", ()))
                if "record" in line:
                    yield line["record"]

        write_whole(build_dir.out / public, spec.format.bundle(records()))
    if spec.format is not JSON_LINES:
        own = (line["record"] for line in _lines(build_dir, name, length) if "record" in line)
        check_file(dataset, spec.format, build_dir.out / public, own, public)
    written = [public, items]
    if spec.bundle:
        written.append(f"{DATA}/{spec.bundle.files.write(*about)}")
        bundled = (line.get("record", line.get("bundled")) for line in _lines(build_dir, name, length))
        write_whole(build_dir.out / written[-1], spec.bundle.format.bundle(record for record in bundled if record))
        own = (line["record"] for line in _lines(build_dir, name, length) if "record" in line)
        check_file(dataset, spec.bundle.format, build_dir.out / written[-1], own, written[-1])
    return {path: described(build_dir.out / path) for path in written}


def _chained(first: dict[str, Any], lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from lines


class _Items:
    """One row a unit: where it stands in which prompt, its role and its tokens."""

    def __init__(self, writer: Any, schema: Any) -> None:  # noqa: ANN401  (of Arrow, which has no types)
        self._writer, self._schema = writer, schema
        self._rows: list[dict[str, Any]] = []

    def add(self, rows: Any) -> None:  # noqa: ANN401  (JSON)
        """Rows to be written, some at a time."""
        self._rows += rows
        if len(self._rows) >= _ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
        self._rows = []


@contextmanager
def _items_to(path: Path) -> Iterator[_Items]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    strings, integers = ("id", "unit", "role", "inside", "image"), ("position", "start", "text_tokens", "image_tokens")
    types = {"placement": pa.float64(), **dict.fromkeys(strings, pa.string()), **dict.fromkeys(integers, pa.int64())}
    schema = pa.schema(types)
    with atomic_write(path) as file, pq.ParquetWriter(file, schema) as writer:
        items = _Items(writer, schema)
        yield items
        items.flush()


@dataclass(slots=True)
class _Tally:
    """What is counted of a cell as its lines go by."""

    balance: str
    counts: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    balanced: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    rejects: list[Any] = field(default_factory=list)

    def counted(self, lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The same lines, counted."""
        for line in lines:
            self._add(line)
            yield line

    def _add(self, line: dict[str, Any]) -> None:
        self.counts.update(kind for kind in ("record", "reject") if kind in line)
        self.counts.update({key: line.get(key, 0) for key in ("ran_dry", "not_asked", "missing_classes")})
        self.left_out.update(line.get("left_out", {}))
        self.missing = max(self.missing, line.get("missing", 0))
        if "reject" in line:
            self.rejects.append(line["reject"])
        if self.balance and "record" in line:
            self.balanced[str(line["record"][self.balance])] += 1

    def cell(self) -> dict[str, Any]:
        """Examples, fit rejects, examples whose units ran out before the room did, excluded units, what balances."""
        counts = self.counts
        cell: dict[str, Any] = {
            "examples": counts["record"],
            "rejected": counts["reject"],
            "ran_dry": counts["ran_dry"],
        }
        cell |= {key: counts[key] for key in ("not_asked", "missing_classes") if counts[key]}
        if self.missing:
            cell["missing_units"] = self.missing
        if self.left_out:
            cell["left_out"] = dict(sorted(self.left_out.items()))
        if self.balance:
            cell[f"by_{self.balance}"] = dict(sorted(self.balanced.items()))
        return cell
