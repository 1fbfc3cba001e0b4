"""A draft: what a task or a builder declares about one example before the example has a length.

It holds the units, the questions, and the order in which units are taken. A task never sees the length, the depth or
the token counter, so it cannot cut, count or place anything.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from mmlongbench.prompt import Image, Part, Shown, Turn

Role: TypeAlias = Literal["gold", "needle", "negative", "padding", "own", "exemplar"]
NEEDLES: tuple[Role, ...] = ("gold", "needle")
"""The roles of units that hold the answer; with placements, they are put at a depth."""
Place: TypeAlias = tuple[int, ...]
SEPARATOR = "\n\n"
"""The text between two units, if a task names no other."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece that the packer keeps or drops: a page, a passage, a picture with its label."""

    id: str
    """The unit's id in its source; unique within a draft."""
    body: Part = ""
    """Its text or its image; empty if the unit is made of turns."""
    place: Place | None = None
    """Its position among the other units, as a key to sort by. None: a required unit is put at a depth, and a unit of
    `InOrder` stands where the order has it."""
    role: Role | Literal[""] = ""
    """What it is for. `gold` and `needle` units hold the answer. A `negative` unit looks like such a unit, but does not
    hold the answer. Units of the other roles fill the context. Empty: a required unit becomes a `needle` if it has no
    place and `gold` if it has one, and any other unit `padding`."""
    head: str = ""
    """The text that the template prints before the body."""
    tail: str = ""
    """The text that the template prints after the body."""
    further: tuple[Part, ...] = ()
    """The texts and images between the body and the tail, in reading order, if the unit has several: the rest of a page
    that is text with crops of its tables and figures."""
    turns: tuple[Turn, ...] = ()
    """What two speakers say, such as a question with its reply, if the unit is a piece of a conversation
    (`Draft.in_turns`). It then has no body, head, tail and further parts."""
    group: str | None = None
    """The document, class or case that the unit belongs to, if any."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The values that the record needs from this unit."""
    label: str = ""
    """What it is, for people, such as `the asked picture`; `show` and `view` print it, and no prompt does."""
    is_optional: bool = False
    """Whether the packer may skip this unit if it does not fit, and still take later units (pictures of MM-NIAH). Such
    a unit is never exchanged (`Closing`)."""
    excluded: str = ""
    """Why the unit must not be in this context; empty if it may be. The packer skips an excluded unit and counts the
    reason."""
    between_sentences: bool = False
    """Whether it is a needle sentence, which goes between two sentences of the text unit at its depth."""
    needles: tuple["Unit", ...] = ()
    """The needle sentences that the packer put into the body of this unit, in reading order."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the unit as the prompt shows them; of a unit of turns, those of all its turns."""
        if self.turns:
            return tuple(part for turn in self.turns for part in turn.parts)
        return (self.head, self.body, *self.further, self.tail)

    @property
    def images(self) -> tuple[str, ...]:
        """Return the paths of the images of the unit, in reading order."""
        if not (self.turns or self.further):  # of millions of units
            return (self.body.path,) if isinstance(self.body, Image) else ()
        parts = self.parts if self.turns else (self.body, *self.further)
        return tuple(part.path for part in parts if isinstance(part, Image))

    @property
    def shown(self) -> Shown:
        """Return the unit as `Prompt.of_units` takes it: its turns, or its parts."""
        return self.turns or self.parts

    @property
    def text(self) -> str:
        """Return the text of the unit, without the images; the text tokens of the unit are those of this text."""
        if isinstance(self.body, str) and not (self.head or self.tail or self.further or self.turns):
            return self.body
        return "".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of a question that depend on where the units are placed, such as the position of a picture among all
    pictures.

    A task declares every text that may be chosen. Before the packer takes any unit, it keeps room for the costliest
    text. After it has placed the units, it calls `choose`, separately for each placement. So every choice fits the
    budget, and a task still sees no length, no depth and no token counter.
    """

    texts: tuple[str, ...]
    """Every text that may be chosen."""
    choose: Callable[[Sequence[Unit]], int]
    """Takes the units in the order of the prompt, and returns the index in `texts` of the right text. It is pure."""
    parts: Callable[[str], tuple[Part, ...]] = lambda text: (text,)
    """Takes one of the texts, and returns the parts of the question with it; the images among them are the same for
    every text."""


@dataclass(frozen=True, slots=True)
class Question:
    """The part of a prompt after the context: the question and the answer prefix."""

    id: str
    """The released id."""
    parts: tuple[Part, ...]
    """Texts and images, in reading order."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The values that the record needs from the question, above all the answer."""
    group: str | None = None
    """If set, the question is asked only about contexts that show this group (ICL: the class of the test image)."""
    is_home: bool = True
    """Whether the question's record is made from this context. A shared context leaves room for every question of its
    draft, also for a question whose record is made from another context."""
    wording: Wording | None = None
    """The words that depend on the placed units. If it is set, `parts` contains one of its texts, no matter which."""
    chosen: str = ""
    """The text of `wording` that was chosen for a finished example; empty before."""

    def worded(self, text: str) -> "Question":
        """Return the question with one of the texts of its wording."""
        return replace(self, parts=self.wording.parts(text), chosen=text) if self.wording else self


