"""The command `corpus search`: finds passages of a corpus by words, as the search for hard negatives does."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.corpus.retrieval.passages import Passage, Passages

CANDIDATES = 200
"""The minimum number of passages that --rerank orders by meaning."""
EMBEDDINGS = "embeddings"
"""The name of the folder for passage vectors, which is inside the folder of the corpus."""
SHOWN = 200
"""The maximum characters of a passage on the screen."""


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("query")
@click.option("-k", type=click.IntRange(min=1), default=20, show_default=True, help="How many passages to show.")
@click.option("--rerank", is_flag=True, help=f"Order the best {CANDIDATES} by meaning; needs mmlongbench[dense].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def search(folder: Path, query: str, k: int, rerank: bool, as_json: bool) -> None:
    """Search the corpus in DIR for the words of QUERY; the best passage comes first.

    The index is built at the first search. Without --rerank the score is that of BM25, with it the cosine of the
    embeddings.
    """
    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index
    from mmlongbench.io.progress import Progress

    corpus = Corpus.open(folder)
    index = find_index(corpus, folder / FOLDER, Progress(False if as_json else None))
    hits = index.search(query, max(k, CANDIDATES) if rerank else k)
    found: list[tuple[Passage, float]] = [(corpus.passage(hit.number), hit.score) for hit in hits]
    if rerank:
        found = _reranked(query, [passage for passage, _ in found], folder / EMBEDDINGS)
    _show(query, found[:k], corpus, as_json)


def _reranked(query: str, passages: "list[Passage]", cache: Path) -> "list[tuple[Passage, float]]":
    from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker

    reranker = Reranker.open(ModelSpec(), cache)
    try:
        return [(passages[place], cosine) for place, cosine in reranker.scored(query, passages)]
    finally:
        reranker.close()


def _show(query: str, found: "list[tuple[Passage, float]]", corpus: "Passages", as_json: bool) -> None:
    if as_json:
        hits = [{"id": p.id, "title": p.title, "text": p.text, "score": round(score, 4)} for p, score in found]
        click.echo(json.dumps({"query": query, "hits": hits}))
        return
    for rank, (passage, score) in enumerate(found, 1):
        cut = passage.text if len(passage.text) <= SHOWN else f"{passage.text[:SHOWN].rstrip()} …"
        say(f"{rank:>4}  {score:8.4f}  {passage.id}  {passage.title}")
        say(f"      {cut}")
    if not found:
        say(f"none of the {len(corpus):,} passages shares a word with {query!r}")
