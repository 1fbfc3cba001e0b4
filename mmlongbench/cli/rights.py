"""The subcommand `rights`: licences and origins of the assets of a release, and what their combination allows."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.publishing.rights import Rights


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--check", is_flag=True, help="Exit with 1 if an image, a text or a source has no licence.")
def rights(release: Path, as_json: bool, check: bool) -> None:
    """Show where the images and texts of RELEASE come from, under which licences, and what these allow together.

    Licences are those that the manifest states. What files say about themselves is shown beside them, and never
    believed. This is a summary to plan by, and no legal advice.
    """
    from mmlongbench.publishing.rights import rights_of_release

    found = rights_of_release(release)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json")))
    else:
        _show(release, found)
    if check and found.without_licence:
        sys.exit(1)


def _show(release: Path, found: "Rights") -> None:
    from mmlongbench.cli.drawing import Table, print_table

    table = Table(box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for name in ("source", "licence"):
        table.add_column(name, overflow="fold")
    for name in ("images", "texts", "licence known", "origin known"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found.sources:
        shares = (_share(known, each.assets) for known in (each.with_licence, each.with_origin))
        licence = each.licence or (f"unknown: {each.reason}" if each.reason else "unknown")
        table.add_row(each.name, licence, f"{each.images:,}", f"{each.texts:,}", *shares)
    print_table(table)
    for each in found.sources:
        for hint in each.contradictions:
            say(f"metadata against {each.licence} of {each.name}: {hint}")
    for demand in found.demands:
        say(f"{demand.condition}: {'; '.join(demand.sources[:3])}{_more(len(demand.sources) - 3)}")
    for sentence in found.advice:
        say(f"advice: {sentence}")
    assets = found.images + found.texts
    may = "may be passed on" if found.may_be_shared else "may not be passed on without asking"
    say(
        f"{release.name}: {assets:,} assets, {_share(found.with_licence, assets)} with a licence, "
        f"{_share(found.with_origin, assets)} with an origin; {may}"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _more(count: int) -> str:
    return f"; and {count} more" if count > 0 else ""
