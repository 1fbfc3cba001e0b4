"""What a builder says of one example before it has a length: units, questions, and the order of taking.

A builder never sees the length, the depth or the counter, so it cannot cut, count or place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from mmlongbench.prompt import Part

Role: TypeAlias = Literal["gold", "needle", "negative", "padding", "own", "exemplar"]
Place: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """The least that is taken or left: a page, a passage, a picture with its label."""

    id: str
    """From the source; distinct within a draft."""
    role: Role
    body: Part
    place: Place | None
    """Where it stands among the others, as a key to sort by; None: at a depth."""
    head: str = ""
    """What the template prints before the body."""
    tail: str = ""
    """What the template prints after the body."""
    group: str | None = None
    """The document, class or case it belongs to."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the record needs of it."""
    is_optional: bool = False
    """Passed over where it does not fit, while the take order goes on; never a closing unit (pictures of MM-NIAH)."""
    excluded: str = ""
    """Why it may not stand here: the packer passes it over and counts the reason."""
    between_sentences: bool = False
    """Of a needle that is a sentence: it goes between two sentences of the text unit at its depth."""
    needles: tuple["Unit", ...] = ()
    """The sentences that the packer put into its body, in reading order."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The unit as it stands in the prompt."""
        return (self.head, self.body, self.tail)

    @property
    def text(self) -> str:
        """Its text without the image: what its text price is taken of."""
        return self.head + (self.body if isinstance(self.body, str) else "") + self.tail


class Wording(ABC):
    """Words of a question that depend on where the units stand, such as the place of a picture among all pictures.

    A builder declares every text that may be chosen. The packer keeps the tokens of the costliest one free before it
    takes any unit, and has one chosen for each placement once the units stand. So the budget holds whichever is chosen,
    and a builder still sees no length, no depth and no counter. Subclasses are pure.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def texts(self) -> tuple[str, ...]:
        """Every text that may be chosen."""

    @abstractmethod
    def choose(self, units: Sequence[Unit]) -> int:
        """Return which of the texts fits a context, as an index from 0; `units` are in the order of the prompt."""

    @abstractmethod
    def parts(self, text: str) -> tuple[Part, ...]:
        """Return the parts of the question with one of the texts; their images, and how they begin, never differ."""


@dataclass(frozen=True, slots=True)
class Question:
    """What stands after the context: the question and the answer prefix."""

    id: str
    parts: tuple[Part, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the record needs of it, the answer first of all."""
    group: str | None = None
    """With a group, it is asked only of contexts that show this group (ICL: the class of the test image)."""
    is_home: bool = True
    """Whether this context is the one its record is of; a context must fit every question, its records are few."""
    wording: Wording | None = None
    """Where some words depend on the placed units; `parts` then hold any one of its texts."""
    chosen: str = ""
    """The text of `wording` that `parts` hold in a finished example; empty before."""

    def worded(self, text: str) -> "Question":
        """Return the question with one of the texts of its wording."""
        return replace(self, parts=self.wording.parts(text), chosen=text) if self.wording else self


class TakeOrder(ABC):
    """The order in which units beyond the required ones are taken; may be lazy, is the same at every iteration."""

    __slots__ = ()

    @abstractmethod
    def units(self, length: int) -> Iterable[Unit]:
        """Return the units in the order of being taken; only a table of classes looks at the length, in tokens."""

    def groups(self, length: int) -> frozenset[str] | None:
        """Return the groups that a context of this length must show; None: every question is asked at every length."""
        return None

    def missing_groups(self, length: int) -> int:
        """Return how many groups a context of this length should show and the source does not have."""
        return 0

    def wider(self, length: int) -> "TakeOrder | None":
        """Return an order that shows more groups, where this one may end before a context of this length is full."""
        return None


@dataclass(frozen=True, slots=True)
class Closing:
    """How the last units are exchanged so that the sum lands on the budget."""

    last: int = 3
    """At most so many of the units taken last are given up, and at most so many stand in for them."""
    window: int = 200
    """They are chosen among so many next ones in take order."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The chosen units in another form: chosen as the draft has them, shown so (page text in place of page images)."""

    instruction: tuple[Part, ...]
    unit: Callable[[Unit], Unit]
    """A unit of the draft → the unit that is shown, of the same id and place."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One context before it has a length."""

    id: str
    instruction: tuple[Part, ...]
    """What stands before the units; ends with a newline, so that counts add up."""
    questions: tuple[Question, ...]
    """Usually one; many (ICL) share the context, which is packed once against the costliest."""
    required: tuple[Unit, ...]
    """Gold, needles, answer pages: in every context, at every length."""
    take_order: TakeOrder
    separator: str = "\n\n"
    closing: Closing | None = None
    rendered_as_text: Rendering | None = None
    """If the units are shown in another form than they are chosen in. Where that is over the length, nothing is left
    out: the draft does not fit."""
    noted: tuple[str, ...] = ()
    """Short phrases about the question, such as `joined by title`. The lock counts by them the questions that were
    examined for a release, also those that are then refused (see `Rejected`)."""
    family: str = ""
    """Contexts of one family show the same groups: they are widened together (ICL: the sets of a domain)."""
