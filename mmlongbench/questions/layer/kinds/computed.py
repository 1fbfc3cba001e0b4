"""Questions whose answer is computed from several cells of one table: a change, a sum, the largest, a count."""

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.facts import Fact
from mmlongbench.questions.layer.kinds.wording import (
    column_of,
    column_slot,
    is_share,
    marks_of,
    phrases_of,
    row_slot,
    table_name,
    unit_of,
)
from mmlongbench.questions.numbers import is_percent, number_of, written

_YEAR = re.compile(r"\b(19|20)\d\d\b")
_MIXED = re.compile(
    r"\b(total|net|gross|per|ratio|percent|percentage|average|subtotal|attributable|balance|including|excluding|less|comprehensive|gross|rate|margin|number|shares|all)\b|%",
    re.I,
)
"""Labels of rows that may have another unit than their neighbours, or that contain them."""
_RATE = re.compile(r"\b(average|per|rate|ratio|percent|percentage|price|score|accuracy|index)\b|%", re.IGNORECASE)
"""Headers of columns whose values have no sum."""
MOST_ROWS = 4
"""How many rows a question compares."""


def changes(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: by how much did a row change between two columns that are years?"""
    for facts in _by(document, lambda fact: (fact.table.key, fact.row)):
        dated = [fact for fact in facts if len(_YEAR.findall(fact.leaf)) == 1 and _is_plain(fact)]
        if len(dated) < 2 or len({_without_year(fact) for fact in dated}) > 1:
            continue
        if any(map(is_share, dated)):
            continue
        ordered = sorted(dated, key=lambda fact: _year(fact))
        low, high = draws.order(f"change {ordered[0].table.key} {ordered[0].row}", ordered, lambda f: f.header)[:2]
        low, high = sorted((low, high), key=_year)
        one, two = _number(low), _number(high)
        name = table_name(document, low)
        if not name or one == two or min(one, two) < 0 or _year(low) == _year(high):
            continue
        verb = "increase" if two > one else "decrease"
        yield _computed(
            "table-change",
            f"According to {name}, by how much did “{low.label}” {verb} from the column “{low.header}” to the column "
            f"“{high.header}”?{unit_of(low, high)}",
            written(abs(two - one)),
            (low, high),
            "absolute difference",
            (row_slot(low),),
        )


def sums(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: what is the sum of two rows of a column?"""
    for facts in _by(document, lambda fact: (fact.table.key, fact.column)):
        plain = _comparable(facts)
        is_amount = bool(facts[0].table.title.unit) or not _decimals(facts[0].value)
        if len(plain) < 2 or not is_amount or any(map(is_share, plain)) or _RATE.search(facts[0].header):
            continue
        one, two = sorted(_drawn(draws, "sum", plain, 2), key=lambda fact: fact.row)
        if name := table_name(document, one):
            yield _computed(
                "table-sum",
                f"According to {name}, what is the sum of “{one.label}” and “{two.label}” {column_of(one)}?"
                f"{unit_of(one, two)}",
                written(_number(one) + _number(two)),
                (one, two),
                "sum",
                (column_slot(one), row_slot(one), row_slot(two)),
            )


def largest(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: which of these rows has the largest (or the smallest) value in a column?"""
    for facts in _by(document, lambda fact: (fact.table.key, fact.column)):
        plain = [fact for fact in _comparable(facts) if len(fact.label.split()) <= 5]
        if len(plain) < 3 or not (name := table_name(document, plain[0])):
            continue
        chosen = sorted(_drawn(draws, "largest", plain, MOST_ROWS), key=lambda fact: fact.row)
        numbers = [_number(fact) for fact in chosen]
        is_largest = draws.integer(f"largest or smallest {chosen[0].table.key} {chosen[0].column}", 0, 1) == 1
        best = max(numbers) if is_largest else min(numbers)
        if numbers.count(best) > 1:
            continue
        winner = chosen[numbers.index(best)]
        yield _computed(
            "table-largest",
            f"According to {name}, which of the rows {_listed(chosen)} has the "
            f"{'largest' if is_largest else 'smallest'} value {column_of(chosen[0])}?",
            winner.label,
            tuple(chosen),
            "row of the largest" if is_largest else "row of the smallest",
            (column_slot(winner), f"largest {winner.table.key}"),
        )


def counts(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: how many of these rows are above a value in a column?"""
    for facts in _by(document, lambda fact: (fact.table.key, fact.column)):
        plain = _comparable(facts)
        if len(plain) < 4 or not (name := table_name(document, plain[0])):
            continue
        chosen = sorted(_drawn(draws, "count", plain, 5), key=lambda fact: fact.row)
        middle = draws.choice(f"bound {chosen[0].table.key} {chosen[0].column}", chosen)
        others = [fact for fact in chosen if fact is not middle]
        above = sum(_number(fact) > _number(middle) for fact in others)
        if above == 0 or any(_number(fact) == _number(middle) for fact in others):
            continue
        yield _computed(
            "table-count",
            f"According to {name}, how many of the rows {_listed(others, 'and')} have a larger value than "
            f"“{middle.label}” {column_of(middle)}?",
            str(above),
            (middle, *others),
            "count of those above the first",
            (column_slot(middle), f"count {middle.table.key}"),
        )


def _computed(
    kind: str, question: str, answer: str, facts: tuple[Fact, ...], how: str, slots: tuple[str, ...]
) -> Candidate:
    marks = tuple(dict.fromkeys(mark for fact in facts for mark in marks_of(fact, "operand")))
    pages = tuple(sorted({fact.page for fact in facts}))
    phrases = tuple(phrases_of(fact) for fact in facts)
    return Candidate(kind, question, answer, pages, ("Table",), marks, phrases, derived=how, slots=slots, facts=facts)


def _by(document: Document, key: Callable[[Fact], tuple[object, ...]]) -> list[list[Fact]]:
    groups: dict[tuple[object, ...], list[Fact]] = {}
    for fact in document.facts:
        if not fact.is_text and number_of(fact.value) is not None:
            groups.setdefault(key(fact), []).append(fact)
    return list(groups.values())


def _comparable(facts: Sequence[Fact]) -> list[Fact]:
    """Return facts of a column that have one unit, as far as labels and signs tell: no totals, rates or shares."""
    plain = [fact for fact in facts if _is_plain(fact)]
    if "except" in (facts[0].table.title.unit if facts else ""):
        return []
    if len({is_percent(fact.value) for fact in plain}) > 1 or len({_decimals(fact.value) for fact in plain}) > 1:
        return []
    return _run(plain) if all(_number(fact) >= 0 for fact in plain) else []


def _run(facts: Sequence[Fact]) -> list[Fact]:
    """Return the longest run of rows that follow each other in one group; a row that is the sum of those above it ends
    a run.
    """
    runs: list[list[Fact]] = [[]]
    for fact in sorted(facts, key=lambda each: each.row):
        last = runs[-1]
        follows = bool(last) and fact.row == last[-1].row + 1 and fact.group == last[-1].group
        if len(last) > 1 and _number(fact) == sum(map(_number, last)):
            runs.append([])
        elif follows:
            last.append(fact)
        else:
            runs.append([fact])
    return max(runs, key=len)


def _is_plain(fact: Fact) -> bool:
    return not _MIXED.search(fact.label) and number_of(fact.value) is not None


def _drawn(draws: Draws, what: str, facts: Sequence[Fact], count: int) -> list[Fact]:
    return draws.order(f"{what} {facts[0].table.key} {facts[0].column}", facts, lambda fact: fact.label)[:count]


def _listed(facts: Sequence[Fact], last: str = "or") -> str:
    *first, final = (f"“{fact.label}”" for fact in facts)
    return f"{', '.join(first)} {last} {final}"


def _number(fact: Fact) -> Decimal:
    value = number_of(fact.value)
    return Decimal(0) if value is None else value


def _year(fact: Fact) -> int:
    found = _YEAR.search(fact.leaf)
    return int(found[0]) if found else 0


def _without_year(fact: Fact) -> str:
    return _YEAR.sub("", fact.header)


def _decimals(value: str) -> int:
    return len(value.rstrip("%) ").partition(".")[2])
