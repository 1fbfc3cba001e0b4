"""Search and reranking, side by side with rank-bm25, over drawn passages of a hundred words with Zipf frequencies.

Each step runs in a process of its own, so that its memory is its own: the peak resident set above that of the
interpreter before it loads anything. Pages of mapped files count, though the system may drop them.
"""

import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

K = 1000
BASELINE = 50_000
"""Number of passages that rank-bm25 searches."""
SLOW_QUERIES = 20
SPEED, CACHE, MEMORY = 100, 100, 1000
"""Targets: least ratio of queries/s, least ratio of passages/s, most MB."""
Facts = dict[str, Any]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--part", "parts", type=click.Choice(["small", "million", "dense"]), multiple=True, help="Run only this.")
@click.option("--million", default=1_000_000, show_default=True, help="Passages of the large corpus.")
@click.option("--queries", default=100, show_default=True, help="Queries that are timed.")
@click.option("--passages", default=2000, show_default=True, help="Passages that are reranked for each query.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Keep corpora and indexes here.")
@click.option("--step", hidden=True)
@click.option("--count", default=0, hidden=True)
def main(
    parts: tuple[str, ...],
    million: int,
    queries: int,
    passages: int,
    folder: Path | None,
    step: str | None,
    count: int,
) -> None:
    """Print queries/s, index time, disk and memory of the search, and passages/s of the reranker."""
    if step and folder:
        print(json.dumps(_measured(step, folder, count, queries)))
        return
    with tempfile.TemporaryDirectory() as drawn:
        run = partial(_run, folder or Path(drawn), queries=queries)
        if not parts or "small" in parts:
            _show_search(run, BASELINE)
            _show_speed(run("compare", BASELINE))
        if not parts or "million" in parts:
            _show_search(run, million)
        if not parts or "dense" in parts:
            _show_dense(run("rerank", passages))


def corpus(root: Path, count: int, _queries: int) -> Facts:
    """Write the corpus."""
    from zipf import articles

    from mmlongbench.corpus.build import build_corpus
    from mmlongbench.corpus.corpus import SourceInfo

    source = SourceInfo(name="zipf", format="drawn", sha256=f"{count}")
    return {"seconds": _seconds(lambda: build_corpus(articles(count), root / str(count), "words", source=source))}


def index(root: Path, count: int, _queries: int) -> Facts:
    """Build the index."""
    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index

    folder = root / str(count)
    opened = Corpus.open(folder)
    seconds = _seconds(lambda: find_index(opened, folder / FOLDER))
    return {"seconds": seconds, "disk": sum(path.stat().st_size for path in (folder / FOLDER).iterdir())}


def search(root: Path, count: int, queries: int) -> Facts:
    """Search the index twice with each query; the second time its pages are in memory."""
    from zipf import queries as draw

    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index

    engine = find_index(Corpus.open(root / str(count)), root / str(count) / FOLDER)
    drawn = draw(queries)
    times = [[_seconds(partial(engine.search, query, K)) for query in drawn] for _ in range(2)]
    return {"rates": [1 / statistics.mean(taken) for taken in times]}


def compare(root: Path, count: int, _queries: int) -> Facts:
    """Run the same queries by both engines in turn, and compare their best hundred passages."""
    from zipf import queries as draw

    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, K1, B, RankBm25Index, find_index
    from mmlongbench.corpus.retrieval.text import tokens

    opened = Corpus.open(root / str(count))
    ours = find_index(opened, root / str(count) / FOLDER)
    texts = [tokens(f"{passage.title}\n{passage.text}") for passage in opened]
    theirs = import_module("rank_bm25").BM25Okapi(texts, k1=K1, b=B)
    gc.freeze()  # otherwise every garbage collection scans the words of the other engine
    drawn = draw(SLOW_QUERIES)
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for query in drawn:
        times["ours"].append(_seconds(partial(ours.search, query, K)))
        times["theirs"].append(_seconds(partial(_best, theirs, query, K)))
    found = [{hit.number for hit in ours.search(query, 100)} for query in drawn]
    okapi = [set(_best(theirs, query, 100)) for query in drawn]
    del theirs
    oracle = RankBm25Index(opened)
    plus = [{hit.number for hit in oracle.search(query, 100)} for query in drawn]
    rates = {name: 1 / statistics.mean(taken) for name, taken in times.items()}
    return {"rates": rates, "okapi": _overlap(found, okapi), "plus": _overlap(found, plus)}


