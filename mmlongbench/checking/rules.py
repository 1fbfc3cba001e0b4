"""Rules about the packed examples and the files of a small release, and the table of all rules.

A rule yields the cases in which it does not hold. Rules about what a task gives when it is asked again are in
`repeatable`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeAlias

from mmlongbench.checking import answers, drafts, repeatable
from mmlongbench.checking.findings import Failure, Outcome, Skipped
from mmlongbench.checking.second_process import rows_digest
from mmlongbench.checking.world import World
from mmlongbench.documents.limits import Limits
from mmlongbench.draft import NEEDLES
from mmlongbench.errors import MMLongBenchError
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.packing.pack import PackedExample
from mmlongbench.prompt import Image
from mmlongbench.release.diff import against
from mmlongbench.release.example_cost import ImageSizes
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.verify import undecodable

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
            said = f"expected {expected.text} text and {expected.image} image tokens"
            found = f"{counted.text} and {counted.image} in a recount"
            yield Failure(f"{said}, found {found}", "draft()", example.id, length)
        elif (over := counted.total + example.reserve - length) > 0:
            said = f"{counted.total} tokens and a reserve of {example.reserve} are {over} over the length"
            yield Failure(said, "draft()", example.id, length)


def required_units_are_shown_once(world: World) -> Iterator[Outcome]:
    """Yield every example that shows a unit twice, lacks a required unit, or repeats the text of a gold or a needle;
    and every draft whose take order has the image of a required unit again, which longer contexts would show.
    """
    if world.is_shared:
        raise Skipped("many questions share a context, which requires no unit")
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
                    said = f"shows the image of the required unit {images[unit.body]!r} again; leave it out"
                    yield Failure(f"unit {unit.id!r} of the take order {said}", "draft()", row.id)


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
            said = f"the text {body[:40]!r} of a gold unit is declared {declared} time{'s' * (declared > 1)}"
            yield Failure(f"{said}, and the prompt shows it {shown} times", "draft()", example.id)


def needles_stand_at_their_depths(world: World) -> Iterator[Outcome]:
    """Yield every needle that is not listed, or that is further from its depth than half of the largest unit."""
    if world.dataset.placements() == (None,):
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
    """Yield a failure for every context that lacks units of the next shorter context of the same question, or has them
    in another order. As many units may be missing as `Closing.last` allows.
    """
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
        if gone := sorted(shorter - longer):
            said = f"a context of {format_length(short)} is asked {gone[0]!r}, and none of {format_length(long)} is"
            yield Failure(said, "contexts()", gone[0], long)


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
    """Yield what another process finds in the release, and the first prompt that it rebuilds otherwise."""
    yield from world.look.failures
    if world.look.prompt:
        (id, length, ours), theirs = world.prompts[world.look.prompt[0]], world.look.prompt[1]
        said = f"in other surroundings, the prompt is another one: {against(ours, theirs)}"
        yield Failure(f"{said}; it may depend on its record alone", "prompt()", id, length)


def bytes_are_the_same(world: World) -> Iterator[Outcome]:
    plan, where = world.dataset.plan, "in other surroundings (hash seed, date, HOME, LANG, working directory, workers)"
    if world.look.rows and world.look.rows != rows_digest(plan.bound, plan.sources):
        yield Failure(f"{where}: the rows of the source, or their order, differ", "raw_rows()")
    if world.look.build_error:
        yield Failure(f"{where}: {world.look.build_error}")
    elif found := world.difference:
        yield replace(found, detail=f"{where}: {found.detail}")
    elif world.look.packed:
        (id, length, ours), theirs = world.packed_prompts[world.look.packed[0]], world.look.packed[1]
        yield Failure(f"{where}: the prompt is another one: {against(ours, theirs)}", "draft()", id, length)


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
    PACKED: drafts.examples_are_packed,
    DRAFTS: repeatable.drafts_are_pure,
    EVERY: drafts.every_row_is_drafted,
    "contexts are full": drafts.contexts_are_full,
    "prompts come back from records": repeatable.prompts_come_back,
    "recounts equal the counts, to the token": recounts_equal_the_counts,
    "required units are shown once": required_units_are_shown_once,
    "needles stand at their depths": needles_stand_at_their_depths,
    "no unit is there twice under two ids": drafts.texts_are_there_once,
    "nothing before a unit tells gold": drafts.nothing_before_a_unit_tells_gold,
    "padding is of other things than needles": drafts.padding_is_of_other_things,
    "no negative holds an answer": answers.no_negative_holds_an_answer,
    "nothing gives the answer away": answers.nothing_gives_the_answer_away,
    "evidence is in the context": answers.evidence_is_shown,
    "answers and wordings follow the context": drafts.what_is_said_follows_the_context,
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
