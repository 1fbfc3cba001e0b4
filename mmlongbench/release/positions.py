"""Finds where units and needles are in a released prompt, from the prompt itself.

No code is shared with the packer: the tokens before a place are those of the lines and images before it. Positions are
exact if the tokenizer is additive (see `TextTokenizer.additive`), as the embedded one is, and units begin lines. If
several units are in one line, a position in the items is the sum of the tokens of the units before it, each counted
alone. Then a unit may be a few tokens away from its position.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from mmlongbench.draft import NEEDLES
from mmlongbench.errors import ReleaseError
from mmlongbench.packing.place import Depth, Permutation
from mmlongbench.prompt import Image, Needle, Part, Prompt, Speaker, needle_parts, runs_of, shows
from mmlongbench.release.example_cost import ExampleCost
from mmlongbench.release.items import Item
from tokenization import CrossModalCounter

JOINT = 2
"""The tokens by which the cost of a sentence between others may differ from the cost of the sentence alone."""
_MAX_DRIFT = 4
"""How far, in tokens, each joint of two units within a line may move the later units from their positions in the
items."""
_MOST_PLACES = 50
"""In at most how many places of a text the one that is a needle is looked for."""
_BY_LINE = 0.75
"""If at least this share of the units begin lines, all of them must."""
_ENOUGH = 4
"""The number of units that are needed to decide whether units begin lines."""
_ROUNDING = 0.51
"""The tokens by which a depth may differ from a place because shares are rounded."""
_MAX_SHOWN = 40


@dataclass(frozen=True, slots=True)
class FoundNeedle:
    """One needle with its position in the prompt."""

    start: int
    """The tokens before it."""
    tokens: int
    """The tokens of the needle, with the separator if it is a unit."""
    is_sentence: bool
    """Whether it is inside a unit."""
    slack: int = 0
    """The tokens by which the start may differ from that in the record."""


class Layout:
    """The positions of an example's units, as its items state them, beside the tokens before each place of its
    prompt.
    """

    def __init__(
        self,
        items: Sequence[Item],
        cost: ExampleCost,
        counter: CrossModalCounter,
        *,
        is_by_line: bool = False,
    ) -> None:
        """Lay out an example, which `cost` has counted. `is_by_line`: units begin lines in other examples."""
        self.items, self.gap, self.prompt = items, separator(items), cost.prompt
        self.image_tokens = counter.image.each(cost.sizes)
        """The tokens of each image, in the order of the prompt."""
        self._text, self._count, self._price = cost.prompt.text, counter.text.count, counter.text.price
        # the character of the concatenated text at which each part begins
        self._begins = [0]
        for part in cost.prompt.parts:
            self._begins.append(self._begins[-1] + (len(part) if isinstance(part, str) else 0))
        parts = zip(self._begins, cost.prompt.parts, strict=False)
        self._images = [at for at, part in parts if isinstance(part, Image)]
        self._costs = list(accumulate(self.image_tokens, initial=0))
        # Of each line, the first character, and the text tokens and the images before it; each turn begins with a line.
        # The last image of a turn and the text of the next turn have the same place.
        self._chars, self._tokens = list[int](), list[int]()
        self._turns: dict[int, int] = {}
        seen, char, tokens, before = list[int](), 0, 0, 0
        for turn, said in zip(cost.prompt.turns, cost.prompt.texts, strict=True):
            self._turns[char] = before
            first, *rest = said.split("\n")
            chars = list(accumulate(map(len, rest), initial=char + len(first)))
            costs = [self._first(first) if rest else counter.text.count(first), *map(self._price, rest)]
            ends = list(accumulate(costs, initial=tokens))
            # each line but the last ends with a newline, which is a character and a token
            begins = [char, *(at + number for number, at in enumerate(chars[:-1], 1))]
            self._chars += begins
            self._tokens += [at + number for number, at in enumerate(ends[:-1])]
            seen += [before, *(bisect_left(self._images, at) for at in begins[1:])]
            char, tokens = chars[-1] + len(rest), ends[-1] + len(rest)
            before += sum(isinstance(part, Image) for part in turn.parts)
        self._lines = [tokens + self._costs[images] for tokens, images in zip(self._tokens, seen, strict=True)]
        self.line_starts = frozenset(self._lines)
        """For each line, how many tokens are before it."""

        later = items[1:] or items
        hits = sum(item["start"] in self.line_starts for item in later)
        self.is_surely_by_line = hits == len(later) >= _ENOUGH
        """Whether all units after the first begin lines, and are so many that this cannot be chance."""
        between = bisect_right(self._lines, items[-1]["start"]) - bisect_right(self._lines, items[0]["start"])
        self.may_be_by_line = between >= _BY_LINE * (len(items) - 1)
        """Whether the prompt has enough lines for most units to begin one."""
        self.is_by_line = (
            (is_by_line and self.may_be_by_line)
            or hits == len(later)
            or (hits >= _BY_LINE * len(later) and hits >= _ENOUGH)
        )
        """Whether units begin lines, so that their positions are exact."""

    def _first(self, line: str) -> int:
        return max(1, self._count(line))

    def before(self, char: int) -> int:
        """Return the tokens before a character of the text, without the blanks directly before it."""
        images = max(bisect_left(self._images, char), self._turns.get(char, 0))
        return self._text_before(char) + self._costs[images]

    def before_image(self, number: int) -> int:
        """Return the tokens before an image, given by its number in the prompt, without the blanks directly before
        it.
        """
        return self._text_before(self._images[number]) + self._costs[number]

    def _text_before(self, char: int) -> int:
        line = bisect_right(self._chars, char) - 1
        lead = self._text[self._chars[line] : char].rstrip(" ")
        if not lead:
            return self._tokens[line]
        return self._tokens[line] + (self._first(lead) if self._chars[line] in self._turns else self._price(lead))

    def drift(self, number: int) -> int:
        """Return the tokens by which a unit, given by its number, may be away from the position in its item."""
        return 0 if self.is_by_line else _MAX_DRIFT * number

    def holds(self, number: int, tokens: int, *, is_image: bool) -> bool:
        """Return whether a place is within the unit number `number`; `tokens` is the number of tokens before the place.
        With `is_image`, return whether the place is within or right after the text of the unit.
        """
        item, drift = self.items[number], self.drift(number)
        within = item["text_tokens"] if is_image and item["image"] else _tokens(item)
        slack = drift + (JOINT if within else 0)
        return item["start"] - drift <= tokens <= item["start"] + within + slack

    def find(self, needles: Sequence[Needle] | None) -> list[FoundNeedle]:
        """Return the needles in the order of the prompt; if several parts of a unit are needles, the unit is one
        needle. `needles` are their texts and images, in the order of the prompt if the record gives this order; None:
        they are the units that the items call needles. Raises ReleaseError if one is not in the prompt.
        """
        units = [number for number, item in enumerate(self.items) if is_needle(item)]
        if needles is None:
            return [self._unit(number) for number in units]
        if not needles:
            raise ReleaseError("the record has no needle")
        starts = [item["start"] for item in self.items]
        unit_starts = [starts[number] for number in units]
        first = self._chars[max(0, bisect_right(self._lines, starts[0]) - 1)]
        places = needle_places(needles, self.prompt, first, self._is_in_needle)
        # a needle of several parts stands where its first part does
        leads = [needle_parts(needle)[0] for needle in needles]
        placed = [
            (self.before_image(at) if isinstance(lead, Image) else self.before(at), lead)
            for lead, at in zip(leads, places, strict=True)
        ]
        found: dict[int, FoundNeedle] = {}
        for number, (start, lead) in enumerate(sorted(placed, key=lambda pair: pair[0])):  # in reading order
            nearest = bisect_right(unit_starts, start) - 1
            fit = [
                units[at]
                for at in ((nearest, nearest + 1) if self.is_by_line else range(len(units)))
                if 0 <= at < len(units)
                and self.holds(units[at], start, is_image=isinstance(lead, Image))
                and (not isinstance(lead, Image) or self._may_show(units[at], lead))
            ]
            # several units may be in a line: each takes a needle before one takes two
            free = fit if self.is_by_line else [unit for unit in fit if unit not in found]
            unit = next(iter(free or fit), None)
            if unit is None:
                price = self._price(lead) if isinstance(lead, str) else 0
                host = max(0, bisect_right(starts, start) - 1)
                found[-number - 1] = FoundNeedle(start, price, is_sentence=True, slack=self.drift(host))
            else:
                found[unit] = self._unit(unit)
        return sorted(found.values(), key=lambda needle: needle.start)

    def _is_in_needle(self, place: int, places: int, *, is_image: bool) -> tuple[bool, int]:
        """Return whether a place of `needle_places` is in a unit that is a needle or has one inside, by the items. If
        units do not begin lines, this is not known; then return the tokens between the place and the nearest needle, if
        the text stands at several `places`, but not at so many that this takes long.
        """
        if not is_image and not self.is_by_line:  # several units may be in the line
            if not 1 < places <= _MOST_PLACES:
                return False, 0
            tokens = self.before(place)
            starts = [item["start"] for item in self.items if is_needle(item)]
            return False, min((abs(tokens - start) for start in starts), default=0)
        tokens = self.before_image(place) if is_image else self._lines[bisect_right(self._chars, place) - 1]
        item = self.items[max(0, bisect_right(self.items, tokens, key=lambda item: item["start"]) - 1)]
        is_within = item["start"] <= tokens <= item["start"] + _tokens(item)
        return is_within and (is_needle(item) or bool(item.get("inside"))), 0

    def _may_show(self, number: int, image: Image) -> bool:
        """Return whether a unit may show an image; a unit of several parts does not say which images it has."""
        item = self.items[number]
        return item["image"] == image.path or (item["image"] is None and item["image_tokens"] > 0)

    def _unit(self, number: int) -> FoundNeedle:
        return FoundNeedle(self.items[number]["start"], _tokens(self.items[number]) + self.gap, is_sentence=False)

    def images_fault(self, first: int) -> str:
        """Return the first difference between the images of the units and those of the prompt; empty if there is none.

        The first image of the units is image `first` of the prompt.
        """
        shown = [(number, item) for number, item in enumerate(self.items) if item["image"]]
        if [item["image_tokens"] for _, item in shown] != self.image_tokens[first : first + len(shown)]:
            return "the tokens of an image are not those of its size"
        for at, (number, item) in enumerate(shown, first):
            before = self.before_image(at)
            if not self.holds(number, before, is_image=True):
                return f"unit {item['unit']!r:.80} starts at {item['start']}, but {before} tokens are before its image"
        return ""

    def holds_images(self, first: int) -> bool:
        """Return whether the units show the images of the prompt from image `first` on, some of them several images."""
        images, at = self.prompt.images, first
        for number, item in enumerate(self.items):
            if item["image"] and (
                images[at : at + 1] != (item["image"],) or not self.holds(number, self.before_image(at), is_image=True)
            ):
                return False
            left = item["image_tokens"]
            while left > 0 and at < len(images):
                left -= self.image_tokens[at]
                at += 1
            if left:
                return False
        return True


def needle_places(
    needles: Sequence[Needle], prompt: Prompt, first: int, is_in_needle: Callable[..., tuple[bool, int]] | None = None
) -> Iterator[int]:
    """Yield the place of each needle in a prompt: for a text its first character, for an image its number among all
    images; of several parts, the place of the first. Each place is given once, so equal needles get different places.

    Places in a unit that is or has a needle (`is_in_needle`) are used before all others, then texts that stand whole
    before pieces of words, then places from the character `first` on, then those that are nearer to a needle.
    """
    shown = Prompt.of(prompt.parts).parts  # a needle may have several turns
    begins = list(accumulate((len(part) if isinstance(part, str) else 0 for part in shown), initial=0))
    numbers = list(accumulate((int(isinstance(part, Image)) for part in shown), initial=0))
    used: set[int] = set()

    def places(wanted: Sequence[Part]) -> Iterator[int]:
        lead = wanted[0]
        is_image, is_text = isinstance(lead, Image), isinstance(lead, str) and len(wanted) == 1
        found = []  # the part, the character in it, whether the text stands whole there
        if len(wanted) > 1:
            found = [(index, char, True) for index, char in runs_of(wanted, shown)]
        for index, part in enumerate(shown) if len(wanted) == 1 else ():
            if isinstance(part, str) and isinstance(lead, str):
                found += [(index, *place) for place in places_of(lead, part)]
            elif part == lead:
                found.append((index, 0, True))
        ranked = []
        for index, char, is_whole in found:
            at = begins[index] + char
            place = numbers[index] if is_image else at
            is_in, distance = is_in_needle(place, len(found), is_image=is_image) if is_in_needle else (False, 0)
            ranked.append((not is_in, not is_whole, at < first, distance, place))
        for *_, place in sorted(ranked):
            if not is_text or place not in used:
                used.update((place,) if is_text else ())
                yield place

    left: dict[tuple[Part, ...], Iterator[int]] = {}
    for needle in needles:
        wanted = needle_parts(needle) or ("",)
        if wanted not in left:
            left[wanted] = places(wanted)
        place = next(left[wanted], None)
        if place is None:
            lead = wanted[0]
            said = f"the needle {lead[:_MAX_SHOWN]!r}…" if isinstance(lead, str) else f"the picture {lead.path!r:.120}"
            raise ReleaseError(f"{said} of the record's needles is not in the prompt")
        yield place


def needle_starts(
    needles: Sequence[Needle], prompt: Prompt, count: Callable[[str], int], image_tokens: Sequence[int]
) -> list[int]:
    """Return the tokens before each needle of a prompt without items, in reading order; raises ReleaseError if one is
    not in the prompt. `image_tokens` are those of each image, in the order of the prompt.
    """
    opening = "".join(part for part in prompt.outline.before if isinstance(part, str)) if prompt.outline else ""
    starts = []
    for needle, place in zip(needles, needle_places(needles, prompt, len(opening)), strict=True):
        before = _before(prompt, place, is_image=isinstance(needle_parts(needle)[0], Image))
        starts.append(before.text_tokens(count) + sum(image_tokens[: len(before.images)]))
    return sorted(starts)


def _before(prompt: Prompt, place: int, *, is_image: bool) -> Prompt:
    """Return what stands before a place of `needle_places`, without the blanks directly before it."""
    left, turns = place, list[tuple[Speaker, list[Part]]]()
    for turn in prompt.turns:
        turns.append((turn.role, []))
        for part in turn.parts:
            if isinstance(part, Image) == is_image:
                size = len(part) if isinstance(part, str) else 1
                if left < size:
                    turns[-1][1].append(part[:left].rstrip(" ") if isinstance(part, str) else "")
                    return Prompt.of_turns(turns)
                left -= size
            turns[-1][1].append(part)
    return Prompt.of_turns(turns)


def places_of(wanted: str, text: str) -> Iterator[tuple[int, bool]]:
    """Yield where a text stands in another one: (first character, whether no word or number goes on beyond it).

    >>> list(places_of("Line 1", "Line 10, Line 1"))
    [(0, False), (9, True)]
    """
    at = text.find(wanted)
    while at >= 0:
        joints = (text[max(edge - 1, 0) : edge + 1] for edge in (at, at + len(wanted)))
        # scripts without case may have no blanks between words
        in_words = ([char.isdigit() or char.islower() or char.isupper() for char in joint] for joint in joints)
        yield at, [True, True] not in in_words
        at = text.find(wanted, at + 1)


def showing(units: Sequence[Sequence[Part]], needles: Iterable[Needle], likely: Collection[int] = ()) -> set[int]:
    """Return the numbers of the units that show needles; of several that show one, those of `likely`. A piece of longer
    words and numbers counts only if a text stands nowhere else, since it may be an excerpt.

    >>> showing([["Line 10"], ["Line 1"]], ["Line 1"])
    {1}
    """
    numbers: set[int] = set()
    for needle in dict.fromkeys(needles):
        found = [number for number, unit in enumerate(units) if shows(unit, needle)]
        found = [number for number in found if number in likely] or found
        if isinstance(needle, str) and len(found) > 1:
            texts = ((number, part) for number in found for part in units[number] if isinstance(part, str))
            found = [number for number, text in texts if any(whole for _, whole in places_of(needle, text))] or found
        numbers.update(found)
    return numbers


def answering(
    units: Sequence[Sequence[Part]], needles: Iterable[Needle], items: Sequence[Mapping[str, object]], asked: str = ""
) -> set[int]:
    """Return the numbers of the units that hold the answer: by their items, or without `items` those that show needles.

    Where questions share a context, `asked` is the id of the row that is asked about, since the roles are of all
    questions: the units are those of its needles, if these are not all; otherwise those with its id, if there are any.
    """
    by_role = {number for number, item in enumerate(items) if item["role"] in NEEDLES or item.get("inside")}
    if items and not asked:
        return by_role
    named = showing(units, filter(None, needles))
    if named and named != by_role:
        return named
    return {number for number, item in enumerate(items) if item["unit"] == asked} or by_role


def separator(items: Sequence[Item]) -> int:
    """Return the tokens between two units; 0 if there are fewer than two."""
    if len(items) < 2:
        return 0
    return items[1]["start"] - items[0]["start"] - _tokens(items[0])


def is_needle(item: Item) -> bool:
    """Return whether a unit is a needle."""
    return item["role"] in NEEDLES


def _tokens(item: Item) -> int:
    return item["text_tokens"] + item["image_tokens"]


def items_faults(items: Sequence[Item], layout: Layout | None, prompt: Prompt) -> Iterator[str]:
    """Yield differences between the items of an example and its prompt.

    `layout` is None if the tokenizer is not additive: then starts are estimates, and are compared only with each other.
    """
    if [item["position"] for item in items] != list(range(len(items))):
        yield "positions are not 0, 1, 2, …"
    ours, theirs = [item["image"] for item in items if item["image"]], list(prompt.images)
    firsts = [at for at in range(len(theirs) - len(ours) + 1) if theirs[at : at + len(ours)] == ours]
    if layout is None:  # units may have further images
        left = iter(theirs)
        is_same = all(image in left for image in ours)
    else:
        is_same = bool(firsts) or any(layout.holds_images(first) for first in range(len(theirs)))
    if not is_same:
        other = next((at for at, (our, their) in enumerate(zip(ours, theirs, strict=False)) if our != their), None)
        difference = f"{len(ours)} against {len(theirs)}"
        if other is not None:
            difference = f"image {other + 1} is {ours[other]!r:.120} against {theirs[other]!r:.120}"
        yield f"the images of the units are not those of the prompt: {difference}"
    gap, end = separator(items), items[0]["start"]
    for item in items:
        if item["start"] != end:
            yield f"unit {item['unit']!r:.80} starts at {item['start']}, the units before it end at {end}"
            return
        end += _tokens(item) + gap
    if layout is None:
        return
    faults = [fault for first in firsts if (fault := layout.images_fault(first))]
    if firsts and len(faults) == len(firsts):  # a picture may also be in the instruction or the question
        yield faults[0]
    if layout.is_by_line:
        astray = next((item for item in items if item["start"] not in layout.line_starts), None)
        if astray is not None:
            yield f"unit {astray['unit']!r:.80} starts at {astray['start']}, where no line of the prompt begins"


@dataclass(frozen=True, slots=True)
class Haystack:
    """The tokens of a context without its needles; each unit counts with its separator."""

    before: Sequence[int]
    """The haystack's tokens before each needle, in reading order."""
    bounds: Sequence[int]
    """The haystack's tokens before each unit, followed by the tokens of all units."""
    slack: float
    """The tokens by which a position may differ from the one that the packer computed and rounded."""

    @classmethod
    def of(cls, needles: Sequence[FoundNeedle], items: Sequence[Item]) -> "Haystack":
        """Return the haystack of a context."""
        gap = separator(items)
        passed = accumulate((needle.tokens for needle in needles), initial=items[0]["start"])
        before = [needle.start - tokens for needle, tokens in zip(needles, passed, strict=False)]
        sentences = [needle for needle in needles if needle.is_sentence]
        bounds, done = [0], 0
        for number, item in enumerate(items):
            if is_needle(item):
                continue
            end = items[number + 1]["start"] if number + 1 < len(items) else None
            inside = 0
            while done < len(sentences) and (end is None or sentences[done].start < end):
                inside += sentences[done].tokens
                done += 1
            bounds.append(bounds[-1] + max(0, _tokens(item) + gap - inside))
        slack = JOINT * len(sentences) + max((needle.slack for needle in needles), default=0)
        return cls(before, bounds, slack + _ROUNDING)

    @property
    def tokens(self) -> int:
        """The tokens of the haystack."""
        return self.bounds[-1]

    def depth(self, needle: int) -> float:
        """Return the depth that a needle, given by its number, has."""
        return self.before[needle] / self.tokens if self.tokens else 0.0

    def is_nearest(self, needle: int, depth: float, *, is_sentence: bool, taken: Set[int]) -> bool:
        """Return whether a needle is at the free place that is nearest to a requested depth.

        This is so if `taken` has the numbers of all boundaries between units that are nearer to the depth. It is also
        so for a needle sentence whose distance from the depth is at most half of the tokens of the unit at that depth;
        near a boundary, the larger of the two units counts.
        """
        target = float(depth) * self.tokens
        distance = abs(target - self.before[needle])
        if is_sentence:
            spans = [after - before for before, after in pairwise(self.bounds)] or [0]
            first, last = (bisect_left(self.bounds, target + by) - 1 for by in (-self.slack, self.slack))
            half = max(spans[max(0, first) : last + 1] or spans[-1:]) / 2
            if distance <= half + self.slack:
                return True
        reach = distance - self.slack
        low, high = bisect_right(self.bounds, target - reach), bisect_left(self.bounds, target + reach)
        return all(number in taken for number in range(low, high))


