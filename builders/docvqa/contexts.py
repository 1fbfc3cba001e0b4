"""Chooses the pages of a context: which pages of the question's document may be shown, around which of them the
document is cut, and which other documents are put beside it.

A document is cut around its anchor: the answer pages or, if the question has no answer, one page that takes their
place. If that page were always in the middle of the document, a model could recognise unanswerable questions, because
fewer words of the question occur there than around an answer. So, by default, the context of an unanswerable question
shows the page that matches the question best.

Other contexts are made of retrieved pages: those that a retriever ranks first, or the answer pages among hard
negatives. Pages are ranked before anything is packed, and the packer takes ranked pages while they fit, so a longer
context shows what a shorter one shows.

Pages are shown as images, as texts, as interleaved texts and crops, or joined to larger images. An image of joined
pages that shows an answer page is an answer page as a whole: all numbers of pages in a record then count images, and
two more fields have the pages of the document.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import builders.common
import mmlongbench.task as mt
from builders.common import parted_unit
from builders.docvqa.rows import DocumentQuestion, DocVQAOptions, UnanswerableAnchor


def join_pages(options: DocVQAOptions) -> mt.JoinPages | None:
    """Return how the pages of documents are joined; None if they are not."""
    return mt.JoinPages(options.joined, options.joined_pixels) if options.pages_as == "joined" else None


def about_images(row: DocumentQuestion, document: mt.Document) -> DocumentQuestion:
    """Return a question whose answer pages are the images that show them, counted from 0; a question about a document
    that is not joined stays as it is.

    Raises:
        Rejected: an answer page is not in the document, or the source has no image of it.

    """
    if not document.joined:
        return row
    shown = {page.index: number for number, pages in enumerate(document.joined) for page in pages}
    if lacking := [page for page in row.pages if page not in shown]:
        expected, found = f"a page of {document.id} of which there is an image", f"page {lacking[0] + 1}"
        todo = "correct the number; pages count from 1"
        raise mt.Rejected(mt.Fault("answer-page-out-of-range", expected, found, field=row.pages_field, todo=todo))
    return row.model_copy(update={"pages": tuple(sorted({shown[page] for page in row.pages})), "window": None})


def joined_fields(row: DocumentQuestion, units: Sequence[mt.Unit]) -> dict[str, object]:
    """Return the fields of a record about joined pages; `row` is the question as the source has it."""
    return {
        "joined_page_list": [str(unit.data["joined"]) for unit in units],
        "document_page_list": list(row.pages),
    }


def pages_in(document: mt.Document, image: int) -> str:
    """Return the first and the last page that an image shows, from 0, such as `4-7`."""
    pages = document.joined[image]
    return f"{pages[0].index}-{pages[-1].index}"


def text_fields(row: DocumentQuestion, units: Sequence[mt.Unit]) -> dict[str, object]:
    """Return the fields with the texts of the shown pages, and the field `evidence_has_text`, which says whether at
    least one shown answer page has text. It is also true if no answer page is shown.
    """
    answers = [u.data["text"] for u in units if u.role == "own" and u.data["index"] in row.pages]
    return {**builders.common.text_fields(units), "evidence_has_text": not answers or any(answers)}


def interleaved(documents: mt.Documents, page: mt.Unit) -> mt.Unit:
    """Return a page as texts with crops of its tables and figures between them."""
    parts = documents.page_parts(page.data["document"], page.data["index"])
    text = "\n".join(mt.MARKER if isinstance(part, mt.Crop) else part for part in parts)
    crops = [part for part in parts if isinstance(part, mt.Crop)]
    return parted_unit(page, text, [crop.path for crop in crops], crops=crops)


def crop_fields(units: Sequence[mt.Unit]) -> dict[str, object]:
    """Return the fields of a record about pages that are texts and crops."""
    crops = [crop for unit in units for crop in unit.data["crops"]]
    listed = [{"image": crop.path, "page": crop.page, "kind": crop.kind, "box": list(crop.box)} for crop in crops]
    return {"page_text_list": [unit.data["text"] for unit in units], "crop_list": listed}


def rebuilt(units: Sequence[mt.Unit], texts: Sequence[str], crops: Sequence[mt.Record]) -> Iterator[mt.Unit]:
    """Yield the pages of a record as texts and crops, given pages as images."""
    paths = (str(crop["image"]) for crop in crops)
    for unit, text in zip(units, texts, strict=True):
        yield parted_unit(unit, text, [next(paths) for _ in range(text.count(mt.MARKER))])


def pages_asked(row: DocumentQuestion, document: mt.Document, options: DocVQAOptions) -> tuple[mt.Page, ...]:
    """Return the pages of the document that may be shown for a question.

    Raises:
        Rejected: an answer page or the window is not in the document; the source has no image of an answer page; an
            answer page is not in the window; only answer pages are to be shown, and there are none.

    """
    count, field = document.page_count, row.pages_field
    if row.pages and row.pages[-1] >= count:
        expected, found = f"pages from 1 to {count} of {document.id}", f"page {row.pages[-1] + 1}"
        raise _refused("answer-page-out-of-range", expected, found, field, "correct the number; pages count from 1")
    if lacking := [page for page in row.pages if page in document.missing]:
        expected, todo = f"page {lacking[0] + 1} of {document.id}", "add the image of this page, or correct the number"
        raise _refused("missing-answer-page", expected, "no image of it among the sources", field, todo)
    if options.context == "oracle":
        if not row.pages:
            todo = "nothing: this context shows answer pages alone; another options.context keeps the question"
            raise _refused("no-answer-pages", "pages to show alone", "none", field, todo)
        return tuple(document.page(page + 1) for page in row.pages)
    if options.span == "document" or row.window is None:
        return document.pages
    first, last = row.window
    todo = "correct it with errata, or set options.span to document"
    if last >= count:
        expected, found = f"a window within pages 1 to {count} of {document.id}", f"{first + 1} to {last + 1}"
        raise _refused("window-out-of-range", expected, found, "start_end_idx", todo)
    if row.pages and not first <= row.pages[0] <= row.pages[-1] <= last:
        expected, found = f"pages from {first + 1} to {last + 1}", f"page {row.pages[0] + 1} to {row.pages[-1] + 1}"
        raise _refused("answer-page-outside-window", expected, found, field, todo)
    return tuple(page for page in document.pages if first <= page.index <= last)


def _refused(reason: str, expected: str, found: str, field: str, todo: str) -> mt.Rejected:
    return mt.Rejected(mt.Fault(reason, expected, found, field=field, todo=todo))


def span_of(row: DocumentQuestion, document: mt.Document, options: DocVQAOptions) -> str:
    """Return the first and the last page that a question is about, from 0, as a text such as `41-70`."""
    is_window = options.span == "window" and row.window is not None
    first, last = row.window if is_window and row.window else (0, document.page_count - 1)
    return f"{first}-{last}"


Rule: TypeAlias = Literal["answer", "best_match", "drawn", "middle", "retrieved"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The pages that every context of a question shows."""

    rule: Rule
    """How the pages were chosen. `answer`: they are the answer pages. `best_match` and `middle`: see the option
    `unanswerable_anchor`. `drawn` replaces `best_match` if no page shares a word with the question. `retrieved`: none
    is chosen, because a context shows the pages that a retriever found."""
    pages: tuple[int, ...]
    """The numbers of the pages in the document, from 0."""

    @property
    def noted(self) -> tuple[str, ...]:
        """One phrase that says how the page of an unanswerable question was chosen; empty for other questions. The
        lock counts such phrases.
        """
        return () if self.rule in ("answer", "retrieved") else (f"unanswerable anchor {self.rule}",)


