"""The table of kinds: the functions that make candidates, in the order in which they are asked."""

from collections.abc import Callable, Iterator, Sequence

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.kinds import absent, across, cells, computed, places

MAKERS: Sequence[Callable[[Document, Draws], Iterator[Candidate]]] = (
    cells.values,
    cells.rows,
    cells.pairs,
    computed.changes,
    computed.sums,
    computed.largest,
    computed.counts,
    across.pairs,
    across.differences,
    across.joins,
    places.caption_numbers,
    places.caption_pages,
    places.caption_counts,
    places.caption_headings,
    places.heading_titles,
    places.heading_numbers,
    places.heading_pages,
    places.plain_heading_pages,
    places.subsections,
)


def candidates_of(document: Document) -> list[Candidate]:
    """Return all candidates of a document; the edits without an answer come last."""
    draws = Draws(("questions from the layer", document.sha256))
    found = [candidate for make in MAKERS for candidate in make(document, draws)]
    return [*found, *(each for each in absent.edits(document, draws, found) if each is not None)]
