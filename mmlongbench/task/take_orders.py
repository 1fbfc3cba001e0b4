"""Take orders: in which order units are taken when there is room. Nothing here counts tokens.

Each policy is a frozen value that yields units; a longer budget takes a longer prefix, so contexts are nested. The
exception is `Rounds`, whose number of classes follows a table of lengths.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from mmlongbench.draft import TakeOrder, Unit
from mmlongbench.prompt import Image


@dataclass(frozen=True, slots=True)
class InOrder(TakeOrder):
    """Units as they come: ranked passages (VRAG), web pages (MM-NIAH), pictures in a drawn order (VH)."""

    order: tuple[Unit, ...]

    def units(self, length: int) -> Iterable[Unit]:
        """The units, whatever the length."""
        return self.order


@dataclass(frozen=True, slots=True)
class Chain(TakeOrder):
    """One take order after another, for example the rest of a document and then its padding."""

    parts: tuple[InOrder | Callable[[], Iterable[Unit]], ...]

    def units(self, length: int) -> Iterator[Unit]:
        """The units of each part in turn; a callable part is made when it is reached."""
        for part in self.parts:
            yield from part.units(length) if isinstance(part, InOrder) else part()


@dataclass(frozen=True, slots=True)
class Without(TakeOrder):
    """A take order in which units with certain pictures are excluded, each for its reason."""

    take_order: TakeOrder
    excluded: Mapping[str, str]
    """Reasons by the picture's path."""

    def units(self, length: int) -> Iterator[Unit]:
        """The units in their order; the excluded ones say so."""
        for unit in self.take_order.units(length):
            reason = self.excluded.get(unit.body.path, "") if isinstance(unit.body, Image) else ""
            yield replace(unit, excluded=reason) if reason else unit

    def groups(self, length: int) -> frozenset[str] | None:
        """As the take order has them."""
        return self.take_order.groups(length)

    def missing_groups(self, length: int) -> int:
        """As the take order has them."""
        return self.take_order.missing_groups(length)

    def wider(self, length: int) -> "Without | None":
        """The wider take order, with the same pictures excluded."""
        found = self.take_order.wider(length)
        return replace(self, take_order=found) if found else None


