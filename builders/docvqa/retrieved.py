"""Contexts of retrieved pages: the pages that a retriever ranks first, or the answer pages among hard negatives.

A retriever ranks the pages of the question's document, or those of all documents, before anything is packed. The packer
takes ranked pages while they fit, so a longer context shows what a shorter one shows.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import mmlongbench.task as mt
from builders.docvqa.contexts import Anchor, pages_asked
from builders.docvqa.options import DocVQAOptions
from builders.docvqa.rows import DocumentQuestion


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The pages of a context, as units, and how they were found."""

    anchor: Anchor
    required: tuple[mt.Unit, ...]
    rest: mt.InOrder
    gold_ranks: tuple[int, ...]
    """See `PageRanking.gold_ranks`."""


def page_query(row: DocumentQuestion, documents: mt.Documents, options: DocVQAOptions) -> mt.PageQuery:
    """Return the search for the pages of a question.

    Raises:
        Rejected: as `pages_asked`, or hard negatives are wanted beside answer pages, and there are none.

    """
    own = documents[row.doc]
    pages_asked(row, own, options)
    if options.context == "gold_and_distractors" and not row.pages:
        expected, todo = "answer pages to put among others", "nothing: context: retrieved keeps the question"
        raise mt.Rejected(mt.Fault("no-answer-pages", expected, "none", field=row.pages_field, todo=todo))
    within = (own.id,) if options.scope == "document" else ()
    return mt.PageQuery(row.question, within, tuple((own.id, page) for page in row.pages))


def retrieved(
    row: DocumentQuestion,
    documents: mt.Documents,
    ranking: mt.PageRanking,
    evidence: frozenset[str],
    options: DocVQAOptions,
    draws: mt.Draws,
    unit: Callable[[mt.Document, mt.Page, mt.Role], mt.Unit],
    label: Callable[[str], str],
) -> Retrieved:
    """Return the pages of a context. If no answer page is put in, the page that was ranked first is required.
    `evidence` has the keys of the answer pages.

    Raises:
        Rejected: no page was ranked that may be shown, or there are fewer hard negatives than wanted.

    """
    own = documents[row.doc]
    gold = [(own.id, page) for page in row.pages]
    is_put_in = options.context == "gold_and_distractors" or options.gold_pages == "put_in"
    required = gold if is_put_in else []
    others = [page for page in ranking.pages if page not in required]
    places = _Places(ranking, options, draws, documents)

    def made(page: mt.PageId) -> mt.Unit:
        document = documents[page[0]]
        shown = document.pages[document.position(page[1])]
        found = unit(document, shown, "own" if document.id == own.id else "padding")
        return replace(found, place=places.of(page), data={**found.data, "rank": places.rank(page)})

    units = _first(
        _most(options, len(required), draws),
        _allowed(map(made, others), documents, own, evidence, label),
    )
    allowed = [unit for unit in units if not unit.excluded]
    if not ranking.pages or not (required or allowed):
        raise mt.Rejected(_nothing(own, options))
    if options.context == "gold_and_distractors" and len(allowed) < options.distractors[0]:
        expected, todo = f"at least {options.distractors[0]} pages beside the answer pages", "set options.distractors"
        raise mt.Rejected(mt.Fault("too-few-distractors", expected, f"{len(allowed)} ranked pages", todo=todo))
    first = tuple(map(made, required)) or (allowed[0],)
    rest = tuple(unit for unit in units if unit not in first)
    anchor = Anchor("answer", row.pages) if required else Anchor("retrieved", ())
    return Retrieved(anchor, first, mt.InOrder(rest), ranking.gold_ranks)


def _nothing(own: mt.Document, options: DocVQAOptions) -> mt.Fault:
    """Return why a question without a ranked page is rejected."""
    where = f"of {own.id}" if options.scope == "document" else "of any document"
    found = f"no page {where} that may be shown shares a word with the question, or has text"
    todo = "set pages.ocr to all, or page_retrieval to {by: image, model: …}"
    return mt.Fault("no-ranked-pages", "pages ranked for the question", found, todo=todo)


def _first(n: int | None, units: Iterable[mt.Unit]) -> list[mt.Unit]:
    """Return the first units, until n of them may be shown; None: all units."""
    found, allowed = list[mt.Unit](), 0
    for unit in units:
        if allowed == n:
            break
        found.append(unit)
        allowed += not unit.excluded
    return found


def _most(options: DocVQAOptions, required: int, draws: mt.Draws) -> int | None:
    """Return how many pages may stand beside the required ones; None: as many as fit."""
    if options.context == "gold_and_distractors":
        return draws.integer("distractors", *options.distractors)
    return None if options.top_k is None else max(0, options.top_k - required)


class _Places:
    """Where pages stand: in the order of their ranks, or of their numbers, with documents in a drawn order."""

    def __init__(
        self, ranking: mt.PageRanking, options: DocVQAOptions, draws: mt.Draws, documents: mt.Documents
    ) -> None:
        self._ranks = {page: rank for rank, page in enumerate(ranking.pages, 1)}
        self._is_by_rank = options.page_order == "rank"
        named = documents.ids if options.scope == "dataset" else ()
        self._documents = {id: place for place, id in enumerate(draws.order("documents", named))}

    def rank(self, page: mt.PageId) -> int:
        """Return the rank of a page, from 1; 0 if it is not ranked."""
        return self._ranks.get(page, 0)

    def of(self, page: mt.PageId) -> tuple[int, ...]:
        """Return the place of a page."""
        if self._is_by_rank:
            return (self._ranks[page],)
        return (self._documents.get(page[0], 0), page[1])


def _allowed(
    units: Iterable[mt.Unit],
    documents: mt.Documents,
    own: mt.Document,
    evidence: frozenset[str],
    label: Callable[[str], str],
) -> Iterator[mt.Unit]:
    """Yield the units; those that may not stand beside the question's document are excluded, each with the reason."""
    named = {label(own.name): own.id}
    for unit in units:
        document = documents[unit.data["document"]]
        keys = document.keys_at(document.position(unit.data["index"]))
        reason = ""
        if document.id != own.id:
            if document.sha256 == own.sha256:
                reason = "page of a copy of the document"
            elif not evidence.isdisjoint(keys):
                reason = "page that repeats an answer page"
            elif named.setdefault(label(document.name), document.id) != document.id:
                reason = "page of a document with another one's label"
        yield replace(unit, excluded=reason) if reason else unit
