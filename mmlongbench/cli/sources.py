"""The commands `fetch`, which downloads the sources of a manifest, and `corpus`, which cuts articles into passages."""

import json
import shlex
import sys
from contextlib import closing
from pathlib import Path

import click

from mmlongbench.cli.console import say, say_notes
from mmlongbench.cli.options import COUNT, FOLDER, NEW_FOLDER, NEW_PATH, bars, json_option, quiet_option
from mmlongbench.corpus.build import make_corpus
from mmlongbench.corpus.corpus import Corpus, Passage
from mmlongbench.corpus.cutting import Mode
from mmlongbench.corpus.retrieval.bm25 import FOLDER as INDEX
from mmlongbench.corpus.retrieval.bm25 import find_index
from mmlongbench.io.files import said_bytes
from mmlongbench.manifest.downloads import load_record, state_of
from mmlongbench.manifest.fetch import Fetched, places_of
from mmlongbench.manifest.fetch import fetch as run_fetch
from mmlongbench.manifest.loading import find_manifest, load_manifest
from mmlongbench.manifest.model import Manifest


@click.command()
@click.argument("manifest")
@click.option("--to", type=NEW_FOLDER, required=True, help="The data folder; it may have files.")
@click.option("--only", multiple=True, metavar="DATASET", help="Fetch the sources of this dataset; may be repeated.")
@click.option("--dry-run", is_flag=True, help="List the places and what is there; ask no server, and write nothing.")
@click.option(
    "--update", is_flag=True, help="Replace files whose place has newer ones; without it, downloaded files stay."
)
@quiet_option("Print only problems and errors.")
def fetch(manifest: str, to: Path, only: tuple[str, ...], dry_run: bool, update: bool, quiet: bool) -> None:
    """Download the sources of MANIFEST that a program may download, and explain how to get the others.

    A file that is there is checked, and downloaded again only if it is wrong. Run the same command again to continue a
    download that was stopped. Exits with 1 if a file is missing that a program may download.
    """
    loaded = load_manifest(find_manifest(manifest))
    if dry_run:
        _list(loaded, to, only)
        return
    done = run_fetch(loaded, to, only=only, update=update, progress=bars(is_quiet=quiet))
    for place in done.places:
        say_notes(place.notes)
        if not quiet and not place.files:
            say(f"{place.name}: its files could not be listed")
        elif not quiet:
            commit = f" at {place.commit[:12]}" if place.commit else ""
            now = f", {place.downloaded:,} downloaded now" if place.downloaded else ""
            files = f"{place.there:,} of {place.files:,} files are there ({said_bytes(place.bytes)}){now}"
            say(f"{place.name}{commit} → {place.folder}: {files}")
        for problem in place.problems:
            say(f"problem: {problem}", err=True)
    if not quiet:
        _show_next(loaded, manifest, done, is_all=not only or {*only} == {each.name for each in loaded.datasets})
    if not done.is_complete:
        sys.exit(1)


def _show_next(loaded: Manifest, manifest: str, done: Fetched, *, is_all: bool) -> None:
    left = [place for place in done.left if not place.is_there]
    for place in left:
        licence = place.licence or "not stated"
        say(f"{place.folder} is left to you, for {', '.join(place.datasets)} (licence: {licence}); in {done.folder}:")
        for number, step in enumerate(place.steps, start=1):
            say(f"  {number}. {step}")
    if any(place.there for place in done.places):
        say(f"{done.folder / 'downloads.json'} has the size and the SHA-256 of each file")
    data = ["--data", str(done.folder)] if any(dataset.downloads for dataset in loaded.datasets) else []
    when = f"when {'everything is' if is_all else 'the sources of all datasets are'} there, "
    is_ready = is_all and done.is_complete and not left
    command = shlex.join(["mmlongbench", "build", manifest, *data, "--out", "release"])
    say(f"{'' if is_ready else when}build with: {command}")