def inside_out(units: Sequence[Unit], keep: Sequence[int]) -> tuple[tuple[Unit, ...], InOrder]:
    """Split a document into its required units and the order in which the others are taken (DocVQA).

    Read backwards it is the published rule of dropping: outermost pages go alternately from both sides (the last page
    first), a side stops at its outermost kept page and the other goes on; only then inner pages, the farthest from any
    kept page first. With nothing to keep, the middle unit is kept, so that the document is never absent.

    Args:
        units: the document's units in reading order, at least one.
        keep: indexes of the required ones.

    """
    kept = sorted(set(keep)) or [(len(units) - 1) // 2]
    dropped = [*_outer_drops(len(units), kept[0], kept[-1]), *_inner_drops(kept)]
    return tuple(units[i] for i in kept), InOrder(tuple(units[i] for i in reversed(dropped)))


def _outer_drops(count: int, first: int, last: int) -> Iterator[int]:
    low, high, from_right = 0, count - 1, True
    while low < first or high > last:
        if (from_right and high > last) or low >= first:
            yield high
            high -= 1
        else:
            yield low
            low += 1
        from_right = not from_right


def _inner_drops(kept: Sequence[int]) -> list[int]:
    inner = [i for left, right in itertools.pairwise(kept) for i in range(left + 1, right)]
    return sorted(inner, key=lambda i: (-min(abs(i - k) for k in kept), -i))


def alternate_sides(documents: Iterable[Sequence[Unit]]) -> Iterator[Unit]:
    """Lay other documents alternately left and right of what stands at place (0, …), whole, nearest pages first.

    A document that is cut is so cut at its outer end: contiguous up to the one it leans on. An excluded document takes
    no side.
    """
    number = -1
    for units in documents:
        if all(unit.excluded for unit in units):
            yield from units
            continue
        number += 1
        left = number % 2 == 0
        shift = -(number // 2 + 1) if left else number // 2 + 1
        for index in reversed(range(len(units))) if left else range(len(units)):
            yield replace(units[index], place=(shift, index))


def by_divisor(documents: Sequence[Sequence[Unit]]) -> InOrder:
    """Take the next page of the document with the largest pages / (taken + ½), ties in source order (summaries).

    A divisor rule is monotone in the length, so each document is cut evenly from its end and contexts nest.
    """
    places = [
        (-Fraction(2 * len(units), 2 * taken + 1), number, taken)
        for number, units in enumerate(documents)
        for taken in range(len(units))
    ]
    return InOrder(tuple(documents[number][taken] for _, number, taken in sorted(places)))


@dataclass(frozen=True, slots=True)
class Rounds(TakeOrder):
    """Many-shot rounds (ICL): each round shows every class once; the last one is cut where the room ends.

    An excluded unit is followed by the next picture of its class. Where a class has no more pictures the rounds end: no
    picture comes twice, and no class is shown more often than another by more than one.
    """

    classes: tuple[str, ...]
    """In a drawn order; the first n are the n classes of a shorter context."""
    exemplars: Callable[[str], Iterable[str]]
    """The pictures of a class in a drawn order."""
    unit: Callable[[str, str, int, int], Unit]
    """(class, picture, label, round) → unit, excluded where the picture may not be shown; its place is set here."""
    order: Callable[[str, Sequence[str]], Sequence[str]]
    """(name of a draw, classes) → the classes in that drawn order."""
    labels: Callable[[Sequence[str]], Sequence[str]] | None = None
    """classes → the classes in the order of their labels; the draw `labels` of `order` by default."""
    per_8k: int = 5
    most: int = 50
    most_up_to: int = 128 * 1024
    """Tokens: above this length there may be more than `most` classes, where the pictures of one run out."""
    more: tuple[str, ...] = ()
    """These."""
    counts: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The pictures of the classes that were counted; the wider ones know them too."""

    def shown(self, length: int) -> tuple[str, ...]:
        """The classes of a context of this length, in the order of their labels."""
        first = (*self.classes[: self._table(length)], *(self.more if length > self.most_up_to else ()))
        return tuple(self.labels(first) if self.labels else self.order("labels", first))

    def groups(self, length: int) -> frozenset[str]:
        """Only test images of shown classes are asked."""
        return frozenset(self.shown(length))

    def missing_groups(self, length: int) -> int:
        """Classes that the table asks for and the source does not have."""
        return max(0, self._table(length) - len(self.classes))

    def wider(self, length: int) -> "Rounds | None":
        """With one class more, above 128K; one that has no fewer pictures than those that are shown."""
        if length <= self.most_up_to or self._table(length) < self.most:
            return None
        least = min(map(self._count, self.shown(length)))
        others = (n for n in self.classes[self.most :] if n not in self.more and self._count(n) >= least)
        found = next(others, None)
        return replace(self, more=(*self.more, found)) if found else None

    def _count(self, name: str) -> int:
        if name not in self.counts:
            self.counts[name] = sum(1 for _ in self.exemplars(name))
        return self.counts[name]

    def _table(self, length: int) -> int:
        """How many classes the table asks for at a length."""
        return min(self.most, self.per_8k * length // 8192)

    def units(self, length: int) -> Iterator[Unit]:
        """Round by round, each label once a round, in a drawn order of its own."""
        label = {name: number for number, name in enumerate(self.shown(length))}
        pictures = {name: iter(self.exemplars(name)) for name in label}
        seen: set[str] = set()
        turn, is_over = 0, not label
        while not is_over:
            for number, name in enumerate(self.order(f"round {turn}", tuple(label))):
                for picture in pictures[name]:
                    if is_over:  # this class could have gone on
                        break
                    unit = _once(self.unit(name, picture, label[name], turn), seen)
                    yield replace(unit, place=(turn, number))
                    if not unit.excluded:
                        break
                else:
                    is_over = True
                    yield Unit(f"{name}, round {turn}", "exemplar", "", (), excluded=f"no more pictures of {name}")
            turn += 1


def _once(unit: Unit, seen: set[str]) -> Unit:
    """The unit, excluded if its picture has been shown."""
    path = unit.body.path if isinstance(unit.body, Image) else unit.id
    if unit.excluded or path not in seen:
        seen.add(path)
        return unit
    return replace(unit, excluded="picture-twice")
