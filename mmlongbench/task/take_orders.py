"""Take orders: the order in which units are taken while there is room. Nothing here counts tokens.

Each take order is a frozen value that yields units. A larger budget takes a longer prefix, so contexts are nested. The
exception is `Rounds`, whose number of classes depends on the length.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from mmlongbench.draft import TakeOrder, Unit
from mmlongbench.errors import Fault, Rejected
from mmlongbench.prompt import Image


@dataclass(frozen=True, slots=True)
class InOrder(TakeOrder):
    """Units in a fixed order: ranked passages (visual RAG), web pages (MM-NIAH), or pictures in a drawn order (Visual
    Haystacks).
    """

    order: Sequence[Unit]
    """The units, in the order in which they are taken."""

    def units(self, length: int) -> Iterable[Unit]:
        return self.order


@dataclass(frozen=True, slots=True)
class Chain(TakeOrder):
    """One take order after another, for example the rest of a document and then its padding."""

    parts: tuple[InOrder | Callable[[], Iterable[Unit]], ...]
    """The orders, one after another; a function is called only when its turn comes."""

    def units(self, length: int) -> Iterator[Unit]:
        for part in self.parts:
            yield from part.units(length) if isinstance(part, InOrder) else part()


def inside_out(units: Sequence[Unit], keep: Sequence[int]) -> tuple[tuple[Unit, ...], InOrder]:
    """Split a document into its required units and the order in which the others are taken (DocVQA).

    Read backwards, the order is the published rule for dropping pages. The rule first drops the pages before the first
    and after the last required page, alternately from both ends of the document, the last page first. When no such page
    is left at one end, the rule goes on at the other end. Then it drops the pages between required pages, first the
    page with the largest distance to the nearest required page. If `keep` is empty, the middle unit is required, so
    that the document is never absent.

    Args:
        units: the document's units in reading order, at least one.
        keep: indexes of the required units.

    Raises:
        Rejected: there is no unit with such an index.

    """
    if wrong := [index for index in keep if not 0 <= index < len(units)]:
        expected, todo = f"an index from 0 to {len(units) - 1}", "correct the page of the row"
        raise Rejected(Fault("unit-out-of-range", expected, f"{wrong[0]}", todo=todo))
    kept = sorted(set(keep)) or [(len(units) - 1) // 2]
    dropped: list[int] = []
    low, high, from_right = 0, len(units) - 1, True
    while low < kept[0] or high > kept[-1]:
        if (from_right and high > kept[-1]) or low >= kept[0]:
            dropped.append(high)
            high -= 1
        else:
            dropped.append(low)
            low += 1
        from_right = not from_right
    between = [i for left, right in itertools.pairwise(kept) for i in range(left + 1, right)]
    dropped += sorted(between, key=lambda i: (-min(abs(i - k) for k in kept), -i))
    return tuple(units[i] for i in kept), InOrder(tuple(units[i] for i in reversed(dropped)))


def alternate_sides(documents: Iterable[Sequence[Unit]]) -> Iterator[Unit]:
    """Yield the units of other documents, one document after another. The documents are placed alternately before and
    after the place (0, …). Of each document, the page that is nearest to this place comes first.

    So a document of which only a part fits loses pages at its outer end, and stays next to its neighbour. A document
    whose units are all excluded is not placed, and does not change the side.
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
    """Return the take order of summaries. It always takes the next page of the document with the largest quotient: the
    number of its pages / (the number of its taken pages + ½).

    If several documents have this quotient, the first of them in the source is chosen. So all documents lose pages from
    their end, in proportion to their length, and contexts are nested.
    """
    places = [
        (-Fraction(2 * len(units), 2 * taken + 1), number, taken)
        for number, units in enumerate(documents)
        for taken in range(len(units))
    ]
    return InOrder(tuple(documents[number][taken] for _, number, taken in sorted(places)))


