"""One example as `show` and the viewer show it, from its prompt and its items. How it is drawn is not known here."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Literal, TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.binding import calling
from mmlongbench.prompt import TEMPLATE, Image, Needle, Outline, Part, Prompt, Shown, Speaker, turns_of
from mmlongbench.release.example_cost import ImageSizes, placement_of
from mmlongbench.release.items import Item, NoItemError, items_of_example
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.positions import answering, is_number, needle_starts, places_of, showing
from mmlongbench.release.release import Example, Release
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.metric import Evidence
from mmlongbench.task.rows import Record
from tokenization import PatchRule, TokenCount, VisionRule
from tokenization.text import LLAMA2

Mark: TypeAlias = Literal["gold", "needle", "evidence"]
BlockName: TypeAlias = Literal["instruction", "unit", "question", "user", "assistant"]
"""What a block of a prompt is; `user` and `assistant` are parts of a prompt whose builder does not name its units."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text of a prompt."""

    text: str
    needles: tuple[tuple[int, int], ...] = ()
    """The needles inside the text: (first character, character after the last), in order, without overlaps."""
    speaker: Speaker | Literal[""] = ""
    """Who speaks from here on, in a conversation; empty if nothing changes."""

    def parts(self) -> Iterator[tuple[str, bool]]:
        """Yield the text in parts: (text, whether it is a needle)."""
        at = 0
        for first, last in self.needles:
            yield self.text[at:first], False
            yield self.text[first:last], True
            at = last
        yield self.text[at:], False


@dataclass(frozen=True, slots=True)
class ShownImage:
    """An image of a prompt."""

    path: str
    size: tuple[int, int]
    """Width and height in pixels, after EXIF rotation."""
    tokens: int
    """Its tokens by the rule of the release."""
    speaker: Speaker | Literal[""] = ""
    """Who speaks from here on, in a conversation; empty if nothing changes."""


Piece: TypeAlias = ShownText | ShownImage


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """What the items say about a unit."""

    id: str
    role: str
    start: int
    """The tokens before the unit."""
    text_tokens: int
    image_tokens: int

    @property
    def tokens(self) -> int:
        """The tokens of the unit."""
        return self.text_tokens + self.image_tokens


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a prompt: the instruction, a unit of the context, or the question."""

    name: BlockName
    pieces: tuple[Piece, ...]
    """Its texts and images in reading order; neighbouring texts are one text."""
    marks: tuple[Mark, ...] = ()
    unit: UnitFacts | None = None
    """What the items say about it; None if it is no unit, or if the release has no items."""
    start: int | None = None
    label: str = ""
    """What the task calls it, for people; it is not in the prompt."""


@dataclass(frozen=True, slots=True)
class NeedlePlace:
    """Where a needle stands, as the record says."""

    requested: float | None
    """The depth that was requested, as a share of the haystack's tokens; None if the record does not say."""
    achieved: float | None
    start: int | None
    """The tokens before it."""


