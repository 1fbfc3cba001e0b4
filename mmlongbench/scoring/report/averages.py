"""Means by dataset and length, and the averages over datasets and categories as the paper forms them."""

from collections.abc import Iterable, Mapping, Sequence
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

    A dataset enters its category once, datasets that share `counted_with` as their mean. One that several metrics
    scored enters by the first of `preferred` that scored it, else by its own metric, or the first that was read.
    """
    metrics = counted_metrics(scores, preferred)
    wanted = sorted({file for _, file in found if file.category})
    categories = sorted({file.category for file in wanted})
    rows = {category: Row(category, of=_members(wanted, category, metrics)) for category in categories}
    by_length: dict[tuple[str, Row, int], Sample | None] = {}
    overall = Row(OVERALL, of="mean of " + ", ".join(categories))
    for model in scores.models:
        for length in scores.lengths:
            here = [file for file in wanted if file.length == length]
            parts = []
            for category in sorted({file.category for file in here}):
                files = [file for file in here if file.category == category]
                found_here = {file: found.get((Series(model, metrics[file.dataset]), file)) for file in files}
                parts.append(_category(found_here))
                by_length[model, rows[category], length] = parts[-1]
            if parts:
                by_length[model, overall, length] = averaged(parts)
    listed = (*rows.values(), overall) if len(rows) > 1 else tuple(rows.values())
    return _grid("Averages", scores, listed, by_length, notes=_outside(scores))


def counted_metrics(scores: Scores, preferred: Sequence[str] = ()) -> dict[str, str]:
    """By dataset: the metric that it enters the averages by.

    Raises:
        ReleaseError: a preferred metric scored nothing.

    """
    there = {series.metric for series in scores.series}
    for name in preferred:
        if name not in there:
            known = ", ".join(sorted(there))
            raise ReleaseError(f"--metric {name}: scored nothing here; there are: {known}{nearest(name, there)}")
    pairs = grouped(np.arange(len(scores.score)), scores.of_series, scores.of_file)
    scored = {(scores.files[file].dataset, scores.series[series].metric) for series, file in pairs}
    return {
        dataset: next((name for name in preferred if (dataset, name) in scored), default)
        for dataset, default in scores.default_metrics.items()
    }


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