def spread(units: Sequence[Unit]) -> InOrder:
    """Return an order in which every prefix is spread evenly over a sequence, such as frames of a film or pages.

    The next unit is always the middle of the longest run of units that are not taken yet. So the distance between two
    neighbours, or between a neighbour and an end, is never more than twice that of an even distribution. The place of a
    unit is its index, unless it has a place.
    """
    taken: list[Unit] = []
    runs = [(-len(units), 0)]  # the longest run first, and of equal runs the first
    while runs:
        negative, first = heapq.heappop(runs)
        if not negative:
            break
        middle, end = first + (-negative - 1) // 2, first - negative
        unit = units[middle]
        taken.append(replace(unit, place=(middle,)) if unit.place is None else unit)
        heapq.heappush(runs, (first - middle, first))
        heapq.heappush(runs, (middle + 1 - end, middle + 1))
    return InOrder(tuple(taken))


@dataclass(frozen=True, slots=True)
class Rounds(TakeOrder):
    """Many-shot rounds (ICL): each round shows every class once; the last round ends where the budget is used up.

    An excluded unit is followed by the next picture of its class. The rounds end where a class has no more pictures. No
    picture comes twice. The numbers of pictures of any two classes differ by at most one.
    """

    classes: tuple[str, ...]
    """The classes in a drawn order; a context shows the first n of them, where n grows with the length."""
    exemplars: Callable[[str], Iterable[str]]
    """Returns the pictures of a class in a drawn order."""
    unit: Callable[[str, str, int, int], Unit]
    """Takes (class, picture, number of the label, number of the round), and returns the unit. The unit is excluded if
    the picture may not be shown."""
    order: Callable[[str, Sequence[str]], Sequence[str]]
    """Takes (name of a draw, classes), and returns the classes in the order that this draw gives."""
    labels: Callable[[Sequence[str]], Sequence[str]] | None = None
    """Returns the classes in the order of their labels; None: `order` draws this order under the name `labels`."""
    per_8k: int = 5
    """How many classes a context of 8K shows; this number grows in proportion to the length."""
    most: int = 50
    """How many classes a context shows at most, up to the length `most_up_to`."""
    most_up_to: int = 128 * 1024
    """A length in tokens; above it, a context may show more than `most` classes if the pictures of a class are
    exhausted."""
    more: tuple[str, ...] = ()
    """The classes that are added above `most_up_to`."""
    counts: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """How many pictures each class has, as far as they were counted; wider orders share this dict."""

    def shown(self, length: int) -> tuple[str, ...]:
        """Return the classes of a context of this length, in the order of their labels."""
        first = (*self.classes[: self._table(length)], *(self.more if length > self.most_up_to else ()))
        return tuple(self.labels(first) if self.labels else self.order("labels", first))

    def groups(self, length: int) -> frozenset[str]:
        return frozenset(self.shown(length))

    def missing_groups(self, length: int) -> int:
        return max(0, self._table(length) - len(self.classes))

    def wider(self, length: int) -> "Rounds | None":
        """Return an order with one more class, or None; only lengths above `most_up_to` get more classes. The new class
        has at least as many pictures as the shown class that has the fewest.
        """
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
        """Return how many classes a context of this length should show."""
        return min(self.most, self.per_8k * length // 8192)

    def units(self, length: int) -> Iterator[Unit]:
        """Yield units round by round; each label comes once a round, in an order drawn for the round."""
        label = {name: number for number, name in enumerate(self.shown(length))}
        pictures = {name: iter(self.exemplars(name)) for name in label}
        seen: set[str] = set()
        turn, is_over = 0, not label
        while not is_over:
            for number, name in enumerate(self.order(f"round {turn}", tuple(label))):
                for picture in pictures[name]:
                    if is_over:  # this class has more pictures
                        break
                    unit = self.unit(name, picture, label[name], turn)
                    path = unit.body.path if isinstance(unit.body, Image) else unit.id
                    if not unit.excluded and path in seen:
                        unit = replace(unit, excluded="picture-twice")
                    seen.add(path)
                    yield replace(unit, place=(turn, number))
                    if not unit.excluded:
                        break
                else:
                    is_over = True
                    yield Unit(f"{name}, round {turn}", "", (), "exemplar", excluded=f"no more pictures of {name}")
            turn += 1
