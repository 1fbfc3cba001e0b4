"""Rules that a task gives the same whenever it is asked: rows and their ids, drafts, records and prompts."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path

from mmlongbench.building.build_dir import questions_shard
from mmlongbench.building.example_checks import difference
from mmlongbench.building.session import Session
from mmlongbench.building.stage_lines import QUESTIONS
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.checking.findings import Failure, Note, Outcome, two_values
from mmlongbench.checking.world import World
from mmlongbench.draft import Draft, Question, Unit
from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.files import read_regular
from mmlongbench.manifest.binding import Bound, calling
from mmlongbench.manifest.plugins import ENGINE, plugin_code, reader_type
from mmlongbench.release.rejects import Reject
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.rows import Row, RowFault, SourcePaths

_FEW = 3
"""With fewer rows, ids that look like row numbers may be chance."""
_CSV, _LINES = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson")
_MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of a table that is copied without its first row."""
_NUMBER = re.compile(r"[0-9]+\Z")


def rows_are_the_same_twice(bound: Bound, sources: SourcePaths) -> Iterator[Outcome]:
    """Yield the first row that differs when a source is read again with a new reader."""
    readings = (read_rows(bound.reader_type(), sources, name=bound.spec.reader) for _ in range(2))
    for number, (one, other) in enumerate(zip_longest(*readings), 1):
        if one != other:
            yield Failure(f"row {number} differs when the source is read again: {_row_difference(one, other)}", "row()")
            return


def _row_difference(one: Row | RowFault | None, other: Row | RowFault | None) -> str:
    if isinstance(one, Row) and isinstance(other, Row):
        before, after = one.model_dump(), other.model_dump()
        name = next((name for name in before if before[name] != after.get(name)), "")
        return f"field {name!r} is {two_values(before.get(name), after.get(name))}"
    return two_values(one, other) if one and other else "it is there only once"


def ids_are_unique(session: Session, name: str) -> Iterator[Outcome]:
    """Yield every id that a second row of the source has too."""
    for line in session.build_dir.read(questions_shard(name), QUESTIONS):
        if isinstance(line, Reject) and line.fault.reason == "duplicate-id":
            yield Failure("another row of the source has the same id; give each row an id of its own", "row()", line.id)


def ids_stay(reader: str, sources: SourcePaths, ids: Sequence[str], folder: Path) -> Iterator[Outcome]:
    """Yield the first id that changes when the first row of a table is taken out; `folder` is for the shorter table.

    Public data sets that the engine reads number their rows and do not change. For a reader of the engine, and where no
    source is such a table, yield a note if the ids are the numbers of rows.
    """
    is_ours = plugin_code("reader", reader).distribution == ENGINE
    shorter = {} if is_ours else _shorter_tables(sources, folder)
    if not shorter:
        if len(ids) >= _FEW and (_numbered(ids, 0) or _numbered(ids, 1)):
            yield Note("ids are the numbers of rows: they move when a row is added above them")
        return
    before = _ids(reader, sources)
    for name, path in shorter.items():
        after: dict[str, str] = {}
        with suppress(MMLongBenchError):  # a table without this row may be refused; then nothing is known
            after = _ids(reader, {**sources, name: path})
        moved = ((before[row], id) for row, id in after.items() if before.get(row, id) != id)
        if found := next(moved, None):
            said = f"without the first row of {path.name}, the row has the id {found[1]!r}"
            yield Failure(f"{said}; use an id of the source, or a hash of the row's fields", "raw_rows()", found[0])
            return


def _ids(reader: str, sources: SourcePaths) -> dict[str, str]:
    """Return the id of each row by its other fields; rows whose other fields are equal are left out."""
    rows = [row for row in read_rows(reader_type(reader)(), sources, name=reader) if isinstance(row, Row)]
    fields = [row.model_dump_json(exclude={"id", "file", "place"}) for row in rows]
    times = Counter(fields)
    return {each: row.id for each, row in zip(fields, rows, strict=True) if times[each] == 1}


def _shorter_tables(sources: SourcePaths, folder: Path) -> dict[str, Path]:
    """Write a copy of every text table without its first row, and return the copies by the names of the sources."""
    shorter = {}
    for name, path in sources.items():
        with suppress(OSError, ValueError, csv.Error):  # what cannot be read is reported elsewhere
            if path.suffix.lower() in (*_CSV, *_LINES) and path.is_file():
                text = read_regular(path, _MAX_BYTES).decode("latin-1")  # every byte stays as it is
                lines = list(io.StringIO(text, newline=""))
                first, end = _first_row(lines) if path.suffix.lower() in _CSV else _first_line(lines)
                shorter[name] = folder / name / path.name
                shorter[name].parent.mkdir(parents=True)
                shorter[name].write_bytes("".join([*lines[:first], *lines[end:]]).encode("latin-1"))
    return shorter