@dataclass(frozen=True, slots=True)
class ShownExample:
    """One example with everything that is shown of it."""

    id: str
    file: str
    """The public file, below `mmlb_data/`."""
    dataset: str
    length: int
    placement: str
    """The placement with its name, such as `depth 0.2`; empty if the example has none."""
    tokens: TokenCount
    reserve: int
    blocks: tuple[Block, ...]
    """The prompt in reading order."""
    separator: str
    """The text between two units; empty if the prompt has no units."""
    answer: object
    question: str = ""
    """The question alone; empty if the task has none."""
    metric: str = ""
    needles: tuple[NeedlePlace, ...] = ()
    evidence: Evidence | None = None
    notes: tuple[str, ...] = ()
    """What could not be shown, and why."""
    variant: str = ""
    """The form of the prompt that is shown; empty: the released form."""
    turns: int = 1
    """The turns of the prompt."""
    counted_as: str = ""
    """The model by which it was counted, in words; empty if it was the benchmark's rule of images."""

    is_template_counted: bool = False
    """Whether the tokens have those of the chat template; otherwise the reserve must have room for them."""

    @property
    def turns_said(self) -> str:
        """The number of turns, and about how many tokens a chat template puts around them, if it is not counted."""
        cost = f"; a chat template has about {TEMPLATE * self.turns:,} tokens for them"
        return f"{self.turns:,} turns{'' if self.is_template_counted else cost}"

    @property
    def fill(self) -> float:
        """The share of the length that prompt and reserve use."""
        return (self.tokens.total + self.reserve) / self.length

    @property
    def units(self) -> tuple[Block, ...]:
        """The units of the context."""
        return tuple(block for block in self.blocks if block.name == "unit")

    @property
    def images(self) -> tuple[ShownImage, ...]:
        """The images in reading order."""
        return tuple(piece for block in self.blocks for piece in block.pieces if isinstance(piece, ShownImage))

    @property
    def evidence_pages(self) -> tuple[int, ...]:
        """The pages of the evidence as a person counts them, from 1; records count them from 0."""
        evidence = self.evidence
        return tuple(page + 1 for page in evidence.document_pages or evidence.pages) if evidence else ()

    @property
    def hidden_pages(self) -> tuple[int, ...]:
        """The pages of the evidence that the prompt does not show, from 1."""
        if self.evidence is None:
            return ()
        shown = set(self.evidence.shown)
        if self.evidence.document_pages:  # images join pages: `shown` counts images
            shown = {page for first, last in self.evidence.joined.values() for page in range(first, last + 1)}
        return tuple(page for page in self.evidence_pages if page - 1 not in shown)


NO_ITEMS = "the release has no items of this file: start tokens and roles are not known"
ESTIMATED = "start tokens are about right: the tokens of a whole prompt are no sum of those of its parts"
NO_UNITS = "the builder does not say which units the prompt is made of: its parts are shown as they are"


def shown_example(release: Release, example: Example) -> ShownExample:
    """Return an example with what its release knows about it. Raises ReleaseError if an image is missing, or the items
    cannot be read or are not those of the prompt.
    """
    at = f"{example.file}, {example.id}"
    dataset = release.dataset(example.dataset)
    spec, builder = dataset.spec, dataset.builder
    with calling("builder", spec.builder, "a method that reads records", about=at):
        needles, labels = list(builder.needles(example.record) or ()), builder.labels(example.record)
        question = builder.question_of(example.record)
    placement = placement_of(example.record)
    items = None
    try:
        if not example.variant:  # the items are about the released form
            items = items_of_example(release.path, example.file, example.length, example.id, placement)
    except NoItemError as error:
        raise ReleaseError(f"{at}: items: {error}; see `mmlongbench verify`") from error
    sizes = ImageSizes(release.path / IMAGES)
    try:
        asked = example.id if isinstance(builder, SharedContextBuilder) else ""
        count = dataset.counter.text.count if example.variant else None
        shown = described(example, items, needles, sizes, dataset.rule, labels, asked=asked, count=count)
    except ReleaseError as error:
        raise ReleaseError(f"{at}: {error}; see `mmlongbench verify`") from error
    has_template = "template" in dataset.locked
    if dataset.locked["tokenizer"]["name"] != LLAMA2 or dataset.counted_as or has_template:
        shown = replace(shown, notes=(*shown.notes, ESTIMATED), is_template_counted=has_template)
    return replace(shown, question=question, metric=builder.spec.metric, counted_as=dataset.counted_as)


