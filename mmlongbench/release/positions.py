"""Finds where units and needles are in a released prompt, from the prompt itself.

No code is shared with the packer: the tokens before a place are those of the lines and images before it. Positions are
exact if the tokenizer is additive (see `TextTokenizer.additive`), as the embedded one is, and units begin lines. If
several units are in one line, a position in the items is the sum of the tokens of the units before it, each counted
alone. Then a unit may be a few tokens away from its position.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any
from urllib.parse import unquote

from mmlongbench.errors import ReleaseError
from mmlongbench.prompt import Image, Part, Prompt
from mmlongbench.release.example_cost import Measured
from mmlongbench.release.items import Item
from tokenization import CrossModalCounter

NEEDLES = ("gold", "needle")
"""The roles of units that are put at a depth, in tasks with placements."""
JOINT = 2
"""The tokens by which the cost of a sentence between others may differ from the cost of the sentence alone."""
_MAX_DRIFT = 4
"""How far, in tokens, each joint of two units within a line may move the later units from their positions in the
items."""
_BY_LINE = 0.75
"""If at least this share of the units begin lines, all of them must."""
_ENOUGH = 4
"""The number of units that are needed to decide whether units begin lines."""
_MAX_KNOWN = 50_000
"""The number of lines whose prices are kept."""
_MAX_SHOWN = 40


class Prices:
    """The tokens of lines. They are kept, because the lines of a haystack occur again at every placement and length."""

    def __init__(self, counter: CrossModalCounter) -> None:
        """Use the `counter` of the dataset."""
        self._text = counter.text
        self._known: dict[str, int] = {}

    def first(self, line: str) -> int:
        """Return the tokens of a line at the beginning of a prompt."""
        return max(1, self._text.count(line))

    def __getitem__(self, line: str) -> int:
        """Return the tokens that a line adds after a newline."""
        price = self._known.get(line)
        if price is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            price = self._known[line] = self._text.price(line)
        return price


class Ruler:
    """Measures how many tokens of one prompt are before a place in it."""

    def __init__(self, made: Measured, counter: CrossModalCounter, prices: Prices) -> None:
        """Measure the example `made` with the `prices` of its dataset."""
        self.prompt = made.prompt
        self._text = made.prompt.text
        self._prices = prices
        self.image_tokens = [counter.image.tokens(*size) for size in made.sizes]
        """The tokens of each image, in the order of the prompt."""
        self.begins = list(_begins(made.prompt))
        """The character of the concatenated text at which each part begins."""
        self._images = [at for at, part in zip(self.begins, made.prompt.parts, strict=True) if isinstance(part, Image)]
        self._costs = [0]
        for cost in self.image_tokens:
            self._costs.append(self._costs[-1] + cost)
        lines = self._text.split("\n")
        self._chars, self._tokens = [0], [0]
        for number, line in enumerate(lines[:-1]):
            self._chars.append(self._chars[-1] + len(line) + 1)
            self._tokens.append(self._tokens[-1] + (prices[line] if number else prices.first(line)) + 1)
        self._lines = [self._whole(line) for line in range(len(self._chars))]
        self.line_starts = frozenset(self._lines)
        """For each line, how many tokens are before it."""

    def before(self, char: int) -> int:
        """Return the tokens before a character of the text, without the blanks directly before it."""
        return self._text_before(char) + self._costs[bisect_left(self._images, char)]

    def before_image(self, number: int) -> int:
        """Return the tokens before an image, given by its number in the prompt, without the blanks directly before
        it.
        """
        return self._text_before(self._images[number]) + self._costs[number]

    def lines_between(self, first: int, last: int) -> int:
        """Return how many lines have more than `first` and at most `last` tokens before them."""
        return bisect_right(self._lines, last) - bisect_right(self._lines, first)

    def line_of(self, tokens: int) -> int:
        """Return the character at which a line begins: the last line with at most `tokens` tokens before it."""
        return self._chars[max(0, bisect_right(self._lines, tokens) - 1)]

    def _text_before(self, char: int) -> int:
        line = bisect_right(self._chars, char) - 1
        lead = self._text[self._chars[line] : char].rstrip(" ")
        if not lead:
            return self._tokens[line]
        return self._tokens[line] + (self._prices[lead] if line else self._prices.first(lead))

    def price(self, text: str) -> int:
        """Return the tokens of a text between other texts."""
        return self._prices[text]

    def _whole(self, line: int) -> int:
        return self._tokens[line] + self._costs[bisect_left(self._images, self._chars[line])]


def _begins(prompt: Prompt) -> Iterator[int]:
    at = 0
    for part in prompt.parts:
        yield at
        at += len(part) if isinstance(part, str) else 0


class Layout:
    """The positions of an example's units in its prompt, as its items state them."""

    def __init__(self, items: Sequence[Item], ruler: Ruler, *, is_by_line: bool = False) -> None:
        """Compare the `items` of an example with the `ruler` of its prompt; `is_by_line` says whether units begin lines
        in other examples.
        """
        self.items, self.ruler = items, ruler
        self.gap = separator(items)
        later = items[1:] or items
        hits = sum(item["start"] in ruler.line_starts for item in later)
        self.is_surely_by_line = hits == len(later) >= _ENOUGH
        """Whether all units after the first begin lines, and are so many that this cannot be chance."""
        lines = ruler.lines_between(items[0]["start"], items[-1]["start"])
        self.may_be_by_line = lines >= _BY_LINE * (len(items) - 1)
        """Whether the prompt has enough lines for most units to begin one."""
        self.is_by_line = (
            (is_by_line and self.may_be_by_line)
            or hits == len(later)
            or (hits >= _BY_LINE * len(later) and hits >= _ENOUGH)
        )
        """Whether units begin lines, so that their positions are exact."""

    def drift(self, number: int) -> int:
        """Return the tokens by which a unit, given by its number, may be away from the position in its item."""
        return 0 if self.is_by_line else _MAX_DRIFT * number

    def holds(self, number: int, tokens: int, *, is_image: bool) -> bool:
        """Return whether a place is within the unit number `number`; `tokens` is the number of tokens before the place.
        With `is_image`, return whether the place is within or right after the text of the unit.
        """
        item = self.items[number]
        within = item["text_tokens"] if is_image else _tokens(item)
        slack = self.drift(number) + (JOINT if within else 0)
        first = item["start"]
        return first - self.drift(number) <= tokens <= first + within + slack


