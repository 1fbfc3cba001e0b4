"""The page of one example: its question and answer, its tokens to scale, its prompt as a list, and what models said."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.lengths import format_length
from mmlongbench.messages import Message, messages
from mmlongbench.release.layout import IMAGES
from mmlongbench.web.kit import render
from mmlongbench.web.viewer.index_lines import IndexRow
from mmlongbench.web.viewer.opened import keys_of
from mmlongbench.web.viewer.prompt_list import chunk, on_model, outline, text
from mmlongbench.web.viewer.records import answer_text
from mmlongbench.web.viewer.site import Links, Site
from mmlongbench.web.viewer.sources import ViewedFile


@dataclass(frozen=True, slots=True)
class Place:
    """A link to another place of a question, or to another example."""

    name: str
    url: str
    """Empty if the site does not have the example."""
    is_here: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """The addresses of other examples of the file; empty where there is none."""

    previous: str
    next: str
    wrong: str
    """The next example that a model has wrong; after the last one, the first."""


def example_page(site: Site, links: Links, file: ViewedFile, number: int) -> Iterator[str]:
    """Yield the page of an example in pieces. An example that cannot be read has a page that says why.

    Raises:
        ReleaseError: there is no such row.

    """
    row = site.row(file, number)
    try:
        opened, fault = site.open(file, number), ""
    except MMLongBenchError as error:
        opened, fault = None, str(error)
    lengths, placements = _places(site, links, file, row)
    names = site.viewed.datasets
    return render(
        "view_example.html",
        title=f"{row.name}{f', {row.placed}' if row.placed else ''} · {format_length(file.length)}",
        site=site,
        links=links,
        file=file,
        row=row,
        dataset_url=links.dataset(names.index(file.dataset)),
        length=format_length(file.length),
        opened=opened,
        fault=fault,
        answer=answer_text(opened.example.answer) if opened else row.answer,
        lengths=lengths,
        placements=placements,
        around=around(site, links, file, number),
        answers=site.answers.of(file, row),
        key=f"example/{file.number}/{number}",
        shorter=_shorter_name(site, file, row),
        of=site.index.head(file.number).rows,
    )


def _places(site: Site, links: Links, file: ViewedFile, row: IndexRow) -> tuple[list[Place], list[Place]]:
    """Return the lengths of a question, and its placements at this length; a length leads to the same placement."""
    every = sorted(
        [(file, row), *site.elsewhere(file, row)],
        key=lambda pair: (pair[0].length, pair[1].placement if pair[1].placement is not None else -1.0),
    )
    by_length: dict[int, tuple[ViewedFile, IndexRow]] = {}
    for other, each in every:
        if other.length not in by_length or each.placement == row.placement:
            by_length[other.length] = (other, each)
    by_length[file.length] = (file, row)
    lengths = [
        Place(format_length(length), links.example(other, each.row), other is file)
        for length, (other, each) in by_length.items()
    ]
    here = [(other, each) for other, each in every if other is file and each.placement is not None]
    placements = [Place(f"{each.placement:g}", links.example(other, each.row), each is row) for other, each in here]
    return lengths, placements


def around(site: Site, links: Links, file: ViewedFile, number: int) -> Around:
    """Return the addresses of the examples before and after one."""
    rows = site.index.file(file.number).rows
    after = [*rows[number + 1 :], *rows[:number]]
    wrong = next((each for each in after if site.answers.is_wrong(file, each)), None)
    return Around(
        previous=links.example(file, number - 1) if number > 0 else "",
        next=links.example(file, number + 1) if number + 1 < len(rows) else "",
        wrong=links.example(file, wrong.row) if wrong else "",
    )


def _shorter_name(site: Site, file: ViewedFile, row: IndexRow) -> str:
    found = site.shorter(file, row)
    return format_length(found[0].length) if found else ""


def outline_data(site: Site, file: ViewedFile, number: int) -> dict[str, object]:
    """Return the outline of an example, in which units that a shorter context lacks are marked.

    Raises:
        MMLongBenchError: the example cannot be read.

    """
    opened = site.open(file, number)
    found = site.shorter(file, opened.row)
    return outline(opened, _keys(site, *found) if found else None)


def _keys(site: Site, file: ViewedFile, row: IndexRow) -> frozenset[str] | None:
    """Return the keys of the units of an example; None if it cannot be read."""
    units = site.index.units(file.number, row)
    if units.id:
        return frozenset(units.id)
    try:
        return keys_of(site.read(file, row.row).blocks)
    except MMLongBenchError:
        return None


def chunk_data(site: Site, file: ViewedFile, number: int, place: int, *, is_whole: bool = False) -> list[object]:
    """Return the rows of a chunk of an example's list.

    Raises:
        MMLongBenchError: the example cannot be read, or there is no such chunk.

    """
    opened = site.open(file, number)
    numbers = {path: at for at, path in enumerate(site.index.images(file.number))}
    return chunk(opened, place, numbers, is_whole=is_whole)


def text_data(site: Site, file: ViewedFile, number: int, block: int, piece: int) -> dict[str, object]:
    """Return a whole text of an example.

    Raises:
        MMLongBenchError: the example cannot be read, or there is no such text.

    """
    return text(site.open(file, number), block, piece)


def model_data(site: Site, file: ViewedFile, number: int, model: int) -> dict[str, object]:
    """Return what the blocks of an example cost on a model.

    Raises:
        MMLongBenchError: the example cannot be read, or there is no such model.

    """
    if not 0 <= model < len(site.models):
        raise ReleaseError(f"there is no model {model}")
    return on_model(site.open(file, number), site.models[model])


def message_data(site: Site, file: ViewedFile, number: int) -> Sequence[Message]:
    """Return the prompt as messages; images are given by their paths below the release.

    Raises:
        MMLongBenchError: the example cannot be read.

    """
    return messages(site.open(file, number).example.prompt, lambda path: f"{IMAGES}/{path}")
