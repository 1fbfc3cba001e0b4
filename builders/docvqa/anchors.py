"""Anchors: the pages that a document is cut around: its answer pages or, without an answer, a page of the same kind.

If questions without an answer always showed the middle of the document, readers could tell them from others, because
fewer words of the question occur there than around an answer. So an unanswerable question shows the page that matches
it best, just as an answerable one shows the page that answers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import mmlongbench.task as mt
from builders.docvqa.options import UnanswerableAnchor
from builders.docvqa.rows import DocumentQuestion

Rule: TypeAlias = Literal["answer", "best_match", "drawn", "middle"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The pages that every context of a question shows."""

    rule: Rule
    """How the pages were chosen: `drawn` replaces `best_match` if no page shares a word with the question."""
    pages: tuple[int, ...]
    """The numbers of the pages in the document, from 0."""

    @property
    def noted(self) -> tuple[str, ...]:
        """The phrases that the lock counts: the rule of an unanswerable question."""
        return () if self.rule == "answer" else (f"unanswerable anchor {self.rule}",)


def choose_anchor(
    row: DocumentQuestion, pages: Sequence[mt.Page], rule: UnanswerableAnchor, documents: mt.Documents, draws: mt.Draws
) -> Anchor:
    """Return the anchor of a question among the pages that may be shown: its answer pages if it has any."""
    if row.pages:
        return Anchor("answer", row.pages)
    if rule == "middle":
        return Anchor("middle", (pages[(len(pages) - 1) // 2].index,))
    texts = documents.page_texts(row.doc)
    if found := mt.rank_texts(row.question, [texts[page.index] for page in pages]):
        return Anchor("best_match", (pages[found[0]].index,))
    return Anchor("drawn", (draws.choice("anchor", pages).index,))
