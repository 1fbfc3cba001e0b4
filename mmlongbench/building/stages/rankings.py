"""The rankings stage: ranks pages for every row whose builder asks for it, before the questions are chosen.

So a draft can read the ranking of its row at any time, and nothing depends on the sample or on the lengths. The
manifest names the retriever (`page_retrieval`).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from mmlongbench.building.build_dir import BuildDir, Shard, blocks, places_in
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.lines import RankedPages
from mmlongbench.building.session import Session
from mmlongbench.building.stages.images import make_pages
from mmlongbench.corpus.retrieval.dense import ModelSpec
from mmlongbench.corpus.retrieval.page_queries import AT, MAX_RANKED, PageId, PageQuery, recall_at
from mmlongbench.corpus.retrieval.page_ranking import PageRanker, PictureRanker, TextRanker, WordRanker
from mmlongbench.errors import Rejected
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.manifest.model import DatasetSpec, PageRetrievalSpec
from mmlongbench.release.lock import RetrievalCounts
from mmlongbench.task.sources import Documents


def ranking_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each block of rows, if the task ranks pages."""
    is_asked = session.plans[name].bound.task.page_rankings
    rows = len(session.dataset(name).sources.rows) if is_asked else 0
    return [Shard("rankings", name, block, steps) for block, steps in blocks(rows).items()]


def rank_pages(session: Session, shard: Shard) -> Iterator[RankedPages]:
    """Yield one line for each row of a block for which pages are ranked."""
    dataset = session.dataset(shard.dataset)
    builder, sources = dataset.builder, dataset.sources
    with closing(_open_ranker(dataset, session.build_dir)) as ranker:
        for row in sources.rows[places_in(shard.name)]:
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


def _retrieval_of(spec: DatasetSpec) -> PageRetrievalSpec:
    return spec.page_retrieval or PageRetrievalSpec()  # by default, by BM25


def _open_ranker(dataset: Dataset, build_dir: BuildDir) -> PageRanker:
    """Open the retriever of a dataset.

    Raises:
        ModelError: the model is not on disk and cannot be downloaded, or the extra `dense` is missing.

    """
    given, documents = _retrieval_of(dataset.spec), dataset.sources.documents
    if given.by == "bm25":
        return WordRanker(lambda page: documents.page_text(*page))
    model = ModelSpec(given.named_model, given.revision, given.trust_remote_code)
    if given.by == "text":
        return TextRanker(model, build_dir.page_vectors, lambda page: documents.page_text(*page))

    def name(page: PageId) -> str:
        joined = f" {join.images} {join.pixels}" if (join := dataset.builder.spec.join_pages) else ""
        return f"{documents[page[0]].sha256} {page[1]} {dataset.spec.pages.dpi} {dataset.spec.pages.quality}{joined}"

    def picture(page: PageId) -> bytes:
        document = documents[page[0]]
        shown = document.pages[document.position(page[1])]
        ((_, data),) = make_pages(dataset, dataset.plan.documents[document.name], [shown.path])
        return data

    return PictureRanker(model, build_dir.page_vectors, name, picture)


def retrieval_counts(spec: DatasetSpec, ranks: Iterable[tuple[int, ...]]) -> RetrievalCounts:
    """Return what the lock says about a retriever: recall of the gold pages of the kept questions."""
    known = [each for each in ranks if each]
    recall = {str(k): round(recall_at(known, k), 4) for k in AT}
    pages = sum(map(len, known))
    ranked = sum(rank > 0 for each in known for rank in each)
    return RetrievalCounts(
        by=_retrieval_of(spec).by, questions=len(known), gold_pages=pages, ranked_gold_pages=ranked, recall=recall
    )