def _list(loaded: Manifest, to: Path, only: tuple[str, ...]) -> None:
    places = places_of(loaded, only)
    record = load_record(to)
    for place in places:
        spec = place.spec
        say(f"{'by hand' if spec.steps else spec.name} → {to / spec.to}")
        say(f"  for {', '.join(place.datasets)}; licence: {place.licence or 'not stated'}")
        if spec.hub:
            say(f"  files: {', '.join(spec.files)}{f' at {spec.revision}' if spec.revision else ''}")
        for number, step in enumerate(spec.steps, start=1):
            say(f"  {number}. {step}")
        if spec.agree:
            say(f"  agree first to {spec.agree}")
        if spec.unverified:
            say("  unverified: nothing confirms this place")
        say(f"  {state_of(spec, to, record)}")
    if not places:
        say("nothing to download: the manifest names no downloads")


_FORMATS = ("kilt", "jsonl", "tsv", "parquet", "dataset", "hub", "folder")
CANDIDATES = 200  # the minimum number of passages that --rerank orders by meaning
EMBEDDINGS = "embeddings"
"""The name of the folder for passage vectors, which is inside the folder of the corpus."""
SHOWN = 200  # the maximum characters of a passage on the screen


@click.group()
def corpus() -> None:
    """Cut articles into passages, and search them."""


@corpus.command("build")
@click.argument("source")
@click.option("--out", type=NEW_PATH, required=True, help="The folder of the corpus, new or empty.")
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
@click.option("--limit", type=COUNT, metavar="N", help="Keep only the first N articles.")
@json_option()
@quiet_option()
def build(source: str, out: Path, mode: Mode, kind: str | None, limit: int | None, as_json: bool, quiet: bool) -> None:
    """Cut the articles of SOURCE into passages and store them in a folder.

    SOURCE is KILT's knowledge source, JSON lines, a DPR-style TSV (each plain or gzipped), Parquet, a saved Hugging
    Face dataset or its name on the hub, or a folder of .txt and .pdf files. Unusable articles are counted and listed in
    a file.
    """
    info, was_complete = make_corpus(source, out, mode, kind, limit, bars(is_quiet=quiet or as_json))
    if as_json:
        click.echo(json.dumps({"out": str(out), "was_complete": was_complete, **info.model_dump()}))
    if as_json or quiet:
        return
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


@corpus.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("query")
@click.option("-k", type=COUNT, default=20, show_default=True, help="How many passages to show.")
@click.option("--rerank", is_flag=True, help=f"Order the best {CANDIDATES} by meaning; needs mmlongbench[dense].")
@json_option()
def search(folder: Path, query: str, k: int, rerank: bool, as_json: bool) -> None:
    """Search the corpus in DIR for the words of QUERY; the best passage comes first.

    The index is built at the first search. Without --rerank the score is that of BM25, with it the cosine of the
    embeddings.
    """
    passages = Corpus.open(folder)
    index = find_index(passages, folder / INDEX, bars(is_quiet=as_json))
    hits = index.search(query, max(k, CANDIDATES) if rerank else k)
    found: list[tuple[Passage, float]] = [(passages.passage(hit.number), hit.score) for hit in hits]
    if rerank:
        from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker  # needs the extra

        with closing(Reranker.open(ModelSpec(), folder / EMBEDDINGS)) as reranker:
            best = [passage for passage, _ in found]
            found = [(best[place], cosine) for place, cosine in reranker.scored(query, best)]
    found = found[:k]
    if as_json:
        shown = [{"id": p.id, "title": p.title, "text": p.text, "score": round(score, 4)} for p, score in found]
        click.echo(json.dumps({"query": query, "hits": shown}))
        return
    for rank, (passage, score) in enumerate(found, 1):
        cut = passage.text if len(passage.text) <= SHOWN else f"{passage.text[:SHOWN].rstrip()} …"
        say(f"{rank:>4}  {score:8.4f}  {passage.id}  {passage.title}")
        say(f"      {cut}")
    if not found:
        say(f"none of the {len(passages):,} passages shares a word with {query!r}")
