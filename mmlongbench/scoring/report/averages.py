"""Means by dataset and length, and the averages over datasets and categories as the paper forms them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.scoring.report.columns import ScoredFile, Scores, Series, grouped
from mmlongbench.scoring.report.estimates import Estimate, Sample, averaged, samples
from mmlongbench.scoring.report.grids import MEAN, Grid, Row, length_name

Cells: TypeAlias = Mapping[tuple[Series, ScoredFile], Sample]
OVERALL = "overall"


def cells(scores: Scores) -> dict[tuple[Series, ScoredFile], Sample]:
    """The mean score of each series on each file."""
    lines = grouped(np.arange(len(scores.score)), scores.of_series, scores.of_file)
    return samples(scores, {(scores.series[one], scores.files[two]): at for (one, two), at in lines.items()})


def dataset_grid(scores: Scores, found: Cells) -> Grid:
    """Every dataset and metric, its own first, by length; the last column is the mean over the lengths it has."""
    own = scores.default_metrics
    pairs = {(file.dataset, series.metric) for series, file in found}
    rows = sorted(pairs, key=lambda pair: (pair[0], pair[1] != own[pair[0]], pair[1]))
    by_length: dict[tuple[str, Row, int], Sample | None] = {}
    for (series, file), sample in found.items():
        by_length[series.model, Row(file.dataset, metric=series.metric), file.length] = sample
    listed = tuple(Row(dataset, metric=metric) for dataset, metric in rows)
    return _grid("Datasets", scores, listed, by_length)


def average_grid(scores: Scores, found: Cells, preferred: Sequence[str] = ()) -> Grid:
    """Category by length, then overall: the mean of the categories.

    A dataset enters its category once, datasets that share `counted_with` as their mean, by the metric that
    `counted_metrics` says. A row has the same members at every length: where one is missing, there is no number.
    """
    metrics = counted_metrics(scores, found, preferred)
    files = {(file.dataset, file.length): file for file in scores.files if file.category}
    members = {file.dataset: file for file in sorted(files.values())}
    categories = sorted({file.category for file in members.values()})
    rows = {category: Row(category, of=_members(members.values(), category, metrics)) for category in categories}
    by_length: dict[tuple[str, Row, int], Sample | None] = {}
    overall = Row(OVERALL, of="mean of " + ", ".join(categories))
    gaps: dict[tuple[str, int], list[str]] = {}
    for model in scores.models:
        for length in sorted({length for _, length in files}):
            at = {name: (Series(model, metrics[name]), files.get((name, length))) for name in members}
            parts = {name: found.get((series, file)) if file else None for name, (series, file) in at.items()}
            gaps[model, length] = [name for name, part in parts.items() if part is None]
            for category, row in rows.items():
                inside = {file: parts[name] for name, file in members.items() if file.category == category}
                by_length[model, row, length] = _category(inside)
            by_length[model, overall, length] = averaged([by_length[model, row, length] for row in rows.values()])
    listed = (*rows.values(), overall) if len(rows) > 1 else tuple(rows.values())
    notes = (*_missing(scores, gaps), *_other_metrics(scores, members, metrics), *_outside(scores))
    return _grid("Averages", scores, listed, by_length, notes)


def counted_metrics(scores: Scores, found: Cells, preferred: Sequence[str] = ()) -> dict[str, str]:
    """By dataset: the metric that it enters the averages by.

    The first of `preferred` that scored it; else the one that its builder declares for averages, where it scored each
    file of every model; else its own, or the first that was read.

    Raises:
        ReleaseError: a preferred metric scored nothing.

    """
    there = {series.metric for series in scores.series}
    for name in preferred:
        if name not in there:
            known = ", ".join(sorted(there))
            raise ReleaseError(f"--metric {name}: scored nothing here; there are: {known}{nearest(name, there)}")
    scored: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for series, file in found:
        scored.setdefault(file.dataset, {}).setdefault(series.metric, set()).add((series.model, file.name))
    chosen = {}
    for dataset, by_metric in scored.items():
        averaged_by, every = scores.averaged_metrics.get(dataset, ""), set().union(*by_metric.values())
        default = averaged_by if by_metric.get(averaged_by) == every else scores.default_metrics[dataset]
        chosen[dataset] = next((name for name in preferred if name in by_metric), default)
    return chosen


def _category(found: Mapping[ScoredFile, Sample | None]) -> Sample | None:
    """The average of a category's datasets; those that are counted together enter as one."""
    together: dict[tuple[str, str], list[Sample | None]] = {}
    for file, sample in found.items():
        key = ("together", file.counted_with) if file.counted_with else ("alone", file.dataset)
        together.setdefault(key, []).append(sample)
    return averaged([averaged(parts) for parts in together.values()])


