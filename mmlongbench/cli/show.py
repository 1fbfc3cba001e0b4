"""The subcommand `show`: one example of a release as a model gets it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.task_option import with_tasks

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.release.finding import FoundExample, Place
    from mmlongbench.release.opened import Example, Release


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("id", required=False)
@click.option(
    "--dataset", metavar="NAME", help="The dataset of the example; by default the first dataset that has the example."
)
@click.option("--length", metavar="8K", help="The length of the example; by default the shortest one.")
@click.option(
    "--placement",
    type=float,
    metavar="NUMBER",
    help="Its depth, such as 0.2, or its permutation; by default the first.",
)
@click.option("--full", is_flag=True, help="Show all texts and all units in full.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write an HTML page with the images.")
@click.option("--messages", "as_messages", is_flag=True, help="Print the messages that a model is sent, as JSON.")
@click.option(
    "--images",
    metavar="FORM|URL",
    help="With --messages, how images are given: path (the default), file-url, data-uri, or the URL that serves "
    "mmlb_image/.",
)
@click.option(
    "--max-pixels",
    type=click.IntRange(min=1),
    help="With --messages --images data-uri, shrink images with more pixels; each is named on standard error.",
)
@with_tasks
def show(
    release: Path,
    id: str | None,
    dataset: str | None,
    length: str | None,
    placement: float | None,
    full: bool,
    html: Path | None,
    as_messages: bool,
    images: str | None,
    max_pixels: int | None,
    tasks: "TaskFiles",
) -> None:
    """Show one example of RELEASE as a model gets it: the example ID, or the first one.

    Each unit of the context is shown with the tokens before it and its role. Gold passages, needles and pages with the
    answer are marked with >>. Long texts and long runs of similar units are folded.
    """
    from mmlongbench.release.finding import Wanted, find_example
    from mmlongbench.release.opened import open_release

    if (images or max_pixels) and not as_messages:
        raise click.UsageError("--images and --max-pixels need --messages")
    if as_messages and (html or full):
        raise click.UsageError("--messages prints JSON alone: leave out --html and --full")
    opened = open_release(release, tasks)
    found = find_example(opened, Wanted(id, dataset, length, placement))
    if as_messages:
        _print_messages(found.example, images or "path", max_pixels)
    elif html:
        _write_page(opened, found.example, html)
    else:
        from mmlongbench.cli.example_view import show_example
        from mmlongbench.release.showing import shown_example

        show_example(shown_example(opened, found.example), is_full=full)
        for line in _elsewhere(found, id, is_placed=placement is not None):
            say(line)


def _print_messages(example: "Example", images: str, max_pixels: int | None) -> None:
    made = example.messages(images, max_pixels=max_pixels)
    # the stream shows this character as an escape that JSON does not have; `dumps` leaves it as it is
    click.echo(json.dumps(made, indent=2).replace("\x7f", "\\u007f"))
    for path, (old, new) in made.shrunk.items():
        say(f"note: {path}: {old[0]} × {old[1]} made smaller, {new[0]} × {new[1]}", err=True)


def _write_page(release: "Release", example: "Example", path: Path) -> None:
    from mmlongbench.release.showing import shown_example
    from mmlongbench.web.kit import write_page
    from mmlongbench.web.show_page import embedded_bytes, show_page

    found = shown_example(release, example)
    is_embedded = embedded_bytes(release, found) is not None
    write_page(path, show_page(release, found))
    count = f"{len(found.images):,} image{'' if len(found.images) == 1 else 's'}"
    said = f"with {count} inside" if is_embedded else f"refers to {count} of the release"
    say(f"{path}: written, {said}" if found.images else f"{path}: written")


def _elsewhere(found: "FoundExample", id: str | None, *, is_placed: bool) -> list[str]:
    """Return a line that says where else the question stands, with the options that choose it; or no line."""
    from mmlongbench.lengths import format_length

    place, others = found.place, found.others
    every = [place, *others]
    said = []
    datasets = list(dict.fromkeys(each.dataset for each in others if each.dataset != place.dataset))
    if datasets and id is not None:
        said.append(f"--dataset {', '.join(datasets)}")
    own = [each for each in every if each.dataset == place.dataset]
    if lengths := sorted({each.length for each in own} - {place.length}):
        said.append(f"--length {', '.join(map(format_length, lengths))}")
    placements = _other_placements(own, place)
    if placements and not is_placed:
        said.append(f"--placement {', '.join(f'{each:g}' for each in placements)}")
    return [f"more of {found.example.id}: {'; '.join(said)}"] if said else []


def _other_placements(own: "list[Place]", place: "Place") -> list[float]:
    found = {each.placement for each in own if each.length == place.length and each.placement != place.placement}
    return sorted(each for each in found if each is not None)