class TakeOrder(ABC):
    """The order in which units beyond the required ones are taken. It may be lazy, and is the same at every
    iteration.
    """

    __slots__ = ()

    @abstractmethod
    def units(self, length: int) -> Iterable[Unit]:
        """Return the units in the order in which they are taken. Only the order of many-shot learning (`Rounds`)
        depends on `length`, which is in tokens.
        """

    def groups(self, length: int) -> frozenset[str] | None:
        """Return the groups that a context of this length must show; None: every question is asked at every length."""
        return None

    def missing_groups(self, length: int) -> int:
        """Return how many groups a context of this length should show but the source does not have."""
        return 0

    def wider(self, length: int) -> "TakeOrder | None":
        """Return an order that shows more groups; None if there is no such order. The returned order is used if this
        order is exhausted before a context is full.
        """
        return None


@dataclass(frozen=True, slots=True)
class Closing:
    """How the last units are exchanged so that the total comes close to the budget."""

    last: int = 3
    """At most this many of the units taken last are given up, and at most this many units replace them."""
    window: int = 200
    """The replacements are chosen among the units given up and this many units that are next in the take order."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A form in which a prompt shows the chosen units instead of their own form, such as page text instead of page
    images.
    """

    instruction: tuple[Part, ...]
    """The instruction before the units in this form."""
    unit: Callable[[Unit], Unit]
    """Turns a unit of the draft into the unit that is shown, with the same id and place."""


# No dataclass: `help()` of one lists each field thrice, and this class is what authors read.
class Draft:
    """What the contexts of a row are made of. Most need the first four fields."""

    def __init__(
        self,
        required: tuple[Unit, ...],
        take_order: TakeOrder,
        question: str | Sequence[Part] | Wording | None = None,
        answer: object = None,
        fields: Mapping[str, Any] = MappingProxyType({}),
        one_of: Sequence[Unit] | None = None,
        *,
        instruction: tuple[Part, ...] = (),
        closing: Closing | None = None,
        noted: tuple[str, ...] = (),
    ) -> None:
        self.required = required
        """Units that every context shows: needles, gold pages."""
        self.take_order = take_order
        """The order in which others are taken, mostly `InOrder`."""
        self.question = question
        """The question alone; None: what `question(row)` returns."""
        self.answer = answer
        """The answer; None: `row.answer`, or that of `answer(example)`."""
        self.fields = fields
        """What the record has besides the fields of the row."""
        self.one_of = one_of
        """Units of which a context must show one; None: no unit is needed."""
        self.instruction = instruction
        """The text before the units; empty: that of the task."""
        self.closing = closing
        """How the last units are exchanged to come close to the budget."""
        self.noted = noted
        """Phrases about the question, which the lock counts."""


@dataclass(frozen=True, slots=True)
class ContextDraft:
    """One context and its questions, before the context has a length. A `Task` gets it from a `Draft`."""

    required: tuple[Unit, ...]
    take_order: TakeOrder
    id: str = ""
    """The released id: that of the row, or of a context that several rows share."""
    instruction: tuple[Part, ...] = ()
    questions: tuple[Question, ...] = ()
    """The finished questions. Several share a context, which has room for the costliest of them."""
    separator: str = SEPARATOR
    one_of: Sequence[Unit] | None = None
    """Units of the take order of which a context must show at least one; otherwise the question is rejected at that
    length, and if it is empty, at all lengths. None: all may be missing."""
    closing: Closing | None = None
    """How the last units are exchanged to come close to the budget; None: they are not."""
    noted: tuple[str, ...] = ()
    """Phrases about the question, such as `joined by title`; the lock counts them over all examined questions."""
    rendered_as_text: Rendering | None = None
    """The form in which the prompt shows the chosen units, if not their own; none is left out to make room for it."""
    family: str = ""
    """A name shared by contexts that show the same groups: if one runs out of units, all may show more groups."""
    in_turns: bool = False
    """Whether the context is a conversation, in which a unit without turns is said by the user."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Why units with certain images are left out, by the path of the image."""

    def __post_init__(self) -> None:
        """Give required units without a role theirs."""
        units = self.required if isinstance(self.required, tuple | list) else ()
        if any(isinstance(unit, Unit) and not unit.role for unit in units):
            roles = (unit.role or ("needle" if unit.place is None else "gold") for unit in units)
            required = tuple(replace(unit, role=role) for unit, role in zip(units, roles, strict=True))
            object.__setattr__(self, "required", required)