def _members(files: Iterable[ScoredFile], category: str, metrics: Mapping[str, str]) -> str:
    """What an average is made of, in words: `a (m), b (m); as one: c (m) + d (m)`."""
    together: dict[str, dict[str, None]] = {}
    for file in files:
        if file.category == category:
            together.setdefault(file.counted_with or file.dataset, {})[f"{file.dataset} ({metrics[file.dataset]})"] = (
                None
            )
    return ", ".join(" + ".join(names) if len(names) == 1 else f"[{' + '.join(names)}]" for names in together.values())


def _missing(scores: Scores, gaps: Mapping[tuple[str, int], Sequence[str]]) -> Iterator[str]:
    """Which members are missing where, of all models or of one."""
    lengths: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for length in dict.fromkeys(length for _, length in gaps):
        every = set.intersection(*(set(gaps[model, length]) for model in scores.models))
        lengths.setdefault(("", tuple(sorted(every))), []).append(length_name(length))
        for model in scores.models:
            own = (f" of {model}", tuple(name for name in gaps[model, length] if name not in every))
            lengths.setdefault(own, []).append(length_name(length))
    for (of, names), found in lengths.items():
        if names:
            yield f"averages{of} lack {', '.join(names)} at {', '.join(found)}; those that need it are left empty"


def _other_metrics(scores: Scores, members: Iterable[str], metrics: Mapping[str, str]) -> Iterator[str]:
    """Which datasets enter by another metric than the paper's averages are made of."""
    others: dict[tuple[str, str], list[str]] = {}
    for name in members:
        wanted = scores.averaged_metrics.get(name, metrics[name])
        if metrics[name] != wanted:
            others.setdefault((metrics[name], wanted), []).append(name)
    for (metric, wanted), names in others.items():
        yield f"{', '.join(names)} enter by {metric}; the paper's averages take {wanted}"


def _outside(scores: Scores) -> tuple[str, ...]:
    outside = sorted({file.dataset for file in scores.files if not file.category})
    return (f"in no category, and in no average: {', '.join(outside)}",) if outside else ()


def _grid(
    title: str,
    scores: Scores,
    rows: tuple[Row, ...],
    by_length: Mapping[tuple[str, Row, int], Sample | None],
    notes: tuple[str, ...] = (),
) -> Grid:
    """With a last column, the mean over the lengths that a row has, where there are several."""
    shown: dict[tuple[str, Row, str], Estimate] = {}
    for row in rows:
        lengths = sorted({length for _, at, length in by_length if at == row})
        for model in scores.models:
            parts = [by_length.get((model, row, length)) for length in lengths]
            for length, part in zip(lengths, parts, strict=True):
                if part is not None:
                    shown[model, row, length_name(length)] = part.estimate()
            if len(lengths) > 1 and (mean := averaged(parts)):
                shown[model, row, MEAN] = mean.estimate()
    names = [length_name(length) for length in scores.lengths]
    return Grid(title, rows, (*names, MEAN) if len(names) > 1 else tuple(names), shown, notes=notes)
