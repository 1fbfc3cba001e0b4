"""Opens the search of a corpus with the index and the reranker that a manifest names; rankings are kept on disk."""

from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.errors import BuildError
from mmlongbench.manifest.model import RetrievalSpec

if TYPE_CHECKING:
    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.retrieval.passages import Index
    from mmlongbench.corpus.retrieval.rankings import Rankings, Search

EMBEDDINGS, RANKINGS = "embeddings", "rankings"
"""Names of folders below `CorpusPlan.cache`."""


def open_search(plan: DatasetPlan) -> "Search":
    """Open the search for hard negatives of a dataset (see `Session.search`)."""
    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.retrieval.rankings import Search

    if plan.corpus is None:
        raise BuildError(f"dataset {plan.spec.name!r} has no corpus: name one in its manifest (`corpus: …`)")
    corpus, retrieval = Corpus.open(plan.corpus.folder), plan.spec.retrieval
    return Search(corpus, open_rankings(corpus, retrieval, plan.corpus.cache))


def open_rankings(corpus: "Corpus", spec: RetrievalSpec, cache: Path) -> "Rankings":
    """Open the rankings of a corpus; the folder `cache` keeps the rankings of earlier queries.

    Raises:
        SourceError: the index is broken or belongs to another corpus.
        ModelError: the reranker's model is not on disk, or the extra `dense` is missing.

    """
    from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker
    from mmlongbench.corpus.retrieval.rankings import Rankings

    reranker = None
    if spec.reranker is not None:
        model = ModelSpec(spec.reranker.model, spec.reranker.revision, spec.reranker.trust_remote_code)
        reranker = Reranker.open(model, cache / EMBEDDINGS)
    return Rankings(cache / RANKINGS, corpus, _index(corpus, spec.engine, cache), spec.k, reranker)


def _index(corpus: "Corpus", engine: str, cache: Path) -> "Index":
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index

    if engine == "tantivy":
        return find_index(corpus, cache / FOLDER)
    from mmlongbench.corpus.retrieval.bm25 import RankBm25Index

    return RankBm25Index(corpus)
