"""Chooses the pages of a context: which pages of the question's document may be shown, around which of them the
document is cut, and which other documents are put beside it.

A document is cut around its anchor: the answer pages or, if the question has no answer, one page that takes their
place. If that page were always in the middle of the document, a model could recognise unanswerable questions, because
fewer words of the question occur there than around an answer. So, by default, the context of an unanswerable question
shows the page that matches the question best.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import mmlongbench.task as mt
from builders.docvqa.options import DocVQAOptions, UnanswerableAnchor
from builders.docvqa.rows import DocumentQuestion


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
