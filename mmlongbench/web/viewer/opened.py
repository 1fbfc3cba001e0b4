"""One example, opened: its prompt in reading order as rows of a list, with the cost and the place of each block."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.binding import calling
from mmlongbench.release.example_cost import ImageSizes
from mmlongbench.release.items import Item
from mmlongbench.release.release import Example
from mmlongbench.release.shown_example import NO_ITEMS, Block, ShownExample, ShownImage, ShownText, described
from mmlongbench.web.viewer.index_lines import IndexRow, Units
from mmlongbench.web.viewer.records import example_of
from mmlongbench.web.viewer.sources import Viewed, ViewedFile

PIECES = 12
"""The texts and images that one row of the list may have; a block with more of them has several rows."""
ESTIMATED = "units are the parts of the prompt, and their tokens are estimated"
"""What is said where the tokens of units were counted apart from each other."""
COUNTED = f"the release has no items of this file: {ESTIMATED}"
"""What is said if that is the reason."""
_NO_SIZE = (1, 1)


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block of the prompt with its place in the context."""

    block: Block
    start: int
    """The tokens before it."""
    text: int
    """Its text tokens."""
    image: int
    """Its image tokens."""
    key: str
    """What names its unit at every length: the id of the unit or, without items, a hash of its content."""

    @property
    def tokens(self) -> int:
        """Its tokens."""
        return self.text + self.image

    @property
    def role(self) -> str:
        """Its role, or its name if it has none."""
        return self.block.unit.role if self.block.unit else self.block.name


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row of the list: a block, or a part of a block with many texts and images."""

    block: int
    first: int
    """The number of its first piece in the block."""
    last: int
    """The number of the piece after its last one."""


@dataclass(frozen=True, slots=True)
class OpenExample:
    """An example that can be shown."""

    row: IndexRow
    example: Example
    shown: ShownExample
    blocks: tuple[PlacedBlock, ...]
    rows: tuple[ListRow, ...]
    missing: frozenset[str]
    """The images that are missing or cannot be read."""
    is_estimated: bool
    """Whether places were estimated, because there are no items."""

    @property
    def total(self) -> int:
        """The tokens of the prompt."""
        end = self.blocks[-1].start + self.blocks[-1].tokens if self.blocks else 0
        return self.example.tokens.total or end


def open_example(
    viewed: Viewed, file: ViewedFile, row: IndexRow, record: Mapping[str, object], units: Units
) -> OpenExample:
    """Open an example.

    Raises:
        MMLongBenchError: the builder cannot read the record.

    """
    example = example_of(viewed, file, dict(record), f"{file.name}, {row.id}")
    with calling("builder", file.builder_name, "a method that reads records", about=row.id):
        needles = list(file.builder.needles(example.record) or ())
        question = file.builder.question(example.record)
    sizes = _Sizes(ImageSizes(file.images))
    items, note = _items(units, row), units.note
    try:
        shown = described(example, items, needles, sizes, file.rule)
    except ReleaseError as error:  # the items are not those of the prompt
        items, note = None, f"{error}; see `mmlongbench verify`"
        shown = described(example, None, needles, sizes, file.rule)
    shown = replace(shown, question=question, metric=file.builder.spec.metric)
    has_places = all(block.start is not None for block in shown.blocks)
    blocks = _placed(shown) if has_places else _estimated(shown, units, example)
    notes = [each for each in shown.notes if each != NO_ITEMS]
    notes += [note] if note else []
    notes += [] if has_places else [ESTIMATED if note else COUNTED]
    rows = tuple(_rows(blocks))
    shown = replace(shown, notes=tuple(notes))
    return OpenExample(row, example, shown, blocks, rows, frozenset(sizes.missing), not has_places)


def keys_of(blocks: Sequence[PlacedBlock]) -> frozenset[str]:
    """Return the keys of the units of blocks."""
    return frozenset(each.key for each in blocks if each.block.name not in ("instruction", "question"))


class _Sizes(Mapping[str, tuple[int, int]]):
    """The sizes of images; an image that is missing or broken has a size of one pixel."""

    def __init__(self, known: ImageSizes) -> None:
        self._known = known
        self.missing: set[str] = set()

    def __getitem__(self, path: str) -> tuple[int, int]:
        if path in self.missing:
            return _NO_SIZE
        try:
            return self._known[path]
        except (ReleaseError, OSError, ValueError):
            self.missing.add(path)
            return _NO_SIZE

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _items(units: Units, row: IndexRow) -> list[Item] | None:
    """Return the items of an example as the release has them; None if it has none."""
    if units.is_counted_here or not units.id:
        return None
    return [
        Item(
            id=row.id,
            placement=row.placement,
            position=units.position[number],
            unit=id,
            role=units.names[units.role[number]],
            inside=units.inside.get(number),
            image=units.image[number],
            start=units.start[number],
            text_tokens=units.text[number],
            image_tokens=units.pictures[number],
        )
        for number, id in enumerate(units.id)
    ]


def _placed(shown: ShownExample) -> tuple[PlacedBlock, ...]:
    """Return the blocks of an example whose items are known; a block without a unit ends where the next one begins."""
    starts = [block.start or 0 for block in shown.blocks]
    ends = [*starts[1:], max(shown.tokens.total, starts[-1] if starts else 0)]
    made = []
    for block, start, end in zip(shown.blocks, starts, ends, strict=True):
        if block.unit:
            made.append(PlacedBlock(block, start, block.unit.text_tokens, block.unit.image_tokens, block.unit.id))
        else:
            image = _image_tokens(block)
            made.append(PlacedBlock(block, start, max(0, end - start - image), image, block.name))
    return tuple(made)


def _estimated(shown: ShownExample, units: Units, example: Example) -> tuple[PlacedBlock, ...]:
    """Return the blocks of an example without items; the tokens before a block are a sum."""
    texts = units.text if units.is_counted_here and len(units.text) == len(shown.blocks) else _shares(shown, example)
    made, start = [], 0
    for block, text in zip(shown.blocks, texts, strict=True):
        image = _image_tokens(block)
        made.append(PlacedBlock(block, start, text, image, _hash(block)))
        start += text + image
    return tuple(made)


def _shares(shown: ShownExample, example: Example) -> list[int]:
    """Share the text tokens of an example out to its blocks by their characters."""
    sizes = [sum(len(piece.text) for piece in block.pieces if isinstance(piece, ShownText)) for block in shown.blocks]
    whole = sum(sizes) or 1
    total = example.tokens.text or whole // 4
    return [round(total * size / whole) for size in sizes]


def _image_tokens(block: Block) -> int:
    return sum(piece.tokens for piece in block.pieces if isinstance(piece, ShownImage))


def _hash(block: Block) -> str:
    texts = (piece.text.strip() if isinstance(piece, ShownText) else piece.path for piece in block.pieces)
    return blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _rows(blocks: Sequence[PlacedBlock]) -> Iterator[ListRow]:
    for number, placed in enumerate(blocks):
        count = len(placed.block.pieces)
        for first in range(0, max(1, count), PIECES):
            yield ListRow(number, first, min(count, first + PIECES))
