"""Which pages a context shows (`CONTEXTS`), and as what (`FORMS`).

A document is cut around its anchor: the answer pages or, if the question has no answer, one page that takes their
place. If that page were always in the middle of the document, a model could recognise unanswerable questions, because
fewer words of the question occur there than around an answer. So, by default, the context of an unanswerable question
shows the page that matches the question best.

Other contexts are made of retrieved pages: those that a retriever ranks first, or the answer pages among hard
negatives. Pages are ranked before anything is packed, and the packer takes ranked pages while they fit, so a longer
context shows what a shorter one shows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import builders.common
import mmlongbench.task as mt
from builders.common import parted_unit, refused, with_text
from builders.docvqa.rows import DocumentQuestion, DocVQAOptions

_LABELS = {"none": "", "index": " (page {0})", "printed": " (page {1})"}
"""The text after a document's name, by `options.page_label`: {0} is the number of the page from 0, {1} from 1."""


def page_unit(path: str, index: int, label: str, role: mt.advanced.Role, document: str | None = None) -> mt.Unit:
    """Return a page as an image, after the line that names its document; `index` counts from 0. `document` is what the
    line calls the document; None: the first characters of its name.
    """
    return builders.common.page_unit(path, index, role, (0, index), _LABELS[label].format(index, index + 1), document)


# --- the forms of pages -----------------------------------------------------------------------------------------------


def with_crops(documents: mt.advanced.Documents, page: mt.Unit) -> mt.Unit:
    """Return a page as its text with crops of its tables and figures in it."""
    parts = documents.page_parts(page.data["document"], page.data["index"])
    text = "\n".join(mt.advanced.MARKER if isinstance(part, mt.advanced.Crop) else part for part in parts)
    crops = [part for part in parts if isinstance(part, mt.advanced.Crop)]
    return parted_unit(page, text, [crop.path for crop in crops], crops=crops)


def _text_fields(asked: "Asked", units: Sequence[mt.Unit]) -> dict[str, object]:
    answers = [u.data["text"] for u in units if u.role == "own" and u.data["index"] in asked.row.pages]
    return {**builders.common.text_fields(units), "evidence_has_text": not answers or any(answers)}


def _crop_fields(asked: "Asked", units: Sequence[mt.Unit]) -> dict[str, object]:
    crops = [crop for unit in units for crop in unit.data["crops"]]
    listed = [{"image": crop.path, "page": crop.page, "kind": crop.kind, "box": list(crop.box)} for crop in crops]
    return {"page_text_list": [unit.data["text"] for unit in units], "crop_list": listed}


def _joined_fields(asked: "Asked", units: Sequence[mt.Unit]) -> dict[str, object]:
    shown = [asked.documents[unit.data["document"]].joined[unit.data["index"]] for unit in units]
    ranges = [f"{pages[0].index}-{pages[-1].index}" for pages in shown]
    return {"joined_page_list": ranges, "document_page_list": list(asked.source.pages)}


class Form(NamedTuple):
    """What contexts show of pages; by default, their images."""

    unit: Callable[[mt.advanced.Documents, mt.Unit], mt.Unit] = lambda documents, page: page
    """Returns a page in this form; the page that it is given is an image."""
    fields: Callable[["Asked", Sequence[mt.Unit]], dict[str, object]] = lambda asked, units: {}
    """Returns the fields of a record about the form of its pages."""


FORMS: Mapping[str, Form] = {
    "image": Form(),
    "text": Form(with_text, _text_fields),
    "interleaved": Form(with_crops, _crop_fields),
    "joined": Form(fields=_joined_fields),
}
"""The forms by `options.pages_as`."""