def _first_line(lines: Sequence[str]) -> tuple[int, int]:
    """Return where the first line that is not blank begins and ends."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return first, first + 1


def _first_row(lines: Sequence[str]) -> tuple[int, int]:
    """Return the lines at which the first row below the header of a CSV table begins and ends."""
    if any("\0" in line for line in lines[:1]):
        raise ValueError("UTF-16")
    separator = max(",;\t", key=lambda each: lines[0].count(each) if lines else 0)
    table = csv.reader(iter(lines), delimiter=separator)
    next(table, None)
    first = table.line_num
    next((row for row in table if row), None)
    return first, table.line_num


def _numbered(ids: Sequence[str], first: int) -> bool:
    """Return whether ids are a common text and the number of the row, with or without zeros before it.

    >>> _numbered(["a1", "a2"], 1), _numbered(["a0001", "a0002"], 1), _numbered(["a1", "b2"], 1)
    (True, True, False)
    """
    common = ids[0].removesuffix(str(first))
    if all(id == f"{common}{number}" for number, id in enumerate(ids, first)):
        return True
    numbers = [_NUMBER.search(id) for id in ids]
    texts = {_NUMBER.sub("", id) for id in ids}
    return len(texts) == 1 and all(found and int(found[0]) == n for n, found in enumerate(numbers, first))


@dataclass(frozen=True, slots=True)
class _Drafted:
    row: Row | None
    draft: Draft
    units: list[Unit]


def drafts_are_pure(world: World) -> Iterator[Outcome]:
    """Yield every draft that differs when it is made again, after all others; and every take order that differs when it
    is iterated again, or at another length.
    """
    drafted = _drafted(world)
    again = {each.draft.id: each for each in reversed(_drafted(world, is_reversed=True))}
    method = "contexts()" if world.is_shared else "draft()"
    for each in drafted:
        row = each.row.id if each.row else ""
        other = again.get(each.draft.id)
        fault = _difference(each, other) if other else f"context {each.draft.id!r} is not made again"
        if fault:
            yield Failure(f"a second call returns a different draft: {fault}", method, row)
        elif fault := _units_difference(each.units, world.units(each.draft, world.lengths[0], each.row)):
            yield Failure(f"iterated again, its take order gives other units: {fault}", method, row)
        elif each.draft.take_order.groups(world.lengths[0]) is None:
            longest = world.units(each.draft, world.lengths[-1], each.row)
            if fault := _units_difference(each.units, longest):
                yield Failure(f"the units of its take order depend on the length: {fault}", method, row)


def _drafted(world: World, *, is_reversed: bool = False) -> list[_Drafted]:
    """Return all drafts, made in the order of the rows or in reverse order."""
    builder, length = world.dataset.builder, world.lengths[0]
    if isinstance(builder, SharedContextBuilder):
        with calling("builder", world.dataset.spec.builder, "contexts()"):
            made = list(builder.contexts(world.rows, world.dataset.sources))
        return [_Drafted(None, draft, world.units(draft, length)) for draft in made]
    found = []
    for row in reversed(world.rows) if is_reversed else world.rows:
        draft = world.draft(row)
        found.append(_Drafted(row, draft, world.units(draft, length, row)))
    return found


def _difference(one: _Drafted, other: _Drafted) -> str:
    """Return in words where two drafts of a row first differ; empty if they are equal."""
    for name in ("instruction", "separator", "closing", "noted", "family"):
        before, after = getattr(one.draft, name), getattr(other.draft, name)
        if before != after:
            return f"{name} is {two_values(before, after)}"
    if len(one.draft.questions) != len(other.draft.questions):
        return f"there are {len(one.draft.questions)} questions, then {len(other.draft.questions)}"
    for first, second in zip(one.draft.questions, other.draft.questions, strict=True):
        for name, value in _plain(first).items():
            if value != _plain(second)[name]:
                return f"{name} of the question is {two_values(value, _plain(second)[name])}"
    fault = _units_difference(one.draft.required, other.draft.required)
    return f"required: {fault}" if fault else _units_difference(one.units, other.units)


def _plain(question: Question) -> dict[str, object]:
    """Return what must be equal of a question, by name; a wording is compared by its texts."""
    parts = question.wording.texts if question.wording else question.parts
    names = ("id", "data", "group", "is_home")
    return {"parts": parts, **{name: getattr(question, name) for name in names}}


def _units_difference(one: Sequence[Unit], other: Sequence[Unit]) -> str:
    for number, (before, after) in enumerate(zip_longest(one, other), 1):
        if before is None or after is None:
            return f"there are {len(one)} units, then {len(other)}"
        if before.id != after.id:
            return f"unit {number} is {before.id!r}, then {after.id!r}"
        if before != after:
            name = next(f.name for f in fields(Unit) if getattr(before, f.name) != getattr(after, f.name))
            return f"{name} of unit {before.id!r} is {two_values(getattr(before, name), getattr(after, name))}"
    return ""


def prompts_come_back(world: World) -> Iterator[Outcome]:
    """Yield every example whose prompt is not rebuilt from its record: alone, with a field that the task does not know,
    and again after all others. Also yield every record that differs when it is made again.
    """
    prompt, name = world.dataset.builder.prompt, world.dataset.spec.builder
    kept = []
    for example in world.examples(world.lengths[0]):
        record, row = world.record(example), world.row(example)
        if (again := world.record(example)) != record:
            key = next(key for key in record if again.get(key) != record[key])
            found = f"{key!r} is {two_values(record[key], again.get(key))}"
            yield Failure(f"a second call returns a different record: {found}", "record()", row.id)
            continue
        kept.append((example, record, row))
        with calling("builder", name, "prompt()", row):
            others = {"": prompt(record), " with a field more": prompt({**record, "a field of somebody else's": 1})}
        for what, rebuilt in others.items():
            if fault := difference(example.prompt, rebuilt):
                yield Failure(f"prompt(record){what} is not the prompt that was packed: {fault}", "prompt()", row.id)
                break
    for example, record, row in reversed(kept):
        with calling("builder", name, "prompt()", row):
            rebuilt = prompt(record)
        if fault := difference(example.prompt, rebuilt):
            yield Failure(f"after prompts of other records, it gives another prompt: {fault}", "prompt()", row.id)