@dataclass(frozen=True, slots=True)
class Found:
    """One needle with its position in the prompt."""

    start: int
    """The tokens before it."""
    tokens: int
    """The tokens of the needle, with the separator if it is a unit."""
    is_sentence: bool
    """Whether it is inside a unit."""
    slack: int = 0
    """The tokens by which the start may differ from that in the record."""


def find_needles(needles: Sequence[Part], layout: Layout) -> list[Found]:
    """Return the needles in the order of the prompt; if several parts of a unit are needles, the unit is one needle.

    Args:
        needles: their texts and images, in the order of the prompt if the record gives this order.
        layout: the layout of the example.

    Raises:
        ReleaseError: a needle is not in the prompt.

    """
    ruler, items = layout.ruler, layout.items
    units = [number for number, item in enumerate(items) if _is_needle(item)]
    starts = [items[number]["start"] for number in units]
    first = ruler.line_of(items[0]["start"])
    places = NeedlePlaces(ruler.prompt, ruler.begins, first)
    found: dict[int, Found] = {}
    placed = []
    for needle in needles:
        at = places.take(needle)
        placed.append((ruler.before_image(at) if isinstance(needle, Image) else ruler.before(at), needle))
    for number, (start, needle) in enumerate(sorted(placed, key=lambda pair: pair[0])):  # in reading order
        unit = _unit_at(layout, units, starts, start, needle, found)
        if unit is None:
            price = ruler.price(needle) if isinstance(needle, str) else 0
            host = bisect_right([item["start"] for item in items], start) - 1
            found[-number - 1] = Found(start, price, is_sentence=True, slack=layout.drift(max(0, host)))
        else:
            own = items[unit]
            found[unit] = Found(int(own["start"]), _tokens(own) + layout.gap, is_sentence=False)
    return sorted(found.values(), key=lambda each: each.start)


