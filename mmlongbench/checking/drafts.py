"""Rules about drafts and about the units of contexts: every row is drafted, some are packed at every length."""

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mmlongbench.building.example_checks import unit_fault
from mmlongbench.building.stages.records import pack_row
from mmlongbench.checking.findings import Failure, Outcome, Skipped, failure_of
from mmlongbench.checking.world import MOST_UNITS, World
from mmlongbench.draft import NEEDLES, ContextDraft, Unit
from mmlongbench.errors import MMLongBenchError, Rejected
from mmlongbench.lengths import format_length
from mmlongbench.likeness import is_long, words
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.model import SAMPLE
from mmlongbench.manifest.plugins import ENGINE, plugin_code
from mmlongbench.packing.pack import DoesNotFitError, PackedExample, assemble
from mmlongbench.task.rows import Row
from mmlongbench.task.task import Task

SECONDS = 120.0
"""How long the rows of a dataset are drafted. Where each row shows all others, the time grows with their square."""
FULL = 0.9
"""A context that is filled less than this, because its units run out, is not of its length."""
_TWINS = 3
"""How many pairs of equal rows are packed to compare their questions."""
_CONTEXTS = 3
"""In how many contexts a word must tell gold from other units; in fewer it may be the name of a thing."""
_ROLE_WORDS = frozenset(
    ("gold", "needle", "padding", "negative", "distractor", "haystack", "hay", "target", "evidence", "relevant", "own")
)
"""Words at the beginning of a unit that are not its text."""
_WHERE = re.compile(r"depth|position")
_ENGINE_FIELDS = frozenset(("depth", "depth_achieved", "depth_requested"))


# ---- Drafts of all rows


def every_row_is_drafted(world: World) -> Iterator[Outcome]:
    """Yield every row that cannot be drafted, or whose units cannot be packed; and rows that ask the same."""
    if world.is_shared:
        raise Skipped("contexts that questions share are made of the chosen rows")
    dataset, drafted, rejected, end = world.dataset, 0, 0, time.monotonic() + SECONDS
    with calling("builder", dataset.spec.builder, "selects()"):
        is_asked = dataset.builder.selects(dataset.sources)
    # Further units of a take order are in no context. Hard negatives are searched for the chosen questions alone.
    shown = max((len(example.units) for _, example in world.every_example()), default=MOST_UNITS)
    most = 0 if dataset.plan.corpus else min(MOST_UNITS, 2 * shown)
    known: dict[str, Row] = {}
    twins: list[tuple[Row, Row]] = []
    for row in dataset.sources.rows:
        if is_asked and not is_asked(row):
            continue
        if time.monotonic() > end:
            yield f"{drafted + rejected:,} of {len(dataset.sources.rows):,} rows were drafted, for lack of time"
            break
        first = known.setdefault(row.model_dump_json(exclude={"id", "file", "place"}), row)
        if first is not row:
            twins.append((first, row))
        try:
            draft = world.draft(row)
            dataset.checks.check_draft(draft, row)
            units = world.units(draft, world.lengths[-1], row) if most else []
        except Rejected:
            rejected += 1
        except MMLongBenchError as error:
            yield failure_of(error, row.id)
        else:
            drafted += 1
            if fault := _fault(draft, units, most):
                yield Failure(fault, "draft()", row.id)
    for row, twin in twins[:_TWINS]:
        if not dataset.builder.spec.is_answer_of_context and _asks_the_same(world, row, twin):
            said = f"row {row.id!r} has all the same fields, the same question and the same answer; leave one out"
            is_ours = plugin_code("reader", dataset.spec.reader).distribution == ENGINE
            yield f"{twin.id!r}: {said}" if is_ours else Failure(said, row=twin.id)


def _fault(draft: ContextDraft, units: Sequence[Unit], most: int) -> str:
    """Return what is wrong with the units of a draft; in its take order, only those that a context may show count."""
    if wrong := next(filter(None, map(unit_fault, units)), ""):
        return wrong
    enough = {unit.id for unit in draft.one_of}
    ids = Counter(unit.id for unit in (*draft.required, *units[:most]))
    if twice := next((id for id, count in ids.items() if count > 1), ""):
        return f"two units have the id {twice!r}; give each an id of its own, or leave one out"
    for unit in units:
        if unit.role in NEEDLES and not unit.excluded and unit.id not in enough:
            said = f"the {unit.role} unit {unit.id!r} is in the take order, so a short context does not show it"
            return f"{said}; require it, or name it in Draft.one_of if one of several is enough"
    for unit in (*draft.required, *units[:most]):
        if not unit.excluded and not unit.images and not unit.text.strip():
            return f"unit {unit.id!r} is empty; leave it out"
    return ""


