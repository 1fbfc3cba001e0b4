"""What a document gives, and why not more: the lines of `documents.jsonl`."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import Field

from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.question import Line, Question, Reject

_WORDS: Mapping[str, str] = {
    "readers-disagree": "the two readers of tables disagree about the cell",
    "no-header-of-its-own": "the column has no header of its own",
    "header-of-two-columns": "two columns have the same header",
    "data-in-the-header": "a number stands in the header",
    "label-twice-in-the-table": "the label of the row is twice in the table",
    "label-twice-on-the-page": "the label of the row is twice on the page, and the table has no name",
    "label-in-pieces": "the label of the row has gaps",
    "label-of-many-lines": "the label of the row has many lines",
    "label-too-long": "the label of the row is long",
    "label-without-words": "the row has no label",
    "line-above-without-values": "a line above the row may belong to its label",
    "two-values-in-a-cell": "two values stand in one column of the row",
    "no-rows-of-values": "the table has no rows of numbers",
    "no-columns-of-values": "the table has no columns of numbers",
    "table-too-large": "the table is too large",
    "table-of-contents": "the table is a table of contents",
    "names-and-values": "the table has names and values instead of a header",
    "header-too-long": "the header of the column is long",
    "header-beside-its-column": "a header is not clearly over one column",
    "text-too-long": "the text of the cell is long",
}


class PageReport(Line):
    """What a page with tables gives."""

    page: int
    """The number of the page, from 1."""
    tables: int
    """The tables that the layout has."""
    read: int = 0
    """The tables of numbers that were read from words."""
    cells: int = 0
    """The cells with a value."""
    facts: int = 0
    """The cells that two readers see in the same way."""
    losses: dict[str, int] = Field(default_factory=dict)
    """Why tables and cells gave no fact, with how many there were."""


class DocumentReport(Line):
    """What a document gives, and why not more."""

    document: str
    """The name of the document."""
    pages: int
    """The number of its pages."""
    pages_without_words: int
    """Pages whose layer has no words; without OCR, nothing is known about them."""
    pages_left_out: int
    """Pages that are turned or have too many words."""
    tables: int
    """The tables that the layout has."""
    cells: int
    """The cells with a value."""
    facts: int
    """The cells that two readers see in the same way."""
    pages_with_facts: int
    """The pages with such cells."""
    captions: int
    """The numbered captions."""
    headings: int
    """The numbered headings."""
    candidates: dict[str, int]
    """The candidates of each kind."""
    questions: dict[str, int]
    """The questions of each kind."""
    rejects: dict[str, int]
    """Why candidates were left out, with how many there were."""
    losses: dict[str, int]
    """Why tables, cells, captions and headings gave nothing, with how many there were."""
    found_at_1: int = 0
    """For how many questions a plain search (BM25) over the pages finds all pages that are needed at the first rank."""
    found_at_5: int = 0
    """For how many questions it finds them among the first five."""
    with_pages: int = 0
    """How many questions need pages."""
    guessed: int = 0
    """How many questions a reader of the text of the first page of this search answers rightly, by one simple rule."""
    why: str
    """In one sentence, what the document gives and what limits it."""
    of_pages: tuple[PageReport, ...] = ()
    """What each page with tables gives."""


def report_of(
    document: Document, candidates: Sequence[Candidate], questions: Sequence[Question], rejects: Sequence[Reject]
) -> DocumentReport:
    """Return the report of a document, without baselines."""
    losses = sum((found.losses for found in document.found.values()), Counter(document.losses))
    pages = tuple(
        PageReport(
            page=number,
            tables=found.tables,
            read=found.read,
            cells=found.cells,
            facts=len(found.facts),
            losses=_counts(found.losses),
        )
        for number, found in sorted(document.found.items())
        if found.tables
    )
    raws = [page.raw for page in document.pages]
    return DocumentReport(
        document=document.name,
        pages=len(raws),
        pages_without_words=sum(not raw.word_count and not raw.rotation for raw in raws),
        pages_left_out=sum(bool(raw.rotation) or raw.is_crowded for raw in raws),
        tables=sum(page.tables for page in pages),
        cells=sum(page.cells for page in pages),
        facts=sum(page.facts for page in pages),
        pages_with_facts=sum(page.facts > 0 for page in pages),
        captions=len(document.captions),
        headings=len(document.headings),
        candidates=_counts(Counter(each.kind for each in candidates)),
        questions=_counts(Counter(each.kind for each in questions)),
        rejects=_counts(Counter(each.reason for each in rejects)),
        losses=_counts(losses),
        why=_why(document, losses, len(candidates)),
        of_pages=pages,
    )


def _why(document: Document, losses: Counter[str], candidates: int) -> str:
    pages, empty = len(document.pages), sum(not page.raw.word_count for page in document.pages)
    tables = sum(found.tables for found in document.found.values())
    if empty == pages and not any(page.raw.rotation for page in document.pages):
        return f"none of its {pages} pages has text: only OCR or a vision model can read it"
    parts = [f"{len(document.facts)} cells, {len(document.captions)} captions and {len(document.headings)} headings"]
    if empty:
        parts.append(f"{empty} of {pages} pages have no text or are turned")
    if document.unread:
        listed = ", ".join(map(str, sorted(document.unread)[:5]))
        parts.append(f"only OCR can read page {listed}{' and others' if len(document.unread) > 5 else ''}")
    if not candidates and not losses:
        return "; ".join([*parts, "it has no tables, captions or numbered headings"])
    if not tables:
        parts.append("the layout has no table")
    for reason, count in losses.most_common(3):
        parts.append(f"{count} times {_WORDS.get(reason, reason.replace('-', ' '))}")
    return "; ".join(parts)


def _counts(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted((name, count) for name, count in counts.items() if count))