def _unit_at(
    layout: Layout, units: Sequence[int], starts: Sequence[int], start: int, needle: Part, found: Mapping[int, Found]
) -> int | None:
    """Return the number of the needle unit at a place.

    Within a line several units are possible: the first one without a needle is returned, or the first one if all have
    needles. None: no needle unit is there.
    """
    nearest = bisect_right(starts, start) - 1
    is_image = isinstance(needle, Image)
    near: Sequence[int] = (nearest, nearest + 1) if layout.is_by_line else range(len(units))
    fit = [
        units[at]
        for at in near
        if 0 <= at < len(units)
        and layout.holds(units[at], start, is_image=is_image)
        and (not isinstance(needle, Image) or layout.items[units[at]]["image"] == needle.path)
    ]
    if layout.is_by_line:
        return next(iter(fit), None)
    return next((unit for unit in fit if unit not in found), next(iter(fit), None))


class NeedlePlaces:
    """The places of needles in a prompt; each place is given once, so equal needles get different places."""

    def __init__(self, prompt: Prompt, begins: Sequence[int], first: int) -> None:
        """`begins` has the first character of each part; places from the character `first` on are used before
        others.
        """
        self._texts = [(at, part) for at, part in zip(begins, prompt.parts, strict=True) if isinstance(part, str)]
        images = (at for at, part in zip(begins, prompt.parts, strict=True) if isinstance(part, Image))
        self._images = list(zip(images, prompt.images, strict=True))
        self._first = first
        self._used: set[int] = set()
        self._left: dict[Part, Iterator[int]] = {}

    def take(self, needle: Part) -> int:
        """Return the next place of a needle: for a text its first character, for an image its number among all images.

        Raises:
            ReleaseError: there is no such place.

        """
        if needle not in self._left:
            self._left[needle] = self._of_image(needle) if isinstance(needle, Image) else self._of_text(needle)
        for at in self._left[needle]:
            if isinstance(needle, Image):
                return at
            if at not in self._used:
                self._used.add(at)
                return at
        if isinstance(needle, Image):
            raise ReleaseError(f"the picture {needle.path!r:.120} of a needle is not in the prompt")
        raise ReleaseError(f"the needle {needle[:_MAX_SHOWN]!r}… is not in the prompt")

    def _of_image(self, needle: Image) -> Iterator[int]:
        found = [(at < self._first, number) for number, (at, path) in enumerate(self._images) if path == needle.path]
        return (number for _, number in sorted(found))

    def _of_text(self, needle: str) -> Iterator[int]:
        for is_early in (False, True):
            for begin, part in self._texts:
                at = part.find(needle, 0 if is_early else max(0, self._first - begin))
                while at >= 0 and (begin + at < self._first) == is_early:
                    yield begin + at
                    at = part.find(needle, at + 1)


def needle_items(items: Sequence[Item]) -> list[Found]:
    """Return the needles as the items state them; it is called only if no needle is inside a unit."""
    gap = separator(items)
    return [Found(item["start"], _tokens(item) + gap, is_sentence=False) for item in items if _is_needle(item)]


def ids_of(items: Sequence[Item]) -> list[str]:
    """Return the ids of all needles in reading order, from their items or from those of the units that contain them."""
    found: list[str] = []
    for item in items:
        inside = (item.get("inside") or "").split()
        found += [item["unit"]] if _is_needle(item) else map(unquote, inside)
    return found


def separator(items: Sequence[Item]) -> int:
    """Return the tokens between two units; 0 if there are fewer than two."""
    if len(items) < 2:
        return 0
    return items[1]["start"] - items[0]["start"] - _tokens(items[0])


def items_faults(items: Sequence[Item], layout: Layout | None, made: Measured) -> Iterator[str]:
    """Yield differences between the items of an example and its prompt.

    `layout` is None if the tokenizer is not additive: then starts are estimates, and are compared only with each other.
    """
    if [item["position"] for item in items] != list(range(len(items))):
        yield "positions are not 0, 1, 2, …"
    shown = [item["image"] for item in items if item["image"]]
    paths = made.prompt.images
    firsts = [at for at in range(len(paths) - len(shown) + 1) if list(paths[at : at + len(shown)]) == shown]
    if not firsts:
        yield f"the images of the units are not those of the prompt: {_first_other(shown, paths)}"
    gap, wanted = separator(items), items[0]["start"]
    for item in items:
        if item["start"] != wanted:
            yield f"unit {item['unit']!r:.80} starts at {item['start']}, the units before it end at {wanted}"
            return
        wanted += _tokens(item) + gap
    if layout is None:
        return
    faults = [fault for first in firsts if (fault := _images_fault(layout, first))]
    if firsts and len(faults) == len(firsts):  # a picture may also be in the instruction or the question
        yield faults[0]
    if layout.is_by_line:
        astray = next((item for item in items if item["start"] not in layout.ruler.line_starts), None)
        if astray is not None:
            yield f"unit {astray['unit']!r:.80} starts at {astray['start']}, where no line of the prompt begins"


