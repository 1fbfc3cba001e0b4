"""`mmlongbench corpus`: cuts articles into passages."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.corpus.info import CorpusInfo

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
def build(source: str, out: Path, mode: str, kind: str | None, limit: int | None, as_json: bool, quiet: bool) -> None:
    """Cut the articles of SOURCE into passages and store them in a folder.

    SOURCE is KILT's knowledge source, JSON lines, a DPR-style TSV (each plain or gzipped), Parquet, a saved Hugging
    Face dataset or its name on the hub, or a folder of .txt and .pdf files. Unusable articles are counted and listed in
    a file.
    """
    from mmlongbench.corpus.sources import make_corpus
    from mmlongbench.io.progress import Progress

    made = make_corpus(source, out, mode, kind, limit, Progress(False if quiet or as_json else None))
    if as_json:
        click.echo(json.dumps({"out": str(out), "was_complete": made.was_complete, **made.info.model_dump()}))
    elif not quiet:
        _show(out, made.info, was_complete=made.was_complete)


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
