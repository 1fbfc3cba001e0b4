"""Rules that a task gives the same whenever it is asked: rows and their ids, drafts, records and prompts."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import zip_longest
from pathlib import Path

from mmlongbench.building.example_checks import difference
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.checking.findings import Failure, Outcome
from mmlongbench.checking.world import World
from mmlongbench.draft import ContextDraft, Unit
from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.files import read_regular
from mmlongbench.manifest.binding import Bound, calling
from mmlongbench.manifest.plugins import ENGINE, plugin_code, reader_type
from mmlongbench.release.diff import against
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.rows import Row, SourcePaths

_FEW = 3
"""With fewer rows, ids that look like row numbers may be chance."""
_CSV, _LINES = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson")
_MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of a table that is copied without its first row."""
_NUMBER = re.compile(r"[0-9]+\Z")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Where a function is in memory, which a draft may have for its record."""


def rows_are_the_same_twice(bound: Bound, sources: SourcePaths) -> Iterator[Outcome]:
    readings = (read_rows(bound.reader_type(), sources, name=bound.spec.reader) for _ in range(2))
    for number, (row, other) in enumerate(zip_longest(*readings), 1):
        if row == other:
            continue
        message = against(row, other) if row and other else "it is there only once"
        if isinstance(row, Row) and isinstance(other, Row):
            before, after = row.model_dump(), other.model_dump()
            name = next((name for name in before if before[name] != after.get(name)), "")
            message = f"field {name!r} is {against(before.get(name), after.get(name))}"
        yield Failure(f"row {number} differs when the source is read again: {message}", "row()")
        return


def ids_stay(reader: str, sources: SourcePaths, ids: Sequence[str], folder: Path) -> Iterator[Outcome]:
    """Yield the first id that changes when the first row of a table is taken out; `folder` is for the shorter table.

    Public data sets that the engine reads number their rows and do not change. For a reader of the engine, and where no
    source is such a table, yield a note if the ids are the numbers of rows.
    """
    is_ours = plugin_code("reader", reader).distribution == ENGINE
    shorter = {} if is_ours else _shorter_tables(sources, folder)
    if not shorter:
        if len(ids) >= _FEW and (_numbered(ids, 0) or _numbered(ids, 1)):
            yield "ids are the numbers of rows: they move when a row is added above them"
        return
    before = _ids(reader, sources)
    for name, path in shorter.items():
        after: dict[str, str] = {}
        with suppress(MMLongBenchError):  # a table without this row may be refused; then nothing is known
            after = _ids(reader, {**sources, name: path})
        moved = ((before[row], id) for row, id in after.items() if before.get(row, id) != id)
        if found := next(moved, None):
            message = f"without the first row of {path.name}, the row has the id {found[1]!r}"
            yield Failure(f"{message}; use an id of the source, or a hash of the row's fields", "raw_rows()", found[0])
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
        is_csv = path.suffix.lower() in _CSV
        with suppress(OSError, ValueError, csv.Error):  # what cannot be read is reported elsewhere
            if not path.is_file() or not (is_csv or path.suffix.lower() in _LINES):
                continue
            text = read_regular(path, _MAX_BYTES).decode("latin-1")  # every byte stays as it is
            lines = list(io.StringIO(text, newline=""))
            if is_csv:
                first, end = _first_row(lines)
            else:  # the first line that is not blank
                first = next((number for number, line in enumerate(lines) if line.strip()), 0)
                end = first + 1
            shorter[name] = folder / name / path.name
            shorter[name].parent.mkdir(parents=True)
            shorter[name].write_bytes("".join([*lines[:first], *lines[end:]]).encode("latin-1"))
    return shorter


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


def drafts_are_pure(world: World) -> Iterator[Outcome]:
    """A draft is made again after all others; its take order is iterated again, and at another length."""
    shortest, longest = world.lengths[0], world.lengths[-1]
    drafted = _drafted(world)
    again = {draft.id: (draft, units) for _, draft, units in reversed(_drafted(world, is_reversed=True))}
    for row, draft, units in drafted:
        if draft.id not in again:
            message = f"a second call returns a different draft: context {draft.id!r} is not made again"
        elif fault := _difference(draft, again[draft.id][0]) or _units_difference(units, again[draft.id][1]):
            message = f"a second call returns a different draft: {fault}"
        elif fault := _units_difference(units, world.units(draft, shortest, row)):
            message = f"iterated again, its take order gives other units: {fault}"
        elif draft.take_order.groups(shortest) is None and (
            fault := _units_difference(units, world.units(draft, longest, row))
        ):
            message = f"the units of its take order depend on the length: {fault}"
        else:
            continue
        yield Failure(message, "contexts()" if world.is_shared else "draft()", row.id if row else "")


def _drafted(world: World, *, is_reversed: bool = False) -> list[tuple[Row | None, ContextDraft, list[Unit]]]:
    """Return (row, draft, units of its take order) of all drafts, made in the order of the rows or in reverse order."""
    builder, length = world.dataset.builder, world.lengths[0]
    if isinstance(builder, SharedContextBuilder):
        with calling("builder", world.dataset.spec.builder, "contexts()"):
            drafts = list(builder.contexts(world.rows, world.dataset.sources))
        return [(None, draft, world.units(draft, length)) for draft in drafts]
    drafted = list[tuple[Row | None, ContextDraft, list[Unit]]]()
    for row in reversed(world.rows) if is_reversed else world.rows:
        draft = world.draft(row)
        drafted.append((row, draft, world.units(draft, length, row)))
    return drafted


def _difference(draft: ContextDraft, other: ContextDraft) -> str:
    """Return in words where two drafts of a row first differ, but for the units of their take orders; empty if they are
    equal.
    """
    ours, theirs = _plain(draft), _plain(other)
    for name in {**ours, **theirs}:
        before, after = ours.get(name), theirs.get(name)
        if before != after and _ADDRESS.sub("", repr(before)) != _ADDRESS.sub("", repr(after)):
            return f"{name} is {against(before, after)}"
    fault = _units_difference(draft.required, other.required)
    return f"required: {fault}" if fault else ""


def _plain(draft: ContextDraft) -> dict[str, object]:
    """Return what must be equal of a draft and its questions, by name; a wording is compared by its texts."""
    values = {name: getattr(draft, name) for name in ("instruction", "separator", "closing", "noted", "family")}
    for number, question in enumerate(draft.questions, 1):
        values[f"parts of question {number}"] = question.wording.texts if question.wording else question.parts
        values |= {f"data[{name!r}] of question {number}": value for name, value in question.data.items()}
        for name in ("id", "group", "is_home"):
            values[f"{name} of question {number}"] = getattr(question, name)
    return values


def _units_difference(units: Sequence[Unit], others: Sequence[Unit]) -> str:
    for number, (before, after) in enumerate(zip_longest(units, others), 1):
        if before is None or after is None:
            return f"there are {len(units)} units, then {len(others)}"
        if before.id != after.id:
            return f"unit {number} is {before.id!r}, then {after.id!r}"
        if before != after:
            name = next(f.name for f in fields(Unit) if getattr(before, f.name) != getattr(after, f.name))
            return f"{name} of unit {before.id!r} is {against(getattr(before, name), getattr(after, name))}"
    return ""


def prompts_come_back(world: World) -> Iterator[Outcome]:
    """A prompt is rebuilt from its record alone, with a field that the task does not know, and again after all others;
    and the record is made again.
    """
    prompt, name = world.dataset.builder.prompt, world.dataset.spec.builder
    kept = []
    for example in world.examples(world.lengths[0]):
        record, row = world.record(example), world.row(example)
        if (again := world.record(example)) != record:
            key = next(key for key in record if again.get(key) != record[key])
            found = f"{key!r} is {against(record[key], again.get(key))}"
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
