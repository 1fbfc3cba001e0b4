"""From lines as they were read to columns in an order of their own; what contradicts another line is named."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report.choices import told_apart
from mmlongbench.scoring.report.columns import Cluster, Floats, Ints, Population, ScoredFile, Scores, Series
from mmlongbench.scoring.report.reading import Reading, read_lines
from mmlongbench.scoring.report.sharing import shared

T = TypeVar("T")


def read(folder: Path, keeps: Callable[[str], bool] = lambda metric: False, profile: str = "") -> Scores:
    """The scores of a folder, or those under one profile; `keeps` says of which metrics lines are needed whole.

    Raises:
        ReleaseError: there are none; a line is none, has a score that cannot be, or is there twice; files of several
            releases are mixed.

    """
    return to_columns(read_lines(folder, keeps, profile))


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Lines whose names are numbered in an order of their own."""

    rows: Ints
    """Of each line: series, file, question, placement, status, source."""
    series: tuple[Series, ...]
    files: tuple[ScoredFile, ...]
    populations: tuple[Population, ...]
    of_population: Ints
    """Of each file."""
    placements: tuple[tuple[float | None, int | None], ...]


def to_columns(read: Reading) -> Scores:
    """The same columns, whatever order the lines were read in."""
    read, notes = shared(told_apart(read))
    series = list(read.series)
    names = _numbered(read)
    order = np.lexsort(names.rows[:, 3::-1].T)
    groups, members, _ = _pairs(read.members, list(read.groups), order)
    numbers, details, at = _pairs(read.details, list(read.numbers), order)
    depths: Floats = np.array([math.nan if depth is None else depth for depth, _ in names.placements])
    place = _inverse(order)
    rows = names.rows[order]
    of_population = names.of_population[rows[:, 1]]
    clusters, cluster = _clusters(names.populations, read, of_population, rows[:, 2])
    found = Scores(
        series=names.series,
        files=names.files,
        populations=names.populations,
        clusters=clusters,
        groups=groups,
        numbers=numbers,
        of_series=rows[:, 0],
        of_file=rows[:, 1],
        of_population=of_population,
        question=rows[:, 2],
        cluster=cluster,
        placement=rows[:, 3],
        depth=depths[rows[:, 3]],
        status=rows[:, 4],
        score=np.array(read.score)[order],
        members=members,
        details=details,
        values=np.array(read.values)[at],
        kept={place[number].item(): scored for number, scored in read.kept.items()},
        failures=dict(sorted(Counter((series[read.rows[6 * at]], why) for at, why in read.failures.items()).items())),
        own_metrics=read.own_metrics,
        first_metrics=read.first_metrics,
        averaged_metrics=read.averaged_metrics,
        origins=read.origins,
        reasoning=read.reasoning,
        notes=notes,
    )
    _refuse_twins(found, rows, names.placements, list(read.sources))
    return found


def _numbered(read: Reading) -> _Numbered:
    rows: Ints = np.array(read.rows, np.int64).reshape(-1, 6)
    series, rows[:, 0] = _sorted(list(read.series), rows[:, 0])
    files, rows[:, 1] = _sorted(list(read.files), rows[:, 1])
    _refuse_two_files(files)
    ids = [read.questions[read.files[file]] for file in files]
    populations, of_population, rows[:, 2] = _populations(files, ids, rows[:, 1], rows[:, 2])
    placements = tuple(sorted(read.placements, key=_placed))
    rows[:, 3] = _places(list(read.placements), placements)[rows[:, 3]]
    return _Numbered(rows, series, files, populations, of_population, placements)


def _sorted(names: Sequence[T], column: Ints) -> tuple[tuple[T, ...], Ints]:
    """Names in their own order, and a column that numbers them so."""
    ordered = sorted(names)  # type: ignore[type-var]
    return tuple(ordered), _places(names, ordered)[column] if len(names) else column


def _places(names: Sequence[T], ordered: Sequence[T]) -> Ints:
    """Where each name stands in another order."""
    at = {name: place for place, name in enumerate(ordered)}
    return np.array([at[name] for name in names], np.int64)


def _inverse(order: Ints) -> Ints:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def _placed(placement: tuple[float | None, int | None]) -> tuple[float, int]:
    depth, permutation = placement
    return (-1.0 if depth is None else depth, -1 if permutation is None else permutation)


