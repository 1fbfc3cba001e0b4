"""The subcommand `plan`: forecasts a build before anything is built."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.options import lengths_option, say_code, with_manifest

if TYPE_CHECKING:
    from mmlongbench.building.forecast import CellForecast, DatasetForecast
    from mmlongbench.manifest.model import Manifest

_MB = 1024 * 1024
_REJECTS = 20
"""How many rejected rows are printed."""


@click.command()
@with_manifest
@lengths_option("8K,1M", "Plan these lengths instead of the manifest's.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="The maximum number of questions of each dataset; which ones is drawn."
)
@click.option(
    "--probe",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="How many questions to pack for the forecast.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="The number of processes that read."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each dataset.")
def plan(
    given: "Manifest",
    lengths: str | None,
    limit: int | None,
    probe: int,
    workers: int,
    as_json: bool,
) -> None:
    """Print what MANIFEST would build: questions, examples, images, disk, time, and which units are exhausted first.

    The sources are read and a few questions are packed, but nothing is kept. Exits with 1 if a dataset cannot be built.
    """
    from mmlongbench.building.executors.local import LocalExecutor
    from mmlongbench.building.forecast import forecast
    from mmlongbench.io.progress import Progress
    from mmlongbench.manifest.loading import narrowed

    loaded = narrowed(given, lengths, limit)
    say_code(loaded)
    has_problem = False
    for found in forecast(loaded, LocalExecutor(workers, Progress(False if as_json else None)), probe):
        has_problem |= bool(found.problem)
        if as_json:
            click.echo(json.dumps(_plain(found)))
        else:
            _show(found)
    if has_problem:
        sys.exit(1)


def _plain(found: "DatasetForecast") -> dict[str, object]:
    retrieval = found.retrieval.model_dump(mode="json") if found.retrieval else None
    return {**asdict(found), "retrieval": retrieval}


def _show(found: "DatasetForecast") -> None:
    from mmlongbench.cli.tables import said_notes, said_retrieval
    from mmlongbench.lengths import format_length

    if found.problem:
        say(f"{found.name}: cannot be built: {found.problem}")
        return
    rejected, skipped = (_counted(counts) for counts in (found.rejected, found.skipped))
    left_out = f"{f'; rejected: {rejected}' if rejected else ''}{f'; skipped: {skipped}' if skipped else ''}"
    say(f"{found.name}: {found.questions:,} questions{left_out}")
    for reject in found.rejects[:_REJECTS]:
        say(f"  {reject}")
    if len(found.rejects) > _REJECTS:
        say(f"  … and {len(found.rejects) - _REJECTS:,} more; --json lists all")
    for note in found.notes:
        say(f"  note: {note}")
    if found.noted:
        say(f"  {said_notes(found.noted)}")
    if found.retrieval:
        say(f"  {said_retrieval(found.retrieval)}")
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


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} × {reason}" for reason, count in counts.items())


def _shortage(cell: "CellForecast", probed: int) -> str:
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
