"""Makes sure that an extension leaves the existing examples of a release as they are.

The questions of the release must still be chosen, in the same order. If a source has changed, as when rows were added
to a table, each of these questions is drafted and packed again, at every length of the release, and compared with its
records and items. The counts of these examples are compared with those in the lock of the release, because the extended
release takes them from there. A builder that reads anything besides its row from a changed source is refused, because a
larger pool may change any context.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.dataset import Dataset, open_dataset
from mmlongbench.building.differences import Described, changed_sources, joined, of_plans
from mmlongbench.building.lines import PackedRecord
from mmlongbench.building.released import Released, ReleasedCell
from mmlongbench.building.session import Session
from mmlongbench.building.stages.cells import Tally
from mmlongbench.building.stages.records import pack_lines
from mmlongbench.errors import BuildError
from mmlongbench.lengths import format_length
from mmlongbench.task.formats import to_json
from mmlongbench.task.rows import Row


def refuse_changed_examples(plans: Sequence[DatasetPlan], session: Session) -> None:
    """Refuse an extension that would change or remove existing examples; nothing was changed before.

    Raises:
        BuildError: the error names the dataset and the question.

    """
    released = session.released
    if released is None:
        return
    for plan in plans:
        if released.kept(plan.spec.name) is None:
            continue
        _refuse_lost(plan, session)
        if released.source_hashes(plan.spec.name) != plan.source_hashes:
            _refuse_changed(plan, session, released)


def _refuse_lost(plan: DatasetPlan, session: Session) -> None:
    """Refuse if a question of the release is not chosen any more, or stands in another order."""
    name = plan.spec.name
    places = {row.id: place for place, row in enumerate(session.questions(name))}
    for length in plan.spec.lengths:
        if (cell := session.taken(name, length)) is None or session.takes_whole(name, length):
            continue
        for ids in (cell.ids, tuple(cell.rejected)):
            if (lost := next((id for id in ids if id not in places), None)) is not None:
                raise _refused(plan, f"question {lost!r} would no longer be in the release")
            if sorted(ids, key=places.__getitem__) != list(ids):
                raise _refused(plan, "the order of its questions would change")


def _refuse_changed(plan: DatasetPlan, session: Session, released: Released) -> None:
    """Pack the existing questions again, and refuse if an example differs, or depends on more than its own row."""
    watched = _Watched(plan.sources)
    opened = open_dataset(replace(plan, sources=watched), session.build_dir, session.source_files)
    dataset = replace(opened, canary=session.dataset(plan.spec.name).canary)
    rows = _WatchedRows(dataset.sources.rows)
    dataset.sources.rows = rows
    if dataset.sources.has_documents:
        dataset.reader.documents(watched)  # opening a dataset lists no documents; they were listed for the plan
    try:
        cells = [session.taken(plan.spec.name, length) for length in released.lengths(plan.spec.name)]
        different = next((found for cell in cells if cell for found in _different(dataset, cell, session)), None)
    finally:
        dataset.close()
    before = released.source_hashes(plan.spec.name)
    changed = [name for name, sha256 in plan.source_hashes.items() if sha256 != before.get(name)]
    found = changed_sources(
        released.dataset(plan.spec.name), plan.public(), plan.spec.name, Described([]), of_plans([plan], {})
    )
    said = joined(list(found))
    if rows.are_used:
        names = ", ".join(f"source.{name}" for name in changed)
        raise _refused(plan, f"{said}; every example of this dataset depends on all rows of {names}")
    is_extracted = bool(watched.used - plan.source_hashes.keys())  # may be of any source
    if used := [name for name in changed if is_extracted or name in watched.used]:
        raise _refused(plan, f"{said}; every context may show something from source.{used[0]}")
    if different is not None:
        raise _refused(plan, f"{different} ({said})", "; rows without an id are numbered: put new ones at the end")


def _different(dataset: Dataset, cell: ReleasedCell, session: Session) -> Iterator[str]:
    """Yield which examples, and which of their counts, differ at a length."""
    rows = {row.id: row for row in session.questions(dataset.spec.name)}
    tally = Tally(dataset.builder.spec.balance)
    for id, examples in cell.examples():
        if _packed(dataset, rows[id], cell.length, tally) != [_comparable(each) for each in examples]:
            yield f"question {id!r} changed"
    for id in cell.rejected:
        if _packed(dataset, rows[id], cell.length, tally):
            yield f"question {id!r} changed"
    before, now = cell.counts.model_dump(), tally.cell().model_dump()
    for key in (key for key in now if now[key] != before.get(key)):
        yield f"the count {key} of the examples at {format_length(cell.length)} changed"


def _packed(dataset: Dataset, row: Row, length: int, tally: Tally) -> list[bytes]:
    """Return the examples of a question, and count them."""
    made = tally.counted(pack_lines(dataset, (row,), length))
    return [_comparable(line) for line in made if isinstance(line, PackedRecord)]


def _comparable(line: PackedRecord) -> bytes:
    """Return the record and the items of an example in one form, whether it was packed or read."""
    items: list[dict[str, Any]] = [{"inside": None, **item} for item in line.items]
    return to_json([line.record, [sorted(item.items()) for item in items]])


def _refused(plan: DatasetPlan, why: str, more: str = "") -> BuildError:
    return BuildError(
        f"dataset {plan.spec.name!r}: the finished release cannot be extended: {why}; nothing was changed; build into "
        f"another folder{more}"
    )


class _Watched(dict[str, Path]):
    """The paths of sources; remembers which of them were read."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        super().__init__(paths)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Path:
        self.used.add(name)
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        self.used.update(super().keys())
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  (as of a dict)
        self.used.add(name)
        return super().get(name, default)

    def items(self) -> Any:  # noqa: ANN401  (as of a dict)
        self.used.update(super().keys())
        return super().items()

    def values(self) -> Any:  # noqa: ANN401  (as of a dict)
        self.used.update(super().keys())
        return super().values()


class _WatchedRows(Sequence[Row]):
    """The rows of a source; remembers whether any of them were read."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.are_used = False

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        self.are_used = True
        return self._rows[place]

    def __len__(self) -> int:
        self.are_used = True
        return len(self._rows)
