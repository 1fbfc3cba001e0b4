"""The cells stage: merges the records of a dataset at a length into the files of the release."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.finished_release import cell_files
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import (
    RECORDS,
    BundledRecord,
    CellLine,
    LeftOutUnits,
    PackedRecord,
    RecordLine,
    SharedCounts,
    WrittenCell,
)
from mmlongbench.io.files import atomic_write, sha256_of, write_whole
from mmlongbench.lengths import format_length, parse_length
from mmlongbench.release.items import Item, ItemColumns
from mmlongbench.release.lock import CellCounts, LockedFile
from mmlongbench.release.rejects import Reject
from mmlongbench.task.file_formats import JSON_LINES

_ROWS = 50_000
"""How many rows of items are written at once."""


def cell_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each length of a dataset."""
    return [Shard("cells", name, format_length(length)) for length in session.plans[name].spec.lengths]


def write_cell(session: Session, shard: Shard) -> Iterator[CellLine]:
    """Write the public files of a dataset at a length and the table of its items, if any example fits. Yield one
    `WrittenCell` with the files and counts, then the rejects. Files that an extended release has whole are not written.
    """
    name, length = shard.dataset, parse_length(shard.name)
    taken = session.taken(name, length)
    if taken and session.released and session.takes_whole(name, length):
        locked = session.released.lock.files
        yield WrittenCell({path: locked[path] for path in taken.files.all if path in locked}, taken.counts)
        yield from taken.rejects.values()
        return
    tally = _Tally(session.plans[name].bound.task.balance)
    lines = tally.counted(_lines(session, name, length))
    first = next((line for line in lines if isinstance(line, PackedRecord)), None)
    files = {} if first is None else _write_files(session, name, length, chain([first], lines))
    for _ in lines:  # count the lines that were not read yet
        pass
    yield WrittenCell(files, tally.cell())
    yield from tally.rejects


def _lines(session: Session, name: str, length: int) -> Iterator[RecordLine]:
    for shard in session.record_shards(name, (length,)):
        yield from session.build_dir.read(shard, RECORDS)


def _write_files(session: Session, name: str, length: int, lines: Iterable[RecordLine]) -> dict[str, LockedFile]:
    dataset, out = session.dataset(name), session.build_dir.out
    spec = dataset.builder.spec
    files = cell_files(spec, name, length, len(session.questions(name)), len(dataset.plan.bound.placements))
    with items_table(out / files.items) as add_items:

        def packed() -> Iterator[PackedRecord]:
            for line in lines:
                if isinstance(line, PackedRecord):
                    add_items(line.items)
                    yield line

        if spec.format is JSON_LINES:
            write_whole(out / files.public, (line.line for line in packed()))
        else:
            write_whole(out / files.public, spec.format.bundle(line.record for line in packed()))
    written = [(files.public, spec.format)] if spec.format is not JSON_LINES else []
    if spec.bundle:
        both = (line for line in _lines(session, name, length) if isinstance(line, PackedRecord | BundledRecord))
        write_whole(out / files.bundle, spec.bundle.format.bundle(line.record for line in both))
        written.append((files.bundle, spec.bundle.format))
    for path, form in written:
        own = (line.record for line in _lines(session, name, length) if isinstance(line, PackedRecord))
        dataset.checks.check_file(form, out / path, own, path)
    return {path: locked_file(out / path) for path in files.all}


def locked_file(path: Path) -> LockedFile:
    """Return what the lock says about a file: its size and its SHA-256."""
    return LockedFile(bytes=path.stat().st_size, sha256=sha256_of(path))


@contextmanager
def items_table(path: Path) -> Iterator[Callable[[ItemColumns], None]]:
    """Write the table of items: one row for each unit of each prompt, with its position, role and tokens. Rows that are
    given to the function are written in groups.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, numbers = ("id", "unit", "role", "inside", "image"), ("position", "start", "text_tokens", "image_tokens")
    types: dict[str, pa.DataType] = {
        "placement": pa.float64(),
        **dict.fromkeys(texts, pa.string()),
        **dict.fromkeys(numbers, pa.int64()),
    }
    if other := Item.__annotations__.keys() ^ types.keys():  # pyarrow would leave out such a column without a word
        raise TypeError(f"items: the column {min(other)!r} is not in both `Item` and the schema of the table")
    schema, columns = pa.schema(types), {name: list[Any]() for name in types}
    with atomic_write(path) as file, pq.ParquetWriter(file, schema) as writer:

        def write() -> None:
            writer.write_table(pa.table(columns, schema))
            for column in columns.values():
                column.clear()

        def add(items: ItemColumns) -> None:
            units = len(items["unit"])
            lists: dict[str, Any] = {**items, "position": range(units)}
            for name, values in lists.items():
                columns[name].extend(values if isinstance(values, list | range) else repeat(values, units))
            if len(columns["unit"]) >= _ROWS:
                write()

        yield add
        write()


class _Tally:
    """The counts of a dataset at a length, which are added up while the lines are read."""

    def __init__(self, balance: str) -> None:
        self.counts, self.left_out, self.balanced = Counter[str](), Counter[str](), Counter[str]()
        self.balance, self.missing, self.rejects = balance, 0, list[Reject]()

    def counted(self, lines: Iterable[RecordLine]) -> Iterator[RecordLine]:
        for line in lines:
            if isinstance(line, PackedRecord):
                self.counts.update({"examples": 1, "ran_dry": int(line.ran_dry)})
                self.missing = max(self.missing, line.missing)
                if self.balance:
                    self.balanced[str(line.record[self.balance])] += 1
            elif isinstance(line, Reject):
                self.rejects.append(line)
            elif isinstance(line, LeftOutUnits):
                self.left_out.update(line.left_out)
            elif isinstance(line, SharedCounts):
                self.counts.update({"not_asked": line.not_asked, "missing_classes": line.missing_classes})
            yield line

    def cell(self) -> CellCounts:
        counts = self.counts
        more: dict[str, Any] = {key: counts[key] for key in ("not_asked", "missing_classes") if counts[key]}
        if self.missing:
            more["missing_units"] = self.missing
        if self.left_out:
            more["left_out"] = dict(sorted(self.left_out.items()))
        if self.balance:
            more[f"by_{self.balance}"] = dict(sorted(self.balanced.items()))
        return CellCounts(examples=counts["examples"], rejected=len(self.rejects), ran_dry=counts["ran_dry"], **more)
