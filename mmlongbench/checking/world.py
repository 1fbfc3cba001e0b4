"""What rules look at: a dataset with its small release, and its examples, packed again when a rule needs them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from mmlongbench.building.dataset import Dataset
from mmlongbench.building.example_checks import FirstPlacements
from mmlongbench.building.stages.records import finished_record, pack_contexts, pack_row, released_record
from mmlongbench.checking.findings import Failure, SecondLook
from mmlongbench.draft import ContextDraft, Unit
from mmlongbench.errors import MMLongBenchError
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.packing.pack import PackedExample
from mmlongbench.prompt import Prompt
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.rows import Record, Row

PackedRow: TypeAlias = tuple[Row | None, Sequence[PackedExample]]
"""A row and its examples at a length; the examples of a shared context have no row."""
MOST_UNITS = 5000
"""How many units of a take order are compared."""


@dataclass
class World:
    """A dataset of a small release."""

    dataset: Dataset
    rows: tuple[Row, ...]
    """Its questions."""
    lengths: tuple[int, ...]
    """The lengths at which examples are packed, the shortest first."""
    release: Path
    tasks: TaskFiles = NO_TASK_FILES
    wanted: tuple[int, ...] = ()
    """The lengths that the manifest asks for."""
    look: SecondLook = field(default_factory=SecondLook)
    """What a second process found that audited the release and built it again."""
    prompts: Sequence[tuple[str, int, str]] = ()
    """The prompts of the release: the id of the row, the length in tokens, the text."""
    packed_prompts: Sequence[tuple[str, int, str]] = ()
    """The same of the lengths that are packed, but not built."""
    difference: Failure | None = None
    """How the release of the second process differs."""
    pair: "World | None" = None
    """The dataset that `drawn_as` names, if the manifest has it."""
    faults: dict[int, list[tuple[Row | None, Exception]]] = field(default_factory=dict)
    """What went wrong while rows were packed, by length."""
    _packed: dict[int, list[PackedRow]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stated = self.dataset.spec  # `check` replaces it by what the manifest says of sample and lengths

    @property
    def built(self) -> tuple[int, ...]:
        return self.dataset.spec.lengths

    @property
    def name(self) -> str:
        return self.dataset.spec.name

    @property
    def is_shared(self) -> bool:
        return isinstance(self.dataset.builder, SharedContextBuilder)

    def packed(self, length: int) -> list[PackedRow]:
        """Return the examples of each row at a length, packed once. Rows for which this fails are left out, and
        `faults` has them. What the release has was checked when it was built.
        """
        if length in self._packed:
            return self._packed[length]
        packed, faults = self._packed.setdefault(length, []), self.faults.setdefault(length, [])
        if self.is_shared:
            try:
                contexts = list(pack_contexts(self.dataset, self.rows, length))
            except MMLongBenchError as error:
                faults.append((None, error))
                return packed
            packed += [(None, examples) for _, examples in contexts if isinstance(examples, list)]
            return packed
        for row in self.rows:
            try:
                examples, first = pack_row(self.dataset, row, length), FirstPlacements()
                for example in () if length in self.built else examples:
                    record, _ = released_record(self.dataset, example, row)
                    self.dataset.checks.check_placements(example, record, row, first)
                packed.append((row, examples))
            except MMLongBenchError as error:
                faults.append((row, error))
        return packed

    def examples(self, length: int) -> list[PackedExample]:
        return [example for _, examples in self.packed(length) for example in examples]

    def every_example(self) -> Iterator[tuple[int, PackedExample]]:
        return ((length, example) for length in self.lengths for example in self.examples(length))

    @cached_property
    def longest(self) -> int:
        """The longest length that a question fits; the longest of all if none fits any."""
        return next((length for length in reversed(self.lengths) if self.packed(length)), self.lengths[-1])

    def row(self, example: PackedExample) -> Row:
        return self._by_id[example.id]

    def place(self, id: str) -> str:
        """Return the file and the line of a row, as messages name them; empty if they are not known."""
        known = self._by_id.get(id) or next((row for row in self.dataset.sources.rows if row.id == id), None)
        return ", ".join(filter(None, (known.file, known.place))) if known else ""

    @cached_property
    def _by_id(self) -> dict[str, Row]:
        return {row.id: row for row in self.rows}

    def draft(self, row: Row) -> ContextDraft:
        """Return a new draft of a row; errors name the builder and the row."""
        with calling("builder", self.dataset.spec.builder, "draft()", row):
            return self.dataset.draft(row)

    def units(self, draft: ContextDraft, length: int, row: Row | None = None) -> list[Unit]:
        """Return the first units of a draft's take order."""
        with calling("builder", self.dataset.spec.builder, "draft()", row, about=f"context {draft.id!r}"):
            return list(islice(draft.take_order.units(length), MOST_UNITS))

    def record(self, example: PackedExample) -> Record:
        """Return the record of an example as it is read back from a file."""
        with calling("builder", self.dataset.spec.builder, "record()", self.row(example)):
            read: Record = json.loads(to_json(finished_record(self.dataset, example)))
        return read

    def variants(self, example: PackedExample) -> dict[str, Prompt]:
        """Return the other forms of an example's prompt, by the names of the variants."""
        builder, made = self.dataset.builder, dict[str, Prompt]()
        record = self.record(example) if builder.variants else {}
        for variant in builder.variants:
            with calling("builder", self.dataset.spec.builder, f"render_variant({variant!r})", self.row(example)):
                made[variant] = builder.render_variant(record, variant)
        return made

    def answer_of(self, example: PackedExample) -> object:
        record = self.record(example)
        with calling("builder", self.dataset.spec.builder, "answer_of()", self.row(example)):
            return self.dataset.builder.answer_of(record)