def _asks_the_same(world: World, *rows: Row) -> bool:
    dataset, asked = world.dataset, list[object]()
    for row in rows:
        try:
            example = pack_row(dataset, row, world.lengths[0])[0]
            with calling("builder", dataset.spec.builder, "record()", row):
                asked.append((example.question.parts, dataset.builder.record(example).get("answer")))
        except MMLongBenchError:
            return False
    return asked[0] == asked[1]


# ---- Packed contexts


def examples_are_packed(world: World) -> Iterator[Outcome]:
    """Yield every example that cannot be packed at a length, and every length that no question fits."""
    for length in world.lengths:
        packed, rejects = world.packed(length), list[Failure]()
        for row, error in world.faults[length]:
            failure = failure_of(error, row.id if row else "", length)
            if isinstance(error, DoesNotFitError | Rejected):
                rejects.append(failure)
            else:
                yield failure
        if not packed and length in world.wanted and (rejects or world.is_shared):
            said = f"no question fits {format_length(length)}"
            first = rejects[0] if rejects else Failure("")
            yield Failure(f"{said}; the first: {first.detail}" if rejects else said, row=first.row, length=length)


def contexts_are_full(world: World) -> Iterator[Outcome]:
    """Yield every example whose units run out long before its length is full, at a length that the manifest names. A
    sample is small, so there this is a note.
    """
    for length in world.wanted:
        dry = [example for example in world.examples(length) if example.ran_dry and _fill(example, length) < FULL]
        for example in dry if world.dataset.spec.source != SAMPLE else ():
            missing = (
                f"about {example.missing:,} units of mean size are missing" if example.missing else "all are shown"
            )
            said = f"the units run out where the context is {_fill(example, length):.2f} full: {missing}"
            todo = f"add sources, or take {format_length(length)} out of `lengths`"
            yield Failure(f"{said}; {todo}", "draft()", example.id, length)
        if dry and world.dataset.spec.source == SAMPLE:
            count = len(world.examples(length))
            yield f"units of the sample run out in {len(dry)} of {count} examples at {format_length(length)}"


def _fill(example: PackedExample, length: int) -> float:
    return (example.count.total + example.reserve) / length


def texts_are_there_once(world: World) -> Iterator[Outcome]:
    """Yield every example with the same long text under two ids, of which one is not a page of its own document."""
    for _, examples in world.packed(world.longest):
        known: dict[str, Unit] = {}
        for unit in examples[0].units:
            if unit.images or not is_long(unit.text):
                continue
            first = known.setdefault(unit.text, unit)
            if first is not unit and "own" not in (first.role, unit.role):
                said = f"units {first.id!r} and {unit.id!r} have the same text {unit.text[:40]!r}"
                yield Failure(f"{said}; leave one out", "draft()", examples[0].id, world.longest)


def nothing_before_a_unit_tells_gold(world: World) -> Iterator[Outcome]:
    """Yield a word before units that all gold units have and no other, or the other way round, in all contexts."""
    golds, others = list[set[str]](), list[set[str]]()
    asked, seen = set[str](), set[str]()
    for _, examples in world.packed(world.longest):
        for example in examples if world.is_shared else examples[:1]:
            own = [unit for unit in example.units if unit.role in NEEDLES]
            rest = [unit for unit in example.units if unit.role not in NEEDLES]
            rest = [unit for unit in rest if own and bool(unit.images) == bool(own[0].images)]
            if own and rest:
                seen.update(unit.id for unit in own)
                golds += map(_before, own)
                others += map(_before, rest)
                asked.update(words("".join(part for part in example.question.parts if isinstance(part, str))).split())
    if len(seen) < _CONTEXTS:
        raise Skipped("there are too few gold units among others")
    for these, those, which in ((golds, others, "every gold unit"), (others, golds, "every unit but gold")):
        tells = sorted(set.intersection(*these) - set().union(*those) - asked)
        if tells:
            said = f"{tells[0]!r} stands before {which} in all contexts, and before no other unit"
            yield Failure(f"{said}; give all units the same kind of head", "draft()")
            return


def _before(unit: Unit) -> set[str]:
    """Return the words before the text of a unit: those of its head, and a word for its role at its beginning."""
    found = {*unit.head.split(), *words(unit.head).split()} or {"nothing"}
    return found | (_ROLE_WORDS & {*words(" ".join(unit.text.split()[:2])).split()})