def rerank(root: Path, count: int, _queries: int) -> Facts:
    """Rerank the same passages with nothing cached, then for other queries."""
    from zipf import articles
    from zipf import queries as draw

    from mmlongbench.corpus.corpus import Passage
    from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker

    drawn = [Passage(a.id, a.doc_id, a.title, a.paragraphs[0], 0) for a in articles(count)]
    with tempfile.TemporaryDirectory(dir=root) as cache:
        opened = Reranker.open(ModelSpec(), Path(cache))
        opened.scored("warm", drawn[:1])
        first, *others = draw(6)
        cold = _seconds(lambda: opened.scored(first, drawn))
        cached = statistics.median(_seconds(partial(opened.scored, query, drawn)) for query in others)
        opened.close()
    return {"cold": (count - 1) / cold, "cached": count / cached, "device": opened.fingerprint.split("-", 1)[1]}


STEPS: dict[str, Callable[[Path, int, int], Facts]] = {
    "corpus": corpus,
    "index": index,
    "search": search,
    "compare": compare,
    "rerank": rerank,
}


def _run(folder: Path, step: str, count: int, queries: int) -> Facts:
    """A step in a process of its own."""
    options = {"step": step, "folder": folder, "count": count, "queries": queries}
    command = [sys.executable, __file__, *(f"--{name}={value}" for name, value in options.items())]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(json.loads(said))


def _measured(step: str, folder: Path, count: int, queries: int) -> Facts:
    folder.mkdir(parents=True, exist_ok=True)
    before = _peak()
    facts = STEPS[step](folder, count, queries)
    return facts | {"memory": _peak() - before}


def _peak() -> float:
    """The peak resident set of this process in MB (kB on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _best(engine: Any, query: str, k: int) -> list[int]:  # noqa: ANN401  (a package without types)
    import numpy as np

    from mmlongbench.corpus.retrieval.text import tokens

    return list(np.argsort(-engine.get_scores(tokens(query)), kind="stable")[:k].tolist())


def _overlap(some: list[set[int]], others: list[set[int]]) -> float:
    return statistics.mean(len(one & other) / len(other) for one, other in zip(some, others, strict=True))


def _show_search(run: Callable[[str, int], Facts], count: int) -> None:
    made, built, asked = (run(step, count) for step in ("corpus", "index", "search"))
    print(f"{count:,} passages, written in {made['seconds']:.0f} s", flush=True)
    print(f"  index    {built['seconds']:8.1f} s   {built['disk'] / 1e6:,.0f} MB on disk")
    for name, facts in (("building", built), ("searching", asked)):
        print(f"  memory   {facts['memory']:8.0f} MB  {name}; target <= {MEMORY}")
    print(f"  search   {asked['rates'][1]:8.1f} queries/s at k = {K:,} ({asked['rates'][0]:.1f} at first)", flush=True)


def _show_speed(found: Facts) -> None:
    ours, theirs = found["rates"]["ours"], found["rates"]["theirs"]
    print(f"  in turn  {ours:8.1f} queries/s, rank-bm25 {theirs:.2f}: {ours / theirs:.0f}x; target >= {SPEED}")
    print(
        f"  top 100  {found['plus']:.3f} shared with BM25+ (delta 0), {found['okapi']:.3f} with BM25Okapi", flush=True
    )


def _show_dense(found: Facts) -> None:
    cold, cached = found["cold"], found["cached"]
    print(f"rerank on {found['device']}: {cold:,.0f} passages/s cold, {cached:,.0f} cached")
    print(f"  ratio    {cached / cold:8.0f}x  target >= {CACHE}")


if __name__ == "__main__":
    main()
