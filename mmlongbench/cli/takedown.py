"""The subcommand `takedown`: a release without a document, an image or a source."""

import datetime
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.task_option import with_tasks

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.publishing.withdrawn import Kind


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--document", metavar="ID", help="Take out a document, an article or a web page.")
@click.option("--image", metavar="PATH", help="Take out an image, by its path below mmlb_image/.")
@click.option("--source", metavar="ID", help="Take out a source: dataset/source, or its name in all datasets.")
@click.option(
    "--out", required=True, metavar="NEW", type=click.Path(path_type=Path), help="The folder of the new release."
)
@click.option(
    "--date", type=click.DateTime(["%Y-%m-%d"]), help="The day that the tombstone has; today by default, as 2026-11-25."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_tasks
def takedown(
    release: Path,
    document: str | None,
    image: str | None,
    source: str | None,
    out: Path,
    date: datetime.datetime | None,
    as_json: bool,
    tasks: "TaskFiles",
) -> None:
    """Write RELEASE anew without every example that shows a document, an image or a source.

    Everything with the same bytes or the same text goes too; images that look alike are named. All other examples and
    files keep their bytes.
    """
    from mmlongbench.io.progress import Progress
    from mmlongbench.publishing.takedown import take_down
    from mmlongbench.publishing.withdrawn import Withdrawal

    asked: dict[Kind, str | None] = {"document": document, "image": image, "source": source}
    given = [(kind, id) for kind, id in asked.items() if id]
    if len(given) != 1:
        raise click.UsageError("give one of --document, --image and --source")
    day = (date or datetime.datetime.now(datetime.UTC)).date().isoformat()
    made = take_down(release, Withdrawal(*given[0]), out, day, Progress(False if as_json else None), tasks)
    if as_json:
        said = {**asdict(made), "out": str(made.out), "tombstone": made.tombstone.model_dump()}
        click.echo(json.dumps(said))
        return
    stone = made.tombstone
    dropped = sum(stone.examples.values())
    say(
        f"{out}: {dropped:,} examples of {len(stone.examples):,} files, {stone.images:,} images and {stone.texts:,} "
        f"texts were taken out; {made.untouched:,} files are the same"
    )
    if stone.equal:
        say(f"{stone.equal:,} of the images and texts equal it, or show the same page, under another name")
    if made.sourceless:
        say(f"{made.sourceless:,} images and texts went because it is not known which source they are of")
    for path in made.near or ():
        say(f"looks like it, and stays: {path}")
    if made.near is None:
        say("too many images went to search others that look alike")
    datasets = f" (in {', '.join(made.exclude_from)})" if made.exclude_from else ""
    say(f"for a rebuild, in the manifest: {made.exclude}{datasets}")
