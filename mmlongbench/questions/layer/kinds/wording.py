"""How questions name tables, rows, columns and values."""

from mmlongbench.questions.layer.candidate import Mark
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.facts import Fact
from mmlongbench.questions.layer.index import normal


def table_name(document: Document, fact: Fact) -> str:
    """Return how a question names the table of a fact; empty if no words tell it from the other tables."""
    title, page = fact.table.title, f"on page {fact.page}"
    if title.by == "number":
        return title.words
    alone = fact.table.is_alone
    if title.by == "heading":
        called = f"the table under the heading “{title.words}”"
        twins = document.tables_by_title[normal(title.words)] - {fact.table.key}
        if not twins and len(document.index.pages_with(title.words, fact.label, fact.leaf)) == 1:
            return called
        return f"{called} {page}" if alone or not any(key[0] == fact.page for key in twins) else ""
    return f"the table {page}" if alone else ""


def unit_of(fact: Fact) -> str:
    """Return a sentence about the unit of a table, with a blank before it; empty if there is none."""
    unit = fact.table.title.unit
    values = "values " if unit.startswith("in ") else ""
    return f" The table gives {values}{unit}." if unit and "%" not in fact.value else ""


def column_of(fact: Fact) -> str:
    """Return how a question names the column of a fact."""
    return f"in the column “{fact.header}”"


def marks_of(fact: Fact, role: str = "answer") -> tuple[Mark, ...]:
    """Return the words that a fact rests on; the value has the given role."""
    title = fact.table.title
    named = (Mark(fact.page, f"{title.words}", title.box, "title"),) if title.box else ()
    return (
        *named,
        Mark(fact.page, fact.label, fact.label_box, "row"),
        Mark(fact.page, fact.leaf, fact.header_box, "column"),
        Mark(fact.page, fact.value, fact.value_box, role),
    )


def phrases_of(fact: Fact) -> tuple[str, ...]:
    """Return the phrases that a page must have to answer for a fact: what names its table, its row and its column."""
    return tuple(phrase for phrase in (fact.table.title.words, fact.label, fact.leaf) if phrase)


def row_slot(fact: Fact) -> str:
    """Return the slot of the fact's row."""
    return f"row {fact.page} {fact.table.number} {fact.row}"


def column_slot(fact: Fact) -> str:
    """Return the slot of the fact's column."""
    return f"column {fact.page} {fact.table.number} {fact.column}"
