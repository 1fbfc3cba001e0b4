"""Other contexts of the same questions: no context, texts only, images only, shuffled, of another question, the oracle.

They show what a model can answer without the context, or without a part of it. They are made from the outline of a
prompt (`Prompt.of_units`), so every task has them; a builder's own forms (`Builder.variants`) come first.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.manifest.binding import calling
from mmlongbench.prompt import Image, Needle, Outline, Part, Prompt, Shown, Turn
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.items import items_of_example
from mmlongbench.release.positions import is_needle, showing
from mmlongbench.release.release import Example, Release
from mmlongbench.task.builder import SharedContextBuilder

CONTEXTS = {
    "none": "the instruction and the question alone",
    "text-only": "the prompt without its images",
    "images-only": "the instruction, the images of the units without their texts, the question",
    "shuffled": "the units in a drawn order",
    "wrong": "the units of another question of the same file",
    "oracle": "only the units that hold the answer",
}
_NEAR = 512
"""How many examples after an example are tried for the context `wrong`."""


def contextual(
    release: Release, dataset: str, context: str, examples: Iterator[Example]
) -> Iterator[tuple[Example, Prompt | None]]:
    """Yield each example with its prompt in another context; None for an example that does not have it: its record does
    not say which units hold the answer (`oracle`), or every other example is about the same thing or shares its context
    (`wrong`).

    The context is a variant of the dataset's builder, a key of `CONTEXTS`, or an empty text for the released prompt.
    The examples are of one file of the dataset, in the order of the file.
    """
    builder = release.builder(dataset)
    if not context:
        yield from ((example, example.prompt) for example in examples)
    elif context in builder.variants:
        for example in examples:
            with calling("builder", type(builder).__name__, f"render_variant({context!r})", about=example.id):
                yield example, builder.render_variant(example.record, context)
    elif context == "wrong":
        yield from _wrong(release, examples)
    elif context in CONTEXTS:
        for example in examples:
            yield example, _changed(release, example, context)
    else:
        offered = (*builder.variants, *CONTEXTS)
        hint = nearest(context, offered)
        raise ReleaseError(f"context {context!r}: {dataset} has {', '.join(dict.fromkeys(offered))}{hint}")


def _outline(example: Example, context: str) -> Outline:
    if example.prompt.outline is None:
        raise ReleaseError(
            f"context {context!r}: the builder of {example.dataset} does not say which parts of a prompt are units; "
            "it can say so with `mt.advanced.assemble` or `mt.Prompt.of_units`"
        )
    return example.prompt.outline


def _changed(release: Release, example: Example, context: str) -> Prompt | None:
    """Return a prompt in any context but `wrong`; None for `oracle` if no unit is known to hold the answer."""
    outline = _outline(example, context)
    units: list[Shown] = list(outline.shown)
    if context == "none":
        return Prompt.of((*outline.before, *outline.after))
    if context == "text-only":
        texts = ((turn.role, [part for part in turn.parts if isinstance(part, str)]) for turn in example.prompt.turns)
        spoken = groupby(((role, said) for role, said in texts if said), key=itemgetter(0))
        # where a turn without texts stood between two turns of a speaker, they are one
        joined = ((role, [part for _, said in turns for part in (outline.separator, *said)]) for role, turns in spoken)
        return Prompt.of_turns((role, said[1:]) for role, said in joined)
    if context == "images-only":
        units = [images for unit in units if (images := _images(unit))]
    elif context == "shuffled":
        draws = Draws(("context", "shuffled", example.dataset, example.id))
        units = [units[int(number)] for number in draws.order("units", [str(number) for number in range(len(units))])]
    else:
        answering, placement = _answering(release, example), placement_of(example.record)
        found = showing(outline.units, answering)
        if placement is not None and len(found) > len(answering):  # other units look like needles
            items = items_of_example(release.path, example.file, example.length, example.id, placement) or ()
            likely = [number for number, item in enumerate(items) if is_needle(item) or item.get("inside")]
            found = showing(outline.units, answering, likely)
        units = [units[number] for number in sorted(found)]
        if not units:
            return None
    return outline.prompt(units)


def _images(unit: Shown) -> Shown:
    turns = [Turn(turn.role, _pictures(turn.parts)) for turn in unit if isinstance(turn, Turn)]
    return [turn for turn in turns if turn.parts] if turns else _pictures(unit)


def _pictures(parts: Iterable[Part | Turn]) -> tuple[Part, ...]:
    return tuple(part for part in parts if isinstance(part, Image))


def _answering(release: Release, example: Example) -> list[Needle]:
    """Return the needles of an example, and the pages that hold its answer, as far as its builder says them."""
    builder, evidence = release.builder(example.dataset), example.evidence
    with calling("builder", type(builder).__name__, "needles()", about=example.id):
        parts = list(builder.needles(example.record) or ())
    for page in evidence.pages if evidence else ():
        if evidence and page in evidence.images:
            parts.append(Image(evidence.images[page]))
        if evidence and page in evidence.texts:
            parts.append(evidence.texts[page])
    return parts


def _wrong(release: Release, examples: Iterator[Example]) -> Iterator[tuple[Example, Prompt | None]]:
    """Yield each question with the units of the next example of the file that is about something else, at the same
    placement; after the last example of the file comes the first. Questions that share contexts have none.
    """
    following: Iterator[Example] = iter(())
    ahead: deque[Example] = deque()  # the example and those after it, at most `_NEAR`, which may be needed again
    for example in examples:
        outline = _outline(example, "wrong")
        if isinstance(release.builder(example.dataset), SharedContextBuilder):
            yield example, None
            continue
        if not ahead:
            following = chain.from_iterable(release.examples(example.dataset, example.length) for _ in range(2))
        while not ahead or ahead[0].key != example.key:
            if ahead:
                ahead.popleft()
            if not ahead:
                ahead.append(next(following))
        answering = _answering(release, example)
        prompt = None
        for number in range(1, _NEAR):
            if number == len(ahead):
                ahead.extend(islice(following, 1))
            if number == len(ahead) or ahead[number].key == example.key:
                break
            if units := _other_units(release, example, ahead[number], answering):
                prompt = outline.prompt(units)
                break
        yield example, prompt


def _other_units(
    release: Release, example: Example, other: Example, answering: Sequence[Needle]
) -> Sequence[Shown] | None:
    """Return the units of another example; None if it is about the same thing, stands at another placement, shows what
    holds the answer, or has the same units.
    """
    builder = release.builder(example.dataset)
    with calling("builder", type(builder).__name__, "cluster()", about=other.id):
        cluster, others = builder.cluster(example.record), builder.cluster(other.record)
    if example.id == other.id or (cluster and cluster == others):
        return None
    if any(example.key.get(name) != other.key.get(name) for name in ("depth", "permutation")):
        return None
    outline, own = _outline(other, "wrong"), _outline(example, "wrong").units
    is_unfit = set(outline.units) == set(own) or showing(outline.units, answering)
    return None if is_unfit else outline.shown