def _images_fault(layout: Layout, first: int) -> str:
    """Return the first difference between the images of the units and those of the prompt; empty if there is none.

    The first image of the units is image `first` of the prompt.
    """
    costs = layout.ruler.image_tokens
    shown = [(number, item) for number, item in enumerate(layout.items) if item["image"]]
    if [item["image_tokens"] for _, item in shown] != costs[first : first + len(shown)]:
        return "the tokens of an image are not those of its size"
    for at, (number, item) in enumerate(shown, first):
        before = layout.ruler.before_image(at)
        if not layout.holds(number, before, is_image=True):
            return f"unit {item['unit']!r:.80} starts at {item['start']}, but {before} tokens are before its image"
    return ""


def _first_other(ours: Sequence[str], theirs: Sequence[str]) -> str:
    at = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return f"{len(ours)} against {len(theirs)}"
    return f"image {at + 1} is {ours[at]!r:.120} against {theirs[at]!r:.120}"


def _is_needle(item: Item) -> bool:
    return item["role"] in NEEDLES


def _tokens(item: Item) -> int:
    return item["text_tokens"] + item["image_tokens"]


_ROUNDING = 0.51
"""The tokens by which a depth may differ from a place because shares are rounded."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """The tokens of a context without its needles; each unit counts with its separator."""

    tokens: int
    before: tuple[int, ...]
    """The haystack's tokens before each needle, in reading order."""
    bounds: tuple[int, ...]
    """The haystack's tokens before each unit, followed by the tokens of all units."""
    slack: int
    """The tokens by which positions may differ from those that the packer computed."""

    def is_at(self, needle: int, depth: object) -> bool:
        """Return whether a needle, given by its number, is at exactly this depth, to the token."""
        return is_number(depth) and self._distance(needle, depth) <= self.slack + _ROUNDING

    def is_near(self, needle: int, depth: object, *, is_sentence: bool, taken: Set[int]) -> bool:
        """Return whether a needle is at the free place that is nearest to a requested depth.

        This is so if `taken` has the numbers of all boundaries between units that are nearer to the depth. It is also
        so for a needle sentence whose distance from the depth is at most half of the tokens of the unit at that depth.
        """
        if not is_number(depth):
            return False
        target, distance = float(depth) * self.tokens, self._distance(needle, depth)  # type: ignore[arg-type]
        if is_sentence and distance <= self._half(target) + self.slack + _ROUNDING:
            return True
        reach = distance - self.slack - _ROUNDING
        low, high = bisect_right(self.bounds, target - reach), bisect_left(self.bounds, target + reach)
        return all(number in taken for number in range(low, high))

    def taken_by(self, needle: int, *, is_wide: bool) -> range:
        """Return the numbers of the boundaries that a needle takes; with `is_wide`, also the boundary before
        and the boundary after these.
        """
        low = bisect_left(self.bounds, self.before[needle] - self.slack - _ROUNDING)
        high = bisect_right(self.bounds, self.before[needle] + self.slack + _ROUNDING)
        return range(low - 1, high + 1) if is_wide else range(low, high)

    def share(self, needle: int) -> float:
        """Return the depth that a needle has."""
        return self.before[needle] / self.tokens if self.tokens else 0.0

    def _distance(self, needle: int, depth: object) -> float:
        return abs(float(depth) * self.tokens - self.before[needle])  # type: ignore[arg-type]

    def _half(self, target: float) -> float:
        """Return half of the tokens of the unit at a place; near a boundary, the larger of the two units counts."""
        spans = [after - before for before, after in pairwise(self.bounds)] or [0]
        slack = self.slack + _ROUNDING
        first, last = (bisect_left(self.bounds, target + by) - 1 for by in (-slack, slack))
        return max(spans[max(0, first) : last + 1] or spans[-1:]) / 2


