"""The subcommand `publish`: a folder ready to publish, and its upload."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.task_option import with_tasks

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.publishing.publish import Published

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="The folder, which is new or empty."
)
@click.option("--to", metavar="hub:OWNER/NAME", help="Upload the folder to this dataset of the Hub.")
@click.option("--public", is_flag=True, help="A dataset that is made by --to is seen by everybody, not only by you.")
@click.option("--about", type=_FILE, help="What you say about the release: a YAML file.")
@click.option("--shortcuts", type=_FILE, help="The output of `shortcuts --json`, for the card.")
@click.option("--audit", type=_FILE, help="The output of `audit --json`, for the card.")
@click.option("--allow-unknown-licence", is_flag=True, help="Publish images and texts of which no licence is known.")
@click.option(
    "--cleared",
    multiple=True,
    metavar="LICENCE",
    help="A licence whose terms allow it, or whose owner agreed; may be repeated.",
)
@click.option(
    "--after",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="An earlier publication: its tables stay as they are where they can, so --to sends only what is new.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_tasks
def publish(
    release: Path,
    out: Path,
    to: str | None,
    public: bool,
    about: Path | None,
    shortcuts: Path | None,
    audit: Path | None,
    allow_unknown_licence: bool,
    cleared: tuple[str, ...],
    after: Path | None,
    as_json: bool,
    tasks: "TaskFiles",
) -> None:
    """Make a folder from RELEASE that is ready to publish: tables, card, metadata, licences, citation, checksums.

    Nothing leaves this machine without --to. Files whose licence forbids to pass them on, or to change them, are never
    in the folder.
    """
    from mmlongbench.io.progress import Progress
    from mmlongbench.publishing.about import About, read_about
    from mmlongbench.publishing.publish import Publishing
    from mmlongbench.publishing.publish import publish as make
    from mmlongbench.publishing.upload import repository_of, upload

    if public and not to:
        raise click.UsageError("--public has no effect without --to: leave it out")
    name = repository_of(to) if to else ""
    said = read_about(about) if about else About()
    how = Publishing(said, name, shortcuts, audit, allow_unknown_licence, cleared, after)
    made = make(release, out, how, Progress(False if as_json else None), tasks)
    done = upload(out, name, is_public=public) if to else None
    if as_json:
        found = {**asdict(made), "out": str(made.out), "uploaded": asdict(done) if done else None}
        click.echo(json.dumps(found))
        return
    _show(made)
    if done:
        say(f"uploaded to {done.url}, commit {done.commit[:12]}")


def _show(made: "Published") -> None:
    if made.left_out:
        say(f"note: {made.left_out:,} examples are left out, because a licence forbids to publish them", err=True)
    for note in made.notes:
        say(f"note: {note}", err=True)
    if made.missing:
        say(f"note: not said: {', '.join(made.missing)}; give them in the file of --about", err=True)
    if made.incomplete:
        say(f"note: croissant.json lacks {', '.join(made.incomplete)}, which conferences require", err=True)
    share = made.bytes / made.image_bytes if made.image_bytes else 0
    size = f", {share:.3f} times the bytes of its {made.images:,} images" if share else ""
    say(f"{made.out}: {made.examples:,} examples; {made.files:,} files, {made.bytes:,} bytes{size}")
    counts = ", ".join(f"{count:,} {state}" for state, count in made.practices.items())
    say(f"practices: {counts}; {made.out}/README.md is the card")
