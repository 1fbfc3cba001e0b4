"""The commands `publish`, `rights` and `takedown`: what leaves this machine, and what may."""

import datetime
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import click

from mmlongbench.cli.console import print_table, say, say_notes
from mmlongbench.cli.options import FILE, FOLDER, NEW_PATH, bars, json_option, options_of, with_tasks
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.publishing.facts import About, read_about
from mmlongbench.publishing.publish import Publishing, repository_of, upload
from mmlongbench.publishing.publish import publish as make_folder
from mmlongbench.publishing.rights import Rights, rights_of_release
from mmlongbench.publishing.takedown import Kind, Withdrawal, take_down
from mmlongbench.table import Table, Value


@click.command()
@click.argument("release", type=FOLDER)
@click.option("--document", metavar="ID", help="Take out a document, an article or a web page.")
@click.option("--image", metavar="PATH", help="Take out an image, by its path below mmlb_image/.")
@click.option("--source", metavar="ID", help="Take out a source: dataset/source, or its name in all datasets.")
@click.option("--out", required=True, metavar="NEW", type=NEW_PATH, help="The folder of the new release.")
@click.option(
    "--date", type=click.DateTime(["%Y-%m-%d"]), help="The day that the tombstone has; today by default, as 2026-11-25."
)
@json_option()
@with_tasks
def takedown(
    release: Path,
    document: str | None,
    image: str | None,
    source: str | None,
    out: Path,
    date: datetime.datetime | None,
    as_json: bool,
    tasks: TaskFiles,
) -> None:
    """Write RELEASE anew without every example that shows a document, an image or a source.

    Everything with the same bytes or the same text goes too; images that look alike are named. All other examples and
    files keep their bytes.
    """
    asked: dict[Kind, str | None] = {"document": document, "image": image, "source": source}
    given = [Withdrawal(kind, id) for kind, id in asked.items() if id]
    if len(given) != 1:
        raise click.UsageError("give one of --document, --image and --source")
    day = (date or datetime.datetime.now(datetime.UTC)).date().isoformat()
    made = take_down(release, given[0], out, day, bars(is_quiet=as_json), tasks)
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


@click.command()
@click.argument("release", type=FOLDER)
@json_option()
@click.option("--check", is_flag=True, help="Exit with 1 if an image, a text or a source has no licence.")
def rights(release: Path, as_json: bool, check: bool) -> None:
    """Show where the images and texts of RELEASE come from, under which licences, and what these allow together.

    Licences are those that the manifest states. What files say about themselves is shown beside them, and never
    believed. This is a summary to plan by, and no legal advice.
    """
    found = rights_of_release(release)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json")))
    else:
        _show_rights(release, found)
    if check and found.without_licence:
        sys.exit(1)


def _show_rights(release: Path, found: Rights) -> None:
    rows: list[tuple[Value, ...]] = []
    for source in found.sources:
        licence = source.licence or (f"unknown: {source.reason}" if source.reason else "unknown")
        shares = (_share(known, source.assets) for known in (source.with_licence, source.with_origin))
        rows.append((source.name, licence, source.images, source.texts, *shares))
    columns = ("source", "licence", "images", "texts", "licence known", "origin known")
    print_table(Table(columns, rows, align="ll"))
    for source in found.sources:
        for hint in source.contradictions:
            say(f"metadata against {source.licence} of {source.name}: {hint}")
    for demand in found.demands:
        more = f"; and {len(demand.sources) - 3} more" if len(demand.sources) > 3 else ""
        say(f"{demand.condition}: {'; '.join(demand.sources[:3])}{more}")
    for sentence in found.advice:
        say(f"advice: {sentence}")
    assets = found.images + found.texts
    may = "may be passed on" if found.may_be_shared else "may not be passed on without asking"
    known = f"{_share(found.with_licence, assets)} with a licence, {_share(found.with_origin, assets)} with an origin"
    say(f"{release.name}: {assets:,} assets, {known}; {may}")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


@click.command()
@click.argument("release", type=FOLDER)
@click.option("--out", required=True, metavar="DIR", type=NEW_PATH, help="The folder, which is new or empty.")
@click.option("--to", metavar="hub:OWNER/NAME", help="Upload the folder to this dataset of the Hub.")
@click.option("--public", is_flag=True, help="A dataset that is made by --to is seen by everybody, not only by you.")
@click.option("--about", type=FILE, help="What you say about the release: a YAML file.")
@options_of(
    Publishing,
    "publishing",
    without=("about", "repository"),
    shortcuts={"type": FILE},
    audit={"type": FILE},
    cleared={"option": "--cleared"},
    after={"type": FOLDER},
)
@json_option()
@with_tasks
def publish(
    release: Path,
    out: Path,
    to: str | None,
    public: bool,
    about: Path | None,
    publishing: Publishing,
    as_json: bool,
    tasks: TaskFiles,
) -> None:
    """Make a folder from RELEASE that is ready to publish: tables, card, metadata, licences, citation, checksums.

    Nothing leaves this machine without --to. Files whose licence forbids to pass them on, or to change them, are never
    in the folder.
    """
    if public and not to:
        raise click.UsageError("--public has no effect without --to: leave it out")
    name = repository_of(to) if to else ""
    how = replace(publishing, about=read_about(about) if about else About(), repository=name)
    made = make_folder(release, out, how, bars(is_quiet=as_json), tasks)
    uploaded = upload(out, name, is_public=public) if to else None
    if as_json:
        values = {**asdict(made), "out": str(made.out), "uploaded": asdict(uploaded) if uploaded else None}
        click.echo(json.dumps(values))
        return
    if made.left_out:
        say(f"note: {made.left_out:,} examples are left out, because a licence forbids to publish them", err=True)
    say_notes(made.notes)
    if made.missing:
        say(f"note: not said: {', '.join(made.missing)}; give them in the file of --about", err=True)
    if made.incomplete:
        say(f"note: croissant.json lacks {', '.join(made.incomplete)}, which conferences require", err=True)
    share = made.bytes / made.image_bytes if made.image_bytes else 0
    size = f", {share:.3f} times the bytes of its {made.images:,} images" if share else ""
    say(f"{made.out}: {made.examples:,} examples; {made.files:,} files, {made.bytes:,} bytes{size}")
    practices = ", ".join(f"{count:,} {state}" for state, count in made.practices.items())
    say(f"practices: {practices}; {made.out}/README.md is the card")
    if uploaded:
        say(f"uploaded to {uploaded.url}, commit {uploaded.commit[:12]}")
