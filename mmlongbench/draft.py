"""A draft: what a builder declares about one example before the example has a length.

It holds the units, the questions, and the order in which units are taken. A builder never sees the length, the depth or
the token counter, so it cannot cut, count or place anything.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from mmlongbench.prompt import Image, Part

Role: TypeAlias = Literal["gold", "needle", "negative", "padding", "own", "exemplar"]
Place: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece that the packer keeps or drops: a page, a passage, a picture with its label."""

    id: str
    """The unit's id in its source; unique within a draft."""
    role: Role
    """What it is for. `gold` and `needle` units hold the answer. A `negative` unit looks like such a unit, but does not
    hold the answer. Units of the other roles fill the context."""
    body: Part
    """Its text or its image."""
    place: Place | None
    """Its position among the other units, as a key to sort by; None: the packer puts it at a depth."""
    head: str = ""
    """The text that the template prints before the body."""
    tail: str = ""
    """The text that the template prints after the body."""
    further: tuple[Part, ...] = ()
    """The texts and images between the body and the tail, in reading order, if the unit has several: the rest of a page
    that is text with crops of its tables and figures."""
    group: str | None = None
    """The document, class or case that the unit belongs to, if any."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The values that the record needs from this unit."""
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
        """Return the parts of the unit as the prompt shows them."""
        return (self.head, self.body, *self.further, self.tail)

    @property
    def images(self) -> tuple[str, ...]:
        """Return the paths of the images of the unit, in reading order."""
        return tuple(part.path for part in (self.body, *self.further) if isinstance(part, Image))

    @property
    def text(self) -> str:
        """Return the text of the unit, without the images; the text tokens of the unit are those of this text."""
        return "".join(part for part in self.parts if isinstance(part, str))


class Wording(ABC):
    """Words of a question that depend on where the units are placed, such as the position of a picture among all
    pictures.

    A builder declares every text that may be chosen. Before the packer takes any unit, it keeps room for the costliest
    text. After it has placed the units, it calls `choose`, separately for each placement. So every choice fits the
    budget, and a builder still sees no length, no depth and no token counter. Subclasses are pure.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def texts(self) -> tuple[str, ...]:
        """Return every text that may be chosen."""

    @abstractmethod
    def choose(self, units: Sequence[Unit]) -> int:
        """Return the index in `texts` of the right text for a context; `units` are in the order of the prompt."""

    @abstractmethod
    def parts(self, text: str) -> tuple[Part, ...]:
        """Return the parts of the question with `text` in it; the images among the parts are the same for every
        text.
        """


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


@dataclass(frozen=True, slots=True)
class Draft:
    """One context and its questions, before the context has a length."""

    id: str
    """The released id of the row. A context that several rows share has an id of its own instead."""
    instruction: tuple[Part, ...]
    """The text and images before the units; it ends with a newline, so that token counts add up."""
    questions: tuple[Question, ...]
    """Usually one question. In many-shot learning (ICL) several questions share a context, which is packed once, with
    room for the costliest question."""
    required: tuple[Unit, ...]
    """The units that are in the context at every length: gold passages, needles, answer pages."""
    take_order: TakeOrder
    """The order in which other units are taken as long as they fit."""
    separator: str = "\n\n"
    """The text between two units."""
    closing: Closing | None = None
    """How the last units are exchanged to come close to the budget; None: they are not exchanged."""
    rendered_as_text: Rendering | None = None
    """The form in which the prompt shows the units, if they are chosen in another form (as page images, for example).
    If the chosen units are over the budget in the shown form, the draft does not fit; no unit is left out to make
    room."""
    noted: tuple[str, ...] = ()
    """Short phrases about the question, such as `joined by title`. The lock counts how many of the questions that were
    examined for a release have each phrase, including questions that were then refused (see `Rejected`)."""
    family: str = ""
    """A name shared by contexts that show the same groups (ICL: the contexts of a domain). If one of these contexts
    runs out of units, all of them may show more groups."""