def haystack(needles: Sequence[Found], items: Sequence[Item]) -> Haystack:
    """Return the haystack of a context, with the tokens that are before each needle."""
    gap = separator(items)
    first = items[0]["start"]
    passed = accumulate((needle.tokens for needle in needles), initial=first)
    before = tuple(needle.start - tokens for needle, tokens in zip(needles, passed, strict=False))
    hidden = [needle for needle in needles if needle.is_sentence]
    bounds, done = [0], 0
    for number, item in enumerate(items):
        if item["role"] in NEEDLES:
            continue
        end = items[number + 1]["start"] if number + 1 < len(items) else None
        inside = 0
        while done < len(hidden) and (end is None or hidden[done].start < end):
            inside += hidden[done].tokens
            done += 1
        size = item["text_tokens"] + item["image_tokens"] + gap - inside
        bounds.append(bounds[-1] + max(0, size))
    slack = JOINT * len(hidden) + max((needle.slack for needle in needles), default=0)
    return Haystack(bounds[-1], before, tuple(bounds), slack)


def placement_faults(
    record: Mapping[str, object], found: Sequence[Found], hay: Haystack, *, is_single: bool
) -> Iterator[str]:
    """Yield differences between the fields of a record and the positions of its needles.

    With `is_single`, the fields are about the one needle that was put at the depth; other needles may be before it.
    """
    names = ("needle_start", "depth_achieved", "depth" if is_single else "depth_requested")
    values = [[record.get(name)] if is_single else record.get(name) for name in names]
    lists = [value for value in values if isinstance(value, list)]
    wanted = 1 if is_single and found else len(found)
    if len(lists) < len(names) or any(len(value) != wanted for value in lists[:2]):
        yield f"needle_start and depth_achieved do not name the needles of the prompt, of which there are {len(found)}"
        return
    starts, achieved, requested = lists
    if not all(map(is_number, (*starts, *achieved))):
        yield "needle_start or depth_achieved is no number"
        return
    numbers = numbers_of(starts, found)
    for start, depth, number in zip(starts, achieved, numbers, strict=True):
        if number is None:
            others = ", ".join(str(each.start) for each in found[:5])
            yield f"needle_start is {start}, but in the prompt the tokens before needles are {others}"
        elif not hay.is_at(number, depth):
            yield f"depth_achieved is {depth}, but in the prompt it is {hay.share(number):.4f}"
    placed = [number for number in numbers if number is not None]
    if len(placed) < len(numbers) or len(requested) != len(placed):
        return  # reported before, or when drawn depths are compared
    yield from _unrequested(names[2], requested, placed, found, hay)


def _unrequested(
    name: str, requested: Sequence[object], placed: Sequence[int], found: Sequence[Found], hay: Haystack
) -> Iterator[str]:
    """Yield a fault for each requested depth to which a free place is nearer than the place of its needle.

    `placed` are the numbers of the needles in the order of placing; each needle takes a place, as long as any is free.
    """
    is_wide = any(needle.is_sentence for needle in found)  # a sentence takes its whole passage
    taken: set[int] = set()
    for at, (depth, number) in enumerate(zip(requested, placed, strict=True)):
        is_sentence = found[number].is_sentence
        if at < len(hay.bounds) and not hay.is_near(number, depth, is_sentence=is_sentence, taken=taken):
            yield f"{name} is {depth}, but in the prompt the needle is at {hay.share(number):.4f}"
        taken.update(hay.taken_by(number, is_wide=is_wide))


def numbers_of(starts: Sequence[Any], found: Sequence[Found]) -> list[int | None]:
    """Return for each start the number of its needle in reading order; None if no needle starts there. No needle is
    used twice.
    """
    left: dict[int, list[int]] = defaultdict(list)
    for number in reversed(range(len(found))):
        left[found[number].start].append(number)
    numbers: list[int | None] = []
    for start in starts:
        at = start if left.get(start) else _nearest(start, left, found)
        numbers.append(None if at is None else left[at].pop())
    return numbers


def _nearest(start: float, left: Mapping[int, Sequence[int]], found: Sequence[Found]) -> int | None:
    """Return the unused start of a needle that is nearest to a recorded start; None if all differ too much."""
    if not any(each.slack for each in found):
        return None
    near = [at for at, numbers in left.items() if numbers and abs(at - start) <= found[numbers[-1]].slack]
    return min(near, key=lambda at: abs(at - start), default=None)


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