def described(
    example: Example,
    items: Sequence[Item] | None,
    needles: Sequence[Needle],
    sizes: Mapping[str, tuple[int, int]],
    rule: PatchRule | VisionRule,
    labels: Sequence[str] = (),
    *,
    asked: str = "",
    count: Callable[[str], int] | None = None,
) -> ShownExample:
    """Return an example with what is known about its units; raises ReleaseError if the items, which are in the order of
    the file, are not those of the prompt. `labels` say what the units are called, in the order of the prompt, `asked`
    is the id of the row if it shares its context, and `count` counts the texts before the needles of a variant.
    """
    record, outline, notes = example.record, example.prompt.outline, list[str]()
    if outline and outline.prompt(outline.shown) != example.prompt:
        outline = None
    units = outline.units if outline else [(part,) for part in example.prompt.parts]
    paths = example.prompt.images
    tokens = dict(zip(paths, rule.each([sizes[path] for path in paths]), strict=True))
    golds = answering(units, needles, (outline and items) or (), asked)
    pieces = _Pieces(sizes, tokens, needles, example.evidence, units, has_turns=bool(outline and outline.turns))
    if outline is None:
        notes.append(NO_UNITS)
        parts = [(turn.role, (part,)) for turn in example.prompt.turns for part in turn.parts]
        marked = ((role, part, pieces.marks(part, is_gold=n in golds)) for n, (role, part) in enumerate(parts))
        blocks = [Block(role, pieces.of(part, has_needle="needle" in marks), marks) for role, part, marks in marked]
    else:
        notes += [NO_ITEMS] if items is None and not example.variant else []
        blocks = list(_blocks(outline, items, pieces, golds))
        if len(labels) == len(outline.units) and not example.variant:  # which may have other units
            left = iter(labels)
            blocks = [replace(each, label=next(left)) if each.name == "unit" else each for each in blocks]
    placement, places = placement_of(record), _needle_places(record)
    if example.variant and places:
        try:
            costs = [tokens[path] for path in paths]
            starts = needle_starts(needles, example.prompt, count, costs) if count else []
            places = [NeedlePlace(None, None, start) for start in starts]
        except ReleaseError:
            places = []
            shown = "the needle" if len(needles) == 1 else "all needles"
            notes.append(f"the variant {example.variant!r} does not show {shown}")
    return ShownExample(
        id=example.id,
        file=example.file,
        dataset=example.dataset,
        length=example.length,
        placement="" if placement is None else f"{'depth' if 'depth' in record else 'permutation'} {placement:g}",
        tokens=example.tokens,
        reserve=example.reserve,
        blocks=tuple(blocks),
        separator=outline.separator if outline else "",
        answer=example.answer,
        needles=tuple(places),
        evidence=example.evidence,
        notes=tuple(notes),
        variant=example.variant,
        turns=len(example.prompt.turns),
    )


def _needle_places(record: Record) -> list[NeedlePlace]:
    """Return where needles stand, from the fields of a record that have one number or a list; what is no number is not
    known.
    """
    requested = _numbers(record.get("depth_requested", record.get("depth")))
    achieved, starts = _numbers(record.get("depth_achieved")), _numbers(record.get("needle_start"))
    places = [
        NeedlePlace(asked, depth, None if start is None else int(start))
        for asked, depth, start in islice(zip_longest(requested, achieved, starts), len(starts))
    ]
    return sorted(places, key=lambda place: place.start or 0)


def _numbers(value: object) -> list[float | None]:
    listed = value if isinstance(value, list) else [] if value is None else [value]
    return [
        float(number) if isinstance(number, int | float) and is_number(number) and abs(number) < 2**53 else None
        for number in listed
    ]


def _blocks(
    outline: Outline, items: Sequence[Item] | None, pieces: "_Pieces", golds: Collection[int]
) -> Iterator[Block]:
    """Yield the instruction, the units and the question; the k-th row of the items is about the k-th unit."""
    # items of other units are refused before a picture that is missing ends the page
    if items is not None and len(items) != len(outline.units):
        raise ReleaseError(f"the items list {len(items):,} units, the prompt has {len(outline.units):,}")
    for number, (item, parts) in enumerate(zip(items or (), outline.units, strict=False)):
        if item["position"] != number:
            raise ReleaseError(f"row {number} of the items has position {item['position']}, expected {number}")
        images = [part.path for part in parts if isinstance(part, Image)]
        # the items name the image of a body; a unit may have further images
        if images[:1] != [item["image"]] if item["image"] else images and not item["image_tokens"]:
            raise ReleaseError(
                f"unit {number} has the image {item['image']!r:.120} in the items, {', '.join(images)!r:.120} in the "
                "prompt"
            )
    if outline.before:
        yield Block("instruction", pieces.of(outline.before), start=0)
    if items is None:
        for number, (parts, shown) in enumerate(zip(outline.units, outline.shown, strict=True)):
            marks = pieces.marks(parts, is_gold=number in golds)
            yield Block("unit", pieces.of(shown, has_needle="needle" in marks), marks)
        yield Block("question", pieces.of(outline.after))
        return
    end = None
    for item, parts, shown in zip(items, outline.units, outline.shown, strict=True):
        unit = UnitFacts(item["unit"], item["role"], item["start"], item["text_tokens"], item["image_tokens"])
        content = pieces.of(shown, has_needle=bool(item.get("inside")))
        yield Block("unit", content, pieces.marks(parts, item, is_gold=item["position"] in golds), unit, unit.start)
        end = unit.start + unit.tokens
    yield Block("question", pieces.of(outline.after), start=end)


