"""The commands `build` and `finish`, which make a release, and `plan`, which forecasts one."""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import click

import mmlongbench as mm
from mmlongbench.building.build import Built, Demands
from mmlongbench.building.executors import PATIENCE, Executor, LocalExecutor
from mmlongbench.building.forecast import CellForecast, DatasetForecast, forecast
from mmlongbench.building.remote import placed, remote_of
from mmlongbench.building.shares import finish_release, run_stage
from mmlongbench.cli.console import print_table, say, say_notes
from mmlongbench.cli.options import (
    COUNT,
    bars,
    files_of,
    json_option,
    lengths_option,
    quiet_option,
    say_code,
    task_option,
    with_manifest,
)
from mmlongbench.corpus.retrieval.pages import said_recall
from mmlongbench.io.pool import cores
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.loading import narrowed
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.layout import REJECTS
from mmlongbench.release.lock import CellCounts, QuestionCounts, RetrievalCounts
from mmlongbench.table import Table

_MB = 1024 * 1024
_REJECTS = 20
"""How many rejected rows `plan` prints."""


@click.command()
@with_manifest
@click.option(
    "--out",
    required=True,
    metavar="PATH|URL",
    help="The release's folder: new, with a build to continue, or with a release to extend; or a URL that fsspec "
    "knows, such as s3://bucket/release.",
)
@lengths_option("8K,32K", "Build these lengths instead of the manifest's.")
@click.option("--limit", type=COUNT, help="The maximum number of questions of each dataset; which ones is drawn.")
@click.option(
    "--workers",
    type=COUNT,
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
@json_option()
@quiet_option("Print only errors, and which task files run.")
def build(
    given: Manifest,
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
    if out.startswith("-"):
        raise click.UsageError(f"--out {out}: other commands would read it as an option; write ./{out}")
    loaded = narrowed(given, lengths, limit)
    progress = bars(is_quiet=quiet or as_json)
    say_code(loaded)
    if shard and not stage:
        raise click.UsageError("--shard needs --stage")
    executor = _engine(engine_name, workers, ray_address, progress, out)
    if stage:
        with placed(out, executor) as (folder, spread):
            demands = Demands(strict, min_kept)
            done, notes = run_stage(loaded, folder, spread, stage, shard, demands=demands, is_restart=restart)
        if not (quiet or as_json):
            say_notes(notes)
            say(f"{stage}{f' {shard}' if shard else ''}: {done:,} shards are done")
        return
    made = mm.build(loaded, out, executor=executor, strict=strict, min_kept=min_kept, restart=restart)
    built = replace(made, out=out)
    if not quiet:
        say_notes(built.notes)
    if as_json:
        said = {
            "out": without_secrets(out),
            "datasets": built.lock.public()["datasets"],
            "was_complete": built.was_complete,
            "shortfalls": [asdict(each) for each in built.shortfalls],
        }
        click.echo(json.dumps(said))
    elif not quiet:
        _show_build(built, files_of(loaded))
        _show_shortfalls(built)
    counts = [data.questions for data in built.lock.readable.values()]
    if not any(count.kept for count in counts):
        read = sum(count.read for count in counts)
        rejected = sum(sum(count.rejected.values()) for count in counts)
        skipped = sum(sum(count.skipped.values()) for count in counts)
        also = f", {skipped} skipped" if skipped else ""
        say(f"no question was kept: {read} read, {rejected} rejected{also}, see {out}/{REJECTS}", err=True)
        sys.exit(1)


def _engine(name: str, workers: int | None, address: str | None, progress: Progress, out: str) -> Executor:
    if name == "local":
        if address:
            raise click.UsageError("--ray-address needs --engine ray")
        return LocalExecutor(workers or cores(), progress, 0 if workers else PATIENCE)
    from mmlongbench.building.ray_executor import RayExecutor  # needs the extra

    if workers:
        raise click.UsageError("--workers is for --engine local: Ray uses the cores of its nodes")
    return RayExecutor(progress, address, remote_of(out))


@click.command()
@click.argument("release")
@quiet_option()
@task_option
def finish(release: str, quiet: bool, task_files: tuple[Path, ...]) -> None:
    """Finish RELEASE (a folder or a URL) after all its stages (`build --stage`): write its last files, then the
    lock.
    """
    with placed(release, LocalExecutor(cores(), bars(is_quiet=quiet), PATIENCE)) as (folder, executor):
        built = replace(finish_release(folder, executor, TaskFiles(task_files)), out=release)
    if not quiet:
        say_notes(built.notes)
        _show_build(built, task_files)
        _show_shortfalls(built)


def _show_build(built: Built, tasks: Iterable[Path]) -> None:
    """Print the questions read, kept and rejected by reason, and the examples of each length.

    An audit of the release needs the task files in `tasks`.
    """
    for name, data in built.lock.readable.items():
        counts = data.questions
        rows = [(length, cell.examples, cell.rejected, cell.ran_dry) for length, cell in data.cells.items()]
        print_table(Table(("length", "examples", "rejected at this length", "ran out of units"), rows, name))
        say(f"questions: {counts.read} read, {counts.kept} kept, {counts.not_sampled} not sampled")
        _say_cells(data.cells)
        for length in (length for length, cell in data.cells.items() if not cell.examples and counts.kept):
            say(f"  no file at {length}: no question fits it")
        _say_reasons(counts)
        if data.corpus and data.corpus.wikidata_ids is None:
            say("  warning: the corpus was built before Wikidata ids were kept: articles are joined by title alone;")
            say("  to join by the ids, build the corpus again into a new folder (`mmlongbench corpus build`)")
        for dpi, number in data.documents.images_by_dpi.items():
            say(f"  warning: {number} documents are images rendered at {dpi} DPI by their source, not at the usual 144")
        for document, pages in data.documents.damaged.items():
            (page, why), more = next(iter(pages.items())), f" and {len(pages) - 1:,} more" if len(pages) > 1 else ""
            say(f"  warning: {document}, page {page}{more}: not drawn whole ({why}); no padding, no evidence")
        if hidden := data.documents.hidden_text:
            say(f"  text that cannot be seen is left out: {_noted(hidden)} (pages by document)")
        for document, fault in data.documents.refused.items():
            say(f"  document {document} refused: {fault}")
    if not any(cell.examples for data in built.lock.readable.values() for cell in data.cells.values()):
        say(f"{built.out} has no example: no question was kept; {REJECTS} there says why")
        return
    state = "was complete already" if built.was_complete else "is complete"
    given = "".join(f" --task {shlex.quote(str(_near(task)))}" for task in dict.fromkeys(tasks))
    say(f"{built.out} {state}; `mmlongbench audit {shlex.quote(str(built.out))}{given}` counts it again")


def _near(path: Path) -> Path:
    """Return a path relative to the current folder, if it lies there."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _show_shortfalls(built: Built) -> None:
    """Print on standard error which datasets lost many questions, why, and the first of these questions."""
    for lost in built.shortfalls:
        say(f"warning: {lost.dataset}: kept {lost.kept:,} of {lost.of:,} questions", err=True)
        for reason, number in lost.rejected.items():
            say(f"  rejected {number:,}: {reason}", err=True)
        for each in lost.first:
            say(f"  {each}", err=True)
        say(f"  {built.out}/{REJECTS} lists all with what to do; --min-kept SHARE stops such a build", err=True)


def _noted(noted: Mapping[str, int]) -> str:
    """Return counted notes as one line; what several notes begin with is said once.

    >>> _noted({"joined by title": 2, "not joined": 1, "answer read as List": 3, "answer read as Float": 4})
    'joined by title: 2, not joined: 1, answer read as List: 3, Float: 4'
    """
    said, before = list[str](), ""
    for note, number in noted.items():
        start, _, last = note.rpartition(" ")
        said.append(f"{last if start == before and start else note}: {number:,}")
        before = start
    return ", ".join(said)


def _retrieved(found: RetrievalCounts) -> str:
    """Return what a retriever of pages found, as one line."""
    missing = found.gold_pages - found.ranked_gold_pages
    left = f"; {missing:,} of {found.gold_pages:,} not ranked" if missing else ""
    said = f"{said_recall(found.recall)} over {found.questions:,} questions"
    return f"pages with the answer, ranked by {found.by}: {said}{left}"


def _say_reasons(counts: QuestionCounts) -> None:
    """Print why rows were rejected, skipped or repaired, and the notes of drafts."""
    for reason, number in counts.rejected.items():
        say(f"  rejected {number}: {reason}")
    for reason, number in counts.skipped.items():
        say(f"  skipped {number}: {reason} (nothing is wrong: the benchmark leaves these rows out)")
    for repair, number in counts.repaired.items():
        say(f"  repaired {number}: {repair}")
    if counts.noted:
        say(f"  {_noted(counts.noted)}")
    if counts.retrieval:
        say(f"  {_retrieved(counts.retrieval)}")


def _say_cells(cells: Mapping[str, CellCounts]) -> None:
    """Print for each length what was missing or left out, and how often values occur that should be equally common."""
    for length, cell in cells.items():
        if cell.missing_units:
            said = f"up to {cell.missing_units:,} units are missing"
            say(f"  {length}: the sources were exhausted before the length was full: {said}; no unit is repeated")
        if cell.missing_classes:
            said = f"{cell.missing_classes:,} classes fewer than the table has"
            say(f"  {length}: {said}; the sources hold no more in both splits")
        for reason, number in cell.left_out.items():
            say(f"  {length}: excluded, with the next unit taken instead: {number:,} × {reason}")
        for field, counts in cell.balances.items():
            said = ", ".join(f"{value} {number:,}" for value, number in counts.items())
            say(f"  {length}: {field}: {said}")


@click.command()
@with_manifest
@lengths_option("8K,1M", "Plan these lengths instead of the manifest's.")
@click.option("--limit", type=COUNT, help="The maximum number of questions of each dataset; which ones is drawn.")
@click.option(
    "--probe",
    type=COUNT,
    default=5,
    show_default=True,
    help="How many questions to pack for the forecast.",
)
@click.option("--workers", type=COUNT, default=1, show_default=True, help="The number of processes that read.")
@json_option("Print one JSON object for each dataset.")
def plan(
    given: Manifest,
    lengths: str | None,
    limit: int | None,
    probe: int,
    workers: int,
    as_json: bool,
) -> None:
    """Print what MANIFEST would build: questions, examples, images, disk, time, and which units are exhausted first.

    The sources are read and a few questions are packed, but nothing is kept. Exits with 1 if a dataset cannot be built.
    """
    loaded = narrowed(given, lengths, limit)
    say_code(loaded)
    has_problem = False
    for found in forecast(loaded, LocalExecutor(workers, bars(is_quiet=as_json)), probe):
        has_problem |= bool(found.problem)
        if as_json:
            retrieval = found.retrieval.model_dump(mode="json") if found.retrieval else None
            click.echo(json.dumps({**asdict(found), "retrieval": retrieval}))
        else:
            _show_forecast(found)
    if has_problem:
        sys.exit(1)


def _show_forecast(found: DatasetForecast) -> None:
    if found.problem:
        say(f"{found.name}: cannot be built: {found.problem}")
        return
    rejected, skipped = (
        ", ".join(f"{count} × {reason}" for reason, count in counts.items())
        for counts in (found.rejected, found.skipped)
    )
    left_out = f"{f'; rejected: {rejected}' if rejected else ''}{f'; skipped: {skipped}' if skipped else ''}"
    say(f"{found.name}: {found.questions:,} questions{left_out}")
    for reject in found.rejects[:_REJECTS]:
        say(f"  {reject}")
    if len(found.rejects) > _REJECTS:
        say(f"  … and {len(found.rejects) - _REJECTS:,} more; --json lists all")
    for note in found.notes:
        say(f"  note: {note}")
    if found.noted:
        say(f"  {_noted(found.noted)}")
    if found.retrieval:
        say(f"  {_retrieved(found.retrieval)}")
    if found.opened_bytes:
        size = f"{found.opened_bytes / _MB:,.0f} MB" if found.opened_bytes >= _MB else f"{found.opened_bytes:,} bytes"
        say(f"  sources: {size} unpacked or downloaded, kept in OUT/.build until the release is finished")
    if found.ocr_pages:
        say(
            f"  OCR reads {found.ocr_pages:,} pages in the build, in seconds each; this forecast takes the texts of "
            "the PDFs instead"
        )
    for cell in found.cells:
        say(
            f"  {format_length(cell.length):>5}: {cell.examples:,} examples, {cell.images:.1f} images each, fill "
            f"{cell.fill:.3f}, about {cell.bytes / _MB:.1f} MB and {cell.seconds:.0f} s"
        )
        if said := _shortage(cell, found.probed):
            say(f"         {said}")
    say(
        f"  images: about {found.image_files:,} files, {found.image_bytes / _MB:,.0f} MB, {found.image_seconds:.0f} s "
        f"(all from {found.probed} questions, one process)"
    )


def _shortage(cell: CellForecast, probed: int) -> str:
    """Return a text about questions that do not fit and units that are exhausted; empty if there is nothing to say."""
    said = []
    if cell.rejected:
        said.append(f"{cell.rejected} of {probed} probed questions do not fit, and would be rejected at this length")
    if cell.ran_dry:
        said.append(
            f"{cell.left_over or 'all'} units run out first, by up to {cell.missing:,}: contexts end there, nothing is "
            "repeated, and the lock says so"
        )
    return "; ".join(said)
