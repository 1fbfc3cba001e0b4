"""The rankings stage: ranks pages for every row whose builder asks for it, before the questions are chosen.

So a draft can read the ranking of its row at any time, and nothing depends on the sample or on the lengths. The
manifest names the retriever (`page_retrieval`); by default, it is BM25.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing

from mmlongbench.building.build_dir import BuildDir, Shard, block_shards, places_in
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import RankedPages
from mmlongbench.building.stages.images import make_pages
from mmlongbench.corpus.retrieval.dense import ModelSpec
from mmlongbench.corpus.retrieval.pages import (
    AT,
    MAX_RANKED,
    PageId,
    PageQuery,
    PageRanker,
    PictureRanker,
    TextRanker,
    WordRanker,
    recall_at,
)
from mmlongbench.errors import Rejected
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.manifest.model import DatasetSpec, PageRetrievalSpec
from mmlongbench.release.lock import RetrievalCounts


def ranking_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each block of rows, if the task ranks pages."""
    is_asked = session.plans[name].bound.task.page_rankings
    return block_shards("rankings", name, len(session.dataset(name).sources.rows) if is_asked else 0)


def rank_pages(session: Session, shard: Shard) -> Iterator[RankedPages]:
    """Yield one line for each row of a block for which pages are ranked."""
    dataset = session.dataset(shard.dataset)
    builder, sources, documents = dataset.builder, dataset.sources, dataset.sources.documents
    with closing(_ranker(dataset, session.build_dir)) as ranker:
        for row in sources.rows[places_in(shard.name)]:
            try:
                with calling("builder", dataset.spec.builder, "page_query()", row):
                    query = builder.page_query(row, sources)
                    if query is None:
                        continue
                    if not isinstance(query, PageQuery):
                        fault = f"returned a {type(query).__name__}, expected mt.advanced.PageQuery or None"
                        raise broken("builder", dataset.spec.builder, "page_query()", fault, row)
                    ids = query.documents or documents.ids
                    pages = [(id, page.index) for id in ids for page in documents[id].pages]
            except Rejected:  # its draft is rejected for the same reason
                continue
            ranked = [pages[place] for place in ranker.rank(query.text, pages)]
            ranks = {page: rank for rank, page in enumerate(ranked, 1)}
            yield RankedPages(row.id, ranked[:MAX_RANKED], [ranks.get(page, 0) for page in query.gold])


def _ranker(dataset: Dataset, build_dir: BuildDir) -> PageRanker:
    spec, documents = dataset.spec.page_retrieval or PageRetrievalSpec(), dataset.sources.documents
    if spec.by == "bm25":
        return WordRanker(lambda page: documents.page_text(*page))
    model = ModelSpec(spec.named_model, spec.revision, spec.trust_remote_code)
    if spec.by == "text":
        return TextRanker(model, build_dir.root / "page-vectors", lambda page: documents.page_text(*page))

    def name(page: PageId) -> str:
        joined = f" {join.images} {join.pixels}" if (join := dataset.builder.spec.join_pages) else ""
        return f"{documents[page[0]].sha256} {page[1]} {dataset.spec.pages.dpi} {dataset.spec.pages.quality}{joined}"

    def picture(page: PageId) -> bytes:
        document = documents[page[0]]
        shown = document.pages[document.position(page[1])]
        ((_, data),) = make_pages(dataset, dataset.plan.documents[document.name], [shown.path])
        return data

    return PictureRanker(model, build_dir.root / "page-vectors", name, picture)


def retrieval_counts(spec: DatasetSpec, ranks: Iterable[tuple[int, ...]]) -> RetrievalCounts:
    """Return what the lock says about a retriever, from the ranks of the gold pages of each kept question."""
    known = [of_question for of_question in ranks if of_question]
    pages = sum(map(len, known))
    return RetrievalCounts(
        by=(spec.page_retrieval or PageRetrievalSpec()).by,
        questions=len(known),
        gold_pages=pages,
        ranked_gold_pages=sum(rank > 0 for of_question in known for rank in of_question),
        recall={str(k): round(recall_at(known, k), 4) for k in AT},
    )
