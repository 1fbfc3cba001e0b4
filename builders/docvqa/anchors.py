"""Anchors: the pages that a document is cut around, its answer pages or, without an answer, a page of the same kind.

A context that shows the middle of the document whenever there is no answer tells which questions have one: fewer words
of the question stand on its pages than around an answer. So an unanswerable question is asked around the page that
matches it best, as an answerable one is asked around the page that answers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import mmlongbench as mm
from builders.docvqa.options import UnanswerableAnchor
from builders.docvqa.rows import DocumentQuestion

Rule: TypeAlias = Literal["answer", "best_match", "drawn", "middle"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The pages that every context of a question shows."""

    rule: Rule
    """How they were chosen: `drawn` stands for `best_match` where no page shares a word with the question."""
    pages: tuple[int, ...]
    """Their numbers in the document, from 0."""

    @property
    def noted(self) -> tuple[str, ...]:
        """What the lock counts of it: the rule of an unanswerable question."""
        return () if self.rule == "answer" else (f"unanswerable anchor {self.rule}",)


def choose_anchor(
    row: DocumentQuestion, pages: Sequence[mm.Page], rule: UnanswerableAnchor, documents: mm.Documents, draws: mm.Draws
) -> Anchor:
    """Return the anchor of a question among the pages that it may be shown: its answer pages where it has any."""
    if row.pages:
        return Anchor("answer", row.pages)
    if rule == "middle":
        return Anchor("middle", (pages[(len(pages) - 1) // 2].index,))
    texts = documents.page_texts(row.doc)
    if found := mm.rank_texts(row.question, [texts[page.index] for page in pages]):
        return Anchor("best_match", (pages[found[0]].index,))
    return Anchor("drawn", (draws.choice("anchor", pages).index,))
