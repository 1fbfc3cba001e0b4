"""Reads the questions of a release in the form that probes need: each question once, with its context.

A question that stands at several lengths and placements is read at one length, at a drawn placement. Contexts
are read one after another, and one is in memory at a time; what a probe keeps of them is small.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import PurePosixPath

from mmlongbench.draws import Draws
from mmlongbench.likeness import is_long
from mmlongbench.manifest.binding import calling
from mmlongbench.prompt import Image, Needle
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.items import Item, ItemReader
from mmlongbench.release.layout import as_utf8
from mmlongbench.release.positions import answering, showing
from mmlongbench.release.release import Example, Release
from mmlongbench.shortcuts.tenths import right_tenths
from mmlongbench.task.builder import Builder, Choices, SharedContextBuilder
from mmlongbench.task.rows import Row

_PICTURES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp"})


@dataclass(frozen=True, slots=True)
class ShownUnit:
    """A unit of a context as a reader of the prompt sees it, and what the release knows about it."""

    id: str
    """Empty if the release has no items."""
    role: str
    """Such as `own`, `negative` or `needle`; empty if the release has no items."""
    texts: tuple[str, ...]
    """Its texts, such as a title and a passage, without those that are blank."""
    images: tuple[str, ...]
    """The paths of its images, below `mmlb_image/`."""
    is_gold: bool
    """Whether it holds the answer, or a part of it: a gold, a needle, a unit with a needle inside, or a page of the
    evidence."""
    is_evidence: bool = False
    """Whether only the evidence says that it holds the answer. A document may have other pages that look like it."""

    @property
    def text(self) -> str:
        """Return all its text."""
        return "\n".join(self.texts)

    @property
    def passage(self) -> str:
        """Return its longest text, which is not its title."""
        return max(self.texts, key=len, default="")

    @property
    def is_passage(self) -> bool:
        """Return whether it is a text that is long enough; beside an image, a text is a title or a label."""
        return not self.images and is_long(self.passage)

    @property
    def body(self) -> str:
        """Return its text without its title, which is the first of several texts."""
        return "\n".join(self.texts[1:] or self.texts)

    @property
    def image(self) -> str:
        """Return the path of its first image; empty if it is a text."""
        return self.images[0] if self.images else ""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with one of its contexts."""

    id: str
    file: str
    """The public file of the example, below `mmlb_data/`."""
    question: str
    """Its words alone."""
    subject: str
    """The document, entity or needle picture that it is about; empty if the builder does not say."""
    answers: tuple[str, ...]
    """The texts that count as its answer, the usual one first."""
    choices: Choices | None
    """The answers that it offers; None if the answer is free."""
    images: tuple[str, ...]
    """The images that it asks with. Images that it offers to choose from are not among them."""
    needles: tuple[Needle, ...]
    """The texts and images that were put into its context to be found."""
    units: tuple[ShownUnit, ...]
    """The units of its context in the order of the prompt; empty if its builder does not say."""
    format: str = ""
    """The format of its answer, such as `Integer`; empty if its builder does not say."""
    placements: tuple[float, ...] = ()
    """The depths, or the numbers of the permutations, at which it stands; empty if its task has no placements."""
    pages: tuple[int, ...] = ()
    """The numbers of the shown pages of its document, from 0; empty if its builder does not say."""
    tenths: tuple[bool, ...] | str = ()
    """Of an answer of the context: whether tenths of it give the answer (`right_tenths`), or why this is not known."""

    @property
    def cluster(self) -> str:
        """Return its subject; its id if that is unknown."""
        return self.subject or self.id

    @property
    def answer(self) -> str:
        """Return the usual answer, as one text without line breaks."""
        return " ".join(self.answers[0].split()) if self.answers else ""

    def without_context(self) -> "AskedQuestion":
        """Return the question without its context and needles, which are large."""
        return replace(self, units=(), needles=(), images=())


def asked_questions(release: Release, dataset: str, length: int | None = None) -> Iterator[AskedQuestion]:
    """Yield each question of a dataset once, in the order of the file; at the longest length, if none is given."""
    lengths = release.lengths(dataset)
    if not lengths:
        return
    length, builder = lengths[-1] if length is None else length, release.builder(dataset)
    placements: dict[str, list[float | None]] = {}
    for id, placement in release.keys(dataset, length) if builder.spec.placements is not None else ():
        placements.setdefault(as_utf8(id), []).append(placement)
    draws = Draws(("shortcuts", dataset))
    chosen = {id: draws.choice(f"placement of {id}", known) for id, known in placements.items()}
    items, seen = ItemReader(release.path, release.file(dataset, length).name, length), set[str]()
    for example in release.examples(dataset, length):
        placement, id = placement_of(example.record), as_utf8(example.id)
        own = items.of(id, placement)
        if example.id not in seen and chosen.get(id, placement) == placement:
            seen.add(example.id)
            with calling("builder", type(builder).__name__, "a method that reads records", about=example.name):
                yield asked_question(builder, example, own, placements.get(id, ()))


