"""What is shown of one example: its prompt in reading order, with what the release knows about each unit.

Values only: `showing` makes them, and a terminal or a page draws them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mmlongbench.task.evidence import Evidence
from tokenization import TokenCount

Mark: TypeAlias = Literal["gold", "needle", "evidence"]
"""Why a unit or a part of it matters for the answer."""
BlockName: TypeAlias = Literal["instruction", "unit", "question", "user", "assistant"]
"""What a block of a prompt is; `user` and `assistant` are parts of a prompt whose builder does not name its units."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text of a prompt."""

    text: str
    needles: tuple[tuple[int, int], ...] = ()
    """The needles inside the text: (first character, character after the last), in order, without overlaps."""

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
    """The path below `mmlb_image/`."""
    size: tuple[int, int]
    """Width and height in pixels, after EXIF rotation."""
    tokens: int
    """Its tokens by the rule of the release."""


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
    """The tokens before it; None if not known."""


@dataclass(frozen=True, slots=True)
class NeedlePlace:
    """Where a needle stands, as the record says."""

    requested: float | None
    """The depth that was requested, as a share of the haystack's tokens; None if the record does not say."""
    achieved: float | None
    """The depth that the needle has."""
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
        found = self.evidence
        return tuple(page + 1 for page in found.document_pages or found.pages) if found else ()

    @property
    def hidden_pages(self) -> tuple[int, ...]:
        """The pages of the evidence that the prompt does not show, from 1."""
        found = self.evidence
        if found is None:
            return ()
        shown = set(found.shown)
        if found.document_pages:  # images join pages: `shown` counts images
            shown = {page for first, last in found.joined.values() for page in range(first, last + 1)}
        return tuple(page for page in self.evidence_pages if page - 1 not in shown)
