"""Reads the questions of a release in the form that probes need: each question once, with its context.

A question that stands at several lengths and placements is read at the longest length, at a drawn placement. Contexts
are read one after another; what a probe keeps of them is small.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mmlongbench.draws import Draws
from mmlongbench.manifest.calling import calling
from mmlongbench.prompt import Image, Part
from mmlongbench.release.items import Item, items_in_order
from mmlongbench.release.measuring import placement_of
from mmlongbench.release.opened import Example, Release
from mmlongbench.release.positions import NEEDLES
from mmlongbench.task.choices import Choices


@dataclass(frozen=True, slots=True)
class ShownUnit:
    """A unit of a context as a reader of the prompt sees it, and what the release knows about it."""

    id: str
    """The id of the unit."""
    role: str
    """Its role, such as `own`, `negative` or `needle`; empty if the release has no items."""
    text: str
    """Its text, with the texts around an image; may be empty."""
    image: str
    """The path of its image below `mmlb_image/`; empty if it is a text."""
    is_gold: bool
    """Whether it holds the answer, or a part of it."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with one of its contexts."""

    id: str
    """The id of the question."""
    cluster: str
    """The document, entity or needle picture that it is about; its own id if the builder does not say."""
    question: str
    """The question alone."""
    answer: str
    """The answer, as one text."""
    choices: Choices | None
    """The answers that it offers; None if the answer is free."""
    units: tuple[ShownUnit, ...]
    """The units of its context in the order of the prompt; empty if its builder does not say."""
    file: str
    """The public file of the example, below `mmlb_data/`."""


def asked_questions(release: Release, dataset: str) -> Iterator[AskedQuestion]:
    """Yield each question of a dataset once, in the order of the file of the longest length.

    Raises:
        ReleaseError: the file, or its items, cannot be read.
        DraftError: the builder cannot read a record.

    """
    lengths = release.lengths(dataset)
    if not lengths:
        return
    length = lengths[-1]
    chosen = _placements(release, dataset, length)
    items = items_in_order(release.path, release.file(dataset, length), length)
    ahead = next(items, None)
    for example in release.examples(dataset, length):
        placement, own = placement_of(example.record), list[Item]()
        name = example.id.encode("utf-8", "backslashreplace").decode()
        if ahead and ahead[:2] == (name, placement):
            own, ahead = ahead[2], next(items, None)
        if chosen[example.id] == placement:
            yield _asked(release, example, own)


def _placements(release: Release, dataset: str, length: int) -> dict[str, float | None]:
    """Return the placement at which each question is read."""
    found: dict[str, list[float | None]] = {}
    for id, placement in release.keys(dataset, length):
        found.setdefault(id, []).append(placement)
    draws = Draws(("shortcuts", dataset))
    return {id: draws.choice(f"placement of {id}", placements) for id, placements in found.items()}


def _asked(release: Release, example: Example, items: Sequence[Item]) -> AskedQuestion:
    builder = release.builder(example.dataset)
    with calling("builder", type(builder).__name__, "a method that reads records", about=example.id):
        cluster, question = builder.cluster(example.record), builder.question(example.record)
        choices = builder.choices(example.record)
    return AskedQuestion(
        id=example.id,
        cluster=cluster or example.id,
        question=question,
        answer=_as_text(example.answer),
        choices=choices,
        units=tuple(_units(example, items)),
        file=example.file,
    )


def _as_text(answer: object) -> str:
    """Return an answer as one text; the first one of a list.

    >>> _as_text(["Ossery Ridge", "Ossery"]), _as_text(3)
    ('Ossery Ridge', '3')
    """
    if isinstance(answer, list):
        return _as_text(answer[0]) if answer else ""
    return " ".join(str(answer).split())


def _units(example: Example, items: Sequence[Item]) -> Iterator[ShownUnit]:
    outline = example.prompt.outline
    if outline is None or len(items) != len(outline.units):
        return
    wanted = _evidence(example)
    for item, parts in zip(items, outline.units, strict=True):
        text = "".join(part for part in parts if isinstance(part, str))
        image = next((part.path for part in parts if isinstance(part, Image)), "")
        is_gold = item["role"] in NEEDLES or bool(item.get("inside")) or _shows(text, image, wanted)
        yield ShownUnit(item["unit"], item["role"], text, image, is_gold)


def _evidence(example: Example) -> tuple[Part, ...]:
    """Return the pages that hold the answer, as images or texts."""
    found: list[Part] = []
    if example.evidence:
        for page in example.evidence.pages:
            if page in example.evidence.images:
                found.append(Image(example.evidence.images[page]))
            if example.evidence.texts.get(page, "").strip():
                found.append(example.evidence.texts[page])
    return tuple(found)


def _shows(text: str, image: str, wanted: tuple[Part, ...]) -> bool:
    return any(part.path == image if isinstance(part, Image) else part in text for part in wanted)
