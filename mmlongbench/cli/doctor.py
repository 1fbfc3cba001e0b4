"""The subcommand `doctor`: finds annotations of a source that may be wrong, and drafts errata."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.task_option import say_code


@click.command()
@click.argument("manifest")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override: [dataset.]key=value.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write a draft of errata to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each suspect.")
def doctor(manifest: str, settings: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """List annotations of MANIFEST's sources that may be wrong; nothing is changed.

    It finds answer pages that a document does not have, answers whose text is only on another page, and documents with
    other page numbers. Check each finding before you use it.
    """
    from mmlongbench.building.doctor import errata_file, examine
    from mmlongbench.io.progress import Progress
    from mmlongbench.manifest.builtin_manifests import find_manifest
    from mmlongbench.manifest.model import load_manifest

    if out and out.exists():
        raise click.UsageError(
            f"--out {out}: already exists, and manual changes in it would be lost; give another file"
        )
    errata: dict[str, Mapping[str, object]] = {}
    loaded = load_manifest(find_manifest(manifest), settings)
    say_code(loaded)
    for found in examine(loaded, Progress(False if as_json else None)):
        errata.update(found.errata)
        for suspect in found.suspects:
            if as_json:
                click.echo(json.dumps({"dataset": found.dataset, **asdict(suspect)}))
            else:
                proposal = f" → {dict(suspect.correction)}" if suspect.correction else ""
                say(f"{suspect.id}  {suspect.kind}: {suspect.evidence}{proposal}")
        if not as_json:
            say(
                f"{found.dataset}: {len(found.suspects)} suspects among {found.rows} rows, {len(found.errata)} with a "
                "correction to look at"
            )
    if out:
        out.write_text(errata_file(errata), encoding="utf-8")
        if not as_json:
            say(f"{out}: check each correction, then name this file in the manifest (errata: {out.name})")
