"""Where units and needles stand in a released prompt, counted from the prompt itself.

Nothing here is shared with the packer: tokens before a place are those of the lines and images before it. Places are
exact where the tokenizer is additive, as the embedded one is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mmlongbench.errors import ReleaseError
from mmlongbench.prompt import Image, Part, Prompt
from mmlongbench.release.measuring import Measured
from tokenization import CrossModalCounter

NEEDLES = ("gold", "needle")
"""The roles of units that stand at a depth, in a task that has placements."""
JOINT = 2
"""Tokens by which a sentence between others may cost more or less than it does by itself."""
_MAX_KNOWN = 50_000
"""Lines whose prices are held."""
_MAX_SHOWN = 40
Item = Mapping[str, Any]


class Prices:
    """Prices of lines; the lines of a haystack come again at every placement and length."""

    def __init__(self, counter: CrossModalCounter) -> None:
        """`counter` is that of the dataset."""
        self._text = counter.text
        self._known: dict[str, int] = {}

    def first(self, line: str) -> int:
        """Return the tokens of the line that begins a prompt."""
        return max(1, self._text.count(line))

    def __getitem__(self, line: str) -> int:
        """Return the tokens that a line adds behind a newline."""
        price = self._known.get(line)
        if price is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            price = self._known[line] = self._text.price(line)
        return price


class Ruler:
    """Measures how many tokens of one prompt stand before a place in it."""

    def __init__(self, made: Measured, counter: CrossModalCounter, prices: Prices) -> None:
        """`made` is the example; `prices` are those of its dataset."""
        self.prompt = made.prompt
        self._text = made.prompt.text
        self._prices = prices
        self.image_tokens = [counter.image.tokens(*size) for size in made.sizes]
        """Of each image, in the order of the prompt."""
        self.begins = list(_begins(made.prompt))
        """The character of all text concatenated at which each part stands."""
        self._images = [at for at, part in zip(self.begins, made.prompt.parts, strict=True) if isinstance(part, Image)]
        self._costs = [0]
        for cost in self.image_tokens:
            self._costs.append(self._costs[-1] + cost)
        lines = self._text.split("\n")
        self._chars, self._tokens = [0], [0]
        for number, line in enumerate(lines[:-1]):
            self._chars.append(self._chars[-1] + len(line) + 1)
            self._tokens.append(self._tokens[-1] + (prices[line] if number else prices.first(line)) + 1)
        self.line_starts = frozenset(map(self._whole, range(len(self._chars))))
        """Tokens before each line."""

    def before(self, char: int) -> int:
        """Return the tokens before a character of the text, without the blanks that lead to it."""
        line = bisect_right(self._chars, char) - 1
        lead = self._text[self._chars[line] : char].rstrip(" ")
        text = self._tokens[line] + (self._prices[lead] if line else self._prices.first(lead)) if lead else None
        return (self._tokens[line] if text is None else text) + self._costs[bisect_left(self._images, char)]

    def line_before(self, char: int) -> int:
        """Return the tokens before the line in which a character stands."""
        return self._whole(bisect_right(self._chars, char) - 1)

    def price(self, text: str) -> int:
        """Return the tokens of a text between others."""
        return self._prices[text]

    def _whole(self, line: int) -> int:
        return self._tokens[line] + self._costs[bisect_left(self._images, self._chars[line])]


def _begins(prompt: Prompt) -> Iterator[int]:
    at = 0
    for part in prompt.parts:
        yield at
        at += len(part) if isinstance(part, str) else 0


@dataclass(frozen=True, slots=True)
class Found:
    """One needle as it stands in the prompt."""

    start: int
    """Tokens before it."""
    tokens: int
    """Of itself, with the separator where it is a unit."""
    is_sentence: bool
    """Whether it stands inside a unit."""


def find_needles(needles: Sequence[Part], items: Sequence[Item], ruler: Ruler) -> list[Found]:
    """Return the needles in the order of the prompt.

    Args:
        needles: their texts and images, in the order of the prompt as far as the record has it.
        items: the units of the context.
        ruler: of the prompt.

    Raises:
        ReleaseError: one of them is not in the prompt.

    """
    gap = separator(items)
    units = {int(item["start"]): item for item in items if item["role"] in NEEDLES}
    used: set[int] = set()
    found = []
    for needle in needles:
        if isinstance(needle, Image):
            start = ruler.line_before(_place(needle, ruler, used))
        else:
            start = ruler.before(_place(needle, ruler, used))
        unit = units.get(start)
        if unit is None:
            price = ruler.price(needle) if isinstance(needle, str) else 0
            found.append(Found(start, price, is_sentence=True))
        else:
            found.append(Found(start, _tokens(unit) + gap, is_sentence=False))
    return sorted(found, key=lambda each: each.start)


def _place(needle: Part, ruler: Ruler, used: set[int]) -> int:
    """The character at which a needle stands that is not among the used ones; it is used then."""
    parts = ruler.prompt.parts
    if isinstance(needle, Image):
        numbers = (number for number, part in enumerate(parts) if part == needle and -number - 1 not in used)
        if (number := next(numbers, None)) is None:
            raise ReleaseError(f"the picture {needle.path!r:.120} of a needle is not in the prompt")
        used.add(-number - 1)
        return ruler.begins[number]
    for begin, part in zip(ruler.begins, parts, strict=True):
        at = part.find(needle) if isinstance(part, str) else -1
        while isinstance(part, str) and at >= 0 and begin + at in used:
            at = part.find(needle, at + 1)
        if at >= 0:
            used.add(begin + at)
            return begin + at
    raise ReleaseError(f"the needle {needle[:_MAX_SHOWN]!r}… is not in the prompt")


def needle_items(items: Sequence[Item]) -> list[Found]:
    """Return the needles as the items have them, where none stands inside a unit."""
    gap = separator(items)
    return [Found(int(item["start"]), _tokens(item) + gap, is_sentence=False) for item in items if _is_needle(item)]


def ids_of(items: Sequence[Item]) -> list[str]:
    """Return the ids of all needles, by their items or by those of the units that hold them."""
    found: list[str] = []
    for item in items:
        found += [str(item["unit"])] if _is_needle(item) else str(item.get("inside") or "").split()
    return found


@dataclass(frozen=True, slots=True)
class Haystack:
    """The tokens of a context without its needles, each unit with its separator."""

    tokens: int
    before: tuple[int, ...]
    """Before each needle."""
    largest: int
    """Of its units."""
    slack: int
    """Tokens by which it may differ from what the packer measured."""

    def is_at(self, needle: int, depth: object) -> bool:
        """Return whether a needle, by its number, has achieved this depth, to the token."""
        return _is_number(depth) and abs(float(depth) * self.tokens - self.before[needle]) <= self.slack + 0.51  # type: ignore[arg-type]

    def is_near(self, needle: int, depth: object) -> bool:
        """Return whether a needle stands at the boundary of units nearest to a requested depth, or as near."""
        bound = self.largest / 2 + self.slack + 0.51
        return _is_number(depth) and abs(float(depth) * self.tokens - self.before[needle]) <= bound  # type: ignore[arg-type]


def haystack(needles: Sequence[Found], items: Sequence[Item]) -> Haystack:
    """Return the haystack of a context and how much of it stands before each needle."""
    gap = separator(items)
    first, end = int(items[0]["start"]), int(items[-1]["start"]) + _tokens(items[-1])
    total = end - first + gap - sum(needle.tokens for needle in needles)
    before = tuple(
        needle.start - first - sum(other.tokens for other in needles[:number]) for number, needle in enumerate(needles)
    )
    largest = max((_tokens(item) + gap for item in items if not _is_needle(item)), default=0)
    return Haystack(total, before, largest, JOINT * sum(needle.is_sentence for needle in needles))


def separator(items: Sequence[Item]) -> int:
    """Return the tokens between two units; 0 where there are not two."""
    if len(items) < 2:
        return 0
    return int(items[1]["start"]) - int(items[0]["start"]) - _tokens(items[0])


def items_faults(items: Sequence[Item], ruler: Ruler | None, made: Measured) -> Iterator[str]:
    """Yield what differs between the items of an example and its prompt.

    `ruler` is None where the tokenizer is not additive: then starts are plans, and are only added up.
    """
    if [item["position"] for item in items] != list(range(len(items))):
        yield "positions are not 0, 1, 2, …"
    shown = [item["image"] for item in items if item["image"]]
    paths = made.prompt.images
    first = next((at for at in range(len(paths) - len(shown) + 1) if list(paths[at : at + len(shown)]) == shown), None)
    if first is None:
        yield f"the images of the units are not those of the prompt: {_first_other(shown, paths)}"
    gap, wanted = separator(items), int(items[0]["start"])
    for item in items:
        if item["start"] != wanted:
            yield f"unit {item['unit']!r:.80} starts at {item['start']}, the units before it end at {wanted}"
            return
        wanted += _tokens(item) + gap
    if ruler is None:
        return
    costs = ruler.image_tokens[first:] if first is not None else []
    claimed = [int(item["image_tokens"]) for item in items if item["image"]]
    if first is not None and claimed != costs[: len(claimed)]:
        yield "the tokens of an image are not those of its size"
    if len(ruler.line_starts) > len(items):
        astray = next((item for item in items if item["start"] not in ruler.line_starts), None)
        if astray is not None:
            yield f"unit {astray['unit']!r:.80} starts at {astray['start']}, where no line of the prompt begins"


def _first_other(ours: Sequence[str], theirs: Sequence[str]) -> str:
    at = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return f"{len(ours)} against {len(theirs)}"
    return f"image {at + 1} is {ours[at]!r:.120} against {theirs[at]!r:.120}"


def _is_needle(item: Item) -> bool:
    return item["role"] in NEEDLES


def _tokens(item: Item) -> int:
    return int(item["text_tokens"]) + int(item["image_tokens"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
