"""Rules that a builder gives the same result whenever it is called: drafts, records and prompts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest

from mmlongbench.building.stages.checks import difference
from mmlongbench.checking.findings import Failure, Outcome, two_values
from mmlongbench.checking.world import World
from mmlongbench.draft import Draft, Question, Unit
from mmlongbench.manifest.binding import calling
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.rows import Row


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
