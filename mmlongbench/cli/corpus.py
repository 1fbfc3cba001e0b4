"""`mmlongbench corpus`: cuts articles into passages."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.corpus.corpus import Corpus, CorpusInfo, Passage
    from mmlongbench.corpus.cutting import Mode

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
    _show_search(query, found[:k], corpus, as_json)


def _reranked(query: str, passages: "list[Passage]", cache: Path) -> "list[tuple[Passage, float]]":
    from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker

    reranker = Reranker.open(ModelSpec(), cache)
    try:
        return [(passages[place], cosine) for place, cosine in reranker.scored(query, passages)]
    finally:
        reranker.close()


def _show_search(query: str, found: "list[tuple[Passage, float]]", corpus: "Corpus", as_json: bool) -> None:
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


_FORMATS = ("kilt", "jsonl", "tsv", "parquet", "dataset", "hub", "folder")


@click.group()
def corpus() -> None:
    """Cut articles into passages, and search them."""


@corpus.command("build")
@click.argument("source")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder of the corpus, new or empty.")
@click.option(
    "--mode",
    type=click.Choice(["sentences", "words"]),
    default="sentences",
    show_default=True,
    help="Passages of whole sentences below 100 words, like KILT, or of exactly 100 words, like DPR.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(_FORMATS),
    help="The source's format; by default it is found from the content.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Keep only the first N articles.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
def build(
    source: str, out: Path, mode: "Mode", kind: str | None, limit: int | None, as_json: bool, quiet: bool
) -> None:
    """Cut the articles of SOURCE into passages and store them in a folder.

    SOURCE is KILT's knowledge source, JSON lines, a DPR-style TSV (each plain or gzipped), Parquet, a saved Hugging
    Face dataset or its name on the hub, or a folder of .txt and .pdf files. Unusable articles are counted and listed in
    a file.
    """
    from mmlongbench.corpus.build import make_corpus
    from mmlongbench.io.progress import Progress

    progress = Progress(False if quiet or as_json else None)
    info, was_complete = make_corpus(source, out, mode, kind, limit, progress)
    if as_json:
        click.echo(json.dumps({"out": str(out), "was_complete": was_complete, **info.model_dump()}))
    elif not quiet:
        _show(out, info, was_complete=was_complete)


def _show(out: Path, info: "CorpusInfo", *, was_complete: bool) -> None:
    say(f"articles: {info.articles:,} kept, {sum(info.rejected.values()):,} rejected")
    for reason, number in info.rejected.items():
        say(f"  rejected {number:,}: {reason}")
    if info.wikidata_ids:
        shared = info.wikidata_ids_shared
        also = f", {shared:,} of them with the id of an earlier article" if shared else ""
        say(f"articles with a Wikidata id: {info.wikidata_ids:,}{also}")
    if not info.keeps_wikidata_ids:
        say("the corpus was built before Wikidata ids were kept, so questions find its articles by title alone;")
        say("to find them by Wikidata id, build the corpus again into a new folder")
    if info.passages:
        say(f"passages: {info.passages:,} of {info.words_in_all / info.passages:.1f} words on average")
    say(f"{out} {'was complete already' if was_complete else 'is complete'}")
