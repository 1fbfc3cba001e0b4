"""Turns gold answers and predictions into the strings to compare; documents are not used here.

A gold answer of the format List has elements. Each gold element is located by itself, and is paired with at most one
predicted element. The score is the sum of the pairs' scores, divided by the length of the longer list. In any other
format, several gold answers are alternatives, and the one with the best score counts.
"""

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mmlongbench.task.metric import ScoringInput

MAX_ELEMENTS = 64
"""The maximum number of elements of a predicted list that are compared. Further elements are not compared, but
they count in the length of the list."""
MAX_ELEMENT = 128
"""The maximum characters of a predicted element; a longer one matches no element of a gold answer."""
MAX_SAID = 100_000
"""How many characters of a prediction are compared; the rest is cut off."""
_LEAD = re.compile(r"\A[\s*_#]*answer[\s*_]*:[\s*_]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Golds:
    """The gold answers of a question."""

    values: tuple[str, ...]
    is_list: bool
    """Whether a right prediction must have all values; if not, one of them is enough."""


def golds_of(asked: ScoringInput) -> Golds | None:
    """Return the gold answers of an example. Return None if there are none, or if any of them is empty or is neither a
    string nor a number.
    """
    is_list = asked.answer_format == "List"
    gold = asked.gold.get("answer") if isinstance(asked.gold, dict) else asked.gold
    if is_list and isinstance(gold, str):
        gold = _listed(gold) or gold
    values = gold if isinstance(gold, list | tuple) else [gold]
    texts = tuple(str(value) for value in values if _is_text(value) and str(value).strip())
    return Golds(texts, is_list) if texts and len(texts) == len(values) else None


def said_of(prediction: str) -> str:
    """Return a prediction without "Answer:" at its beginning and without marks of emphasis around it.

    >>> said_of("**Answer:** up to 12 mgs"), said_of("*12*")
    ('up to 12 mgs', '12')
    """
    return _LEAD.sub("", prediction[:MAX_SAID], count=1).strip().strip("*`").strip()


def elements_of(said: str) -> list[str]:
    r"""Return the elements of a predicted list.

    A list in brackets is read as JSON or Python. Any other text is split into lines; a single line is split at
    semicolons or, if it has none, at commas.

    >>> elements_of('["a", 1]'), elements_of("- a\n- b, c"), elements_of("a, b"), elements_of("a")
    (['a', '1'], ['a', 'b, c'], ['a', 'b'], ['a'])
    """
    if (values := _listed(said)) is not None:
        return [str(value) for value in values if _is_text(value)]
    for separator in ("\n", ";", ","):
        if separator in said:
            parts = (part.strip().lstrip("-*•").strip() for part in said.split(separator))
            return [part for part in parts if part]
    return [said] if said else []


def paired(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return pairs (index of a gold, index of a prediction). The pair with the best score is taken first, then the best
    of the pairs that remain; each gold and each prediction is in at most one pair.

    `scores` has a row for each gold and a column for each prediction.

    >>> paired([[0.2, 0.9, 0.9], [0.1, 1.0, 0.3]])
    [(1, 1), (0, 2)]
    """
    cells = [(-score, gold, said) for gold, row in enumerate(scores) for said, score in enumerate(row)]
    pairs = list[tuple[int, int]]()
    golds, saids = set[int](), set[int]()
    for _, gold, said in sorted(cells):
        if gold not in golds and said not in saids:
            golds.add(gold)
            saids.add(said)
            pairs.append((gold, said))
    return pairs


def _listed(text: str) -> list[object] | None:
    if not text.startswith("["):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value: object = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return value if isinstance(value, list) else None
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
