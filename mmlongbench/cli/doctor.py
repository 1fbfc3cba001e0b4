"""The subcommand `doctor`: finds annotations of a source that may be wrong, and drafts errata."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.manifest_options import with_manifest
from mmlongbench.cli.task_option import say_code

if TYPE_CHECKING:
    from mmlongbench.manifest.model import Manifest


@click.command()
@with_manifest
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write a draft of errata to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each suspect, with its row.")
def doctor(given: "Manifest", out: Path | None, as_json: bool) -> None:
    """List annotations of MANIFEST's sources that may be wrong; nothing is changed.

    It finds answer pages that a document does not have, answers whose text is only on another page, and documents with
    other page numbers, and says how many answers it could not look for and why. Check each finding before you use it.
    """
    from mmlongbench.building.doctor import errata_file, examine
    from mmlongbench.io.progress import Progress

    if out and out.exists():
        raise click.UsageError(
            f"--out {out}: already exists, and manual changes in it would be lost; give another file"
        )
    errata: dict[str, Mapping[str, object]] = {}
    say_code(given)
    for found in examine(given, Progress(False if as_json else None)):
        errata.update(found.errata)
        for suspect in found.suspects:
            if as_json:
                fields = found.fields.get(suspect.id, {})
                click.echo(json.dumps({"dataset": found.dataset, **asdict(suspect), "fields": fields}, default=str))
            else:
                proposal = f" → {dict(suspect.correction)}" if suspect.correction else ""
                say(f"{suspect.id}  {suspect.kind}: {suspect.evidence}{proposal}")
        if not as_json:
            say(
                f"{found.dataset}: {len(found.suspects)} suspects among {found.rows} rows, {len(found.errata)} with a "
                "correction to look at"
            )
            if unknown := sum(found.not_judged.values()):
                say(f"  nothing is known about the answer pages of {unknown} more rows:")
            for reason, number in sorted(found.not_judged.items(), key=lambda each: -each[1]):
                say(f"  {number:>5,}  {reason}")
    if out:
        out.write_text(errata_file(errata), encoding="utf-8")
        if not as_json:
            say(f"{out}: check each correction, then name this file in the manifest (errata: {out.name})")