def placement_faults(
    record: Mapping[str, object], needles: Sequence[FoundNeedle], hay: Haystack, placement: Depth | Permutation
) -> Iterator[str]:
    """Yield differences between the fields of a record and the positions of its needles.

    At a depth, the fields are about the one needle that was put there; other needles may be before it.
    """
    is_single = isinstance(placement, Depth)
    names = ("needle_start", "depth_achieved", "depth" if is_single else "depth_requested")
    values = [[record.get(name)] if is_single else record.get(name) for name in names]
    lists = [value for value in values if isinstance(value, list)]
    wanted = 1 if is_single and needles else len(needles)
    if len(lists) < len(names) or any(len(value) != wanted for value in lists[:2]):
        yield (
            f"needle_start and depth_achieved do not name the needles of the prompt, of which there are {len(needles)}"
        )
        return
    starts, achieved, requested = lists
    if not all(map(is_number, (*starts, *achieved))):
        yield "needle_start or depth_achieved is no number"
        return
    numbers = numbers_of(starts, needles)
    for start, depth, number in zip(starts, achieved, numbers, strict=True):
        if number is None:
            others = ", ".join(str(needle.start) for needle in needles[:5])
            yield f"needle_start is {start}, but in the prompt the tokens before needles are {others}"
        elif not abs(float(depth) * hay.tokens - hay.before[number]) <= hay.slack:  # to the token
            yield f"depth_achieved is {depth}, but in the prompt it is {hay.depth(number):.4f}"
    placed = [number for number in numbers if number is not None]
    if len(placed) < len(numbers) or len(requested) != len(placed):
        return  # reported before, or when drawn depths are compared
    if isinstance(placement, Permutation) and not placement.is_free:
        if all(map(is_number, requested)):
            yield from _spacing_faults(requested, placed, hay, placement)
        return
    # needles are placed in this order, and each takes the boundaries at its place; a sentence takes its whole passage
    margin = 1 if any(needle.is_sentence for needle in needles) else 0
    taken: set[int] = set()
    for order, (depth, number) in enumerate(zip(requested, placed, strict=True)):
        is_sentence = needles[number].is_sentence
        if order < len(hay.bounds) and not (  # a place is free
            is_number(depth) and hay.is_nearest(number, depth, is_sentence=is_sentence, taken=taken)
        ):
            yield f"{names[2]} is {depth}, but in the prompt the needle is at {hay.depth(number):.4f}"
        low = bisect_left(hay.bounds, hay.before[number] - hay.slack)
        high = bisect_right(hay.bounds, hay.before[number] + hay.slack)
        taken.update(range(low - margin, high + margin))


