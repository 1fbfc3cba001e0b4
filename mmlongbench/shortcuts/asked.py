"""Each question of a dataset once: at the longest length, with one placement, and with the role of each unit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from mmlongbench.manifest.calling import calling
from mmlongbench.prompt import Image, Part
from mmlongbench.release.items import Item, items_in_order
from mmlongbench.release.measuring import placement_of
from mmlongbench.release.opened import Example, Release
from mmlongbench.task.builder import Builder
from mmlongbench.task.rows import Row

_GOLD = ("gold", "needle")


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of a context."""

    role: str
    """Its role, such as `gold`, `negative` or `padding`; empty if the release has no items."""
    texts: tuple[str, ...]
    images: tuple[str, ...]
    """The paths of its images, below `mmlb_image/`."""
    is_gold: bool
    """Whether it is a gold, a needle, or has a needle inside."""
    answers: bool
    """Whether it holds the answer: a gold, or a page of the evidence."""

    @property
    def text(self) -> str:
        """Return all its text, with its title."""
        return " ".join(self.texts)

    @property
    def passage(self) -> str:
        """Return its longest text, which is not its title."""
        return max(self.texts, key=len, default="")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with its context."""

    id: str
    file: str
    question: str
    """Its words alone."""
    cluster: str
    """What it is about, an id that other questions may share; empty if unknown."""
    answers: tuple[str, ...]
    """The texts that count as its answer."""
    is_free: bool
    """Whether no answers are offered to choose from."""
    images: tuple[str, ...]
    """The images that it asks with. Images that it offers to choose from are not among them."""
    needles: tuple[Part, ...]
    units: tuple[Unit, ...]

    @property
    def group(self) -> str:
        """Return its cluster; its id if that is unknown."""
        return self.cluster or self.id

    def without_units(self) -> "Asked":
        """Return the question without its context and needles, which are large."""
        return replace(self, units=(), needles=(), images=())


def asked_once(release: Release, dataset: str) -> Iterator[Asked]:
    """Yield each question of a dataset once, with its context of the longest length at its first placement. One context
    is in memory at a time.

    Raises:
        ReleaseError: a file is missing or damaged.

    """
    lengths = release.lengths(dataset)
    if not lengths:
        return
    builder, seen = release.builder(dataset), set[str]()
    items = items_in_order(release.path, release.file(dataset, lengths[-1]), lengths[-1])
    ahead = next(items, None)
    for example in release.examples(dataset, lengths[-1]):
        own: list[Item] = []
        name = example.id.encode("utf-8", "backslashreplace").decode()
        if ahead and ahead[:2] == (name, placement_of(example.record)):
            own, ahead = ahead[2], next(items, None)
        if example.id not in seen:
            seen.add(example.id)
            with calling("builder", type(builder).__name__, "a method that reads records", about=example.name):
                yield _asked(builder, example, own)


def _asked(builder: Builder[Row], example: Example, items: Sequence[Item]) -> Asked:
    record, outline = example.record, example.prompt.outline
    choices, needles = builder.choices(record), tuple(builder.needles(record) or ())
    after = outline.after if outline else ()
    offered = {part.path for part in choices.offered if isinstance(part, Image)} if choices else set()
    return Asked(
        id=example.id,
        file=example.file,
        question=builder.question(record),
        cluster=builder.cluster(record),
        answers=tuple(dict.fromkeys(_texts([example.answer, *builder.accepted(record)]))),
        is_free=choices is None,
        images=tuple(part.path for part in after if isinstance(part, Image) and part.path not in offered),
        needles=needles,
        units=_units(example, items, needles),
    )


def _units(example: Example, items: Sequence[Item], needles: Sequence[Part]) -> tuple[Unit, ...]:
    shown = example.prompt.outline.units if example.prompt.outline else ()
    pages = _evidence(example)
    units = []
    for parts, item in zip_longest(shown, items if len(items) == len(shown) else ()):
        role, inside = (item["role"], item.get("inside")) if item else ("", None)
        is_gold = role in _GOLD or bool(inside) if item else _shows(parts, needles)
        texts = tuple(part for part in parts if isinstance(part, str) and part.strip())
        images = tuple(part.path for part in parts if isinstance(part, Image))
        units.append(Unit(role, texts, images, is_gold, is_gold or _shows(parts, pages)))
    if any(unit.answers for unit in units):
        return tuple(units)
    return tuple(Unit(unit.role, unit.texts, unit.images, False, unit.role == "own") for unit in units)


def _evidence(example: Example) -> list[Part]:
    """Return the pages that hold the answer, as texts and images."""
    found: list[Part] = []
    for page in example.evidence.pages if example.evidence else ():
        if example.evidence and page in example.evidence.images:
            found.append(Image(example.evidence.images[page]))
        if example.evidence and page in example.evidence.texts:
            found.append(example.evidence.texts[page])
    return found


def _shows(unit: Sequence[Part], wanted: Sequence[Part]) -> bool:
    text = "".join(part for part in unit if isinstance(part, str))
    return any(part in unit if isinstance(part, Image) else part.strip() in text for part in wanted if part)


def _texts(value: object) -> Iterator[str]:
    """Yield each text in an answer, however it is nested in lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
