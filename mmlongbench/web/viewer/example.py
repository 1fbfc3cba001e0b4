"""One example, opened: its prompt in reading order, with the cost and the place of each block.

A page gets it as JSON values: an outline of all blocks, which is small, and the rows of its list in chunks, which are
loaded when they are reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.binding import calling
from mmlongbench.release.example_cost import ImageSizes, Model
from mmlongbench.release.release import Example
from mmlongbench.release.shown_example import (
    NO_ITEMS,
    Block,
    Piece,
    ShownExample,
    ShownImage,
    ShownText,
    described,
)
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.rows import Record
from mmlongbench.web.show_page import look
from mmlongbench.web.viewer.index import IndexRow, Units
from mmlongbench.web.viewer.viewed import Viewed, ViewedFile, example_of, fitted
from tokenization import TokenizationError

CHUNK = 20
"""The rows that are loaded at a time."""
_PIECES = 12
"""The texts and images that one row of the list may have; a block with more of them has several rows."""
_FOLDED = 700
"""A text with more characters is folded, unless its block is marked or is not of the context."""
_BEGINNING = 420
"""The characters of a folded text that are shown."""
_MAX_MARKED = 20_000
"""A marked text with more characters is folded, too."""
_MARKS = {"gold": 1, "needle": 2, "evidence": 4}
"""The bits of marks in an outline."""
_CAPTION = 24
"""The height in pixels of the caption of an image."""
_ESTIMATED = "units are the parts of the prompt, and their tokens are estimated"


class PlacedBlock(NamedTuple):
    """A block of the prompt with its place in the context."""

    block: Block
    start: int
    text: int
    image: int
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

    @property
    def is_context(self) -> bool:
        """Whether it is neither the instruction nor the question."""
        return self.block.name not in ("instruction", "question")


class ListRow(NamedTuple):
    """A row of the list: a block, or a part of a block with many texts and images."""

    block: int
    first: int
    """The number of its first piece in the block."""
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class OpenExample:
    """An example that can be shown."""

    row: IndexRow
    example: Example
    shown: ShownExample
    blocks: Sequence[PlacedBlock]
    missing: frozenset[str]
    """The images that are missing or cannot be read."""
    is_estimated: bool
    """Whether places were estimated, because there are no items."""
    rows: Sequence[ListRow]

    @property
    def total(self) -> int:
        """The tokens of the prompt."""
        end = self.blocks[-1].start + self.blocks[-1].tokens if self.blocks else 0
        return self.example.tokens.total or end

    @property
    def chunks(self) -> int:
        """The number of chunks of its list."""
        return -(-len(self.rows) // CHUNK)

    @property
    def keys(self) -> frozenset[str]:
        """The keys of its units."""
        return frozenset(placed.key for placed in self.blocks if placed.is_context)


def open_example(viewed: Viewed, file: ViewedFile, row: IndexRow, record: Record, units: Units) -> OpenExample:
    """Open an example."""
    example = example_of(viewed, file, dict(record), f"{file.name}, {row.id}")
    with calling("builder", file.builder_name, "a method that reads records", about=row.id):
        needles, labels = list(file.builder.needles(example.record) or ()), file.builder.labels(example.record)
        question = file.builder.question_of(example.record)
    known, sizes, missing, note = ImageSizes(file.images), dict[str, tuple[int, int]](), set[str](), units.note
    for path in example.prompt.images:
        try:
            sizes[path] = known[path]
        except (ReleaseError, OSError, ValueError):
            missing.add(path)
            sizes[path] = 1, 1
    asked = row.id if isinstance(file.builder, SharedContextBuilder) else ""
    show = partial(described, asked=asked, count=file.text.count if file.text else None)
    try:
        shown = show(example, units.items or None, needles, sizes, file.rule, labels)
    except ReleaseError as error:  # the items are not those of the prompt
        note = f"{error}; see `mmlongbench verify`"
        shown = show(example, None, needles, sizes, file.rule, labels)
    is_estimated = any(block.start is None for block in shown.blocks)
    blocks = _estimated(shown, units, example) if is_estimated else _placed(shown)
    notes = [each for each in (*shown.notes, note) if each and each != NO_ITEMS]
    if file.variant:
        notes.append(f"the prompt is shown in its form {file.variant!r}; {_ESTIMATED}")
    elif is_estimated:
        notes.append(_ESTIMATED if note else f"the release has no items of this file: {_ESTIMATED}")
    shown = replace(shown, question=question, metric=file.builder.spec.metric, notes=tuple(notes))
    rows = [
        ListRow(number, first, placed.block.pieces[first : first + _PIECES])
        for number, placed in enumerate(blocks)
        for first in range(0, max(1, len(placed.block.pieces)), _PIECES)
    ]
    return OpenExample(row, example, shown, blocks, frozenset(missing), is_estimated, rows)


def _placed(shown: ShownExample) -> list[PlacedBlock]:
    """Return the blocks of an example whose items are known; a block without a unit ends where the next one begins."""
    starts = [block.start or 0 for block in shown.blocks]
    ends = [*starts[1:], max(shown.tokens.total, starts[-1] if starts else 0)]
    placed = []
    for block, start, end in zip(shown.blocks, starts, ends, strict=True):
        if block.unit:
            placed.append(PlacedBlock(block, start, block.unit.text_tokens, block.unit.image_tokens, block.unit.id))
        else:
            image = _image_tokens(block)
            placed.append(PlacedBlock(block, start, max(0, end - start - image), image, block.name))
    return placed


def _estimated(shown: ShownExample, units: Units, example: Example) -> list[PlacedBlock]:
    """Return the blocks of an example without items; the tokens before a block are a sum."""
    texts = units.texts
    if len(texts) != len(shown.blocks):  # by their shares of the characters
        sizes = [
            sum(len(piece.text) for piece in block.pieces if isinstance(piece, ShownText)) for block in shown.blocks
        ]
        whole = sum(sizes) or 1
        total = example.tokens.text or whole // 4
        texts = [round(total * size / whole) for size in sizes]
    placed, start = [], 0
    for block, text in zip(shown.blocks, texts, strict=True):
        content = "\0".join(p.text.strip() if isinstance(p, ShownText) else p.path for p in block.pieces)
        key = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        placed.append(PlacedBlock(block, start, text, _image_tokens(block), key))
        start += placed[-1].tokens
    return placed


def _image_tokens(block: Block) -> int:
    return sum(piece.tokens for piece in block.pieces if isinstance(piece, ShownImage))


# JSON values.


def outline(opened: OpenExample, shorter: frozenset[str] | None) -> dict[str, object]:
    """Return the outline of an example: columns with a value for each block, and columns for each row of the list.
    `shorter` are the keys of the units of the same example at the next shorter length; None if there is none.
    """
    looks = [(placed.role, look(placed.block)) for placed in opened.blocks]
    names = list(dict.fromkeys(looks))
    images = [[piece for piece in row.pieces if isinstance(piece, ShownImage)] for row in opened.rows]
    needles = opened.shown.needles
    added = [] if shorter is None else [n for n, b in enumerate(opened.blocks) if b.is_context and b.key not in shorter]
    return {
        "total": opened.total,
        "reserve": opened.shown.reserve,
        "length": opened.shown.length,
        "estimated": opened.is_estimated,
        "roles": [{"name": name, "look": kind} for name, kind in names],
        "role": [names.index(each) for each in looks],
        "start": [placed.start for placed in opened.blocks],
        "cost": [placed.tokens for placed in opened.blocks],
        "marks": [sum(_MARKS[mark] for mark in placed.block.marks) for placed in opened.blocks],
        "added": added,
        "key": [placed.key for placed in opened.blocks],
        "row": [number for number, row in enumerate(opened.rows) if row.first == 0],
        "rows": {
            "block": [row.block for row in opened.rows],
            "chars": [
                sum(
                    _shown(opened.blocks[row.block], p)
                    for p in row.pieces
                    if isinstance(p, ShownText) and p.text.strip()
                )
                for row in opened.rows
            ],
            "tall": [sum(fitted(image.size)[1] + _CAPTION for image in row) for row in images],
            "images": [len(row) for row in images],
        },
        "needles": [{"requested": n.requested, "achieved": n.achieved, "start": n.start} for n in needles],
        "chunk": CHUNK,
    }


def chunk(opened: OpenExample, number: int, images: Mapping[str, int], *, is_whole: bool = False) -> list[object]:
    """Return the rows of a chunk, by its number from 0; `images` has the number of each image in the index of the file.
    `is_whole`: texts are given whole, because the page cannot ask for them later.
    """
    if not 0 <= number < max(1, opened.chunks):
        raise ReleaseError(f"there is no chunk {number}")
    rows: list[object] = []
    for block, first, row in opened.rows[number * CHUNK : (number + 1) * CHUNK]:
        placed, pieces = opened.blocks[block], list[dict[str, object]]()
        for place, piece in enumerate(row, first):
            speaker = {"speaker": piece.speaker} if piece.speaker else {}
            if isinstance(piece, ShownImage):
                value: dict[str, object] = {
                    "image": images.get(piece.path, -1),
                    "path": piece.path,
                    "size": list(piece.size),
                    "shown": list(fitted(piece.size)),
                    "tokens": piece.tokens,
                    "missing": piece.path in opened.missing,
                }
                pieces.append(value | speaker)
            elif piece.text.strip():
                shown, size = _shown(placed, piece), len(piece.text)
                value = {"t": _spans(piece, shown), "n": size, "piece": place}
                if shown < size:
                    value |= {"folded": True, **({"whole": _spans(piece, size)} if is_whole else {})}
                pieces.append(value | speaker)
        about = {
            "block": block,
            "part": first > 0,
            "role": placed.role,
            "label": placed.block.label,
            "look": look(placed.block),
            "unit": placed.block.unit.id if placed.block.unit else "",
            "start": placed.start,
            "cost": placed.tokens,
            "text": placed.text,
            "image": placed.image,
            "marks": list(placed.block.marks),
            "pieces": pieces,
        }
        rows.append(about)
    return rows


def whole_text(opened: OpenExample, block: int, piece: int) -> dict[str, object]:
    """Return a whole text."""
    pieces = opened.blocks[block].block.pieces if block < len(opened.blocks) else ()
    found = pieces[piece] if piece < len(pieces) else None
    if not isinstance(found, ShownText):
        raise ReleaseError(f"there is no text {piece} in block {block}")
    return {"t": _spans(found, len(found.text))}


def _shown(placed: PlacedBlock, piece: ShownText) -> int:
    """Return how many characters of a text are shown at first."""
    size = len(piece.text)
    is_open = placed.block.marks or not placed.is_context
    return size if size <= (_MAX_MARKED if is_open else _FOLDED) else _BEGINNING


def _spans(piece: ShownText, most: int) -> list[object]:
    """Return the beginning of a text: texts, and lists with one text, which is a needle."""
    spans: list[object] = []
    for part, is_needle in piece.parts():
        cut = part[:most]
        most -= len(cut)
        if cut:
            spans.append([cut] if is_needle else cut)
    return spans


def on_model(opened: OpenExample, model: Model) -> dict[str, object]:
    """Return what blocks cost by the rule of a model, and which of them fit its window. Texts are counted as in the
    release.
    """
    rule, images = model.rule, len(opened.shown.images)
    costs, starts, refused = [], [], set[str]()
    before = seen = 0
    was_image = False
    for placed in opened.blocks:
        cost = placed.text
        for piece in placed.block.pieces:
            if isinstance(piece, ShownImage):
                seen += 1
                try:
                    cost += rule.tokens(*piece.size, seen if rule.by_place else images)
                except TokenizationError:
                    refused.add(piece.path)
                cost -= rule.shared if was_image else 0
                was_image = True
            elif piece.text:
                was_image = False
        starts.append(before)
        costs.append(cost)
        before += cost
    notes = ["images are counted by the rule of the model, texts as in the release"]
    if refused:
        notes.append(f"{model.name} refuses {len(refused):,} images because of their size")
    if rule.max_images is not None and images > rule.max_images:
        notes.append(f"a request to {model.name} may have {rule.max_images:,} images, this prompt has {images:,}")
    room = None if model.window is None else model.window - opened.shown.reserve
    if room is not None and before > room:
        notes.append(f"the prompt has {before - room:,} tokens more than fit the window")
    elif room is not None:
        notes.append(f"the prompt fits the window: {before:,} of {room:,} tokens, {room - before:,} left")
    return {
        "name": model.name,
        "start": starts,
        "cost": costs,
        "total": before,
        "window": model.window,
        "room": room,
        "notes": notes,
    }
