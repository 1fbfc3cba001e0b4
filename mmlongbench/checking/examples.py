"""Rules about single examples: budgets, counts, required units, needles, pictures, leftovers of templates."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mmlongbench.checking.findings import Failure, Note, Outcome, Skipped
from mmlongbench.checking.world import World
from mmlongbench.corpus.retrieval.text import contains
from mmlongbench.documents.limits import Limits
from mmlongbench.draft import Draft, Unit
from mmlongbench.errors import MMLongBenchError
from mmlongbench.lengths import format_length
from mmlongbench.packing.pack import PackedExample
from mmlongbench.prompt import Image
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.verify import undecodable

_SLOT = re.compile(r"\{[A-Za-z_][^{}\n]{0,60}\}|\{\}")
"""A place in a template that is filled in, such as `{title}` or `{row.title}`."""
_MARKER = "<image>"
_PLAIN_WORDS = frozenset({"yes", "no", "true", "false"})
"""Answers that are words of any text, so that a negative may have them."""
_NO_CHANCE = 3
"""An answer with fewer characters may stand in any text by chance."""
_SENTENCE = 5
"""A text of at least this many words is the same text wherever it stands, and not a chance."""


def examples_are_within_their_budgets(world: World) -> Iterator[Outcome]:
    """Yield every example that is over its length."""
    for length in world.lengths:
        for example in world.examples(length):
            if (total := example.count.total + example.reserve) > length:
                found = f"{example.count.total} tokens and a reserve of {example.reserve}"
                expected = f"expected at most {format_length(length)} ({length} tokens)"
                yield Failure(f"{expected}, found {found}: {total - length} over", "draft()", example.id)


def recounts_equal_the_counts(world: World) -> Iterator[Outcome]:
    """Yield every example whose prompt has another number of tokens than the sum of its prices."""
    for length in world.lengths:
        for example in world.examples(length):
            counted = world.dataset.pricer.whole(example.prompt)
            if counted != example.count:
                expected = f"{example.count.text} text and {example.count.image} image tokens"
                found = f"{counted.text} and {counted.image} in a recount"
                yield Failure(f"expected {expected} at {format_length(length)}, found {found}", "draft()", example.id)


def required_units_are_shown_once(world: World) -> Iterator[Outcome]:
    """Yield every example that shows a unit twice, lacks a required unit, or repeats the text of a gold or a needle;
    and every draft whose take order has the image of a required unit again, which longer contexts would show.
    """
    if world.is_shared:
        yield Skipped("many questions share a context, which requires no unit")
        return
    for length in world.lengths:
        for packed in world.packed(length):
            draft = world.draft(packed.row) if packed.row else None
            required = {unit.id for unit in draft.required} if draft else set()
            for example in packed.examples:
                yield from _shown_wrongly(example, required)
            if packed.row and draft and length == world.lengths[-1]:
                yield from _taken_again(draft, world.units(draft, length, packed.row), packed.row.id)


def _taken_again(draft: Draft, units: Iterable[Unit], row: str) -> Iterator[Failure]:
    """Yield a failure for every unit of a take order that shows the image of a required unit under another id."""
    required = {unit.body: unit.id for unit in draft.required if isinstance(unit.body, Image)}
    for unit in units:
        if unit.body in required and not unit.excluded and unit.id != required[unit.body]:
            said = f"unit {unit.id!r} of the take order shows the image of the required unit {required[unit.body]!r}"
            yield Failure(f"{said} again; leave it out", "draft()", row)


def _shown_wrongly(example: PackedExample, required: set[str]) -> Iterator[Failure]:
    units = [unit for host in example.units for unit in (host, *host.needles)]
    times = Counter(unit.id for unit in units)
    for id in sorted(required - times.keys()):
        yield Failure(f"expected the required unit {id!r} once, found it nowhere", "draft()", example.id)
    for id in (id for id, count in times.items() if count > 1):
        yield Failure(f"expected unit {id!r} once, found it {times[id]} times", "draft()", example.id)
    golds = [unit.body for unit in units if unit.role in ("gold", "needle") and isinstance(unit.body, str)]
    for body, declared in Counter(golds).items():
        shown = example.prompt.text.count(body) if len(body.split()) >= _SENTENCE else declared
        if shown != declared:
            said = f"the text {body[:40]!r} of a gold unit is declared {declared} time{'s' * (declared > 1)}"
            yield Failure(f"{said}, and the prompt shows it {shown} times", "draft()", example.id)


def needles_stand_at_their_depths(world: World) -> Iterator[Outcome]:
    """Yield every needle that is not listed, or that is further from its depth than half of the largest unit."""
    if world.dataset.placements() == (None,):
        yield Skipped("the task puts nothing at a depth")
        return
    for length in world.lengths:
        for packed in world.packed(length):
            wanted = [unit.id for unit in world.draft(packed.row).required if unit.place is None] if packed.row else []
            for example in packed.examples:
                needles = [needle.unit.id for needle in example.needles]
                if packed.row and needles != wanted:
                    yield Failure(f"expected the needles {wanted}, found {needles}", "draft()", example.id)
                elif len(needles) == 1 and _halves_off(example) > 1 + 1e-9:
                    (one,) = example.needles
                    found = f"found it at {one.achieved:.3f}"
                    yield Failure(f"expected {one.unit.id!r} at depth {one.requested}, {found}", "draft()", example.id)


def _halves_off(example: PackedExample) -> float:
    """Return how far the farthest needle is from its requested depth; 1 means half the tokens of the largest unit."""
    hay = [item.count.total + 2 for item in example.items if item.unit.place is not None]
    if not hay:
        return 0.0
    return max(abs(n.requested - n.achieved) * sum(hay) / (max(hay) / 2) for n in example.needles)


def no_negative_holds_an_answer(world: World) -> Iterator[Outcome]:
    """Yield every question with a negative whose text holds an answer; and a note if padding or questions hold answers.
    The longest contexts are searched, which hold the shorter ones; they are the same at every placement.
    """
    in_padding = in_questions = 0
    for packed in world.packed(world.lengths[-1]):
        for example in packed.examples if world.is_shared else packed.examples[:1]:
            negatives = [unit for unit in example.units if unit.role == "negative" and unit.text.strip()]
            answers = list(_answers(world.gold(example)))
            held = ((unit, answer) for answer in answers for unit in negatives if contains(unit.text, answer))
            if found := next(held, None):
                said = f"the text of the negative {found[0].id!r} holds the answer {found[1][:60]!r}"
                yield Failure(f"{said}; leave such a unit out, or give it the role own", "draft()", example.id)
            long = [answer for answer in answers if len(answer.strip()) >= _NO_CHANCE]
            padding = [unit.text for unit in example.units if unit.role == "padding" and unit.text.strip()]
            question = " ".join(part for part in example.question.parts if isinstance(part, str))
            in_padding += any(contains(text, answer) for answer in long for text in padding)
            in_questions += any(contains(question, answer) for answer in long)
    places = [
        f"{count} question{'s' * (count > 1)} stands in {place}"
        for count, place in ((in_padding, "a padding unit"), (in_questions, "the question itself"))
        if count
    ]
    if places:
        yield Note(f"the answer of {', that of '.join(places)}")


def _answers(gold: object) -> Iterable[str]:
    """Return the answers that are texts; numbers of options or labels, and plain words like yes, are left out."""
    for answer in gold if isinstance(gold, list) else [gold]:
        if isinstance(answer, str) and answer.strip() and answer.strip().lower().rstrip(".") not in _PLAIN_WORDS:
            yield answer


def nothing_is_left_of_a_template(world: World) -> Iterator[Outcome]:
    """Yield a slot that the texts around the units of every example still have, and every example with a marker."""
    declared = set(world.dataset.builder.spec.shown_slots)
    left: set[str] | None = None
    for length in world.lengths:
        for example in world.examples(length):
            if _MARKER in example.prompt.text:
                yield Failure(f"the text of the prompt has the marker {_MARKER}; use mt.Image", "draft()", example.id)
            slots = set(_SLOT.findall(_frame(example)))
            left = slots if left is None else left & slots
    for slot in sorted((left or set()) - declared):
        todo = "fill it in, or name it in TaskSpec.shown_slots if prompts show it on purpose"
        yield Failure(f"every prompt has the slot {slot} outside its units; {todo}", "draft()")


def _frame(example: PackedExample) -> str:
    """Return the text of a prompt without the bodies of its units, which may have any text."""
    text = example.prompt.text
    bodies: Sequence[Unit] = example.units
    parts = (part for unit in bodies for part in (unit.body, *unit.further))
    for body in (part for part in parts if isinstance(part, str) and part):
        text = text.replace(body, "\n", 1)
    return text


def images_are_as_planned(world: World) -> Iterator[Outcome]:
    """Yield every image of the release that cannot be decoded, or has another size than was counted."""
    folder, planned = world.released.path / IMAGES, world.dataset.sources.sizes
    sizes, pixels = ImageSizes(folder), world.dataset.spec.limits.pixels or Limits().pixels
    shown = {path: example.id for n in world.lengths for example in world.examples(n) for path in example.prompt.images}
    if not shown:
        yield Skipped("prompts show no images")
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
