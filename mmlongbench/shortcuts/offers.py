"""The answers that a question offers, as candidates: which of them is right, told by the list alone; and which label is
right, told by the places of the exemplars that have it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from mmlongbench.draws import digest
from mmlongbench.likeness import words
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit

OFFER = ("words of the other choices", "places out of order", "its number", "words of the question")
LABEL = (
    *("exemplars", "place of the first exemplar", "place of the last exemplar", "middle of the places of exemplars"),
    "neighbours of equal label",
)


def of_offers(offered: Sequence[str], question: str) -> list[tuple[float, ...]]:
    """Return the numbers of `OFFER` of each answer that a question offers: the share of its words that stand in other
    choices and in the question, with how many others it is not in order, and its value if all are numbers.

    >>> of_offers(["1 km", "3 km", "2 km"], "How many km?")
    [(0.5, 0.0, 0.0, 0.5), (0.5, 1.0, 0.0, 0.5), (0.5, 1.0, 0.0, 0.5)]
    """
    bags = [frozenset(words(each).split()) for each in offered]
    asked, numbers = frozenset(words(question).split()), [_number(each) for each in offered]
    known = [each for each in numbers if each is not None]
    keys: Sequence[float | str] = known if len(known) == len(offered) else [each.casefold() for each in offered]
    rows: list[tuple[float, ...]] = []
    for place, bag in enumerate(bags):
        others = frozenset().union(*(other for at, other in enumerate(bags) if at != place))
        n = max(1, len(bag))
        value = known[place] if len(known) == len(offered) else 0.0
        rows.append((len(bag & others) / n, float(_out_of_order(keys, place)), value, len(bag & asked) / n))
    return rows


def _number(text: str) -> float | None:
    """Return the value of a number; None for another text, also for `nan` and `infinity`."""
    try:
        found = float(text.strip().strip("%$€£").replace(",", ""))
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _out_of_order(keys: Sequence[float | str], place: int) -> int:
    before = sum(_is_more(key, keys[place]) for key in keys[:place])
    return before + sum(_is_more(keys[place], key) for key in keys[place + 1 :])


def _is_more(one: float | str, other: float | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return str(one) > str(other)
    return one > other


def of_labels(units: Sequence[ShownUnit], offered: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the numbers of `LABEL` of each label; empty if the exemplars do not say their labels."""
    shown = [_label(unit.text, offered) for unit in units if unit.role == "exemplar"]
    if not any(shown):
        return []
    n = max(1, len(shown) - 1)
    rows: list[tuple[float, ...]] = []
    for label in offered:
        places = [place / n for place, each in enumerate(shown) if each == label]
        twins = sum(one == other == label for one, other in pairwise(shown))
        first, last, mean = (places[0], places[-1], sum(places) / len(places)) if places else (-1.0, -1.0, -1.0)
        rows.append((float(len(places)), first, last, mean, float(twins)))
    return rows


def _label(text: str, offered: Sequence[str]) -> str:
    """Return the offered label that a text ends with; empty if it ends with none. Of several, the longest is meant."""
    end = text.rstrip()
    found = [label for label in offered if label and end.endswith(label) and not end[: -len(label)][-1:].isalnum()]
    return max(found, key=len, default="")


def context_of(asked: AskedQuestion) -> str:
    """Return a short name of the context of a question; questions that share a context have the same one."""
    return digest("context", *(unit.id for unit in asked.units)).hex()[:12]
