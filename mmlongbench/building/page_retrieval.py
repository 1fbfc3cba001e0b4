"""Opens the retriever of pages that a manifest names (`page_retrieval`), and measures what it found."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mmlongbench.building.page_making import make_pages
from mmlongbench.corpus.retrieval.pages import AT, PageId, recall_at
from mmlongbench.manifest.model import DatasetSpec, PageRetrievalSpec
from mmlongbench.release.lock import RetrievalCounts

if TYPE_CHECKING:
    from mmlongbench.building.build_dir import BuildDir
    from mmlongbench.building.dataset import Dataset
    from mmlongbench.corpus.retrieval.pages import PageRanker


def retrieval_of(spec: DatasetSpec) -> PageRetrievalSpec:
    """Return how the pages of a dataset are ranked; by default, by BM25."""
    return spec.page_retrieval or PageRetrievalSpec()


def open_ranker(dataset: "Dataset", build_dir: "BuildDir") -> "PageRanker":
    """Open the retriever of a dataset.

    Raises:
        ModelError: the model is not on disk and cannot be downloaded, or the extra `dense` is missing.

    """
    from mmlongbench.corpus.retrieval.dense import ModelSpec
    from mmlongbench.corpus.retrieval.pages import PictureRanker, TextRanker, WordRanker

    given, documents = retrieval_of(dataset.spec), dataset.sources.documents
    if given.by == "bm25":
        return WordRanker(lambda page: documents.page_text(*page))
    model = ModelSpec(given.named_model, given.revision, given.trust_remote_code)
    if given.by == "text":
        return TextRanker(model, build_dir.page_vectors, lambda page: documents.page_text(*page))

    def name(page: PageId) -> str:
        joined = f" {join.images} {join.pixels}" if (join := dataset.builder.spec.join_pages) else ""
        return f"{documents[page[0]].sha256} {page[1]} {dataset.spec.pages.dpi} {dataset.spec.pages.quality}{joined}"

    return PictureRanker(model, build_dir.page_vectors, name, lambda page: _picture(dataset, page))


def _picture(dataset: "Dataset", page: PageId) -> bytes:
    """Return the picture of a page as it will be released."""
    document = dataset.sources.documents[page[0]]
    shown = document.pages[document.position(page[1])]
    file = dataset.plan.documents[document.name]
    ((_, _, data),) = make_pages(file.pages, document, [shown.path], dataset.spec, dataset.builder.spec.join_pages)
    return data


def retrieval_counts(spec: DatasetSpec, ranks: Iterable[tuple[int, ...]]) -> RetrievalCounts:
    """Return what the lock says about a retriever: recall of the gold pages of the kept questions."""
    known = [each for each in ranks if each]
    recall = {str(k): round(recall_at(known, k), 4) for k in AT}
    pages = sum(map(len, known))
    ranked = sum(rank > 0 for each in known for rank in each)
    return RetrievalCounts(
        by=retrieval_of(spec).by, questions=len(known), gold_pages=pages, ranked_gold_pages=ranked, recall=recall
    )
