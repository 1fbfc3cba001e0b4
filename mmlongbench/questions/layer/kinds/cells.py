"""Questions about single cells: the value of a row in a column, the row of a value, and several values of a row."""

from collections.abc import Iterator

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.facts import Fact
from mmlongbench.questions.layer.kinds.wording import column_of, marks_of, phrases_of, row_slot, table_name, unit_of
from mmlongbench.questions.numbers import answer_of, number_of

MAX_ANSWER_WORDS = 5
"""MMLongBench leaves out longer answers."""


def values(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: what is the value of a row in a column?"""
    for fact in document.facts:
        if name := table_name(document, fact):
            answer, accepted = (fact.value, ()) if fact.is_text else answer_of(fact.value)
            accepted = (*accepted, fact.whole) if fact.whole != fact.value and not fact.is_text else accepted
            what = "is given for" if fact.is_text else "is the value of"
            yield Candidate(
                "table-value",
                f"According to {name}, what {what} “{fact.label}” {column_of(fact)}?{unit_of(fact)}",
                answer,
                (fact.page,),
                ("Table",),
                marks_of(fact),
                (phrases_of(fact),),
                accepted,
                slots=(row_slot(fact),),
                facts=(fact,),
            )


def rows(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: which row has this value in a column? The value must be there once in the column and in its row."""
    by_column: dict[tuple[object, ...], list[Fact]] = {}
    for fact in document.facts:
        by_column.setdefault((fact.table.key, fact.column), []).append(fact)
    for facts in by_column.values():
        for fact in facts:
            name = table_name(document, fact)
            is_telling = sum(map(str.isalnum, fact.value)) >= 3 and len(fact.label.split()) <= MAX_ANSWER_WORDS
            if fact.times > 1 or not name or not is_telling or len(facts) < 3 or fact.label.isdigit():
                continue
            yield Candidate(
                "table-row",
                f"According to {name}, which row has the value “{fact.value}” {column_of(fact)}?{unit_of(fact)}",
                fact.label,
                (fact.page,),
                ("Table",),
                marks_of(fact),
                ((*phrases_of(fact), fact.value),),
                slots=(row_slot(fact),),
                facts=(fact,),
                notes={"value once in column": fact.value},
            )


def pairs(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: what are the values of a row in two columns?"""
    by_row: dict[tuple[object, ...], list[Fact]] = {}
    for fact in document.facts:
        by_row.setdefault((fact.table.key, fact.row), []).append(fact)
    for key, facts in by_row.items():
        facts = [fact for fact in facts if not fact.is_text and (number_of(fact.value) or 0) >= 0]
        if len(facts) < 2:
            continue
        first, second = draws.order(f"pair {key}", facts, lambda fact: fact.header)[:2]
        first, second = sorted((first, second), key=lambda fact: fact.column)
        if not (name := table_name(document, first)) or first.header == second.header:
            continue
        yield Candidate(
            "table-pair",
            f"According to {name}, what are the values of “{first.label}” in the columns “{first.header}” and "
            f"“{second.header}”, in this order?{unit_of(first, second)}",
            (answer_of(first.value)[0], answer_of(second.value)[0]),
            (first.page,),
            ("Table",),
            (*marks_of(first), *marks_of(second)[-2:]),
            (phrases_of(first), phrases_of(second)),
            slots=(row_slot(first),),
            facts=(first, second),
        )
