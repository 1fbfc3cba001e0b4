"""How questions name tables, rows, columns and values."""

import re

from mmlongbench.questions.layer.candidate import Mark
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.facts import Fact
from mmlongbench.questions.layer.index import normal

_SHARE = re.compile(r"%|\b(percent|percentages?|pct|bps|basis points|ratios?)\b", re.IGNORECASE)


def table_name(document: Document, fact: Fact) -> str:
    """Return how a question names the table of a fact; empty if no words tell it from the other tables.

    A table of which parts may be on other pages is named by its page too, because a row may be in another part.
    """
    title, page = fact.table.title, f"on page {fact.page}"
    if title.by == "page":
        return f"the table {page}" if fact.table.is_alone else ""
    called = title.words if title.by == "number" else f"the table under the heading “{title.words}”"
    if not names_page(document, fact):
        return called
    twins = document.tables_by_title[normal(title.words)] - {fact.table.key}
    return "" if any(key[0] == fact.page for key in twins) and not fact.table.is_alone else f"{called} {page}"


def names_page(document: Document, fact: Fact) -> bool:
    """Return whether a question must name the table of a fact by its page: nothing else tells it from all others."""
    title = fact.table.title
    if title.by == "page" or document.unread or document.parts_of(fact.table) != {fact.page}:
        return True
    if document.tables_by_title[normal(title.words)] != {fact.table.key}:
        return True
    return title.by == "heading" and len(document.index.pages_with(title.words, fact.label, fact.leaf)) != 1


def unit_of(fact: Fact, *others: Fact) -> str:
    """Return sentences about how values are given, with a blank before each: the unit of the table of the first one,
    and that a deviation is not asked for. Empty if there is nothing to say.
    """
    return _unit_of(fact) + deviation_of(fact, *others)


def deviation_of(*facts: Fact) -> str:
    """Return a sentence that leaves deviations out, with a blank before it; empty if no cell has one."""
    has_one = any(each.whole != each.value and not each.is_text for each in facts)
    return " Leave out deviations, such as those in brackets." if has_one else ""


def _unit_of(fact: Fact) -> str:
    """Return a sentence about the unit of a table; empty if there is none, or if the value has another one: it is a
    share in per cent, or the unit counts shares of stock and the value does not.
    """
    unit = fact.table.title.unit
    if not unit or is_share(fact) or ("shares" in unit and not _counts(fact)):
        return ""
    return f" The table gives {'values ' if unit.startswith('in ') else ''}{unit}."


def _counts(fact: Fact) -> bool:
    """Return whether a value is a number of shares: what names it says so, and it is no price."""
    words = f" {normal(fact.label)} {normal(fact.header)} "
    is_price = "$" in fact.whole or any(f" {word} " in words for word in ("price", "value", "average", "per", "cost"))
    return not is_price and any(f" {word} " in words for word in ("shares", "number", "options", "units"))


def is_share(fact: Fact) -> bool:
    """Return whether a value is a share or a change in per cent: the value or what names it says so."""
    return any(_SHARE.search(text) for text in (fact.whole, fact.label, fact.group, fact.header, fact.leaf))


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
