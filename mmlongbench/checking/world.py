"""What rules look at: a dataset whose small release is built, and its examples, packed again when a rule needs them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from mmlongbench.building.dataset import Dataset
from mmlongbench.building.stages.records import finished_record, pack_contexts, pack_row
from mmlongbench.checking.again import RecheckResult
from mmlongbench.draft import Draft, Unit
from mmlongbench.errors import Rejected
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.packing.pack import DoesNotFitError, PackedExample
from mmlongbench.release.release import Release, open_release
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.formats import to_json
from mmlongbench.task.rows import Record, Row

MOST_UNITS = 5000
"""How many units of a take order are compared."""


@dataclass(frozen=True)
class SmallRelease:
    """A finished release."""

    path: Path
    tasks: TaskFiles = NO_TASK_FILES
    """The task files that it was built with."""

    @cached_property
    def opened(self) -> Release:
        """The files of the release."""
        return open_release(self.path, self.tasks)


@dataclass(frozen=True, slots=True)
class PackedRow:
    """The examples of one row at a length; or of one shared context, which has no row."""

    row: Row | None
    examples: Sequence[PackedExample]


@dataclass(frozen=True)
class World:
    """A dataset of a small release."""

    dataset: Dataset
    """The dataset, open for work."""
    rows: tuple[Row, ...]
    """Its questions."""
    lengths: tuple[int, ...]
    """The lengths of the release, the shortest first."""
    released: SmallRelease
    """The release; other datasets may be in it too."""
    rechecked: RecheckResult = field(default_factory=RecheckResult)
    """What another process found that audited the release and built it again."""
    _packed: dict[int, list[PackedRow]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.dataset.spec.name

    @property
    def is_shared(self) -> bool:
        """Whether many questions share a context."""
        return isinstance(self.dataset.builder, SharedContextBuilder)

    def packed(self, length: int) -> list[PackedRow]:
        """Return the examples of each row at a length, packed once. Rows that do not fit the length are left out."""
        if length not in self._packed:
            self._packed[length] = list(self._pack(length))
        return self._packed[length]

    def examples(self, length: int) -> list[PackedExample]:
        """Return all examples at a length."""
        return [example for packed in self.packed(length) for example in packed.examples]

    def _pack(self, length: int) -> Iterator[PackedRow]:
        if self.is_shared:
            for _, made in pack_contexts(self.dataset, self.rows, length):
                if isinstance(made, list):
                    yield PackedRow(None, made)
            return
        for row in self.rows:
            try:
                yield PackedRow(row, pack_row(self.dataset, row, length))
            except (DoesNotFitError, Rejected):  # the build has listed it among the rejects
                continue

    def row(self, example: PackedExample) -> Row:
        """Return the row of an example."""
        return self._by_id[example.id]

    @cached_property
    def _by_id(self) -> dict[str, Row]:
        return {row.id: row for row in self.rows}

    def draft(self, row: Row) -> Draft:
        """Return a new draft of a row; errors name the builder and the row."""
        with calling("builder", self.dataset.spec.builder, "draft()", row):
            return self.dataset.builder.draft(row, self.dataset.sources, self.dataset.draws(row.id))

    def units(self, draft: Draft, length: int, row: Row | None = None) -> list[Unit]:
        """Return the first units of a draft's take order."""
        with calling("builder", self.dataset.spec.builder, "draft()", row, about=f"context {draft.id!r}"):
            return list(islice(draft.take_order.units(length), MOST_UNITS))

    def record(self, example: PackedExample) -> Record:
        """Return the record of an example as it is read back from a file."""
        with calling("builder", self.dataset.spec.builder, "record()", self.row(example)):
            read: Record = json.loads(to_json(finished_record(self.dataset, example)))
        return read

    def gold(self, example: PackedExample) -> object:
        """Return the answer of an example."""
        record = self.record(example)
        with calling("builder", self.dataset.spec.builder, "gold()", self.row(example)):
            return self.dataset.builder.gold(record)


def shortest(lengths: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of a small release: the two shortest of a manifest's, or its only one and the double of it.

    >>> shortest((32768, 8192, 16384)), shortest((8192,))
    ((8192, 16384), (8192, 16384))
    """
    first = tuple(sorted(lengths)[:2])
    return first if len(first) > 1 else (first[0], 2 * first[0])