class _Pieces:
    """Makes pieces of the parts of a prompt, and finds what marks them."""

    def __init__(
        self,
        sizes: Mapping[str, tuple[int, int]],
        tokens: Mapping[str, int],
        needles: Sequence[Needle],
        evidence: Evidence | None,
        units: Sequence[tuple[Part, ...]],
        *,
        has_turns: bool,
    ) -> None:
        self._sizes, self._tokens, self._has_turns = sizes, tokens, has_turns
        self._speaker = ""
        self._texts = list(dict.fromkeys(needle for needle in needles if isinstance(needle, str) and needle))
        pages = frozenset(evidence.pages if evidence else ())
        images, texts = (evidence.images, evidence.texts) if evidence else ({}, {})
        shown: list[Needle] = [Image(path) for page, path in images.items() if page in pages]
        shown += [text for page, text in texts.items() if page in pages and text.strip()]
        self._pages = {units[number] for number in showing(units, shown)}

    def of(self, shown: Shown, *, has_needle: bool = False) -> tuple[Piece, ...]:
        """Return the pieces of parts or turns, in which neighbouring texts are joined. The pieces of a conversation are
        asked for in reading order.

        With `has_needle`, the needles inside texts are marked.
        """
        made: list[Piece] = []
        for turn in turns_of(shown):
            for part in Prompt.of(turn.parts).parts:
                speaker: Speaker | Literal[""] = turn.role if self._has_turns and turn.role != self._speaker else ""
                self._speaker = turn.role
                if isinstance(part, Image):
                    size = self._sizes[part.path]
                    made.append(ShownImage(part.path, size, self._tokens[part.path], speaker))
                else:
                    spans = tuple(_spans(part, self._texts)) if has_needle else ()
                    made.append(ShownText(part, spans, speaker))
        return tuple(made)

    def marks(self, parts: tuple[Part, ...], item: Item | None = None, *, is_gold: bool) -> tuple[Mark, ...]:
        """Return the marks of a unit, of which an item says the role, if it is known."""
        marks = list[Mark]()
        if is_gold:
            is_needle = not item or item["role"] == "needle" or (item["role"] != "gold" and item.get("inside"))
            marks.append("needle" if is_needle else "gold")
        if parts in self._pages:
            marks.append("evidence")
        return tuple(marks)


def _spans(text: str, needles: Iterable[str]) -> list[tuple[int, int]]:
    """Return the places of needles in a text, in order; places that overlap are one. Pieces of longer words and numbers
    are none, unless a needle is nothing else.

    >>> _spans("a needle, a needle", ["needle", "edl"])
    [(2, 8), (12, 18)]
    """
    spans: list[tuple[int, int]] = []
    places = [(needle, list(places_of(needle, text))) for needle in needles]
    whole = {needle for needle, found in places if any(is_whole for _, is_whole in found)}
    found = ((at, at + len(each)) for each, ats in places for at, is_whole in ats if is_whole or each not in whole)
    for begin, end in sorted(found):
        if spans and begin <= spans[-1][1]:
            begin, last = spans.pop()
            end = max(end, last)
        spans.append((begin, end))
    return spans
