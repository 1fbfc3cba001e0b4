"""Questions over several pages: values of two tables, their difference, and a row of one table looked up in another."""

from collections.abc import Callable, Iterator
from decimal import Decimal

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.facts import Fact
from mmlongbench.questions.layer.index import normal
from mmlongbench.questions.layer.kinds.wording import (
    column_of,
    deviation_of,
    is_share,
    marks_of,
    phrases_of,
    row_slot,
    table_name,
    unit_of,
)
from mmlongbench.questions.numbers import answer_of, number_of, written

MOST = 200
"""At most so many candidates of a kind are made of a document."""


def pairs(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: what are the values of two cells of tables on two pages?"""
    for one, two in _partners(document, draws, "pair", _can_be_pair):
        first, second = table_name(document, one), table_name(document, two)
        yield Candidate(
            "cross-page-pair",
            f"What is the value of “{one.label}” {column_of(one)} of {first}, and what is the value of “{two.label}” "
            f"{column_of(two)} of {second}? Give the two values in this order.{deviation_of(one, two)}",
            (answer_of(one.value)[0], answer_of(two.value)[0]),
            (one.page, two.page),
            ("Table",),
            (*marks_of(one), *marks_of(two)),
            (phrases_of(one), phrases_of(two)),
            slots=(row_slot(one), row_slot(two)),
            facts=(one, two),
        )


def differences(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: by how much do two cells of tables on two pages differ? Both tables print the same unit."""

    def fits(one: Fact, two: Fact) -> bool:
        unit = one.table.title.unit
        has_unit = bool(unit) and unit == two.table.title.unit and "except" not in unit and "shares" not in unit
        is_plain = all(not is_share(each) and _has_no_unit(each) and _number(each) > 0 for each in (one, two))
        is_same_row = normal(one.label) == normal(two.label)
        return _number(one) != _number(two) and has_unit and is_plain and is_same_row

    for one, two in _partners(document, draws, "difference", fits):
        first, second = table_name(document, one), table_name(document, two)
        low, high = sorted((_number(one), _number(two)))
        yield Candidate(
            "cross-page-difference",
            f"By how much do the value of “{one.label}” {column_of(one)} of {first} and the value of "
            f"“{two.label}” {column_of(two)} of {second} differ? Give the absolute difference."
            f"{_unit_of_both(one, two)}",
            written(high - low),
            (one.page, two.page),
            ("Table",),
            (*marks_of(one, "operand"), *marks_of(two, "operand")),
            (phrases_of(one), phrases_of(two)),
            derived="absolute difference",
            slots=(row_slot(one), row_slot(two)),
            facts=(one, two),
        )


def joins(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: what is the value in one table of the row that has a given value in another table?

    The value is there once in its column, and the label of the row is on one row of each table.
    """
    by_label: dict[str, list[Fact]] = {}
    for fact in document.facts:
        by_label.setdefault(normal(fact.label), []).append(fact)
    for label, facts in sorted(by_label.items()):
        first = draws.order(f"join {label}", facts, _id)[0]
        others = [fact for fact in facts if fact.page != first.page and fact.value != first.value]
        if not others or sum(map(str.isdigit, first.value)) < 2:
            continue
        if first.times > 1:
            continue
        second = draws.order(f"join with {label}", others, _id)[0]
        one, two = table_name(document, first), table_name(document, second)
        if not one or not two:
            continue
        answer, accepted = (second.value, ()) if second.is_text else answer_of(second.value)
        yield Candidate(
            "cross-page-join",
            f"Find the row that has the value “{first.value}” {column_of(first)} of {one}. What is the value of the "
            f"row with the same name {column_of(second)} of {two}?{unit_of(second)}",
            answer,
            tuple(sorted((first.page, second.page))),
            ("Table",),
            (*marks_of(first, "operand"), *marks_of(second)),
            (phrases_of(first), phrases_of(second)),
            accepted,
            slots=(row_slot(first), row_slot(second), f"join {label}"),
            facts=(first, second),
            notes={"value once in column": first.value},
        )


def _can_be_pair(one: Fact, two: Fact) -> bool:
    """Return whether two values can be asked for as a list: no brackets, and not the same value twice."""
    return min(_number(one), _number(two)) >= 0 and _number(one) != _number(two)


def _partners(
    document: Document, draws: Draws, what: str, fits: Callable[[Fact, Fact], bool]
) -> Iterator[tuple[Fact, Fact]]:
    """Yield pairs of facts of two pages, each fact at most once; which ones is drawn."""
    facts = [f for f in document.facts if not f.is_text and number_of(f.value) is not None and table_name(document, f)]
    ordered = draws.order(f"{what} one", facts, _id)[:MOST]
    used: set[str] = set()
    for one in ordered:
        if _id(one) in used:
            continue
        others = [two for two in facts if two.page > one.page and _id(two) not in used and fits(one, two)]
        if not others:
            continue
        same = [two for two in others if normal(two.label) == normal(one.label)] or others
        two = draws.order(f"{what} {_id(one)}", same, _id)[0]
        used |= {_id(one), _id(two)}
        yield one, two


def _unit_of_both(one: Fact, two: Fact) -> str:
    return unit_of(one, two).replace("The table gives", "The tables give")


def _id(fact: Fact) -> str:
    return f"{fact.page} {fact.table.number} {fact.row} {fact.column}"


def _number(fact: Fact) -> Decimal:
    return number_of(fact.value) or Decimal(0)


def _has_no_unit(fact: Fact) -> bool:
    words = f" {normal(fact.label)} {normal(fact.header)} "
    return not any(f" {word} " in words for word in ("per", "rate", "ratio", "shares", "number", "percent", "years"))
