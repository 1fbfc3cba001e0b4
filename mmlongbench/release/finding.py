"""Finds one example of a release by what a user gives of it: an id, a dataset, a length, a placement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.lengths import format_length
from mmlongbench.manifest.model import length_of
from mmlongbench.release.items import keys_of_items
from mmlongbench.release.opened import Example, Release
from mmlongbench.release.selecting import Selection, select


@dataclass(frozen=True, slots=True)
class Place:
    """Where an example is in a release."""

    dataset: str
    length: int
    placement: float | None
    """The depth, or the number of the permutation; None if there are no placements."""


@dataclass(frozen=True, slots=True)
class FoundExample:
    """An example, and the other places where its question occurs."""

    example: Example
    place: Place
    others: tuple[Place, ...]
    """The other places of examples with this id, among those that the user's words allow."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user says about the example to find; the default is the first example of the release."""

    id: str | None = None
    dataset: str | None = None
    length: str | None = None
    placement: float | None = None


def find_example(release: Release, wanted: Wanted) -> FoundExample:
    """Return the first example that a user's words mean.

    Raises:
        ReleaseError: there is no such example; the error says what there is.

    """
    id = wanted.id if wanted.id is not None else _first_id(release, wanted)
    datasets = (wanted.dataset,) if wanted.dataset is not None else ()
    known: dict[str, None] = {}
    places: list[Place] = []
    for cell in select(release, Selection(datasets)):
        for each, placement in _keys(release, cell.dataset, cell.length):
            known.setdefault(each)
            if each == _escaped(id):
                places.append(Place(cell.dataset, cell.length, placement))
    if not places:
        where = ", ".join(datasets or release.datasets)
        raise ReleaseError(f"{release.path.name}: no example {id!r} in {where}{nearest(id, known)}")
    chosen = _chosen(release, id, places, wanted)
    place = chosen[0]
    example = release.example(place.dataset, place.length, id, place.placement)
    return FoundExample(example, place, tuple(each for each in places if each != place))


def _first_id(release: Release, wanted: Wanted) -> str:
    """Return the id of the first example."""
    selection = Selection(
        (wanted.dataset,) if wanted.dataset is not None else (),
        (wanted.length,) if wanted.length is not None else (),
    )
    for cell in select(release, selection):
        for id in release.ids(cell.dataset, cell.length):
            return id
    raise ReleaseError(f"{release.path.name}: has no example{f' in {wanted.dataset}' if wanted.dataset else ''}")


def _keys(release: Release, dataset: str, length: int) -> Iterator[tuple[str, float | None]]:
    """Yield (id, placement) of each example of a file, ids as items spell them. They are read from the items, which is
    much faster, or from the records if the items do not have all examples.
    """
    counted = release.lock.readable[dataset].cells.get(format_length(length))
    try:
        keys = keys_of_items(release.path, release.file(dataset, length)) or []
    except ReleaseError:
        keys = []  # the example that is shown reports damaged items
    if counted and len(keys) == counted.examples:
        yield from keys
    else:
        yield from ((_escaped(id), placement) for id, placement in release.keys(dataset, length))


def _escaped(id: str) -> str:
    """Return an id as items spell it: characters that UTF-8 cannot hold are escapes."""
    return id.encode("utf-8", "backslashreplace").decode()


def _chosen(release: Release, id: str, places: Sequence[Place], wanted: Wanted) -> Sequence[Place]:
    """Return the places at the length and the placement that a user wants.

    Raises:
        ReleaseError: there is none; the error says which lengths and placements there are.

    """
    name = release.path.name
    if wanted.length is not None:
        tokens = length_of(wanted.length)
        lengths = sorted({place.length for place in places})
        places = [place for place in places if place.length == tokens]
        if not places:
            there = ", ".join(map(format_length, lengths))
            raise ReleaseError(f"{name}: {id!r} is not at {format_length(tokens)}; lengths: {there}")
    if wanted.placement is None:
        return places
    placements = list(dict.fromkeys(place.placement for place in places if place.placement is not None))
    places = [place for place in places if place.placement == wanted.placement]
    if not places:
        there = ", ".join(f"{each:g}" for each in sorted(placements)) or "it has none"
        raise ReleaseError(f"{name}: {id!r} is not at placement {wanted.placement:g}; placements: {there}")
    return places
