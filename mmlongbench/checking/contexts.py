"""Rules about the examples of one question at several lengths and placements."""

from collections.abc import Iterator
from itertools import pairwise

from mmlongbench.checking.findings import Failure, Outcome, Skipped
from mmlongbench.checking.world import World
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.packing.pack import PackedExample
from mmlongbench.release.checking import rejects_of
from mmlongbench.task.rows import Record

ONE_LENGTH = "there is one length"


def contexts_are_nested(world: World) -> Iterator[Outcome]:
    """Yield a failure for every context that lacks units of the next shorter context of the same question, or has them
    in another order. As many units may be missing as `Closing.last` allows.
    """
    if world.is_shared or len(world.lengths) < 2:
        yield Skipped("contexts that questions share are not nested" if world.is_shared else ONE_LENGTH)
        return
    at = [{p.row.id: p.examples[0] for p in world.packed(length) if p.row} for length in world.lengths]
    for row in world.rows:
        draft = world.draft(row)
        for (short, shorter), (long, longer) in pairwise(zip(world.lengths, at, strict=True)):
            if row.id in shorter and row.id in longer:
                fault = _not_nested(shorter[row.id], longer[row.id], draft.closing.last if draft.closing else 0)
                if fault:
                    lengths = f"{format_length(short)} in that of {format_length(long)}"
                    yield Failure(f"expected the context of {lengths}: {fault}", "draft()", row.id)


def _not_nested(shorter: PackedExample, longer: PackedExample, last: int) -> str:
    """Return why a context is not nested in a longer one; at most `last` units may be missing there."""
    missing = [unit.id for unit in shorter.units if unit.id not in {each.id for each in longer.units}]
    if len(missing) > last:
        return f"{len(missing)} units are missing, first {missing[0]!r} ({last} may be exchanged at the end)"
    before = [unit.id for unit in shorter.units if unit.place is not None and unit.id not in missing]
    after = [unit.id for unit in longer.units if unit.place is not None and unit.id in set(before)]
    if before != after:
        one, other = next(pair for pair in zip(before, after, strict=True) if pair[0] != pair[1])
        return f"the order differs: {one!r} stands where {other!r} stands"
    return ""


def files_have_the_same_questions(world: World) -> Iterator[Outcome]:
    """Yield every file without a question that another file has and no reject names, or with an unknown question."""
    if len(world.lengths) < 2:
        yield Skipped(ONE_LENGTH)
        return
    rejected = frozenset(rejects_of(world.released.path))
    order = [row.id for row in world.rows]
    found = {length: list(dict.fromkeys(str(each["id"]) for each in records)) for length, records in _files(world)}
    for length, ids in sorted(found.items()):
        expected = [id for id in order if (world.name, id, length) not in rejected]
        if world.is_shared:  # a longer context shows more classes, and is asked about them
            expected = [id for id in expected if id in set(ids)]
        if ids != expected:
            other = next(iter(sorted(set(expected) ^ set(ids))), "")
            said = f"question {other!r} is in one of them only" if other else "their order differs"
            yield Failure(f"the file of {format_length(length)} has other questions than were chosen: {said}")
    if world.is_shared:
        for (short, shorter), (long, longer) in pairwise(sorted(found.items())):
            if gone := sorted(set(shorter) - set(longer)):
                lengths = f"the file of {format_length(short)}, and not in that of {format_length(long)}"
                yield Failure(f"question {gone[0]!r} is in {lengths}", "contexts()", gone[0])


def _files(world: World) -> Iterator[tuple[int, list[Record]]]:
    """Yield (length, records) of every public file of the dataset; the second file of a task is left out."""
    for file in world.released.opened.files:
        if file.dataset and file.dataset.builder.dataset == world.name and file.form and not file.is_bundle:
            yield file.length, [record for _, record in file.form.unbundle(file.path)]


def questions_have_one_cluster(world: World) -> Iterator[Outcome]:
    """Yield every question whose cluster differs between lengths or placements."""
    builder, known = world.dataset.builder, dict[str, tuple[str, int]]()
    failed: set[str] = set()
    for length, records in sorted(_files(world), key=lambda each: each[0]):
        for record in records:
            id = str(record["id"])
            with calling("builder", world.dataset.spec.builder, "cluster()", about=f"row {id!r}"):
                cluster = builder.cluster(record)
            first, at = known.setdefault(id, (cluster, length))
            if cluster != first and id not in failed:
                failed.add(id)
                where = f"{first!r} at {format_length(at)} and {cluster!r} at {format_length(length)}"
                yield Failure(f"expected one cluster of a question, found {where}", "cluster()", id)


def shared_contexts_are_rounds(world: World) -> Iterator[Outcome]:
    """Yield every shared context that shows a label twice in a round, a picture twice, or not the label it asks for."""
    if not world.is_shared:
        yield Skipped("questions share no contexts")
        return
    for length in world.lengths:
        for example in world.examples(length):
            groups = [unit.group for unit in example.units]
            count = len(set(groups))
            turns = [groups[start : start + count] for start in range(0, len(groups), count)]
            where = f"the context of {format_length(length)}"
            if any(len(set(turn)) < len(turn) for turn in turns) or any(len(turn) < count for turn in turns[:-1]):
                yield Failure(f"{where} shows a label twice in one round", "contexts()", example.id)
            elif len(set(example.prompt.images)) < len(example.prompt.images):
                yield Failure(f"{where} shows a picture twice", "contexts()", example.id)
            elif example.question.group is not None and example.question.group not in groups:
                yield Failure(f"{where} does not show {example.question.group!r}", "contexts()", example.id)
