"""Computes means by dataset and length, and the averages over datasets and categories as in the paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.scoring.report.columns import ScoredFile, Scores, Series
from mmlongbench.scoring.report.estimates import Estimate, Sample, averaged, samples
from mmlongbench.scoring.report.grids import MEAN, Grid, Row, length_name

Cells: TypeAlias = Mapping[tuple[Series, ScoredFile], Sample]
OVERALL = "overall"
SAMPLES = "Samples"
"""The title of the grid of scores of several samples."""


def cells(scores: Scores) -> dict[tuple[Series, ScoredFile], Sample]:
    """Return the mean score of each `Series` on each file, with its resamples (`Sample`)."""
    return samples(scores.lines, ["series", "file"], scores.clusters)


def dataset_grid(scores: Scores, found: Cells) -> Grid:
    """Return a grid with a row for each dataset, metric and profile, and a column for each length.

    The own metric of a dataset comes first. If there are several lengths, the last column is the mean over them.
    """
    own = scores.own_metrics
    triples = {(file.dataset, series.metric, series.profile) for series, file in found}
    ordered = sorted(triples, key=lambda of: (of[0], of[1] != own.get(of[0], of[1]), of[1], of[2]))
    by_length: dict[tuple[str, Row, int], Sample | None] = {}
    for (series, file), sample in found.items():
        row = Row(file.dataset, metric=series.metric, profile=series.profile)
        by_length[series.model, row, file.length] = sample
    listed = tuple(Row(dataset, metric=metric, profile=profile) for dataset, metric, profile in ordered)
    return _grid("Datasets", scores, listed, by_length)


def sample_grid(scores: Scores) -> Grid:
    """Return a grid with two rows for each dataset and metric with several samples: the best of an example's samples,
    and the score of its most frequent answer. The names of the rows have the largest number of samples in the file.
    """
    most = scores.lines.groupby(["series", "file"], observed=True)["samples"].transform("max")
    lines = scores.lines.assign(most=most)[most > 1]
    by_length: dict[tuple[str, Row, int], Sample | None] = {}
    for name in ("best", "majority"):
        own = lines.assign(score=lines[name])
        found = samples(own, ["series", "file", "most"], scores.clusters) if len(lines) else {}
        for (series, file, number), sample in found.items():
            row = Row(f"{name} of {number}", file.dataset, series.metric, series.profile)
            by_length[series.model, row, file.length] = sample
    rows = sorted({row for _, row, _ in by_length}, key=lambda row: (row.of, row.metric, row.profile, row.name))
    return _grid(SAMPLES, scores, tuple(rows), by_length)


@dataclass(frozen=True, slots=True)
class Averages:
    """The averages of the scores under one profile."""

    profile: str
    rows: tuple[Row, ...]
    """A row for each category, then the row `overall` if there are several categories."""
    by_length: Mapping[tuple[str, Row, int], Sample | None]
    """The averages by model, row and length; None if one of the averaged datasets has no score."""
    entry_names: Mapping[str, tuple[str, ...]]
    """By category, the names of its entries. An entry is one dataset, or several datasets that are averaged as one."""
    entries: Mapping[tuple[str, str, int], Sample | None]
    """The mean of each entry, by model, name of the entry and length; None if the entry has no score there."""
    notes: tuple[str, ...]


def all_averages(scores: Scores, found: Cells, preferred: Sequence[str] = ()) -> tuple[Averages, ...]:
    """Return the averages under each profile.

    The average of a category contains each of its datasets once, scored by the metric that `counted_metrics` returns.
    Datasets with the same `counted_with` are first averaged, and then count as one dataset. An average has the same
    datasets at every length; if a dataset is missing at a length, there is no average at this length.

    Raises:
        ReleaseError: a preferred metric scored nothing.

    """
    there = {series.metric for series in scores.series}
    for name in preferred:
        if name not in there:
            known = ", ".join(sorted(there))
            raise ReleaseError(f"--metric {name}: scored nothing here; there are: {known}{nearest(name, there)}")
    return tuple(averages(scores, found, profile, preferred) for profile in scores.profiles)


def average_grid(scores: Scores, each: Sequence[Averages]) -> Grid:
    """Return a grid with a row for each category of each profile, and a column for each length.

    If a profile has several categories, its last row is their mean, `overall`.
    """
    by_length = {key: sample for one in each for key, sample in one.by_length.items()}
    rows = tuple(row for one in each for row in one.rows)
    notes = (*(note for one in each for note in one.notes), *_outside(scores), *([] if rows else _without(scores)))
    return _grid("Averages", scores, rows, by_length, notes)


def averages(scores: Scores, found: Cells, profile: str, preferred: Sequence[str] = ()) -> Averages:
    """Return the averages of the scores under one profile.

    The average of a category needs all its datasets, also those that were scored only under another profile. If there
    is such a dataset, the average is empty, and a note says so.
    """
    metrics = counted_metrics(scores, found, profile, preferred)
    files = {(file.dataset, file.length): file for file in scores.files if file.category}
    members = {file.dataset: file for file in sorted(files.values())}
    every = sorted({file.category for file in members.values()})
    categories = [name for name in every if any(file.category == name for file in _counted(members, metrics))]
    rows = {name: Row(name, _members(members.values(), name, metrics), profile=profile) for name in categories}
    overall = Row(OVERALL, "mean of " + ", ".join(every), profile=profile)
    by_length: dict[tuple[str, Row, int], Sample | None] = {}
    entries: dict[tuple[str, str, int], Sample | None] = {}
    gaps: dict[tuple[str, int], list[str]] = {}
    for model in sorted({series.model for series in scores.series if series.profile == profile}):
        for length in sorted({length for _, length in files}):
            parts = {
                name: found.get((Series(model, metrics[name], profile), files[name, length]))
                if name in metrics and (name, length) in files
                else None
                for name, file in members.items()
                if file.category in rows
            }
            gaps[model, length] = [name for name, part in parts.items() if part is None]
            for category, row in rows.items():
                inside = _entries({members[name]: p for name, p in parts.items() if members[name].category == category})
                entries.update({(model, name, length): part for name, part in inside.items()})
                by_length[model, row, length] = averaged(list(inside.values()))
            of_each = [by_length[model, rows[name], length] if name in rows else None for name in every]
            by_length[model, overall, length] = averaged(of_each)
    listed = (*rows.values(), overall) if len(rows) > 1 else tuple(rows.values())
    under = f" under {profile}" if len(scores.profiles) > 1 else ""
    notes = [*_missing(under, gaps), *_other_metrics(scores, members, metrics, profile)]
    if len(rows) > 1 and (absent := [name for name in every if name not in rows]):
        notes.append(f"overall{under} is empty: nothing of {', '.join(absent)} was scored under {profile}")
    names = {category: tuple(_names(members.values(), category)) for category in rows}
    return Averages(profile, listed, by_length, names, entries, tuple(notes))


def counted_metrics(scores: Scores, found: Cells, profile: str, preferred: Sequence[str] = ()) -> dict[str, str]:
    """Return, by dataset, the metric whose scores the averages of a profile use; datasets without one are left out.

    It is the first of these metrics that scored the dataset under the profile:

    1. the metrics of `preferred`, in their order;
    2. the metric that the builder declares for averages, if it scored every pair of a model and a file that any metric
       scored;
    3. the dataset's own metric. If the own metric is not known, because no line under any profile has `is_own`, the
       first metric that was read and is not lenient (see `LENIENT`).
    """
    scored: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for series, file in found:
        if series.profile == profile:
            scored.setdefault(file.dataset, {}).setdefault(series.metric, set()).add((series.model, file.name))
    chosen = {}
    for dataset, by_metric in scored.items():
        averaged_by, every = scores.averaged_metrics.get(dataset, ""), set().union(*by_metric.values())
        wanted = [*preferred, *([averaged_by] if by_metric.get(averaged_by) == every else [])]
        wanted.append(scores.own_metrics.get(dataset, scores.first_metrics.get((dataset, profile), "")))
        if metric := next((name for name in wanted if name in by_metric), ""):
            chosen[dataset] = metric
    return chosen


def _counted(members: Mapping[str, ScoredFile], metrics: Mapping[str, str]) -> Iterator[ScoredFile]:
    return (file for name, file in members.items() if name in metrics)


def _entries(found: Mapping[ScoredFile, Sample | None]) -> dict[str, Sample | None]:
    """Return the mean of each entry of a category, by name; datasets with the same `counted_with` are one entry."""
    together: dict[str, list[Sample | None]] = {}
    for file, sample in found.items():
        together.setdefault(_entry(file), []).append(sample)
    return {name: averaged(parts) for name, parts in together.items()}


def _names(files: Iterable[ScoredFile], category: str) -> dict[str, None]:
    return dict.fromkeys(_entry(file) for file in files if file.category == category)


def _entry(file: ScoredFile) -> str:
    """Return the name of the entry that a dataset belongs to: its `counted_with` if it has one, else its own name."""
    return file.counted_with or file.dataset


def _members(files: Iterable[ScoredFile], category: str, metrics: Mapping[str, str]) -> str:
    """Return the datasets of a category with their metrics, such as `a (m), [c (m) + d (m)]`; those in brackets are
    counted as one.
    """
    together: dict[str, dict[str, None]] = {}
    for file in files:
        if file.category == category:
            name = f"{file.dataset} ({metrics.get(file.dataset, '–')})"
            together.setdefault(file.counted_with or file.dataset, {})[name] = None
    return ", ".join(" + ".join(names) if len(names) == 1 else f"[{' + '.join(names)}]" for names in together.values())


def _missing(under: str, gaps: Mapping[tuple[str, int], Sequence[str]]) -> Iterator[str]:
    """Yield sentences that say which datasets are missing at which lengths, for all models or for one model."""
    models = dict.fromkeys(model for model, _ in gaps)
    lengths: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for length in dict.fromkeys(length for _, length in gaps):
        every = set.intersection(*(set(gaps[model, length]) for model in models))
        lengths.setdefault(("", tuple(sorted(every))), []).append(length_name(length))
        for model in models:
            own = (f" of {model}", tuple(name for name in gaps[model, length] if name not in every))
            lengths.setdefault(own, []).append(length_name(length))
    for (of, names), found in lengths.items():
        if names:
            what = f"averages{under}{of} lack {', '.join(names)} at {', '.join(found)}"
            yield f"{what}; those that need it are left empty"


def _other_metrics(scores: Scores, members: Iterable[str], metrics: Mapping[str, str], profile: str) -> Iterator[str]:
    """Yield sentences about datasets for which the averages use another metric than the paper does."""
    elsewhere = {series.metric: series.profile for series in scores.series if series.profile != profile}
    others: dict[tuple[str, str], list[str]] = {}
    for name in members:
        wanted = scores.averaged_metrics.get(name, "")
        if wanted and metrics.get(name, wanted) != wanted:
            others.setdefault((metrics[name], wanted), []).append(name)
    for (metric, wanted), names in others.items():
        where = f", which is scored here under {elsewhere[wanted]} only" if wanted in elsewhere else ""
        yield f"{', '.join(names)} enter by {metric}; the paper's averages take {wanted}{where}"


def _without(scores: Scores) -> Iterator[str]:
    """Yield a sentence that says why there is no average at all; nothing if no dataset is in a category."""
    if any(file.category for file in scores.files):
        metrics = ", ".join(scores.metrics)
        yield f"there is no average: no dataset was scored by its own metric; --metric takes another ({metrics})"


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
    """Return a grid with a column for each length; if there are several, the last column is the mean over them."""
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