def _spacing_faults(
    requested: Sequence[float], placed: Sequence[int], hay: Haystack, placement: Permutation
) -> Iterator[str]:
    """Yield needles that are out of order, nearer to each other than asked, or not at the nearest boundary that the
    others leave. `placed` has the number of each needle of the record in reading order.
    """
    if placement.in_order and list(placed) != sorted(placed):
        yield f"the needles stand in the order {[number + 1 for number in placed]} of the draft, expected its order"
    gap = placement.apart * hay.tokens
    latest = [float(hay.tokens)]  # where each needle stands at the latest, from the last to the first
    while len(latest) < len(placed):
        end = min(latest[-1] - gap, latest[-1] - 1)
        latest.append(max((bound for bound in hay.bounds if bound <= end), default=-1))
    earliest = 0.0
    depths = dict(zip(placed, requested, strict=True))
    for number, last in enumerate(reversed(latest)):
        before, target = hay.before[number], depths[number] * hay.tokens
        if before < earliest - hay.slack:
            distance = (before - hay.before[number - 1]) / hay.tokens
            yield f"two needles stand {distance:.4f} of the haystack apart, expected at least {placement.apart:g}"
        reach = abs(before - target) - hay.slack
        free = (bound for bound in hay.bounds if earliest + hay.slack <= bound <= last - hay.slack)
        if any(abs(bound - target) < reach for bound in free):
            yield f"depth_requested is {depths[number]}, but in the prompt the needle is at {hay.depth(number):.4f}"
        earliest = before + gap


def numbers_of(starts: Sequence[Any], needles: Sequence[FoundNeedle]) -> list[int | None]:
    """Return for each start the number of its needle in reading order, which may start a few tokens away; None if no
    needle starts there. No needle is used twice.
    """
    left: dict[int, list[int]] = defaultdict(list)
    for number in reversed(range(len(needles))):
        left[needles[number].start].append(number)
    has_slack = any(needle.slack for needle in needles)
    numbers: list[int | None] = []
    for start in starts:
        at = start if left.get(start) else None
        if at is None and has_slack:
            near = [at for at, free in left.items() if free and abs(at - start) <= needles[free[-1]].slack]
            at = min(near, key=lambda at: abs(at - start), default=None)
        numbers.append(None if at is None else left[at].pop())
    return numbers


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
