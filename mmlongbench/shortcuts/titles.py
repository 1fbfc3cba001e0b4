"""What titles and beginnings tell: titles that stand in other titles or texts, and passages that look like the first
one of an article.
"""

import re
from collections.abc import Sequence

from mmlongbench.likeness import letters, words
from mmlongbench.shortcuts.reading import ShownUnit

TITLE = (
    *("characters of the first line", "words of the first line", "capitals of the first line"),
    *("digits of the first line", "punctuation of the first line", "parentheses in the first line"),
)
CHAIN = (
    "other titles with its title",
    "other texts with its title",
    "a neighbour with its title",
    "other titles in it",
)
PART = (
    *("its title at its beginning", "how often it has its title", "a small letter at its beginning"),
    *("a definition at its beginning", "a parenthesis at its beginning", "a year at its beginning"),
)
_LETTERS = 4
"""The fewest letters of a title that is looked for elsewhere."""
_BEGINNING = 160
"""How many characters count as the beginning of a text."""
_DEFINES = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one)\b")
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d\d\b")


def of_title(text: str) -> tuple[float, ...]:
    """Return the numbers of `TITLE` of a text."""
    title = text.strip().split("\n", 1)[0]
    n = max(1, len(title))
    marks = sum(not letter.isalnum() and not letter.isspace() for letter in title)
    shares = sum(map(str.isupper, title)) / n, sum(map(str.isdigit, title)) / n, marks / n
    return float(len(title)), float(len(title.split())), *shares, float(title.count("("))


def titles_of(units: Sequence[ShownUnit]) -> list[str]:
    """Return the words of the title of each unit; empty if it has no title. What all titles begin or end with belongs
    to the template.

    >>> unit = lambda title: ShownUnit("", "", (f"Document (Title: {title}): ", "Some text"), (), False)
    >>> titles_of([unit("Tern Rock"), unit("Mill Pond")])
    [' tern rock ', ' mill pond ']
    """
    heads = [unit.texts[0] if len(unit.texts) > 1 else "" for unit in units]
    some = [head for head in heads if head]
    if len(set(some)) < 2:
        return ["" for _ in heads]
    begin, end = _common(some), _common([head[::-1] for head in some])
    found = [words(head[begin : len(head) - end]) if head else "" for head in heads]
    return [title if letters(title) >= _LETTERS else "" for title in found]


def _common(texts: Sequence[str]) -> int:
    """Return how many letters at the beginning all texts have in common, without a word that goes on differently."""
    first, last = min(texts), max(texts)
    same = next((n for n, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return len(re.sub(r"\w+$", "", first[:same]))


def of_chain(units: Sequence[ShownUnit], places: Sequence[int]) -> list[tuple[float, ...]]:
    """Return the numbers of `CHAIN` for the units at some places; they are compared with one another and with the units
    beside them.
    """
    titles = titles_of([units[place] for place in places])
    if not any(titles):
        return [(0.0,) * len(CHAIN) for _ in places]
    texts = {at: words(units[at].body) for place in places for at in (place - 1, place, place + 1) if _is_in(at, units)}
    rows: list[tuple[float, ...]] = []
    for number, (place, title) in enumerate(zip(places, titles, strict=True)):
        others = [(titles[n], texts[at]) for n, at in enumerate(places) if n != number]
        beside = [texts[at] for at in (place - 1, place + 1) if at in texts]
        own = texts[place]
        rows.append(
            (
                float(sum(title in other and other != title for other, _ in others)) if title else 0.0,
                float(sum(title in text for _, text in others)) if title else 0.0,
                float(any(title in text for text in beside)) if title else 0.0,
                float(sum(bool(other) and other != title and other in own for other, _ in others)),
            )
        )
    return rows


def _is_in(place: int, units: Sequence[ShownUnit]) -> bool:
    return 0 <= place < len(units)


def of_parts(units: Sequence[ShownUnit]) -> list[tuple[float, ...]]:
    """Return the numbers of `PART` for some units: whether a text looks like the beginning of its article."""
    rows: list[tuple[float, ...]] = []
    for unit, title in zip(units, titles_of(units), strict=True):
        text = unit.body.lstrip()
        begin, plain = text[:_BEGINNING], words(text)
        rows.append(
            (
                float(bool(title) and title.strip() in words(begin)[: len(title) + 12]),
                float(plain.count(title)) if title else 0.0,
                float(text[:1].islower()),
                float(bool(_DEFINES.search(begin))),
                float("(" in begin),
                float(bool(_YEAR.search(begin))),
            )
        )
    return rows
