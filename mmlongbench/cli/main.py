"""The command `mmlongbench`: its subcommands, one-line errors, and exit codes."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

import mmlongbench as mm
from mmlongbench.cli.audit import audit, stats
from mmlongbench.cli.check import check, doctor
from mmlongbench.cli.claims import claims
from mmlongbench.cli.console import interrupted_soon, printable_streams, say, words_of
from mmlongbench.cli.corpus import corpus, search
from mmlongbench.cli.count import count
from mmlongbench.cli.export import collect, export
from mmlongbench.cli.fetch import fetch
from mmlongbench.cli.listing import list_installed, schema
from mmlongbench.cli.new import new
from mmlongbench.cli.options import files_of, lengths_option, say_code, task_option, with_manifest
from mmlongbench.cli.plan import plan
from mmlongbench.cli.publish import publish, rights, takedown
from mmlongbench.cli.questions import questions
from mmlongbench.cli.report import report
from mmlongbench.cli.run import run
from mmlongbench.cli.score import score
from mmlongbench.cli.shortcuts import shortcuts
from mmlongbench.cli.show import show
from mmlongbench.cli.verify import diff, verify
from mmlongbench.cli.view import view
from mmlongbench.errors import StrictStop, TooFewKept
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.shadowing import shadowed

if TYPE_CHECKING:
    from mmlongbench.building.executors.executor import Executor
    from mmlongbench.io.progress import Progress
    from mmlongbench.manifest.model import Manifest

EXIT_CODES = """
\b
Exit codes:
  0    done; an audit, `check` or `verify` found nothing wrong, two releases are the same
  1    an audit, `check` or `verify` found something wrong, two releases differ, --strict stopped at a reject, a build
       kept no question or less than --min-kept, a file could not be fetched, a prediction is missing or does not fit,
       or a score or claim could not be made
  2    the arguments, the manifest, a source or the output folder must be corrected
  130  interrupted; run the same command to continue
"""


INTERRUPTED = "interrupted; completed files are intact, run the same command to continue"


@click.group(epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="mmlongbench")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def cli(debug: bool) -> None:
    """Build, audit and inspect long-context vision-language benchmarks.

    A manifest goes in; a release of examples with controlled lengths comes out, and every token of every example is
    accounted for.
    """


@cli.command()
@with_manifest
@click.option(
    "--out",
    required=True,
    metavar="PATH|URL",
    help="The release's folder: new, with a build to continue, or with a release to extend; or a URL that fsspec "
    "knows, such as s3://bucket/release.",
)
@lengths_option("8K,32K", "Build these lengths instead of the manifest's.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="The maximum number of questions of each dataset; which ones is drawn."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="The number of processes; all cores by default. It does not change the bytes.",
)
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Use processes of this machine, or tasks of a Ray cluster whose nodes all see OUT.",
)
@click.option(
    "--ray-address", metavar="auto|HOST:PORT", help="The address of the cluster; by default one on this machine alone."
)
@click.option("--strict", is_flag=True, help="Stop at the first reject.")
@click.option(
    "--min-kept",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Stop if a dataset keeps less than SHARE of its questions at a length (0.9 is 90 %); exit 1, and the release "
    "is not finished.",
)
@click.option(
    "--restart", is_flag=True, help="Discard an unfinished build in OUT and start again; a finished release stays."
)
@click.option(
    "--stage",
    type=click.Choice(["prepare", "negatives", "records", "images"]),
    help="Run only this stage; after all stages, run `finish`.",
)
@click.option(
    "--shard",
    metavar="N/OF",
    help="Run every OF-th shard of a stage, beginning with the N-th (counted from 1), such as 3/64.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors, and which task files run.")
def build(
    given: "Manifest",
    out: str,
    lengths: str | None,
    limit: int | None,
    workers: int | None,
    engine_name: str,
    ray_address: str | None,
    strict: bool,
    min_kept: float,
    restart: bool,
    stage: str | None,
    shard: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Build a release from MANIFEST, a file or the name of an installed one.

    Run the same command again to continue a build that was stopped; the bytes are the same. If the manifest or its
    sources changed since then, the build starts again by itself as long as nothing expensive was made. A finished
    release is extended if lengths, datasets or questions were added.
    """
    from mmlongbench.building.remote import placed
    from mmlongbench.building.shares import run_stage
    from mmlongbench.cli.tables import show_build, show_shortfalls
    from mmlongbench.io.progress import Progress
    from mmlongbench.manifest.loading import narrowed
    from mmlongbench.release.layout import REJECTS

    if out.startswith("-"):
        raise click.UsageError(f"--out {out}: other commands would read it as an option; write ./{out}")
    loaded = narrowed(given, lengths, limit)
    progress = Progress(False if quiet or as_json else None)
    say_code(loaded)
    if shard and not stage:
        raise click.UsageError("--shard needs --stage")
    executor = _engine(engine_name, workers, ray_address, progress, out)
    if stage:
        with placed(out, executor) as (folder, spread):
            done, notes = run_stage(loaded, folder, spread, stage, shard, is_restart=restart, min_kept=min_kept)
        for note in () if quiet or as_json else notes:
            say(f"note: {note}", err=True)
        if not (quiet or as_json):
            say(f"{stage}{f' {shard}' if shard else ''}: {done:,} shards are done")
        return
    made = mm.build(loaded, out, executor=executor, strict=strict, min_kept=min_kept, restart=restart)
    built = replace(made, out=out)
    for note in () if quiet else built.notes:
        say(f"note: {note}", err=True)
    if as_json:
        said = {
            "out": without_secrets(out),
            "datasets": built.lock.public()["datasets"],
            "was_complete": built.was_complete,
            "shortfalls": [asdict(each) for each in built.shortfalls],
        }
        click.echo(json.dumps(said))
    elif not quiet:
        show_build(built, files_of(loaded))
        show_shortfalls(built)
    counts = [data.questions for data in built.lock.readable.values()]
    if not any(count.kept for count in counts):
        read = sum(count.read for count in counts)
        rejected = sum(sum(count.rejected.values()) for count in counts)
        skipped = sum(sum(count.skipped.values()) for count in counts)
        also = f", {skipped} skipped" if skipped else ""
        say(f"no question was kept: {read} read, {rejected} rejected{also}, see {out}/{REJECTS}", err=True)
        sys.exit(1)


