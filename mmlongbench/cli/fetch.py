"""The subcommand `fetch`: downloads the sources of a manifest, and says what is left to do."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.manifest.download_record import Fetched, FetchedPlace, LeftToDo, Place
    from mmlongbench.manifest.model import Manifest


@click.command()
@click.argument("manifest")
@click.option(
    "--to", type=click.Path(path_type=Path, file_okay=False), required=True, help="The data folder; it may have files."
)
@click.option("--only", multiple=True, metavar="DATASET", help="Fetch the sources of this dataset; may be repeated.")
@click.option("--dry-run", is_flag=True, help="List the places and what is there; ask no server, and write nothing.")
@click.option(
    "--update", is_flag=True, help="Replace files whose place has newer ones; without it, downloaded files stay."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only problems and errors.")
def fetch(manifest: str, to: Path, only: tuple[str, ...], dry_run: bool, update: bool, quiet: bool) -> None:
    """Download the sources of MANIFEST that a program may download, and explain how to get the others.

    A file that is there is checked, and downloaded again only if it is wrong. Run the same command again to continue a
    download that was stopped. Exits with 1 if a file is missing that a program may download.
    """
    from mmlongbench.manifest.loading import find_manifest, load_manifest

    loaded = load_manifest(find_manifest(manifest))
    if dry_run:
        _list(loaded, to, only)
        return
    from mmlongbench.io.progress import Progress
    from mmlongbench.manifest.fetch import fetch as run

    done = run(loaded, to, only=only, update=update, progress=Progress(False if quiet else None))
    _show(done, is_quiet=quiet)
    if not quiet:
        _show_next(loaded, manifest, done, is_all=not only or {*only} == {each.name for each in loaded.datasets})
    if not done.is_complete:
        sys.exit(1)


def _show(done: "Fetched", *, is_quiet: bool) -> None:
    for place in done.places:
        for note in place.notes:
            say(f"note: {note}", err=True)
        if not is_quiet:
            _show_place(place)
        for problem in place.problems:
            say(f"problem: {problem}", err=True)


def _show_place(place: "FetchedPlace") -> None:
    from mmlongbench.io.files import said_bytes

    commit = f" at {place.commit[:12]}" if place.commit else ""
    if not place.files:
        say(f"{place.name}: its files could not be listed")
        return
    said = f"{place.there:,} of {place.files:,} files are there ({said_bytes(place.bytes)})"
    said = f"{said}, {place.downloaded:,} downloaded now" if place.downloaded else said
    say(f"{place.name}{commit} → {place.folder}: {said}")


def _show_next(loaded: "Manifest", manifest: str, done: "Fetched", *, is_all: bool) -> None:
    """Print what a person has to do, and the command that builds; `is_all` says whether the sources of all datasets
    were fetched.
    """
    left = [each for each in done.left if not each.is_there]
    for each in left:
        _show_steps(each, done.folder)
    if any(place.there for place in done.places):
        say(f"{done.folder / 'downloads.json'} has the size and the SHA-256 of each file")
    data = ["--data", str(done.folder)] if any(dataset.downloads for dataset in loaded.datasets) else []
    is_ready = is_all and done.is_complete and not left
    what = "everything is" if is_all else "the sources of all datasets are"
    first = "build with" if is_ready else f"when {what} there, build with"
    say(f"{first}: {shlex.join(['mmlongbench', 'build', manifest, *data, '--out', 'release'])}")


def _show_steps(left: "LeftToDo", data: Path) -> None:
    licence = left.licence or "not stated"
    say(f"{left.folder} is left to you, for {', '.join(left.datasets)} (licence: {licence}); in {data}:")
    for number, step in enumerate(left.steps, start=1):
        say(f"  {number}. {step}")


def _list(loaded: "Manifest", to: Path, only: tuple[str, ...]) -> None:
    """Print the places of a manifest, what they give, and what is there, without asking a server."""
    from mmlongbench.manifest.download_record import load_record, places_of, state_of

    places = places_of(loaded, only)
    record = load_record(to)
    for place in places:
        say(f"{_named(place)} → {to / place.spec.to}")
        say(f"  for {', '.join(place.datasets)}; licence: {place.licence or 'not stated'}")
        for line in _described(place):
            say(f"  {line}")
        say(f"  {state_of(place, to, record)}")
    if not places:
        say("nothing to download: the manifest names no downloads")


def _named(place: "Place") -> str:
    return place.spec.name if not place.spec.steps else "by hand"


def _described(place: "Place") -> list[str]:
    """Return what a user must know about a place, one line each."""
    spec = place.spec
    lines = [f"files: {', '.join(spec.files)}{f' at {spec.revision}' if spec.revision else ''}"] if spec.hub else []
    lines += [f"{number}. {step}" for number, step in enumerate(spec.steps, start=1)]
    lines += [f"agree first to {spec.agree}"] if spec.agree else []
    lines += ["unverified: nothing confirms this place"] if spec.unverified else []
    return lines