def asked_question(
    builder: Builder[Row], example: Example, items: Sequence[Item] = (), placements: Sequence[float | None] = ()
) -> AskedQuestion:
    """Return the question of an example with its context; without `items`, units have no roles."""
    record, outline, evidence = example.record, example.prompt.outline, example.evidence
    choices, needles = builder.choices(record), tuple(builder.needles(record) or ())
    form = builder.answer_format(record)
    asked = example.id if isinstance(builder, SharedContextBuilder) else ""
    offered = {part.path for part in choices.offered if isinstance(part, Image)} if choices else set()
    return AskedQuestion(
        id=example.id,
        file=example.file,
        question=builder.question_of(record),
        subject=builder.cluster(record),
        answers=tuple(dict.fromkeys(_texts([example.answer, *builder.accepted(record)]))),
        choices=choices,
        images=tuple(
            part.path
            for part in (outline.after if outline else ())
            if isinstance(part, Image) and part.path not in offered
        ),
        needles=needles,
        units=tuple(_units(example, items, needles, asked)),
        format="" if form is None else str(form),
        placements=tuple(placement for placement in placements if placement is not None),
        pages=evidence.shown if evidence else (),
        tenths=right_tenths(builder, record, [item["unit"] for item in items])
        if builder.spec.is_answer_of_context
        else (),
    )


def _texts(value: object) -> Iterator[str]:
    """Yield each text and number in an answer, however it is nested in lists. An empty text is no answer: a question
    may have no reference.

    >>> list(_texts(["Ossery Ridge", [3, "Ossery"]]))
    ['Ossery Ridge', '3', 'Ossery']
    """
    if isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
    elif value is not None and value != "":
        yield str(value)


def _units(example: Example, items: Sequence[Item], needles: Sequence[Needle], asked: str) -> Iterator[ShownUnit]:
    outline = example.prompt.outline
    shown = outline.units if outline else ()
    pages: list[Needle] = []  # the pages that hold the answer, as images or texts
    if evidence := example.evidence:
        for page in evidence.pages:
            if page in evidence.images:
                pages.append(Image(evidence.images[page]))
            if evidence.texts.get(page, "").strip():
                pages.append(evidence.texts[page])

    def bare(wanted: Iterable[Needle]) -> Iterator[Needle]:
        return filter(None, (needle.strip() if isinstance(needle, str) else needle for needle in wanted))

    known = items if len(items) == len(shown) else ()
    golds, with_pages = answering(shown, bare(needles), known, asked), showing(shown, bare(pages))
    for number, (parts, item) in enumerate(zip_longest(shown, known)):
        planted = number in golds
        is_page = not planted and number in with_pages
        texts = tuple(part for part in parts if isinstance(part, str) and part.strip())
        if outline and outline.turns:  # a reply alone says nothing, and many are alike
            texts = ("\n".join(texts),) if texts else ()
        yield ShownUnit(
            id=item["unit"] if item else "",
            role=item["role"] if item else "",
            texts=texts,
            images=tuple(part.path for part in parts if isinstance(part, Image)),
            is_gold=planted or is_page,
            is_evidence=is_page,
        )


class PageTexts:
    """The texts of the units of a release. Where a dataset shows pages as images, another dataset of the release may
    show the same pages as texts: two units with the same id are the same page.
    """

    def __init__(self, release: Release) -> None:
        """Take the release; the texts of images are read when the first one is requested."""
        self._release = release
        self._texts: dict[str, str] | None = None

    def of(self, unit: ShownUnit) -> str:
        """Return the text of a unit, without its title; of an image, the text of this page in another dataset. Empty if
        it is unknown.
        """
        if not unit.image:
            return unit.body
        if self._texts is None:
            self._texts = {page.id: page.body for name in self._release.datasets for page in self._pages(name)}
        return self._texts.get(unit.id or unit.image, "")

    def _pages(self, dataset: str) -> Iterator[ShownUnit]:
        """Yield the pages of a dataset that shows them as texts; another one is left after its first question."""
        for asked in asked_questions(self._release, dataset):
            texts = (unit for unit in asked.units if not unit.image)
            pages = [unit for unit in texts if PurePosixPath(unit.id).suffix.lower() in _PICTURES]
            if not pages:
                return
            yield from pages