def padding_is_of_other_things(world: World) -> Iterator[Outcome]:
    """Yield contexts whose needles are all from one folder, or of one group, while padding is from there, too."""
    held = dict[str, tuple[str, str]]()  # by the folder: the row, and the unit of padding
    folders = set[str]()
    for _, examples in world.packed(world.longest):
        own = [unit for unit in examples[0].units if unit.role in NEEDLES]
        things = {_thing(world, unit) for unit in own}
        if len(own) < 2 or len(things) != 1:
            continue
        thing = things.pop()
        folders.add(thing)
        rest = (unit for unit in examples[0].units if unit.role == "padding" and _thing(world, unit) == thing)
        if thing and (found := next(rest, None)):
            held.setdefault(thing, (examples[0].id, found.label or found.id))
    if len(folders) < _CONTEXTS:
        raise Skipped("no needles of a question are from one folder, or of one group")
    elif len(held) * 2 > len(folders):
        thing, (row, unit) = next(iter(held.items()))
        said = f"all needles are from {thing!r}, and so is padding such as {unit!r}; does the question mean it, too?"
        yield Failure(f"{said} Leave it out, or give it the role own or negative", "draft()", row, world.longest)


def _thing(world: World, unit: Unit) -> str:
    images = world.dataset.sources.images if world.dataset.sources.has_images else None
    path = next(iter(unit.images), "")
    return unit.group or ((images and images.origin(path)) or path).rpartition("/")[0]


def what_is_said_follows_the_context(world: World) -> Iterator[Outcome]:
    """Yield an answer that is the same whatever its context shows, a wording that is always the same one, and a field
    about the place of needles that stays the same where they move.
    """
    examples = [(length, example) for length, example in world.every_example()]
    yield from _constant_answers(world, [example for _, example in examples])
    worded = [example for _, example in examples if (asked := example.question.wording) and len(asked.texts) > 1]
    texts = {example.question.chosen for example in worded}
    # where the first needle of the draft stands among all needles
    places = {sum(each.achieved < example.needles[0].achieved for each in example.needles) for example in worded}
    if len(worded) >= 2 * _CONTEXTS and len(texts) == 1 and len(places) > 1:
        said = f"Wording.choose takes {texts.pop()!r} in all {len(worded)} examples, while needles change their places"
        yield Failure(f"{said}; it has to look at the units that it is given", "draft()", worded[0].id)
    for (length, one), (_, other) in pairwise(examples):
        depths, moved = ([needle.achieved for needle in example.needles] for example in (one, other))
        if one.id != other.id or depths == moved:
            continue
        record, again = world.record(one), world.record(other)
        known = {*_ENGINE_FIELDS, *type(world.row(one)).model_fields}
        stayed = {round(at, 2) for at in depths} & {round(at, 2) for at in moved}  # records may round them
        for key in (key for key in record if _WHERE.search(key) and key not in known):
            value = record[key]
            is_depth = isinstance(value, float) and 0 <= value <= 1 and round(value, 2) not in stayed
            if is_depth and again.get(key) == value:
                said = f"{key!r} is {value!r} at two placements, and the needles move; leave it out"
                yield Failure(f"{said}: the engine adds depth_achieved", "record()", one.id, length)
                return


def _constant_answers(world: World, examples: Sequence[PackedExample]) -> Iterator[Outcome]:
    """Yield that the answers of a task are the same for a part of each context, down to none of it."""
    task = world.dataset.builder
    if not isinstance(task, Task) or type(task).answer is Task.answer or len(examples) < _CONTEXTS:
        return
    known: dict[str, object] = {}
    for example in examples:
        for shown in (len(example.units) // 2, 1, 0):
            units = example.units[:shown]
            ids = {unit.id for host in units for unit in (host, *host.needles)}
            needles = tuple(needle for needle in example.needles if needle.unit.id in ids)
            prompt = assemble((task.instruction,), units, task.separator, example.question.parts)
            try:
                answer = task.answer(example)
                part = replace(example, units=units, needles=needles, prompt=prompt)
                if known.setdefault(example.id, answer) != answer or task.answer(part) != answer:
                    return
            except Exception:  # noqa: BLE001  (a part of a context may have no answer)
                return
    said = "it returns the same for a half of each context, for one unit and for none"
    yield Failure(f"{said}; compute it from example.units", "answer()", examples[0].id)
