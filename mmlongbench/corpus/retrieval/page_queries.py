"""What a builder asks a page retriever, and what the retriever finds. Values only: nothing here ranks a page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

PageId: TypeAlias = tuple[str, int]
"""A page: the id of its document, and its number from 0."""
AT = (1, 5, 10)
"""The numbers of pages at which recall is stated."""
MAX_RANKED = 1000
"""The maximum number of pages that a ranking keeps."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A search for pages, which a builder declares for a row (`Builder.page_query`)."""

    text: str
    """The words that are searched for."""
    documents: tuple[str, ...] = ()
    """The ids of the documents whose pages are ranked; empty: all documents of the dataset."""
    gold: tuple[PageId, ...] = ()
    """The pages that hold the answer, by which recall is measured."""


@dataclass(frozen=True, slots=True)
class PageRanking:
    """The pages that a retriever found for a row."""

    pages: tuple[PageId, ...]
    """The pages, the best first, at most `MAX_RANKED`. Pages without text are not among those that are ranked by
    text."""
    gold_ranks: tuple[int, ...] = ()
    """The rank of each gold page of the query among all ranked pages, from 1; 0 if it is not ranked."""


def recall_at(ranks: Iterable[Sequence[int]], k: int) -> float:
    """Return the mean share of gold pages among the first k pages, over the questions that have gold pages.

    Args:
        ranks: the ranks of the gold pages of each question, from 1; 0 for a page that is not ranked.
        k: the number of pages.

    >>> recall_at([(1,), (7, 2), (0,), ()], 5)
    0.5

    """
    found = [sum(1 <= rank <= k for rank in each) / len(each) for each in ranks if each]
    return sum(found) / len(found) if found else 0.0


def said_recall(recall: Mapping[str, float]) -> str:
    """Return recall figures in words.

    >>> said_recall({"1": 0.5, "10": 1.0})
    'recall@1 0.500, @10 1.000'
    """
    return "recall" + ", ".join(f"@{k} {share:.3f}" for k, share in recall.items())
