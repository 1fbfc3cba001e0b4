"""Chooses examples of a release by dataset, length, number and subset: what `run` and `export` work on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.model import length_of
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.release import Example, Release

SUBSETS = {"paper": 100}
"""The number of questions of each dataset in a subset; of datasets that count as one with another (`counted_with`),
each has half of it. The paper's small set (appendix D) has 100 questions of each of its sixteen datasets, 50 of each
half of an MM-NIAH dataset: with all placements, 4,050 examples at each length."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which examples of a release are meant; the default is all of them."""

    datasets: tuple[str, ...] = ()
    """Only this dataset; there may be several."""
    lengths: tuple[int | str, ...] = ()
    """Only this length, in tokens or as `8K`; there may be several."""
    limit: int | None = None
    """The maximum number of examples of each file, the first ones."""
    subset: str = ""
    """A subset of the questions: `paper` has 100 of each dataset at each length, 50 of each MM-NIAH file."""
    # A key of `SUBSETS`. Which questions it has depends only on the dataset's name and its ids at the length.


@dataclass(frozen=True, slots=True)
class Cell:
    """The chosen examples of one dataset at one length."""

    release: Release
    dataset: str
    length: int
    is_chosen: Callable[[str], bool]
    limit: int | None
    keys: frozenset[tuple[str, float | None]] | None = None
    """The chosen examples, each by the id of its question and its placement; None: all of a chosen question."""
    advance: Callable[[], None] = lambda: None

    def examples(self) -> Iterator[Example]:
        """Yield the examples in the order of the file."""
        keys = self.keys
        every = self.release.examples(self.dataset, self.length, None if keys is None else {id for id, _ in keys})
        chosen = (
            example
            for example in every
            if self.is_chosen(example.id) and (keys is None or (example.id, placement_of(example.record)) in keys)
        )
        return map(self._told, islice(chosen, self.limit))

    def _told(self, example: Example) -> Example:
        self.advance()
        return example


@contextmanager
def counted(cells: Sequence[Cell], progress: Progress, label: str) -> Iterator[list[Cell]]:
    """Yield the same cells, with a bar that shows how many of their examples have been read."""
    counts = [(cell.release.lock.cell(cell.dataset, cell.length), cell.limit) for cell in cells]
    total = sum(min(count.examples, limit or count.examples) for count, limit in counts if count)
    with progress.bar(label, total) as advance:
        yield [replace(cell, advance=advance) for cell in cells]


def examples_of(cells: Sequence[Cell], progress: Progress, label: str) -> Iterator[Example]:
    """Yield the examples of cells, with such a bar."""
    with counted(cells, progress, label) as these:
        for cell in these:
            yield from cell.examples()


def select(release: Release, selection: Selection) -> list[Cell]:
    """Return the chosen cells of a release, in the order of the manifest, the shortest length first. A dataset, length
    or subset that is not there is a `ReleaseError`.
    """
    wanted = {length_of(length) for length in selection.lengths}
    if selection.subset and selection.subset not in SUBSETS:
        raise ReleaseError(f"subset {selection.subset!r}: expected {', '.join(SUBSETS)}")
    # of a release that was opened with a variant, only datasets that have it can be chosen
    offering = [name for name in release.datasets if release.dataset(name).variant]
    names = tuple(dict.fromkeys(selection.datasets)) or tuple(offering) or release.datasets
    if offering and (other := next((name for name in names if not release.dataset(name).variant), "")):
        variant = release.dataset(offering[0]).variant
        raise ReleaseError(f"--variant {variant}: {other} does not have it; it is offered by {', '.join(offering)}")
    cells = [(name, length) for name in names for length in release.lengths(name)]
    there = sorted({length for _, length in cells})
    if missing := sorted(wanted.difference(there)):
        raise ReleaseError(
            f"{release.path.name}: no examples of {format_length(missing[0])} in {', '.join(names)}; "
            f"lengths: {', '.join(map(format_length, there))}"
        )
    return [
        Cell(release, name, length, _in_subset(release, name, length, selection.subset), selection.limit)
        for name, length in cells
        if length in wanted or not wanted
    ]


def _in_subset(release: Release, dataset: str, length: int, subset: str) -> Callable[[str], bool]:
    if not subset:
        return lambda id: True
    # The rank of a question does not depend on the length, so a dataset with the same questions at every length keeps
    # the same ones. In many-shot learning a longer context has more classes, and so other questions.
    ranked = sorted(set(release.ids(dataset, length)), key=lambda id: digest("subset", subset, dataset, id))
    number = SUBSETS[subset] // (2 if release.builder(dataset).spec.counted_with else 1)
    return frozenset(ranked[:number]).__contains__


@dataclass(frozen=True, slots=True)
class Place:
    """Where an example is in a release."""

    dataset: str
    length: int
    placement: float | None
    """The depth, or the number of the permutation; None if there are no placements."""


def find_example(
    release: Release,
    id: str | None = None,
    dataset: str | None = None,
    length: str | None = None,
    placement: float | None = None,
) -> tuple[Example, list[Place]]:
    """Return the first example that fits what a user says, by default the first of the release; and all places of its
    question in the release or in the dataset, that of the example first. If none fits, a `ReleaseError` says what there
    is.
    """
    name, datasets = release.path.name, (dataset,) if dataset is not None else ()
    if id is None:
        cells = select(release, Selection(datasets, (length,) if length is not None else ()))
        id = next((id for cell in cells for id in release.ids(cell.dataset, cell.length)), None)
    if id is None:
        raise ReleaseError(f"{name}: has no example{f' in {dataset}' if dataset else ''}")
    ids: dict[str, None] = {}
    places: list[Place] = []
    for cell in select(release, Selection(datasets)):
        for known, at in release.keys(cell.dataset, cell.length):
            ids.setdefault(known)
            if known == id:
                places.append(Place(cell.dataset, cell.length, at))
    if not places:
        where = ", ".join(datasets or release.datasets)
        raise ReleaseError(f"{name}: no example {id!r} in {where}{nearest(id, ids)}")
    fitting = places
    if length is not None:
        tokens = length_of(length)
        fitting = [place for place in places if place.length == tokens]
        if not fitting:
            there = ", ".join(map(format_length, sorted({place.length for place in places})))
            raise ReleaseError(f"{name}: {id!r} is not at {format_length(tokens)}; lengths: {there}")
    if placement is not None:
        placements = sorted({place.placement for place in fitting if place.placement is not None})
        fitting = [place for place in fitting if place.placement == placement]
        if not fitting:
            there = ", ".join(f"{each:g}" for each in placements) or "it has none"
            raise ReleaseError(f"{name}: {id!r} is not at placement {placement:g}; placements: {there}")
    first = fitting[0]
    example = release.example(first.dataset, first.length, id, first.placement)
    return example, [first, *(place for place in places if place != first)]
