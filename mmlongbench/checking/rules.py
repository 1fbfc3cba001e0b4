"""Rules about the packed examples and the files of a small release, and the table of all rules.

A rule yields the cases in which it does not hold. Rules about what a task gives when it is asked again are in
`repeatable`.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise, product, zip_longest
from typing import TypeAlias

from mmlongbench.building.example_checks import unit_fault
from mmlongbench.building.stages.records import pack_row
from mmlongbench.checking import answers, repeatable
from mmlongbench.checking.findings import Failure, Outcome, Skipped, failure_of
from mmlongbench.checking.second_process import rows_digest
from mmlongbench.checking.world import MOST_UNITS, World
from mmlongbench.documents.limits import Limits
from mmlongbench.draft import NEEDLES, ContextDraft, Unit
from mmlongbench.errors import MMLongBenchError, Rejected
from mmlongbench.lengths import format_length
from mmlongbench.likeness import is_long, words
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.model import SAMPLE
from mmlongbench.manifest.plugins import ENGINE, plugin_code
from mmlongbench.packing.pack import DoesNotFitError, PackedExample, assemble
from mmlongbench.prompt import Image, Part, shows
from mmlongbench.release.diff import against
from mmlongbench.release.example_cost import ImageSizes, small_reserve
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.verify import undecodable
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
_Asked: TypeAlias = tuple[str, object, Sequence[tuple[Part, ...]]]
"""The id of a row, its answer, and its gold units as the prompt shows them."""


# ---- Drafts of all rows


def every_row_is_drafted(world: World) -> Iterator[Outcome]:
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
    asked: dict[object, _Asked] = {}
    ambiguous: list[Failure] = []
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
            elif fault := "" if dataset.builder.spec.is_answer_of_context else _ambiguity(row, draft, units, asked):
                ambiguous.append(Failure(fault, "draft()", row.id))
    if ambiguous and plugin_code("builder", dataset.spec.builder).distribution == ENGINE:
        yield f"{len(ambiguous)} questions have the words of another one, and another answer"
    else:
        yield from ambiguous
    for row, twin in twins[:_TWINS]:
        if not dataset.builder.spec.is_answer_of_context and _asks_the_same(world, row, twin):
            message = f"row {row.id!r} has all the same fields, the same question and the same answer; leave one out"
            is_ours = plugin_code("reader", dataset.spec.reader).distribution == ENGINE
            yield f"{twin.id!r}: {message}" if is_ours else Failure(message, row=twin.id)


def _ambiguity(row: Row, draft: ContextDraft, units: Sequence[Unit], asked: dict[object, _Asked]) -> str:
    """Return which earlier row has the same question with another answer, if the context may show its gold units, too;
    empty if there is none.
    """
    question = draft.questions[0]
    answer = question.data.get("answer")
    answer = getattr(row, "answer", None) if answer is None else answer
    golds = [unit.parts for unit in draft.required if unit.role in NEEDLES]
    words = (tuple(draft.instruction), tuple(question.parts))
    id, other, others = asked.setdefault(words, (row.id, answer, golds))
    if other == answer or not others or question.wording:
        return ""
    shown = {unit.parts for unit in units if not unit.excluded}
    if not shown.issuperset(others):
        return ""
    message = f"row {id!r} has the same question and the answer {other!r:.60}, and the take order has what holds it"
    return f"{message}; name in the question what it is about"


def _fault(draft: ContextDraft, units: Sequence[Unit], most: int) -> str:
    """Return what is wrong with the units of a draft; in its take order, only those that a context may show count."""
    if wrong := next(filter(None, map(unit_fault, units)), ""):
        return wrong
    enough = {unit.id for unit in draft.one_of or ()}
    ids = Counter(unit.id for unit in (*draft.required, *units[:most]))
    if twice := next((id for id, count in ids.items() if count > 1), ""):
        return f"two units have the id {twice!r}; give each an id of its own, or leave one out"
    for unit in units:
        if unit.role in NEEDLES and not unit.excluded and unit.id not in enough:
            message = f"the {unit.role} unit {unit.id!r} is in the take order, so a short context does not show it"
            return f"{message}; require it, or name it in Draft.one_of if one of several is enough"
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
    for length in world.lengths:
        packed, rejects = world.packed(length), list[Failure]()
        if packed and (refused := world.refused(length)):
            yield f"{len(refused)} of {len(world.rows)} questions are refused at {format_length(length)}"
        for row, error in world.faults[length]:
            failure = failure_of(error, row.id if row else "", length)
            if isinstance(error, DoesNotFitError | Rejected):
                rejects.append(failure)
            else:
                yield failure
        if not packed and length in world.wanted and (rejects or world.is_shared):
            message = f"no question fits {format_length(length)}"
            first = rejects[0] if rejects else Failure("")
            yield Failure(f"{message}; the first: {first.detail}" if rejects else message, row=first.row, length=length)


def contexts_are_full(world: World) -> Iterator[Outcome]:
    """Of a sample, which is small, this is a note."""
    for length in world.wanted:
        dry = [example for example in world.examples(length) if example.ran_dry and _fill(example, length) < FULL]
        for example in dry if world.dataset.spec.source != SAMPLE else ():
            missing = (
                f"about {example.missing:,} units of mean size are missing" if example.missing else "all are shown"
            )
            message = f"the units run out where the context is {_fill(example, length):.2f} full: {missing}"
            todo = f"add sources, or take {format_length(length)} out of `lengths`"
            yield Failure(f"{message}; {todo}", "draft()", example.id, length)
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
                message = f"units {first.id!r} and {unit.id!r} have the same text {unit.text[:40]!r}"
                yield Failure(f"{message}; leave one out", "draft()", examples[0].id, world.longest)


def nothing_before_a_unit_tells_gold(world: World) -> Iterator[Outcome]:
    """Yield a word before units, or a form of their heads, that all gold units have and no other, or the other way
    round, in all contexts.
    """
    golds, others = list[Unit](), list[Unit]()
    asked, seen = set[str](), set[str]()
    for _, examples in world.packed(world.longest):
        for example in examples if world.is_shared else examples[:1]:
            own = [unit for unit in example.units if unit.role in NEEDLES]
            rest = [unit for unit in example.units if unit.role not in NEEDLES]
            rest = [unit for unit in rest if own and bool(unit.images) == bool(own[0].images)]
            if own and rest:
                seen.update(unit.id for unit in own)
                golds += own
                others += rest
                asked.update(words("".join(part for part in example.question.parts if isinstance(part, str))).split())
    if len(seen) < _CONTEXTS:
        raise Skipped("there are too few gold units among others")
    sides = (golds, others, "every gold unit"), (others, golds, "every unit but gold")
    for before, (these, those, which) in product((_before, _form), sides):
        tells = sorted(set.intersection(*map(before, these)).difference(*map(before, those), asked))
        if tells:
            is_form = " (0: any number, a: any word)" if before is _form else ""
            message = f"{tells[0]!r}{is_form} stands before {which} in all contexts, and before no other unit"
            yield Failure(f"{message}; give all units the same kind of head", "draft()")
            return


def _before(unit: Unit) -> set[str]:
    """Return the words before the text of a unit: those of its head, and a word for its role at its beginning."""
    found = {*unit.head.split(), *words(unit.head).split()} or {"nothing"}
    return found | (_ROLE_WORDS & {*words(" ".join(unit.text.split()[:2])).split()})


def _form(unit: Unit) -> set[str]:
    """Return the head of a unit with `0` for each number and `a` for each word; nothing if it has no head."""
    return {re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", unit.head))} - {""}


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
        message = f"all needles are from {thing!r}, and so is padding such as {unit!r}; does the question mean it, too?"
        yield Failure(f"{message} Leave it out, or give it the role own or negative", "draft()", row, world.longest)


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
        message = (
            f"Wording.choose takes {texts.pop()!r} in all {len(worded)} examples, while needles change their places"
        )
        yield Failure(f"{message}; it has to look at the units that it is given", "draft()", worded[0].id)
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
                message = f"{key!r} is {value!r} at two placements, and the needles move; leave it out"
                yield Failure(f"{message}: the engine adds depth_achieved", "record()", one.id, length)
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
    message = "it returns the same for a half of each context, for one unit and for none"
    yield Failure(f"{message}; compute it from example.units", "answer()", examples[0].id)


_SLOT = re.compile(r"\{[A-Za-z_][^{}\n]{0,60}\}|\{\}")
"""A place in a template that is filled in, such as `{title}` or `{row.title}`."""
_MARKER = "<image>"
_SENTENCE = 5
"""A text of at least this many words is the same text wherever it stands, and not a chance."""
_ONE_LENGTH = "there is one length"


def recounts_equal_the_counts(world: World) -> Iterator[Outcome]:
    for length, example in world.every_example():
        counted, expected = world.dataset.pricer.whole(example.prompt), example.count
        if counted != expected:
            message = f"expected {expected.text} text and {expected.image} image tokens"
            found = f"{counted.text} and {counted.image} in a recount"
            yield Failure(f"{message}, found {found}", "draft()", example.id, length)
        elif (over := counted.total + example.reserve - length) > 0:
            message = f"{counted.total} tokens and a reserve of {example.reserve} are {over} over the length"
            yield Failure(message, "draft()", example.id, length)


def required_units_are_shown_once(world: World) -> Iterator[Outcome]:
    """Also the image of a required unit must not be in the take order again, since longer contexts would show it."""
    if world.is_shared:
        raise Skipped("questions share contexts")
    for length in world.lengths:
        for row, examples in world.packed(length):
            draft = world.draft(row) if row else None
            required = {unit.id for unit in draft.required} if draft else set[str]()
            for example in examples:
                yield from _shown_wrongly(example, required)
            if not (row and draft and length == world.lengths[-1]) or world.dataset.builder.spec.repeats_pictures:
                continue
            images = {unit.body: unit.id for unit in draft.required if isinstance(unit.body, Image)}
            for unit in world.units(draft, length, row):
                if unit.body in images and not unit.excluded and unit.id != images[unit.body]:
                    message = f"shows the image of the required unit {images[unit.body]!r} again; leave it out"
                    yield Failure(f"unit {unit.id!r} of the take order {message}", "draft()", row.id)


def _shown_wrongly(example: PackedExample, required: set[str]) -> Iterator[Failure]:
    units = [unit for host in example.units for unit in (host, *host.needles)]
    times = Counter(unit.id for unit in units)
    for id in sorted(required - times.keys()):
        yield Failure(f"expected the required unit {id!r} once, found it nowhere", "draft()", example.id)
    for id in (id for id, count in times.items() if count > 1):
        yield Failure(f"expected unit {id!r} once, found it {times[id]} times", "draft()", example.id)
    golds = [unit.body for unit in units if unit.role in NEEDLES and isinstance(unit.body, str)]
    for body, declared in Counter(golds).items():
        shown = example.prompt.text.count(body) if len(body.split()) >= _SENTENCE else declared
        if shown != declared:
            message = f"the text {body[:40]!r} of a gold unit is declared {declared} time{'s' * (declared > 1)}"
            yield Failure(f"{message}, and the prompt shows it {shown} times", "draft()", example.id)


def needles_stand_at_their_depths(world: World) -> Iterator[Outcome]:
    """A needle may be at most half of the largest unit away from its depth."""
    if world.dataset.plan.bound.placements == (None,):
        raise Skipped("the task puts nothing at a depth")
    for length in world.lengths:
        for row, examples in world.packed(length):
            wanted = [unit.id for unit in world.draft(row).required if unit.place is None] if row else []
            for example in examples:
                needles = [needle.unit.id for needle in example.needles]
                if row and needles != wanted:
                    yield Failure(f"expected the needles {wanted}, found {needles}", "draft()", example.id)
                    continue
                hay = [item.count.total + 2 for item in example.items if item.unit.place is not None]
                for needle in example.needles if hay and len(needles) == 1 else ():
                    halves = abs(needle.requested - needle.achieved) * sum(hay) / (max(hay) / 2)
                    if halves > 1 + 1e-9:
                        expected = f"expected {needle.unit.id!r} at depth {needle.requested}"
                        yield Failure(f"{expected}, found it at {needle.achieved:.3f}", "draft()", example.id)


def contexts_are_nested(world: World) -> Iterator[Outcome]:
    """A context has the units of the next shorter one in their order, but for as many as `Closing.last` allows."""
    if world.is_shared or len(world.lengths) < 2:
        raise Skipped("contexts that questions share are not nested" if world.is_shared else _ONE_LENGTH)
    at = [{row.id: examples[0] for row, examples in world.packed(length) if row} for length in world.lengths]
    for row in world.rows:
        closing = world.draft(row).closing
        for (short, shorter), (long, longer) in pairwise(zip(world.lengths, at, strict=True)):
            if row.id not in shorter or row.id not in longer:
                continue
            if fault := _not_nested(shorter[row.id], longer[row.id], closing.last if closing else 0):
                lengths = f"{format_length(short)} in that of {format_length(long)}"
                yield Failure(f"expected the context of {lengths}: {fault}", "draft()", row.id)


def _not_nested(shorter: PackedExample, longer: PackedExample, last: int) -> str:
    """Return why a context is not nested in a longer one; at most `last` units may be missing there."""
    there = {unit.id for unit in longer.units}
    missing = [unit.id for unit in shorter.units if unit.id not in there]
    if len(missing) > last:
        return f"{len(missing)} units are missing, first {missing[0]!r} ({last} may be exchanged at the end)"
    before = [unit.id for unit in shorter.units if unit.place is not None and unit.id not in missing]
    after = [unit.id for unit in longer.units if unit.place is not None and unit.id in set(before)]
    pairs = zip(before, after, strict=True) if before != after else ()
    return next(
        (f"the order differs: {one!r} stands where {other!r} stands" for one, other in pairs if one != other), ""
    )


def shared_contexts_are_rounds(world: World) -> Iterator[Outcome]:
    if not world.is_shared:
        raise Skipped("questions share no contexts")
    for length, example in world.every_example():
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
    asked = [(length, {example.id for example in world.examples(length)}) for length in world.lengths]
    for (short, shorter), (long, longer) in pairwise(asked):
        if gone := sorted(shorter - longer - world.refused(long)):
            message = f"a context of {format_length(short)} is asked {gone[0]!r}, and none of {format_length(long)} is"
            yield Failure(message, "contexts()", gone[0], long)


def questions_have_one_cluster(world: World) -> Iterator[Outcome]:
    known, failed = dict[str, tuple[str, int]](), set[str]()
    for length, example in world.every_example():
        record = world.record(example)
        with calling("builder", world.dataset.spec.builder, "cluster()", world.row(example)):
            cluster = world.dataset.builder.cluster(record)
        first, at = known.setdefault(example.id, (cluster, length))
        if cluster != first and example.id not in failed:
            failed.add(example.id)
            where = f"{first!r} at {format_length(at)} and {cluster!r} at {format_length(length)}"
            yield Failure(f"expected one cluster of a question, found {where}", "cluster()", example.id, length)


def variants_fit(world: World) -> Iterator[Outcome]:
    """A variant that leaves needles out, as an ablation does, is a note."""
    if not (builder := world.dataset.builder).variants:
        raise Skipped("the task has no variants")
    growth, over, bare = 0, list[Failure](), set[str]()
    for length, example in world.every_example():
        with calling("builder", world.dataset.spec.builder, "needles()", world.row(example)):
            needles = builder.needles(world.record(example)) or ()
        for variant, prompt in world.variants(example).items():
            total = world.dataset.pricer.whole(prompt).total
            growth = max(growth, total - example.count.total)
            if total + example.reserve > length:
                message = f"{total:,} tokens and a reserve of {example.reserve} are over the length"
                over.append(Failure(message, f"render_variant({variant!r})", example.id, length))
            bare |= set() if all(shows(prompt.parts, needle) for needle in needles) else {variant}
    yield from (f"{variant!r} is without its needles" for variant in sorted(bare))
    todo = f"set `variant_reserve` to {growth}, the most that variants add here"
    yield from (failure._replace(detail=f"{failure.detail}; {todo}") for failure in over)


_OF_ONE = frozenset(("name", "drawn_as", "options", "lengths", "licence", "downloads", "canary", "count_as"))
"""The keys in which two datasets with the same contexts may differ."""


def pairs_show_the_same(world: World) -> Iterator[Outcome]:
    """If only the options differ, other units are a note: a text takes less room than the page that it stands for."""
    ours, pair = world.stated, world.pair
    if ours.drawn_name == ours.name:
        raise Skipped("no dataset has the draws of another one")
    if pair is None:
        raise Skipped(f"the manifest has no questions of {ours.drawn_name!r}")
    keys = [key for key in dict(ours) if key not in _OF_ONE and getattr(ours, key) != getattr(pair.stated, key)]
    todo = f"; {' and '.join(f'`{key}`' for key in keys)} must be the same" if keys else ""
    if "seed" in keys or (world.is_shared and "sample" in keys):
        yield Failure(f"its contexts are not drawn like those of {pair.name!r}{todo}")
    differing = list[Failure]()
    for length in sorted({*world.lengths} & {*pair.lengths}):
        paired = {(each.id, each.placement): [unit.id for unit in each.units] for each in pair.examples(length)}
        for example in world.examples(length):
            shown = [unit.id for unit in example.units]
            both = zip_longest(shown, paired.get((example.id, example.placement), shown))
            if other := next(((n, *ids) for n, ids in enumerate(both, 1) if ids[0] != ids[1]), None):
                message = f"unit {other[0]} is {other[1]!r}, and {other[2]!r} in {pair.name!r}{todo}"
                differing.append(Failure(message, "draft()", example.id, length))
    if keys:
        yield from differing
    elif differing:
        yield f"{len(differing)} contexts have other units, first {differing[0].row!r}: {differing[0].detail}"


def images_are_as_planned(world: World) -> Iterator[Outcome]:
    folder, planned = world.release / IMAGES, world.dataset.sources.sizes
    sizes, pixels = ImageSizes(folder), world.dataset.spec.limits.pixels or Limits().pixels
    built = [example for length in world.built for example in world.examples(length)]
    shown = {path: example.id for example in built for path in example.prompt.images}
    if not shown:
        raise Skipped("prompts show no images")
    for path, id in sorted(shown.items()):
        try:
            size = sizes[path]
        except (MMLongBenchError, OSError, KeyError) as error:
            yield Failure(f"image {path!r} cannot be read: {error}", "image()", id)
            continue
        if size != planned[path]:
            yield Failure(f"image {path!r}: expected {planned[path]} pixels, found {size}", "image()", id)
        elif fault := undecodable(folder / path, pixels):
            yield Failure(f"image {path!r} cannot be decoded: {fault}", "image()", id)


def nothing_is_left_of_a_template(world: World) -> Iterator[Outcome]:
    """Yield a slot that the texts around the units of every example still have, and every example with a marker."""
    left: set[str] | None = None
    for _, example in world.every_example():
        text = example.prompt.text
        if _MARKER in text:
            yield Failure(f"the text of the prompt has the marker {_MARKER}; use mt.Image", "draft()", example.id)
        # The bodies of units may have any text.
        shown = (unit.parts if unit.turns else (unit.body, *unit.further) for unit in example.units)
        for body in chain.from_iterable(shown):
            if isinstance(body, str) and body:
                text = text.replace(body, "\n", 1)
        slots = set(_SLOT.findall(text))
        left = slots if left is None else left & slots
    for slot in sorted((left or set()) - set(world.dataset.builder.spec.shown_slots)):
        todo = "fill it in, or name it in TaskSpec.shown_slots if prompts show it on purpose"
        yield Failure(f"every prompt has the slot {slot} outside its units; {todo}", "draft()")


def an_audit_finds_nothing(world: World) -> Iterator[Outcome]:
    """Yield what another process finds in the release, and the first prompt that it rebuilds otherwise; and a note on
    conversations whose chat template needs more than the reserve.
    """
    yield from world.look.failures
    if world.look.prompt:
        (id, length, ours), theirs = world.prompts[world.look.prompt[0]], world.look.prompt[1]
        message = f"in other surroundings, the prompt is another one: {against(ours, theirs)}"
        yield Failure(f"{message}; it may depend on its record alone", "prompt()", id, length)
    for length in world.lengths:
        found = (
            small_reserve(each.prompt, each.reserve, world.dataset.plan.bound.counter)
            for each in world.examples(length)
        )
        if few := list(filter(None, found)):
            yield f"{len(few)} of {len(world.examples(length))} conversations at {format_length(length)} {few[0]}"


def bytes_are_the_same(world: World) -> Iterator[Outcome]:
    plan, where = world.dataset.plan, "in other surroundings (hash seed, date, HOME, LANG, working directory, workers)"
    if world.look.rows and world.look.rows != rows_digest(plan.bound, plan.sources):
        yield Failure(f"{where}: the rows of the source, or their order, differ", "raw_rows()")
    if world.look.build_error:
        yield Failure(f"{where}: {world.look.build_error}")
    elif found := world.difference:
        yield found._replace(detail=f"{where}: {found.detail}")
    elif world.look.packed:
        id, length, what, theirs = world.look.packed
        ours = world.packed_texts.get((id, length, what))
        is_there = ours is not None and theirs is not None
        message = f"is another one: {against(ours, theirs)}" if is_there else "is in one of the two processes only"
        yield Failure(f"{where}: {what} {message}", "draft() or record()", id, length)


Find: TypeAlias = Callable[[World], Iterable[Outcome]]
"""Yields the cases in which a rule does not hold; or why the rule does not apply."""
BUILT = "a small release can be built"
KEPT = "questions are kept"
EVERY = "every row can be drafted"
PACKED = "examples are packed at every length"
ROWS = "rows are the same when they are read again"
IDS = "ids are unique, and stay the same"
DRAFTS = "a draft is the same each time it is made"
RULES: Mapping[str, Find] = {
    PACKED: examples_are_packed,
    DRAFTS: repeatable.drafts_are_pure,
    EVERY: every_row_is_drafted,
    "contexts are full": contexts_are_full,
    "prompts come back from records": repeatable.prompts_come_back,
    "recounts equal the counts, to the token": recounts_equal_the_counts,
    "required units are shown once": required_units_are_shown_once,
    "needles stand at their depths": needles_stand_at_their_depths,
    "no unit is there twice under two ids": texts_are_there_once,
    "nothing before a unit tells gold": nothing_before_a_unit_tells_gold,
    "padding is of other things than needles": padding_is_of_other_things,
    "no negative holds an answer": answers.no_negative_holds_an_answer,
    "nothing gives the answer away": answers.nothing_gives_the_answer_away,
    "evidence is in the context": answers.evidence_is_shown,
    "answers stand in their contexts": answers.answers_stand_in_the_context,
    "options differ, and the question shows them": answers.options_are_shown,
    "variants fit their lengths": variants_fit,
    "paired datasets have the same contexts": pairs_show_the_same,
    "answers and wordings follow the context": what_is_said_follows_the_context,
    "shorter contexts are nested in longer ones": contexts_are_nested,
    "each round shows every label once": shared_contexts_are_rounds,
    "a question has the same cluster everywhere": questions_have_one_cluster,
    "answers score full, empty outputs do not": answers.answers_score_full,
    "wrong answers do not score full": answers.wrong_answers_do_not_score_full,
    "images can be decoded, in the planned sizes": images_are_as_planned,
    "no slot or marker is left in prompts": nothing_is_left_of_a_template,
    "an audit in another process finds nothing": an_audit_finds_nothing,
    "another process builds the same bytes": bytes_are_the_same,
}
"""The rules about a built dataset, by what they say; `check` adds those before: `BUILT`, `KEPT`, `ROWS` and `IDS`."""