def choose_anchor(
    row: DocumentQuestion, pages: Sequence[mt.Page], rule: UnanswerableAnchor, documents: mt.Documents, draws: mt.Draws
) -> Anchor:
    """Return the anchor of a question: its answer pages or, without any, one of `pages` that is chosen by `rule`."""
    if row.pages:
        return Anchor("answer", row.pages)
    if rule == "middle":
        return Anchor("middle", (pages[(len(pages) - 1) // 2].index,))
    texts, document = documents.page_texts(row.doc), documents[row.doc]
    if found := mt.rank_texts(row.question, [texts[document.position(page.index)] for page in pages]):
        return Anchor("best_match", (pages[found[0]].index,))
    return Anchor("drawn", (draws.choice("anchor", pages).index,))


@dataclass(frozen=True, slots=True)
class Padding:
    """Yields the pages of other documents, which stand before and after the document that the question is about."""

    own: mt.Document
    evidence: frozenset[str]
    """The keys of the answer pages."""
    others: tuple[mt.Document, ...]
    """The other documents, in the order in which they are taken; some of them may be excluded."""
    units: Callable[[mt.Document], list[mt.Unit]]
    label: Callable[[str], str]
    """Returns what a prompt calls a document, given the document's name."""

    def __call__(self) -> Iterator[mt.Unit]:
        """Yield the pages of the documents, alternately for the left and the right side. If a document may not be
        shown, the field `excluded` of its pages has the reason.
        """
        return mt.alternate_sides(self._documents())

    def _documents(self) -> Iterator[list[mt.Unit]]:
        labels, contents = {self.label(self.own.name)}, {self.own.sha256}
        for other in self.others:
            if reason := self._reason(other, labels, contents):
                yield [replace(unit, excluded=reason) for unit in self.units(other)]
            else:
                labels.add(self.label(other.name))
                contents.add(other.sha256)
                yield self.units(other)

    def _reason(self, other: mt.Document, labels: set[str], contents: set[str]) -> str:
        """Return why a document may not be in the context; empty if it may."""
        if other.sha256 in contents:
            return "page of a document that stands there already"
        if self.label(other.name) in labels:
            return "page of a document with another one's label"
        if any(not self.evidence.isdisjoint(other.keys_at(position)) for position in range(len(other.pages))):
            return "page of a document that repeats an answer page"
        return ""


def labelled_by(row: DocumentQuestion, documents: mt.Documents, options: DocVQAOptions) -> Callable[[str], str]:
    """Return a function that returns what a prompt calls a document, given the document's name."""
    width = options.label_width or row.label_width
    return documents.distinct_labels.__getitem__ if width == "distinct" else mt.label


def evidence_keys(row: DocumentQuestion, document: mt.Document) -> frozenset[str]:
    """Return the keys (see `Document.keys`) of the answer pages, without those of blank pages. `row` has the numbers of
    single pages, also if the pages of the document are joined.
    """
    shown = document.joined or tuple((page,) for page in document.pages)
    keys = (zip(pages, document.keys_at(at), strict=False) for at, pages in enumerate(shown))  # there may be no keys
    return frozenset(key for each in keys for page, key in each if page.index in row.pages and key)


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
