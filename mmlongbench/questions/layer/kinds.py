"""The kinds of questions over cells of tables, and their twins without an answer.

A twin has the words of a question but for one name: that of a row or a column of another document. It takes the place
of its question, and which ones is drawn, so kind, table, unit and place of a question say nothing about whether
it has an answer. A name is used for one twin, shares no word with the table, and is preferred if its words stand on the
page of the table, and if it is as long as the name that it replaces.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.facts import Fact, PageIndex, answer_of, normal
from mmlongbench.questions.layer.page import Box
from mmlongbench.questions.layer.words import YEAR

ABSENT = "unanswerable"
MOST_ROWS = 3  # how many rows a question adds or compares
_SHARE = re.compile(r"%|\b(percent|percentages?|pct|bps|basis points|ratios?)\b", re.IGNORECASE)
_GENERAL = frozenset(("total", "other", "others", "net", "all", "average", "subtotal", "sum"))
"""Words of names that another document may have under another name."""
_MIXED = re.compile(  # rows and columns that may have another unit than their neighbours, or contain them
    r"\b(gross|per|attributable|balance|including|excluding|less|comprehensive|rate|margin|number|shares|price|score|"
    r"accuracy|index|beginning|end|avg|yield|ratio)\b|[%#]",
    re.IGNORECASE,
)


class Mark(NamedTuple):
    """Words on a page that a question rests on; the role is `answer`, `operand`, `row`, `column` or `title`."""

    page: int
    text: str
    box: Box
    role: str


@dataclass(frozen=True)
class Candidate:
    kind: str
    question: str
    answer: str | tuple[str, ...]
    facts: tuple[Fact, ...]  # the cells that it rests on
    replaceable: str  # the name of a row or column without which it has no answer
    derived: str = ""  # how the answer follows from the cells; empty if it stands on the page
    accepted: tuple[str, ...] = ()  # other right answers
    edit: str = ""  # for a question without an answer: what was changed, such as `2019 → 2014`
    original: str = ""  # the question of which it is an edit

    @property
    def pages(self) -> tuple[int, ...]:
        return tuple(sorted({fact.page for fact in self.facts}))

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The words that it rests on. A name that was changed is not on its page."""
        marks = []
        for fact in self.facts:
            title, role = fact.table, "operand" if self.derived else "answer"
            marks.append(Mark(fact.page, " ".join(title.words[:1]), title.box, "title"))
            texts = zip((fact.label, fact.leaf, fact.value), fact.boxes, ("row", "column", role), strict=True)
            marks += [Mark(fact.page, text, box, role) for text, box, role in texts]
        return tuple(dict.fromkeys(marks))

    @property
    def phrases(self) -> tuple[tuple[str, ...], ...]:
        """Groups of phrases: a page that has all phrases of a group has what names a cell of the question."""
        return tuple((*fact.table.words, fact.label, fact.leaf) for fact in self.facts)

    @property
    def is_column_replaceable(self) -> bool:
        return any(fact.header == self.replaceable for fact in self.facts)

    def phrases_with(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Groups of phrases, as in `phrases`, of its twin with another name of a row or column."""
        groups = []
        for fact in self.facts:
            if fact.header == self.replaceable:
                # the lines of a header over several columns are not side by side: each word is a phrase
                groups.append((*fact.table.words, fact.label, *name.split()))
            else:
                label = name if fact.label == self.replaceable and not self.is_column_replaceable else fact.label
                groups.append((*fact.table.words, label, fact.leaf))
        return tuple(groups)


def candidates_of(sha256: str, facts: Sequence[Fact]) -> list[Candidate]:
    draws = Draws(("questions from the layer", sha256))
    plain = [fact for fact in facts if not is_general(fact.label) and not is_general(fact.header)]
    return [
        candidate for make in (_values, _comparisons, _changes, _aggregates, _joins) for candidate in make(plain, draws)
    ]


def _values(facts: Sequence[Fact], draws: Draws) -> Iterator[Candidate]:
    for fact in facts:
        question = f"According to {fact.table}, what is the value of “{fact.label}” in the column “{fact.header}”?"
        name = draws.choice(f"name {question}", [fact.label, fact.header])
        yield Candidate(
            "table-value", question + _unit(fact), answer_of(fact.value), (fact,), name, "", _accepted(fact)
        )


def _comparisons(facts: Sequence[Fact], draws: Draws) -> Iterator[Candidate]:
    for one, two in _neighbours(facts, draws, "comparison", 2):
        if one.amount != two.amount:
            first = one if one.amount > two.amount else two
            question = (
                f"According to {one.table}, which of the rows “{one.label}” and “{two.label}” has the larger value in "
                f"the column “{one.header}”, and by how much is it larger? Give the row and the difference."
            )
            answer = first.label, _written(abs(one.amount - two.amount), one)
            yield Candidate("table-comparison", question + _unit(one), answer, (one, two), one.header, "larger row")


def _changes(facts: Sequence[Fact], draws: Draws) -> Iterator[Candidate]:
    """Yield: by how much did a row change between two columns that differ by their year alone?"""
    for _, group in groupby(facts, lambda fact: (fact.table, fact.row)):
        dated = [fact for fact in group if len(_years(fact.header)) == 1 and fact.amount > 0 and not _is_share(fact)]
        drawn = draws.order(f"change {dated[0].label} {dated[0].table}", dated, lambda f: f.header)[:2] if dated else []
        if len(drawn) < 2 or drawn[0].amount == drawn[1].amount:
            continue
        one, two = sorted(drawn, key=lambda fact: _years(fact.header))
        if YEAR.sub("", one.header) == YEAR.sub("", two.header) and _years(one.header) != _years(two.header):
            question = (
                f"According to {one.table}, by how much did “{one.label}” change from the column “{one.header}” to "
                f"the column “{two.header}”? Give the absolute difference."
            )
            answer = _written(abs(one.amount - two.amount), one, two)
            yield Candidate("table-change", question + _unit(one), answer, (one, two), one.label, "absolute difference")


def _aggregates(facts: Sequence[Fact], draws: Draws) -> Iterator[Candidate]:
    for count in (2, MOST_ROWS):
        for rows in _neighbours(facts, draws, "sum", count):
            table, header = rows[0].table, rows[0].header
            question = f"According to {table}, what is the sum of {_listed(rows)} in the column “{header}”?"
            answer = _written(sum((fact.amount for fact in rows), Decimal(0)), *rows)
            if answer in ("100", "100.0"):  # shares in per cent
                continue
            name = draws.choice(f"name {question}", [header, *(fact.label for fact in rows)])
            yield Candidate("table-aggregate", question + _unit(rows[0]), answer, rows, name, "sum")


def _joins(facts: Sequence[Fact], draws: Draws) -> Iterator[Candidate]:
    """Yield: which row is the largest in one table, and what is its value in another one on another page?"""
    cells: dict[str, list[Fact]] = {}
    for fact in facts:
        cells.setdefault(normal(fact.label), []).append(fact)
    for rows in _neighbours(facts, draws, "join", 2):
        first = max(rows, key=lambda fact: fact.amount)
        if len({fact.amount for fact in rows}) < 2:
            continue
        tables = [{(f.table, f.column) for f in cells[normal(fact.label)] if f.page != fact.page} for fact in rows]
        others = [f for f in cells[normal(first.label)] if (f.table, f.column) in set.intersection(*tables)]
        for second in draws.order(f"join {_key(first)}", others, _key)[:1]:
            question = (
                f"Of the rows {_listed(rows)}, take the one with the larger value in the column “{first.header}” of "
                f"{first.table}. What is its value in the column “{second.header}” of {second.table}?"
            )
            answer, used = answer_of(second.value), (*rows, second)
            yield Candidate(
                "table-join", question + _unit(second), answer, used, second.header, "join", _accepted(second)
            )


def _neighbours(facts: Sequence[Fact], draws: Draws, what: str, count: int) -> Iterator[tuple[Fact, ...]]:
    """Yield, drawn, rows of a column that follow each other in one group and have one unit, as far as names tell."""
    columns: dict[tuple[object, int], list[Fact]] = {}
    for fact in facts:
        columns.setdefault((fact.table, fact.column), []).append(fact)
    for column in columns.values():
        fitting = []
        for rows in (tuple(column[at : at + count]) for at in range(len(column) - count + 1)):
            first = rows[0]
            is_run = all(fact.row == first.row + at and fact.group == first.group for at, fact in enumerate(rows))
            is_plain = all(fact.amount > 0 and not _is_share(fact) and not _MIXED.search(fact.label) for fact in rows)
            is_one = len({_decimals(fact.value) for fact in rows}) == 1 and not _MIXED.search(first.header)
            if is_run and is_plain and is_one and "except" not in first.table.unit:
                fitting.append(rows)
        yield from draws.order(f"{what} {count}", fitting, lambda rows: " ".join(map(_key, rows)))[:2]


def _accepted(fact: Fact) -> tuple[str, ...]:
    plain = re.sub(r"[$€£¥\s]", "", fact.value)
    return (plain,) if plain.startswith("(") else ()


def _key(fact: Fact) -> str:
    return f"{fact.page} {fact.table.number} {fact.row} {fact.column}"


def is_general(name: str) -> bool:
    """Return whether a name is too general to say that a document has nothing of that name."""
    return len(normal(name)) < 4 or not _GENERAL.isdisjoint(normal(name).split())


def _is_share(fact: Fact) -> bool:
    return any(_SHARE.search(text) for text in (fact.value, fact.label, fact.group, fact.header))


def _unit(fact: Fact) -> str:
    """Return a sentence about the unit of a table, with a blank before it; empty if the value has another one."""
    unit = fact.table.unit
    words = set(normal(f"{fact.label} {fact.header}").split())
    is_price = "$" in fact.value or bool(words & {"price", "value", "average", "per", "cost"})
    counts_shares = not is_price and bool(words & {"shares", "number", "options", "units"})
    has_other = _is_share(fact) or "000" in fact.header or ("shares" in unit and not counts_shares)
    return f" The table gives {'values ' if unit.startswith('in ') else ''}{unit}." if unit and not has_other else ""


def _listed(facts: Sequence[Fact]) -> str:
    *first, last = (f"“{fact.label}”" for fact in facts)
    return f"{', '.join(first)} and {last}"


def stems(text: str) -> frozenset[str]:
    """Return the words of a text, those in plural as in singular.

    >>> sorted(stems("Inventories of 3 ships"))
    ['3', 'inventory', 'of', 'ship']
    """
    return frozenset(re.sub(r"(?<=\w)s+$", "", re.sub(r"ies$", "y", word)) for word in normal(text).split())


def _years(text: str) -> list[str]:
    return re.findall(r"\b(?:19|20)\d\d\b", text)


def _decimals(value: str) -> int:
    return len(value.rstrip("%) ").partition(".")[2])


def _written(value: Decimal, *facts: Fact) -> str:
    return f"{value:,.{max(_decimals(fact.value) for fact in facts)}f}"


def twin_of(
    candidate: Candidate,
    names: Iterable[str],
    index: PageIndex,
    in_tables: Mapping[tuple[int, int], frozenset[str]],
    is_elsewhere: Callable[[str], bool],
) -> Candidate | None:
    """Return the twin of a question with one of the names, which rows and columns of other documents have; None if no
    name fits. `is_elsewhere` says whether a page of another document answers the question with a name.
    """
    old = candidate.replaceable
    facts = [fact for fact in candidate.facts if old in (fact.label, fact.header)]
    table = facts[-1].table
    is_column = candidate.is_column_replaceable
    # another page that has the name and one of these may answer: the table, another row, the column of the row
    beside = [table.words, *((fact.label,) for fact in candidate.facts if fact.label != old)]
    beside += [tuple(fact.header.split()) for fact in facts if not is_column]
    on_page, in_table = stems(index.texts[table.page - 1]), in_tables[table.page, table.number]
    fitting = []
    for name in names:
        words = stems(name)
        new = words - stems(old) if _years(name) else words
        telling = {word for word in new if len(word) > 2 or word.isdigit()}
        is_like = [YEAR.sub("", each) for each in (name, old)] if _years(name) else [name, name]
        is_known = not in_table.isdisjoint((*telling, *_years(name)))
        if bool(_years(name)) != bool(_years(old)) or not telling or is_known:
            continue
        phrases = name.split() if is_column else [name]
        is_answered = any(index.pages_with(*phrases, *words) - {table.page} for words in beside)
        if is_answered or (not _years(name) and index.pages_with(name)):
            continue
        lengths = abs(len(name.split()) - len(old.split())), abs(len(name) - len(old))
        fitting.append((len(words - on_page), is_like[0] != is_like[1], *lengths, name))
    for *_, name in sorted(fitting)[:20]:
        if not is_elsewhere(name):
            before, _, after = candidate.question.rpartition(f"“{old}”")
            question = f"{before}“{name}”{after}"
            edited = replace(candidate, kind=ABSENT, question=question, answer="Not answerable", edit=f"{old} → {name}")
            return replace(edited, original=candidate.question)
    return None