# --- a question and the pages that it may show ------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A question with its opened sources."""

    source: DocumentQuestion
    """The question as the reader made it."""
    row: DocumentQuestion
    """The question; if pages are joined, its pages are the images that show them, and it has no window."""
    documents: mt.advanced.Documents
    options: DocVQAOptions

    @classmethod
    def of(cls, row: DocumentQuestion, documents: mt.advanced.Documents, options: DocVQAOptions) -> "Asked":
        """Open a question, or raise `Rejected` if no joined image shows an answer page."""
        own = documents[row.doc]
        if not own.joined:
            return cls(row, row, documents, options)
        images = {page.index: image for image, pages in enumerate(own.joined) for page in pages}
        if lacking := [page for page in row.pages if page not in images]:
            expected, found = f"a page of {own.id} of which there is an image", f"page {lacking[0] + 1}"
            todo = "correct the number; pages count from 1"
            raise refused("answer-page-out-of-range", expected, found, row.pages_field, todo)
        pages = tuple(sorted({images[page] for page in row.pages}))
        return cls(row, row.model_copy(update={"pages": pages, "window": None}), documents, options)

    @cached_property
    def own(self) -> mt.Document:
        return self.documents[self.row.doc]

    def label(self, document: mt.Document) -> str:
        is_distinct = (self.options.label_width or self.row.label_width) == "distinct"
        return self.documents.distinct_labels[document.name] if is_distinct else mt.advanced.label(document.name)

    def unit(self, document: mt.Document, page: mt.Page) -> mt.Unit:
        """Return a page of a document in the form of the options."""
        is_own, options, label = document.id == self.own.id, self.options, self.label(document)
        unit = page_unit(page.path, page.index, options.page_label, "own" if is_own else "padding", label)
        excluded = "" if is_own else document.unfit(page)
        unit = replace(unit, excluded=excluded, data={**unit.data, "document": document.id})
        # the draft's rendering makes texts of pages that are chosen as images
        return unit if options.renders_text else FORMS[options.pages_as].unit(self.documents, unit)

    @cached_property
    def keys(self) -> Mapping[int, str]:
        """The key (see `Document.keys`) of each page of the document by its number, also if pages are joined."""
        shown = self.own.joined or tuple((page,) for page in self.own.pages)
        keys = (zip(pages, self.own.keys_at(place), strict=False) for place, pages in enumerate(shown))
        return {page.index: key for each in keys for page, key in each}  # there may be no keys

    @cached_property
    def evidence(self) -> frozenset[str]:
        """The keys of the answer pages that are not blank."""
        return frozenset(key for page, key in self.keys.items() if page in self.source.pages and key)

    def blank_answer_pages(self) -> tuple[str, ...]:
        """Return a note for each answer page of one colour; raise `Rejected` if an answer page is damaged."""
        row, own = self.source, self.own
        for page in row.pages:
            if page in own.damaged:
                expected = f"page {page + 1} of {own.id} to be drawn whole"
                todo = "replace the PDF with a whole one (print it to a new PDF, if a viewer shows the page), or "
                raise refused("damaged-answer-page", expected, own.damaged[page], row.pages_field, f"{todo}exclude it")
        blank = [page for page in row.pages if self.keys.get(page) == ""]
        return tuple(f"answer page of one colour ({own.id}, page {page + 1})" for page in blank)

    def pages(self) -> tuple[mt.Page, ...]:
        """Return the pages of the document that may be shown; raise `Rejected` if an answer page is not one of them."""
        row, own, options = self.row, self.own, self.options
        count, field = own.page_count, row.pages_field
        if row.pages and row.pages[-1] >= count:
            expected, found = f"pages from 1 to {count} of {own.id}", f"page {row.pages[-1] + 1}"
            raise refused("answer-page-out-of-range", expected, found, field, "correct the number; pages count from 1")
        if lacking := [page for page in row.pages if page in own.missing]:
            expected, found = f"page {lacking[0] + 1} of {own.id}", "no image of it among the sources"
            todo = "add the image of this page, or correct the number"
            raise refused("missing-answer-page", expected, found, field, todo)
        if options.context == "oracle":
            if not row.pages:
                todo = "nothing: this context shows answer pages alone; another options.context keeps the question"
                raise refused("no-answer-pages", "pages to show alone", "none", field, todo)
            return tuple(own.page(page + 1) for page in row.pages)
        if options.span == "document" or row.window is None:
            return own.pages
        first, last = row.window
        todo = "correct it with errata, or set options.span to document"
        if last >= count:
            expected, found = f"a window within pages 1 to {count} of {own.id}", f"{first + 1} to {last + 1}"
            raise refused("window-out-of-range", expected, found, "start_end_idx", todo)
        if row.pages and not first <= row.pages[0] <= row.pages[-1] <= last:
            expected, found = f"pages from {first + 1} to {last + 1}", f"page {row.pages[0] + 1} to {row.pages[-1] + 1}"
            raise refused("answer-page-outside-window", expected, found, field, todo)
        return tuple(page for page in own.pages if first <= page.index <= last)

    def query(self) -> mt.advanced.PageQuery:
        """Return the search for the pages of the question; raise `Rejected` as `pages` does, or if there are no answer
        pages to put among hard negatives.
        """
        self.pages()
        if self.options.context == "gold_and_distractors" and not self.row.pages:
            todo = "nothing: context: retrieved keeps the question"
            raise refused("no-answer-pages", "answer pages to put among others", "none", self.row.pages_field, todo)
        within = (self.own.id,) if self.options.scope == "document" else ()
        return mt.advanced.PageQuery(self.row.question, within, tuple((self.own.id, page) for page in self.row.pages))


