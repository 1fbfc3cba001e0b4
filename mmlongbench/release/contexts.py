"""Other contexts of the same questions: no context, texts only, images only, shuffled, of another question, the oracle.

They show what a model can answer without the context, or without a part of it. They are made from the outline of a
prompt (`Prompt.of_units`), so every task has them; a builder's own forms (`Builder.variants`) come first.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.manifest.binding import calling
from mmlongbench.prompt import Image, Outline, Part, Prompt
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
"""The contexts that the engine can make, in words."""
_NEAR = 512
"""How many examples after an example are tried for the context `wrong`."""


def contextual(
    release: Release, dataset: str, context: str, examples: Iterator[Example]
) -> Iterator[tuple[Example, Prompt | None]]:
    """Yield each example with its prompt in another context; None for an example that does not have it: its record does
    not say which units hold the answer (`oracle`), or every other example is about the same thing or shares its context
    (`wrong`).

    Args:
        release: the release.
        dataset: the name of a dataset.
        context: a variant of its builder, a key of `CONTEXTS`, or an empty text for the released prompt.
        examples: examples of one file of the dataset, in the order of the file.

    Raises:
        ReleaseError: the dataset does not have this context.

    """
    builder = release.builder(dataset)
    if not context:
        yield from ((example, example.prompt) for example in examples)
        return
    if context in builder.variants:
        for example in examples:
            with calling("builder", type(builder).__name__, f"render_variant({context!r})", about=example.id):
                yield example, builder.render_variant(example.record, context)
        return
    if context not in CONTEXTS:
        offered = (*builder.variants, *CONTEXTS)
        hint = nearest(context, offered)
        raise ReleaseError(f"context {context!r}: {dataset} has {', '.join(dict.fromkeys(offered))}{hint}")
    if context == "wrong":
        yield from _wrong(release, examples)
        return
    for example in examples:
        yield example, _changed(release, example, context)


def _outline(example: Example, context: str) -> Outline:
    """Return the outline of an example's prompt."""
    if example.prompt.outline is None:
        raise ReleaseError(
            f"context {context!r}: the builder of {example.dataset} does not say which parts of a prompt are units; "
            "it can say so with `mt.assemble` or `mt.Prompt.of_units`"
        )
    return example.prompt.outline


def _changed(release: Release, example: Example, context: str) -> Prompt | None:
    """Return a prompt in any context but `wrong`; None for `oracle` if no unit is known to hold the answer."""
    outline = _outline(example, context)
    if context == "none":
        return Prompt.of((*outline.before, *outline.after))
    if context == "text-only":
        return Prompt.of(part for part in example.prompt.parts if isinstance(part, str))
    units: list[Sequence[Part]] = list(outline.units)
    if context == "images-only":
        images = [[part for part in unit if isinstance(part, Image)] for unit in units]
        units = [unit for unit in images if unit]
    elif context == "shuffled":
        draws = Draws(("context", "shuffled", example.dataset, example.id))
        order = draws.order("units", [str(number) for number in range(len(units))])
        units = [units[int(number)] for number in order]
    else:
        wanted = _wanted(release, example)
        units = [unit for unit in units if _shows(unit, wanted)]
        if not units:
            return None
    return Prompt.of_units(outline.before, units, outline.separator, outline.after)


def _shows(unit: Sequence[Part], wanted: Sequence[Part]) -> bool:
    """Return whether a unit shows one of some images or texts."""
    text = "".join(part for part in unit if isinstance(part, str))
    return any(part in unit if isinstance(part, Image) else part in text for part in wanted)


def _wanted(release: Release, example: Example) -> list[Part]:
    """Return the needles of an example, and the pages that hold its answer, as far as its builder says them."""
    builder, evidence = release.builder(example.dataset), example.evidence
    with calling("builder", type(builder).__name__, "needles()", about=example.id):
        wanted = list(builder.needles(example.record) or ())
    for page in evidence.pages if evidence else ():
        if evidence and page in evidence.images:
            wanted.append(Image(evidence.images[page]))
        if evidence and page in evidence.texts:
            wanted.append(evidence.texts[page])
    return wanted


def _wrong(release: Release, examples: Iterator[Example]) -> Iterator[tuple[Example, Prompt | None]]:
    """Yield each question with the units of the next example of the file that is about something else, at the same
    placement; after the last example of the file comes the first.
    """
    following: _Following | None = None
    for example in examples:
        following = following or _Following(release, example)
        following.go_to(example)
        wanted, outline = _wanted(release, example), _outline(example, "wrong")
        units = next((each for other in following if (each := _units_of_other(release, example, other, wanted))), None)
        if units is None:
            yield example, None
            continue
        yield example, Prompt.of_units(outline.before, units, outline.separator, outline.after)


class _Following:
    """The examples of a file that follow a moving place; after the last one comes the first."""

    def __init__(self, release: Release, first: Example) -> None:
        twice = (release.examples(first.dataset, first.length) for _ in range(2))
        self._left = chain.from_iterable(twice)
        self._ahead: deque[Example] = deque()

    def go_to(self, example: Example) -> None:
        """Move to an example of the file."""
        while not self._ahead or self._ahead[0].key != example.key:
            if self._ahead:
                self._ahead.popleft()
            self._ahead.append(next(self._left))

    def __iter__(self) -> Iterator[Example]:
        """Yield the examples after the place, at most `_NEAR`; they stay in memory until the place has passed them."""
        for number in range(1, _NEAR):
            if number == len(self._ahead):
                self._ahead.extend(islice(self._left, 1))
            if number == len(self._ahead) or self._ahead[number].key == self._ahead[0].key:
                return
            yield self._ahead[number]


def _units_of_other(
    release: Release, example: Example, other: Example, wanted: Sequence[Part]
) -> tuple[tuple[Part, ...], ...] | None:
    """Return the units of another example; None if it is about the same thing, stands at another placement, shows what
    holds the answer, or has the same units. Questions that share contexts have none of another question.
    """
    builder = release.builder(example.dataset)
    if isinstance(builder, SharedContextBuilder):
        return None
    with calling("builder", type(builder).__name__, "cluster()", about=other.id):
        clusters = [builder.cluster(each.record) for each in (example, other)]
    placed, others = example.key, other.key
    is_same = example.id == other.id or (clusters[0] and clusters[0] == clusters[1])
    if is_same or any(placed.get(name) != others.get(name) for name in ("depth", "permutation")):
        return None
    units, own = _outline(other, "wrong").units, _outline(example, "wrong").units
    return None if set(units) == set(own) or any(_shows(unit, wanted) for unit in units) else units
