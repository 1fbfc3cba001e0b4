"""`mmlongbench claims`: splits the gold summaries of a release into atomic claims, with a judge."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.options import with_tasks
from mmlongbench.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.metrics.judge.claims import Claimed, Summaries

_METRIC = "judge-fluency-f1"
"""The metric that needs claims."""


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--judge-url",
    metavar="URL",
    required=True,
    help="The address of an endpoint that speaks OpenAI's protocol, with /v1.",
)
@click.option("--judge-model", metavar="NAME", required=True, help="A model of this endpoint.")
@click.option("--judge-cache", type=click.Path(path_type=Path, dir_okay=False), help="A file that keeps every answer.")
@click.option(
    "--judge-concurrency", type=click.IntRange(min=1), default=8, show_default=True, help="How many calls run at once."
)
@click.option(
    "--judge-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds that one call may take.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for the files; the release's mmlb_data/ by default.",
)
@click.option("--dry-run", is_flag=True, help="Count the calls without making any.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only failures.")
@with_tasks
def claims(
    release: Path,
    judge_url: str,
    judge_model: str,
    judge_cache: Path | None,
    judge_concurrency: int,
    judge_timeout: float,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    tasks: "TaskFiles",
) -> None:
    """Split the gold summaries of RELEASE into claims, once for all models that will be scored.

    A file, summ/<dataset>_claims.jsonl, is written when every summary of its dataset has claims. Exits with 1 if a
    summary has none; then run the same command again to continue.
    """
    from mmlongbench.io.progress import Progress
    from mmlongbench.metrics.judge.claims import write_claims
    from mmlongbench.metrics.judge.client import JudgeClient
    from mmlongbench.models.pace import Backoff
    from mmlongbench.release.layout import DATA
    from mmlongbench.task.metric import Judge

    datasets = list(_summaries(release, tasks))
    judge = Judge(judge_url, (judge_model,), judge_cache, judge_concurrency, judge_timeout, is_dry=dry_run)
    progress = Progress(False if quiet or as_json else None)
    with closing(JudgeClient(judge, Backoff())) as client:
        done = list(write_claims(client, release / DATA, out or release / DATA, datasets, progress))
        usage = client.usage()
    if as_json:
        click.echo(json.dumps({"datasets": [asdict(each) for each in done], "usage": usage}))
    else:
        _show(done, usage, is_quiet=quiet, is_dry=dry_run)
    if any(each.failures for each in done):
        sys.exit(1)


def _summaries(release: Path, tasks: "TaskFiles") -> Iterator["Summaries"]:
    """Yield the gold summaries of every dataset that is scored by claims, each summary once for all lengths."""
    from mmlongbench.metrics.judge.claims import Summaries
    from mmlongbench.release.release import open_release

    found: dict[str, Summaries] = {}
    for file in open_release(release, tasks).files:
        if file.dataset is None or _METRIC not in file.dataset.builder.spec.further_metrics:
            continue
        builder = file.dataset.builder
        golds = dict[str, str]()
        for where, record in file.form.unbundle(file.path):
            if (gold := builder.gold(record)) is None:
                raise ReleaseError(f"{file.name}, {where}: expected a gold summary, found none")
            golds[str(record["id"])] = str(gold)
        before = found.get(builder.dataset)
        found[builder.dataset] = Summaries(builder.dataset, file.name, {**(before.golds if before else {}), **golds})
    if not found:
        raise ReleaseError(f"{release}: no dataset is scored by {_METRIC}, so no summary is split into claims")
    yield from found.values()


def _show(done: list["Claimed"], usage: "Mapping[str, float]", *, is_quiet: bool, is_dry: bool) -> None:
    for each in done:
        for id, why in each.failures.items():
            say(f"{each.dataset}, {id}: no claims: {why}", err=True)
        if each.failures:
            say(f"{each.file}: not written; run the same command to try these again", err=True)
        elif not is_quiet and not is_dry:
            known = f"; already there: {each.known:,}" if each.known else ""
            say(f"{each.file}: {each.summaries:,} summaries, {each.claims:,} claims{known}")
        if each.others and not is_quiet:
            say(
                f"{each.file}: claims of ids that the release does not have are kept: "
                f"{len(each.others):,}, first {each.others[0]!r}"
            )
    if not is_quiet:
        say(", ".join(f"{name.replace('_', ' ')}: {number:,}" for name, number in usage.items()))