# --- the kinds of contexts --------------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """The pages of a context, as units, and how they were chosen."""

    rule: str
    """How the pages were chosen that every context shows: `answer` pages, or by the option `unanswerable_anchor`.
    `drawn`: no page shares a word with the question. `retrieved`: none is chosen, because a retriever found them."""
    anchor: tuple[int, ...]
    """The numbers of these pages, from 0."""
    required: tuple[mt.Unit, ...]
    rest: tuple[mt.InOrder | Callable[[], Iterable[mt.Unit]], ...]
    """The orders in which other pages are taken, one after another."""
    gold_ranks: tuple[int, ...] = ()
    """The ranks of the answer pages, if pages are retrieved (see `PageRanking.gold_ranks`)."""


def document_alone(asked: Asked, sources: mt.Sources, draws: mt.Draws) -> Chosen:
    """Return the pages of the document that may be shown, from the anchor outwards."""
    row, own, documents, pages = asked.row, asked.own, asked.documents, asked.pages()
    rule, anchor = "answer", row.pages
    if not anchor and asked.options.unanswerable_anchor == "middle":
        rule, anchor = "middle", (pages[(len(pages) - 1) // 2].index,)
    elif not anchor:
        texts = documents.page_texts(row.doc)
        if ranked := mt.advanced.rank_texts(row.question, [texts[own.position(page.index)] for page in pages]):
            rule, anchor = "best_match", (pages[ranked[0]].index,)
        else:
            rule, anchor = "drawn", (draws.choice("anchor", pages).index,)
    kept = [place for place, page in enumerate(pages) if page.index in anchor]
    required, rest = mt.inside_out([asked.unit(own, page) for page in pages], kept)
    return Chosen(rule, anchor, required, (rest,))


def among_others(asked: Asked, sources: mt.Sources, draws: mt.Draws) -> Chosen:
    """Return the pages of the document, and then those of other documents, alternately before and after it. If a
    document may not be shown, the field `excluded` of its pages has the reason.
    """
    own, documents = asked.own, asked.documents
    # drawn only when their turn comes, since there may be very many
    others = cache(lambda: draws.order("padding", documents.ids))

    def padding() -> Iterator[list[mt.Unit]]:
        labels, contents = {asked.label(own)}, {own.sha256}
        for other in (documents[id] for id in others() if id != own.id):
            units, reason = [asked.unit(other, page) for page in other.pages], ""
            if other.sha256 in contents:
                reason = "page of a document that stands there already"
            elif asked.label(other) in labels:
                reason = "page of a document with another one's label"
            elif any(not asked.evidence.isdisjoint(other.keys_at(place)) for place in range(len(other.pages))):
                reason = "page of a document that repeats an answer page"
            else:
                labels.add(asked.label(other))
                contents.add(other.sha256)
            yield [replace(unit, excluded=reason) for unit in units] if reason else units

    chosen = document_alone(asked, sources, draws)
    return chosen._replace(rest=(*chosen.rest, lambda: mt.alternate_sides(padding())))


def ranked_pages(asked: Asked, sources: mt.Sources, draws: mt.Draws) -> Chosen:
    """Return the pages that a retriever ranked first, and with them the answer pages if they are put in. If none is put
    in, the page that was ranked first is required. A question is rejected if no page was ranked that may be shown, or
    if there are fewer hard negatives than wanted.
    """
    asked.query()
    row, own, documents, options = asked.row, asked.own, asked.documents, asked.options
    ranking = sources.page_ranking(row.id)
    ranks = {page: rank for rank, page in enumerate(ranking.pages, 1)}
    named = documents.ids if options.scope == "dataset" else ()
    order = {id: place for place, id in enumerate(draws.order("documents", named))}

    def unit(id: mt.advanced.PageId) -> mt.Unit:
        document = documents[id[0]]
        page = asked.unit(document, document.pages[document.position(id[1])])
        place = (ranks[id],) if options.page_order == "rank" else (order.get(id[0], 0), id[1])
        return replace(page, place=place, data={**page.data, "rank": ranks.get(id, 0)})

    is_among_distractors = options.context == "gold_and_distractors"
    is_put_in = is_among_distractors or options.gold_pages == "put_in"
    required = [(own.id, page) for page in row.pages] if is_put_in else []
    most: int | None = None  # as many as fit
    if is_among_distractors:
        most = draws.integer("distractors", *options.distractors)
    elif options.top_k is not None:
        most = max(0, options.top_k - len(required))

    labels = {asked.label(own): own.id}
    units, allowed = list[mt.Unit](), list[mt.Unit]()
    for id in (id for id in ranking.pages if id not in required):
        if len(allowed) == most:
            break
        other, page, reason = documents[id[0]], unit(id), ""
        if other.id != own.id:
            if other.sha256 == own.sha256:
                reason = "page of a copy of the document"
            elif not asked.evidence.isdisjoint(other.keys_at(other.position(id[1]))):
                reason = "page that repeats an answer page"
            elif labels.setdefault(asked.label(other), other.id) != other.id:
                reason = "page of a document with another one's label"
        units.append(replace(page, excluded=reason) if reason else page)
        if not units[-1].excluded:
            allowed.append(units[-1])

    if not ranking.pages or not (required or allowed):
        where = f"of {own.id}" if options.scope == "document" else "of any document"
        found_none = f"no page {where} that may be shown shares a word with the question, or has text"
        todo = "set pages.ocr to all, or page_retrieval to {by: image, model: …}"
        raise refused("no-ranked-pages", "pages ranked for the question", found_none, "", todo)
    if is_among_distractors and len(allowed) < options.distractors[0]:
        expected = f"at least {options.distractors[0]} pages beside the answer pages"
        raise refused("too-few-distractors", expected, f"{len(allowed)} ranked pages", "", "set options.distractors")
    first = tuple(map(unit, required)) or (allowed[0],)
    rest = mt.InOrder(tuple(unit for unit in units if unit not in first))
    rule, anchor = ("answer", row.pages) if required else ("retrieved", ())
    return Chosen(rule, anchor, first, (rest,), ranking.gold_ranks)


CONTEXTS: Mapping[str, Callable[[Asked, mt.Sources, mt.Draws], Chosen]] = {
    "padded": among_others,
    "natural": document_alone,
    "oracle": document_alone,
    "retrieved": ranked_pages,
    "gold_and_distractors": ranked_pages,
}
"""How the pages of each kind of context are chosen. `oracle` is the document of which only answer pages are shown."""