def _engine(name: str, workers: int | None, address: str | None, progress: "Progress", out: str) -> "Executor":
    from mmlongbench.building.executors.local import PATIENCE, LocalExecutor
    from mmlongbench.io.pool import cores

    if name == "local":
        if address:
            raise click.UsageError("--ray-address needs --engine ray")
        return LocalExecutor(workers or cores(), progress, 0 if workers else PATIENCE)
    from mmlongbench.building.executors.ray import RayExecutor
    from mmlongbench.building.remote import remote_of

    if workers:
        raise click.UsageError("--workers is for --engine local: Ray uses the cores of its nodes")
    return RayExecutor(progress, address, remote_of(out))


@cli.command()
@click.argument("release")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@task_option
def finish(release: str, quiet: bool, task_files: tuple[Path, ...]) -> None:
    """Finish RELEASE (a folder or a URL) after all its stages (`build --stage`): write its last files, then the
    lock.
    """
    from mmlongbench.building.executors.local import PATIENCE, LocalExecutor
    from mmlongbench.building.remote import placed
    from mmlongbench.building.shares import finish_release
    from mmlongbench.cli.tables import show_build, show_shortfalls
    from mmlongbench.io.pool import cores
    from mmlongbench.io.progress import Progress
    from mmlongbench.manifest.task_files import TaskFiles

    with placed(release, LocalExecutor(cores(), Progress(False if quiet else None), PATIENCE)) as (folder, executor):
        built = replace(finish_release(folder, executor, TaskFiles(task_files)), out=release)
    if not quiet:
        for note in built.notes:
            say(f"note: {note}", err=True)
        show_build(built, task_files)
        show_shortfalls(built)


cli.add_command(audit)
cli.add_command(stats)
cli.add_command(check)
cli.add_command(claims)
cli.add_command(collect)
cli.add_command(count)
cli.add_command(corpus)
cli.add_command(diff)
cli.add_command(doctor)
cli.add_command(export)
cli.add_command(fetch)
cli.add_command(list_installed)
cli.add_command(new)
cli.add_command(plan)
cli.add_command(questions)
cli.add_command(report)
cli.add_command(rights)
cli.add_command(run)
cli.add_command(schema)
cli.add_command(score)
cli.add_command(shortcuts)
cli.add_command(show)
cli.add_command(publish)
cli.add_command(takedown)
cli.add_command(verify)
cli.add_command(view)
corpus.add_command(search)


def main() -> NoReturn:
    """Run the command line. An error that a user can fix is printed as one line; `--debug` shows the traceback."""
    with printable_streams():
        sys.exit(_run())


def _run() -> int:
    """Run a command and return its exit code."""
    if line := shadowed():
        say(f"error: {line}", err=True)
        return 2
    try:
        with interrupted_soon(INTERRUPTED):
            cli(prog_name="mmlongbench", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort) as stop:
        say(str(stop.__cause__ or "") or INTERRUPTED, err=True)  # click raises Abort from the KeyboardInterrupt
        return 130
    except Exception as error:
        words = words_of(error)
        if "--debug" in sys.argv or not words:
            raise
        say(f"error: {words}", err=True)
        return 1 if isinstance(error, StrictStop | TooFewKept) else 2
    return 0
