"""Describes the differences between two values, or two contexts, in words."""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

SHORT = 70
"""The maximum characters of a value that is shown whole; a SHA-256 has fewer."""
_AROUND = 20
"""How many characters of a long text are shown, from the first difference on."""
_UNITS = 5
"""The maximum number of units that are named for each kind of difference, such as `removed`."""
_PLACED = ("position", "start")
"""The fields of a unit that depend on the units before it."""


def differences(one: object, other: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, difference) for each difference of two values; the names of nested fields are joined with dots.

    >>> dict(differences({"seed": 42, "pages": {"dpi": 144}}, {"seed": 7, "pages": {"dpi": 72}}))
    {'seed': '42 against 7', 'pages.dpi': '144 against 72'}
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            at = f"{field}.{key}" if field else str(key)
            if key not in other:
                yield at, f"{short(one[key])} against nothing"
            elif key not in one:
                yield at, f"nothing against {short(other[key])}"
            else:
                yield from differences(one[key], other[key], at)
    elif one != other or type(one) is not type(other):
        yield field, against(one, other)


def against(one: object, other: object) -> str:
    """Return two different values in words: short values whole, long ones by their lengths and first difference.

    >>> against("red", ["red"])
    '"red" against ["red"]'
    >>> against("a" * 100, "a" * 99 + "bc")
    '100 against 101 characters, the first that differs is 99: "a" against "bc"'
    """
    if max(len(_json(one)), len(_json(other))) > SHORT:
        if isinstance(one, str) and isinstance(other, str):
            at = _common(one, other)
            ends = (short(text[at : at + _AROUND]) for text in (one, other))
            return f"{len(one):,} against {len(other):,} characters, the first that differs is {at}: {_joined(*ends)}"
        if isinstance(one, list) and isinstance(other, list):
            at = _common(one, other)
            return f"{len(one):,} against {len(other):,} entries, {_first_entry(one, other, at)}"
    return _joined(short(one), short(other))


def short(value: object) -> str:
    """Return a value as JSON, shortened if it is long."""
    text = _json(value)
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def contexts(one: Sequence[Mapping[str, object]], other: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the differences between two contexts by units: removed, added, moved, and changed values.

    The moved units are the smallest set without which the other units have the same order in both contexts. If nothing
    else differs, the values of `start` (the tokens before a unit) are compared.
    """
    ours, theirs = ({str(row.get("unit")): row for row in rows} for rows in (one, other))
    both = [unit for unit in ours if unit in theirs]
    yield from _named("removed", [unit for unit in ours if unit not in theirs])
    yield from _named("added", [unit for unit in theirs if unit not in ours])
    ranks = {unit: rank for rank, unit in enumerate(theirs)}
    stay = _longest_rise([ranks[unit] for unit in both])
    places = {unit: f"{unit} from {at} to {ranks[unit]}" for at, unit in enumerate(ours) if unit in theirs}
    yield from _named("moved", [places[unit] for unit in both if ranks[unit] not in stay])
    said = [f"{unit}: {words}" for unit in both if (words := _row(ours[unit], theirs[unit]))]
    yield from _named("changed", said)
    if list(ours) == list(theirs) and not said:
        starts = {unit: [row[unit].get("start") for row in (ours, theirs)] for unit in both}
        yield from _named(
            "start elsewhere", [f"{unit} {against(*at)}" for unit, at in starts.items() if at[0] != at[1]]
        )


def _row(one: Mapping[str, object], other: Mapping[str, object]) -> str:
    ours, theirs = ({key: value for key, value in row.items() if key not in _PLACED} for row in (one, other))
    return ", ".join(f"{field} {words}" for field, words in differences(ours, theirs))


def _named(kind: str, units: Sequence[str]) -> Iterator[str]:
    if units:
        more = f", and {len(units) - _UNITS:,} more" if len(units) > _UNITS else ""
        yield f"{len(units):,} {'unit' if len(units) == 1 else 'units'} {kind}: {', '.join(units[:_UNITS])}{more}"


def _longest_rise(numbers: Sequence[int]) -> set[int]:
    """Return the numbers of a longest rising subsequence; all `numbers` are different.

    >>> sorted(_longest_rise([5, 0, 1, 3, 2]))
    [0, 1, 2]
    """
    ends: list[int] = []  # for each length, the smallest number at the end of a rising sequence
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, number)
        before[number] = ends[at - 1] if at else None
        ends[at : at + 1] = [number]
    found: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found


def _first_entry(one: Sequence[object], other: Sequence[object], at: int) -> str:
    if at == min(len(one), len(other)):
        longer, name = (one, "first") if len(one) > len(other) else (other, "second")
        return f"only the {name} has entry {at}: {short(longer[at])}"
    said = "; ".join(f"{field} {words}".strip() for field, words in differences(one[at], other[at]))
    return f"the first that differs is {at}: {said}"


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many entries at the start are the same."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _joined(one: str, other: str) -> str:
    return f"{one} against {other}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
