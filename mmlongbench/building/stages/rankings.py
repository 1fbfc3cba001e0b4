"""The rankings stage: ranks pages for every row whose builder asks for it, before the questions are chosen.

So a draft can read the ranking of its row at any time, and nothing depends on the sample or on the lengths.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.lines import RankedPages
from mmlongbench.building.page_retrieval import open_ranker
from mmlongbench.building.stages.records import block_places, blocks_of, questions_of
from mmlongbench.corpus.retrieval.pages import MAX_RANKED, PageId, PageQuery
from mmlongbench.errors import Rejected
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.task.sources import Documents

if TYPE_CHECKING:
    from mmlongbench.building.session import Session


def ranking_shards(session: "Session", name: str) -> list[Shard]:
    """Return one shard for each block of rows, if the task ranks pages."""
    rows = len(session.dataset(name).sources.rows) if session.task(name).page_rankings else 0
    return [Shard("rankings", name, block, questions_of(block, rows)) for block in blocks_of(rows)]


def rank_pages(session: "Session", shard: Shard) -> Iterator[RankedPages]:
    """Yield one line for each row of a block for which pages are ranked."""
    dataset = session.dataset(shard.dataset)
    builder, sources = dataset.builder, dataset.sources
    with closing(open_ranker(dataset, session.build_dir)) as ranker:
        for row in sources.rows[block_places(shard.name)]:
            try:
                with calling("builder", dataset.spec.builder, "page_query()", row):
                    query = builder.page_query(row, sources)
                    if not isinstance(query, PageQuery | None):
                        fault = f"returned a {type(query).__name__}, expected mt.PageQuery or None"
                        raise broken("builder", dataset.spec.builder, "page_query()", fault, row)
                    pages = [] if query is None else pages_of(sources.documents, query.documents)
            except Rejected:  # its draft is rejected for the same reason
                continue
            if query is not None:
                found = [pages[place] for place in ranker.rank(query.text, pages)]
                ranks = {page: rank for rank, page in enumerate(found, 1)}
                yield RankedPages(row.id, found[:MAX_RANKED], [ranks.get(page, 0) for page in query.gold])


def pages_of(documents: Documents, ids: Sequence[str]) -> list[PageId]:
    """Return the pages of some documents, in order; of all documents if `ids` is empty."""
    return [(id, page.index) for id in ids or documents.ids for page in documents[id].pages]
