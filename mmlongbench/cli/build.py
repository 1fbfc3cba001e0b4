"""The commands `build` and `finish`, which make a release, and `plan`, which forecasts one."""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import click

import mmlongbench as mm
from mmlongbench.building.build import Built, Demands
from mmlongbench.building.executors import PATIENCE, Executor, LocalExecutor
from mmlongbench.building.forecast import DatasetForecast, forecast
from mmlongbench.building.remote_release import placed, remote_of
from mmlongbench.building.shares import finish_release, run_stage
from mmlongbench.cli.console import print_table, say, say_notes
from mmlongbench.cli.options import (
    COUNT,
    bars,
    json_option,
    lengths_option,
    quiet_option,
    task_files,
    task_option,
    with_manifest,
)
from mmlongbench.corpus.retrieval.pages import said_recall
from mmlongbench.io.pool import cores
from mmlongbench.io.printable import without_secrets
from mmlongbench.lengths import format_length, parse_length
from mmlongbench.manifest.loading import narrowed
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.layout import REJECTS
from mmlongbench.release.lock import CellCounts, DocumentCounts, RetrievalCounts
from mmlongbench.release.release import open_release
from mmlongbench.table import Table

_MB = 1024 * 1024
_REJECTS = 20  # how many rejected rows `plan` prints
limit_option = click.option(
    "--limit", type=COUNT, help="The maximum number of questions of each dataset; which ones is drawn."
)


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
@limit_option
@click.option(
    "--workers", type=COUNT, help="The number of processes; all cores by default. It does not change the bytes."
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
    manifest: Manifest,
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
    if shard and not stage:
        raise click.UsageError("--shard needs --stage")
    progress = bars(is_quiet=quiet or as_json)
    executor: Executor
    if engine_name == "ray":
        from mmlongbench.building.ray_executor import RayExecutor  # needs the extra

        if workers:
            raise click.UsageError("--workers is for --engine local: Ray uses the cores of its nodes")
        executor = RayExecutor(progress, ray_address, remote_of(out))
    elif ray_address:
        raise click.UsageError("--ray-address needs --engine ray")
    else:
        executor = LocalExecutor(workers or cores(), progress, 0 if workers else PATIENCE)
    if stage:
        chosen = narrowed(manifest, lengths, limit)
        with placed(out, executor) as (folder, spread):
            demands = Demands(strict, min_kept)
            shards, notes = run_stage(chosen, folder, spread, stage, shard, demands=demands, is_restart=restart)
        if not (quiet or as_json):
            say_notes(notes)
            say(f"{stage}{f' {shard}' if shard else ''}: {shards:,} shards are done")
        return
    built = mm.build(
        manifest,
        out,
        lengths=lengths,
        limit=limit,
        strict=strict,
        min_kept=min_kept,
        restart=restart,
        executor=executor,
    )
    built = replace(built, out=out)
    if as_json:
        if not quiet:
            say_notes(built.notes)
        summary = {
            "out": without_secrets(out),
            "datasets": built.lock.public()["datasets"],
            "was_complete": built.was_complete,
            "shortfalls": [asdict(shortfall) for shortfall in built.shortfalls],
        }
        click.echo(json.dumps(summary))
    elif not quiet:
        _show_build(built, task_files(manifest))
    _end_if_empty(built)


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
        _show_build(built, task_files)
    _end_if_empty(built)


def _empty_datasets(built: Built) -> list[str]:
    """Return the datasets that have no example at any length."""
    cells = {name: data.cells.values() for name, data in built.lock.readable.items()}
    return [name for name, of_dataset in cells.items() if not any(cell.examples for cell in of_dataset)]


def _end_if_empty(built: Built) -> None:
    """Exit with 1 if a dataset has no example at any length; name it, with the most frequent reason for a reject."""
    shortfalls = {shortfall.dataset: shortfall for shortfall in built.shortfalls}
    for name in (empty := _empty_datasets(built)):
        counts = built.lock.readable[name].questions
        said = f"{counts.read:,} read, {sum(counts.rejected.values()):,} rejected"
        if skipped := sum(counts.skipped.values()):
            said += f", {skipped:,} skipped"
        if name in shortfalls:
            reason, number = next(iter(shortfalls[name].rejected.items()))
            said += f", most often {number:,} × {reason}"
        where = f"{without_secrets(str(built.out))}/{REJECTS}"
        say(f"error: dataset {name!r}: no question was kept: {said}; see {where}", err=True)
    if empty:
        sys.exit(1)


def _show_build(built: Built, tasks: Iterable[Path]) -> None:
    say_notes(built.notes)
    for name, data in built.lock.readable.items():
        counts = data.questions
        rows = [(length, cell.examples, cell.rejected, cell.ran_dry) for length, cell in data.cells.items()]
        print_table(Table(("length", "examples", "rejected at this length", "ran out of units"), rows, name))
        others = f", {counts.not_selected} not chosen by the task" if counts.not_selected else ""
        say(f"questions: {counts.read} read, {counts.kept} kept, {counts.not_sampled} not sampled{others}")
        for length, cell in data.cells.items():
            _show_cell(length, cell)
        for length in (length for length, cell in data.cells.items() if not cell.examples and counts.kept):
            say(f"  no file at {length}: no question fits it")
        for reason, number in counts.rejected.items():
            say(f"  rejected {number}: {reason}")
        for reason, number in counts.skipped.items():
            say(f"  skipped {number}: {reason} (nothing is wrong: the benchmark leaves these rows out)")
        for repair, number in counts.repaired.items():
            say(f"  repaired {number}: {repair}")
        _show_notes(counts.noted, counts.retrieval)
        if data.corpus and data.corpus.wikidata_ids is None:
            say("  warning: the corpus was built before Wikidata ids were kept: articles are joined by title alone;")
            say("  to join by the ids, build the corpus again into a new folder (`mmlongbench corpus build`)")
        _show_documents(data.documents)
    empty = _empty_datasets(built)
    if len(empty) == len(built.lock.readable):
        say(f"{built.out} has no example: no question was kept; {REJECTS} there says why")
    elif empty:
        say(f"{built.out} has no example of {', '.join(empty)}; {REJECTS} there says why")
    else:
        here = Path.cwd()
        paths = (task.relative_to(here) if task.is_relative_to(here) else task for task in dict.fromkeys(tasks))
        audit = shlex.join(
            ["mmlongbench", "audit", str(built.out), *(w for path in paths for w in ("--task", str(path)))]
        )
        say(f"{built.out} {'was complete already' if built.was_complete else 'is complete'}; `{audit}` counts it again")
    _warn_of_unfilled(built, tasks)
    for shortfall in built.shortfalls:
        where = " in the smallest file" if any(" at " in reason for reason in shortfall.rejected) else ""
        say(f"warning: {shortfall.dataset}: kept {shortfall.kept:,} of {shortfall.of:,} questions{where}", err=True)
        for reason, number in shortfall.rejected.items():
            say(f"  rejected {number:,}: {reason}", err=True)
        for question in shortfall.first:
            say(f"  {question}", err=True)
        say(f"  {built.out}/{REJECTS} lists all; --min-kept SHARE stops such a build", err=True)


_FULL = 0.9
"""A context that is filled less than this, because the units run out, is not of its length."""
_READ = 200  # how many records are read to say how full their contexts are


def _warn_of_unfilled(built: Built, tasks: Iterable[Path]) -> None:
    cells = [(name, *cell) for name, data in built.lock.readable.items() for cell in data.cells.items()]
    dry = [(name, length, cell.missing_units) for name, length, cell in cells if cell.ran_dry]
    if not dry or "://" in str(built.out):
        return
    release = open_release(Path(built.out), TaskFiles(tuple(tasks)))
    for name, length, missing in dry:
        file = release.file(name, parse_length(length))
        records = (record for _, record in islice(file.form.unbundle(file.path), _READ))
        fills = [(record["length"] + record["tokens"]["reserve"]) / file.length for record in records]
        _warn_of_fill(name, length, min(fills, default=1.0), missing)


def _warn_of_fill(dataset: str, length: str, fill: float, missing: int) -> None:
    if fill < _FULL:
        said = f"the units run out, and contexts are filled to {fill:.2f} only; about {max(1, missing):,} are missing"
        say(f"warning: {dataset} at {length}: {said}; add sources, or take {length} out of `lengths`", err=True)


def _show_cell(length: str, cell: CellCounts) -> None:
    if cell.missing_units:
        missing = f"up to {cell.missing_units:,} units are missing; no unit is repeated"
        say(f"  {length}: the sources were exhausted before the length was full: {missing}")
    if cell.missing_classes:
        missing = f"{cell.missing_classes:,} classes fewer than the table has"
        say(f"  {length}: {missing}; the sources hold no more in both splits")
    for reason, number in cell.left_out.items():
        say(f"  {length}: excluded, with the next unit taken instead: {number:,} × {reason}")
    for field, counts in cell.balances.items():
        say(f"  {length}: {field}: {', '.join(f'{value} {number:,}' for value, number in counts.items())}")


def _show_documents(documents: DocumentCounts) -> None:
    for dpi, number in documents.images_by_dpi.items():
        say(f"  warning: {number} documents are images rendered at {dpi} DPI by their source, not at the usual 144")
    for document, pages in documents.damaged.items():
        (page, why), more = next(iter(pages.items())), f" and {len(pages) - 1:,} more" if len(pages) > 1 else ""
        say(f"  warning: {document}, page {page}{more}: not drawn whole ({why}); no padding, no evidence")
    if hidden := documents.hidden_text:
        say(f"  text that cannot be seen is left out: {_noted(hidden)} (pages by document)")
    for document, fault in documents.refused.items():
        say(f"  document {document} refused: {fault}")


def _show_notes(notes: Mapping[str, int], retrieval: RetrievalCounts | None) -> None:
    if notes:
        say(f"  {_noted(notes)}")
    if retrieval:
        missing = retrieval.gold_pages - retrieval.ranked_gold_pages
        left = f"; {missing:,} of {retrieval.gold_pages:,} not ranked" if missing else ""
        recall = f"{said_recall(retrieval.recall)} over {retrieval.questions:,} questions"
        say(f"  pages with the answer, ranked by {retrieval.by}: {recall}{left}")


def _noted(notes: Mapping[str, int]) -> str:
    """Return counted notes as one line; what several notes begin with is said once.

    >>> _noted({"joined by title": 2, "not joined": 1, "answer read as List": 3, "answer read as Float": 4})
    'joined by title: 2, not joined: 1, answer read as List: 3, Float: 4'
    """
    parts, before = list[str](), ""
    for note, number in notes.items():
        start, _, last = note.rpartition(" ")
        parts.append(f"{last if start == before and start else note}: {number:,}")
        before = start
    return ", ".join(parts)


@click.command()
@with_manifest
@lengths_option("8K,1M", "Plan these lengths instead of the manifest's.")
@limit_option
@click.option("--probe", type=COUNT, default=5, show_default=True, help="How many questions to pack for the forecast.")
@click.option("--workers", type=COUNT, default=1, show_default=True, help="The number of processes that read.")
@json_option("Print one JSON object for each dataset.")
def plan(manifest: Manifest, lengths: str | None, limit: int | None, probe: int, workers: int, as_json: bool) -> None:
    """Print what MANIFEST would build: questions, examples, images, disk, time, and which units are exhausted first.

    The sources are read and a few questions are packed, but nothing is kept. Exits with 1 if a dataset cannot be built.
    """
    chosen = narrowed(manifest, lengths, limit)
    has_problem = False
    for dataset in forecast(chosen, LocalExecutor(workers, bars(is_quiet=as_json)), probe):
        has_problem |= bool(dataset.problem)
        if as_json:
            retrieval = dataset.retrieval.model_dump(mode="json") if dataset.retrieval else None
            click.echo(json.dumps({**asdict(dataset), "retrieval": retrieval}))
        elif dataset.problem:
            say(f"{dataset.name}: cannot be built: {dataset.problem}")
        else:
            _show_forecast(dataset)
    if has_problem:
        sys.exit(1)


def _show_forecast(dataset: DatasetForecast) -> None:
    left_out = ""
    for what, counts in (("rejected", dataset.rejected), ("skipped", dataset.skipped)):
        if counts:
            left_out += f"; {what}: {', '.join(f'{count} × {reason}' for reason, count in counts.items())}"
    say(f"{dataset.name}: {dataset.questions:,} questions{left_out}")
    for reject in dataset.rejects[:_REJECTS]:
        say(f"  {reject}")
    if len(dataset.rejects) > _REJECTS:
        say(f"  … and {len(dataset.rejects) - _REJECTS:,} more; --json lists all")
    for note in dataset.notes:
        say(f"  note: {note}")
    _show_notes(dataset.noted, dataset.retrieval)
    if opened := dataset.opened_bytes:
        size = f"{opened / _MB:,.0f} MB" if opened >= _MB else f"{opened:,} bytes"
        say(f"  sources: {size} unpacked or downloaded, kept in OUT/.build until the release is finished")
    if dataset.ocr_pages:
        seconds = "in seconds each; this forecast takes the texts of the PDFs instead"
        say(f"  OCR reads {dataset.ocr_pages:,} pages in the build, {seconds}")
    for cell in dataset.cells:
        size = f"fill {cell.fill:.3f}, about {cell.bytes / _MB:.1f} MB and {cell.seconds:.0f} s"
        say(f"  {format_length(cell.length):>5}: {cell.examples:,} examples, {cell.images:.1f} images each, {size}")
        shortages = []
        if cell.rejected:
            probed = f"{cell.rejected} of {dataset.probed} probed questions do not fit, or the task refuses them"
            shortages.append(f"{probed}: they would be rejected at this length")
        if cell.ran_dry:
            units = f"{cell.left_over or 'all'} units run out first, by up to {cell.missing:,}"
            shortages.append(f"{units}: contexts end there, nothing is repeated, and the lock says so")
        if shortages:
            say(f"         {'; '.join(shortages)}")
        if cell.ran_dry:
            _warn_of_fill(dataset.name, format_length(cell.length), cell.fill, cell.missing)
    size = f"{dataset.image_bytes / _MB:,.0f} MB, {dataset.image_seconds:.0f} s"
    probed = f"all from {dataset.probed} questions, one process"
    say(f"  images: about {dataset.image_files:,} files, {size} ({probed})")