def _pairs(flat: Any, names: Sequence[T], order: Ints) -> tuple[tuple[T, ...], Ints, Ints]:  # noqa: ANN401  (an array)
    """Rows of (line, name), sorted, and where each stood before."""
    rows: Ints = np.array(flat, np.int64).reshape(-1, 2)
    ordered, rows[:, 1] = _sorted(names, rows[:, 1])
    rows[:, 0] = _inverse(order)[rows[:, 0]]
    at = np.lexsort(rows[:, ::-1].T)
    return ordered, rows[at], at


def _populations(
    files: Sequence[ScoredFile],
    ids: Sequence[dict[str, int]],
    of_file: Ints,
    question: Ints,
) -> tuple[tuple[Population, ...], Ints, Ints]:
    """The sets of questions there are, which one each file has, and questions as places in it."""
    numbers: dict[Population, int] = {}
    of_population = np.empty(len(files), np.int64)
    placed = question.copy()
    for number, file in enumerate(files):
        population = Population(file.dataset, tuple(sorted(ids[number])))
        of_population[number] = numbers.setdefault(population, len(numbers))
        lines = of_file == number
        placed[lines] = _places(list(ids[number]), population.ids)[question[lines]]
    return tuple(numbers), of_population, placed


def _clusters(
    populations: Sequence[Population],
    read: Reading,
    of_population: Ints,
    question: Ints,
) -> tuple[tuple[Cluster, ...], Ints]:
    """Return the clusters of all questions that were read, and the place of each line's among them.

    A question whose lines name no cluster is a cluster of its own, apart from any that is named like its id. Clusters
    of questions without a line here are there too: otherwise the draws would depend on which profile is shown.
    """

    def cluster_of(dataset: str, id: str) -> Cluster:
        return _cluster(dataset, id, read.clusters.get(dataset, {}))

    clusters = tuple(sorted({cluster_of(dataset, id) for dataset, ids in read.ids.items() for id in ids}))
    of_each = [[cluster_of(population.dataset, id) for id in population.ids] for population in populations]
    place = {cluster: at for at, cluster in enumerate(clusters)}
    found = np.empty_like(question)
    for number, some in enumerate(of_each):
        lines = of_population == number
        found[lines] = np.array([place[cluster] for cluster in some], np.int64)[question[lines]]
    return clusters, found


def _cluster(dataset: str, id: str, named: Mapping[str, str]) -> Cluster:
    name = named.get(id, "")
    return Cluster(dataset, name) if name else Cluster(dataset, id, is_single=True)


def _refuse_two_files(files: Sequence[ScoredFile]) -> None:
    """Refuse a dataset that has two files of one length."""
    for one, two in pairwise(files):
        if (one.dataset, one.length) == (two.dataset, two.length):
            raise ReleaseError(
                f"dataset {one.dataset!r} has two files of {one.length:,} tokens, {one.name} and {two.name}: scores of "
                "several releases are mixed; report each from a folder of its own"
            )


def _refuse_twins(found: Scores, rows: Ints, placements: Sequence[Any], sources: Sequence[str]) -> None:
    """Refuse a line that is there twice."""
    twins = np.flatnonzero(np.all(rows[1:, :4] == rows[:-1, :4], axis=1))
    if len(twins):
        first = twins[0].item()
        series, file = found.series[rows[first, 0]], found.files[rows[first, 1]]
        where = " and ".join(dict.fromkeys(sources[number] for number in sorted(rows[first : first + 2, 5])))
        example = _example(found, first, placements[rows[first, 3]])
        raise ReleaseError(
            f"{series.model}, {series.label}, {file.name}: {example} is scored twice, in {where}; "
            "keep one line of each (--model names a second run of a model)"
        )


def _example(found: Scores, line: int, placement: tuple[float | None, int | None]) -> str:
    return f"id {found.populations[found.of_population[line]].ids[found.question[line]]!r}{_at(placement)}"


def _at(placement: tuple[float | None, int | None]) -> str:
    depth, permutation = placement
    return f" at depth {depth}" if depth is not None else "" if permutation is None else f", permutation {permutation}"
