"""The readable rows of a dataset, as the rows stage has saved them."""

from collections.abc import Container, Iterator, Sequence
from typing import overload

from pydantic import ValidationError

from mmlongbench.building.build_dir import BuildDir, Shard, rows_shard
from mmlongbench.building.lines import ROWS, ReadRow
from mmlongbench.task.rows import Row


def row_of(line: ReadRow, kind: type[Row], build_dir: BuildDir, shard: Shard) -> Row:
    """Return the row of a line.

    Raises:
        BuildError: the reader's row type has changed since the line was written; the result is removed.

    """
    try:
        return kind.model_validate(line.row)
    except ValidationError as error:
        raise build_dir.damaged(shard) from error


def rows_at(places: Container[int], build_dir: BuildDir, dataset: str, kind: type[Row]) -> Iterator[tuple[int, Row]]:
    """Yield (place, row) for each readable row of a dataset whose place, counted from 0, is in `places`."""
    shard = rows_shard(dataset)
    lines = (line for line in build_dir.read(shard, ROWS) if isinstance(line, ReadRow))
    yield from ((place, row_of(line, kind, build_dir, shard)) for place, line in enumerate(lines) if place in places)


class StoredRows(Sequence[Row]):
    """All readable rows of a source, in the order of the source, with errata applied. The rows stay on disk; only their
    positions in the file are held in memory.
    """

    def __init__(self, build_dir: BuildDir, dataset: str, kind: type[Row]) -> None:
        """Read nothing yet, because the rows stage may not be done."""
        self._build_dir = build_dir
        self._shard = rows_shard(dataset)
        self._kind = kind
        self._places: list[int] | None = None

    def __iter__(self) -> Iterator[Row]:
        for line in self._build_dir.read(self._shard, ROWS):
            if isinstance(line, ReadRow):
                yield self._row(line)

    def __len__(self) -> int:
        return len(self._starts())

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return [self._at(start) for start in self._starts()[place]]
        return self._at(self._starts()[place])

    def _at(self, start: int) -> Row:
        line = self._build_dir.line_at(self._shard, start, ROWS)
        if not isinstance(line, ReadRow):
            raise self._build_dir.damaged(self._shard)
        return self._row(line)

    def _row(self, line: ReadRow) -> Row:
        return row_of(line, self._kind, self._build_dir, self._shard)

    def _starts(self) -> list[int]:
        """Return where each row begins in the file, in bytes."""
        if self._places is None:
            lines = self._build_dir.read_placed(self._shard, ROWS)
            self._places = [start for start, line in lines if isinstance(line, ReadRow)]
        return self._places
