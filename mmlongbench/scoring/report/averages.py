"""Means by dataset and length, and the averages over datasets and categories as in the paper."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd

from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.scoring.report.grids import MEAN, Estimate, Grid, Row, averaged, estimates, length_name
from mmlongbench.scoring.report.reading import FILE, SERIES, Scores

Cells: TypeAlias = Mapping[tuple[str, str, str, str, int], Estimate]
"""The means by model, metric, profile, dataset and length, with their resamples."""
OVERALL = "overall"
SAMPLES = "Samples"
"""The title of the grid of scores of several samples."""


def cells(scores: Scores) -> Cells:
    """Return the mean score of each series on each file."""
    return estimates(scores.lines, [*SERIES, *FILE], scores.clusters)


def dataset_grid(scores: Scores, found: Cells) -> Grid:
    """Return a grid with a row for each dataset, metric and profile, and a column for each length.

    The own metric of a dataset comes first. If there are several lengths, the last column is the mean over them.
    """
    by_length: dict[tuple[str, Row, int], Estimate | None] = {}
    for (model, metric, profile, dataset, length), estimate in found.items():
        by_length[model, Row(dataset, metric=metric, profile=profile), length] = estimate
    own = scores.own_metrics
    key = lambda row: (row.name, row.metric != own.get(row.name, row.metric), row.metric, row.profile)  # noqa: E731
    return _grid("Datasets", scores, sorted({row for _, row, _ in by_length}, key=key), by_length)


def sample_grid(scores: Scores) -> Grid:
    """Return a grid with two rows for each dataset and metric with several samples: the best of an example's samples,
    and the score of its most frequent answer. The names of the rows have the largest number of samples in the file.
    """
    most = scores.lines.groupby([*SERIES, *FILE], observed=True)["samples"].transform("max")
    lines = scores.lines.assign(most=most)[most > 1]
    by_length: dict[tuple[str, Row, int], Estimate | None] = {}
    for name in ("best", "majority"):
        own = estimates(lines.assign(score=lines[name]), [*SERIES, *FILE, "most"], scores.clusters)
        for (model, metric, profile, dataset, length, number), estimate in own.items():
            by_length[model, Row(f"{name} of {number}", dataset, metric, profile), length] = estimate
    rows = sorted({row for _, row, _ in by_length}, key=lambda row: (row.of, row.metric, row.profile, row.name))
    return _grid(SAMPLES, scores, rows, by_length)


def _grid(
    title: str,
    scores: Scores,
    rows: Sequence[Row],
    by_length: Mapping[tuple[str, Row, int], Estimate | None],
    notes: Sequence[str] = (),
) -> Grid:
    """Return a grid with a column for each length; if there are several, the last column is the mean over them."""
    shown: dict[tuple[str, Row, str], Estimate] = {}
    for row in rows:
        lengths = sorted({length for _, at, length in by_length if at == row})
        for model in scores.values("model"):
            parts = [by_length.get((model, row, length)) for length in lengths]
            for length, part in zip(lengths, parts, strict=True):
                if part is not None:
                    shown[model, row, length_name(length)] = part.without_draws()
            if len(lengths) > 1 and (mean := averaged(parts)):
                shown[model, row, MEAN] = mean.without_draws()
    names = [length_name(length) for length in sorted(scores.files["length"].unique())]
    columns = (*names, MEAN) if len(names) > 1 else tuple(names)
    return Grid(title, tuple(rows), columns, shown, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class Averages:
    """The averages of the scores under one profile."""

    profile: str
    rows: Sequence[Row]
    """A row for each category, then the row `overall` if there are several categories."""
    by_length: Mapping[tuple[str, Row, int], Estimate | None]
    """The averages by model, row and length; None if one of the averaged datasets has no score."""
    entries: Sequence[str]
    """The names of what is averaged, by category. An entry is one dataset, or several that are averaged as one."""
    of_entries: Mapping[tuple[str, str, int], Estimate | None]
    """The mean of each entry, by model, name of the entry and length; None if the entry has no score there."""
    notes: Sequence[str]


def averages(scores: Scores, found: Cells, preferred: Sequence[str] = ()) -> list[Averages]:
    """Return the averages under each profile.

    The average of a category contains each of its datasets once, scored by the metric that `_counted_metrics` chooses.
    Datasets with the same `counted_with` are first averaged, and then count as one dataset. An average has the same
    datasets at every length; if a dataset is missing at a length, or was scored only under another profile, there is no
    average, and a note says so. A preferred metric that scored nothing is a `ReleaseError`.
    """
    there = scores.values("metric")
    for name in preferred:
        if name not in there:
            known = ", ".join(there)
            raise ReleaseError(f"--metric {name}: scored nothing here; there are: {known}{nearest(name, there)}")
    return [_under(scores, found, profile, preferred) for profile in scores.profiles]


def _under(scores: Scores, found: Cells, profile: str, preferred: Sequence[str]) -> Averages:
    metrics = _counted_metrics(scores, found, profile, preferred)
    files = scores.files[scores.files["category"] != ""]
    datasets = files.drop_duplicates("dataset", keep="last").sort_values("dataset")
    together = datasets["counted_with"]
    datasets = datasets.assign(entry=together.where(together != "", datasets["dataset"]))
    every = sorted(datasets["category"].unique())
    categories = {
        name: some
        for name in every
        if (some := datasets[datasets["category"] == name])["dataset"].isin(list(metrics)).any()
    }
    entries = {name: list(dict.fromkeys(some["entry"])) for name, some in categories.items()}
    rows = {name: Row(name, _made_of(some, metrics), profile=profile) for name, some in categories.items()}
    overall = Row(OVERALL, "mean of " + ", ".join(every), profile=profile)
    by_length: dict[tuple[str, Row, int], Estimate | None] = {}
    of_entries: dict[tuple[str, str, int], Estimate | None] = {}
    gaps: dict[tuple[str, int], list[str]] = {}
    for model in sorted({key[0] for key in found if key[2] == profile}):
        for length in sorted(files["length"].unique()):
            parts = {
                name: found.get((model, metrics.get(name, ""), profile, name, length))
                for some in categories.values()
                for name in some["dataset"]
            }
            gaps[model, length] = sorted(name for name, part in parts.items() if part is None)
            for category, some in categories.items():
                for entry, names in some.groupby("entry", observed=True)["dataset"]:
                    of_entries[model, str(entry), length] = averaged([parts[name] for name in names])
                means = [of_entries[model, entry, length] for entry in entries[category]]
                by_length[model, rows[category], length] = averaged(means)
            of_each = [by_length[model, rows[name], length] if name in rows else None for name in every]
            by_length[model, overall, length] = averaged(of_each)
    under = f" under {profile}" if len(scores.profiles) > 1 else ""
    notes = [*_missing(under, gaps), *_other_metrics(scores, list(datasets["dataset"]), metrics, profile)]
    if len(rows) > 1 and (absent := [name for name in every if name not in rows]):
        notes.append(f"overall{under} is empty: nothing of {', '.join(absent)} was scored under {profile}")
    listed = [*rows.values(), overall] if len(rows) > 1 else list(rows.values())
    names = [entry for of_category in entries.values() for entry in of_category]
    return Averages(profile, listed, by_length, names, of_entries, notes)


def average_grid(scores: Scores, of_profiles: Sequence[Averages]) -> Grid:
    """Return a grid with a row for each category of each profile, and a column for each length."""
    by_length = {key: estimate for one in of_profiles for key, estimate in one.by_length.items()}
    rows = [row for one in of_profiles for row in one.rows]
    notes = [note for one in of_profiles for note in one.notes]
    outside = sorted(set(scores.files["dataset"][scores.files["category"] == ""]))
    if outside:
        notes.append(f"in no category, and in no average: {', '.join(outside)}")
    if not rows and len(outside) < scores.files["dataset"].nunique():
        known = ", ".join(scores.values("metric"))
        notes.append(f"there is no average: no dataset was scored by its own metric; --metric takes another ({known})")
    return _grid("Averages", scores, rows, by_length, notes)


def _counted_metrics(scores: Scores, found: Cells, profile: str, preferred: Sequence[str]) -> dict[str, str]:
    """Return, by dataset, the metric whose scores the averages of a profile use; datasets without one are left out.

    It is the first of these metrics that scored the dataset under the profile:

    1. the metrics of `preferred`, in their order;
    2. the metric that the builder declares for averages, if it scored every pair of a model and a file that any metric
       scored;
    3. the dataset's own metric. If the own metric is not known, because no line under any profile has `is_own`, the
       first metric that was read and is not lenient (see `LENIENT`).
    """
    scored: dict[str, dict[str, set[tuple[str, int]]]] = {}
    for model, metric, under, dataset, length in found:
        if under == profile:
            scored.setdefault(dataset, {}).setdefault(metric, set()).add((model, length))
    chosen = {}
    for dataset, by_metric in scored.items():
        declared, every = scores.averaged_metrics.get(dataset, ""), set().union(*by_metric.values())
        wanted = [*preferred, *([declared] if by_metric.get(declared) == every else [])]
        wanted.append(scores.own_metrics.get(dataset, scores.first_metrics.get((dataset, profile), "")))
        if metric := next((name for name in wanted if name in by_metric), ""):
            chosen[dataset] = metric
    return chosen


def _made_of(datasets: pd.DataFrame, metrics: Mapping[str, str]) -> str:
    """Return the datasets of a category with their metrics, such as `a (m), [c (m) + d (m)]`; those in brackets are
    counted as one.
    """
    entries: dict[str, list[str]] = {}
    for name, entry in zip(datasets["dataset"], datasets["entry"], strict=True):
        entries.setdefault(entry, []).append(f"{name} ({metrics.get(name, '–')})")
    return ", ".join(names[0] if len(names) == 1 else f"[{' + '.join(names)}]" for names in entries.values())


def _missing(under: str, gaps: Mapping[tuple[str, int], Sequence[str]]) -> Iterator[str]:
    """Yield sentences that say which datasets are missing at which lengths, for all models or for one model."""
    models = list(dict.fromkeys(model for model, _ in gaps))
    lengths: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for length in dict.fromkeys(length for _, length in gaps):
        every = set.intersection(*(set(gaps[model, length]) for model in models))
        lengths.setdefault(("", tuple(sorted(every))), []).append(length_name(length))
        for model in models:
            own = (f" of {model}", tuple(name for name in gaps[model, length] if name not in every))
            lengths.setdefault(own, []).append(length_name(length))
    for (of, names), at in lengths.items():
        if names:
            what = f"averages{under}{of} lack {', '.join(names)} at {', '.join(at)}"
            yield f"{what}; those that need it are left empty"


def _other_metrics(scores: Scores, datasets: Sequence[str], metrics: Mapping[str, str], profile: str) -> Iterator[str]:
    """Yield sentences about datasets for which the averages use another metric than the paper does."""
    others = scores.origins[scores.origins["profile"] != profile]
    elsewhere = dict(zip(others["metric"], others["profile"], strict=True))
    by_metric: dict[tuple[str, str], list[str]] = {}
    for name in datasets:
        wanted = scores.averaged_metrics.get(name, "")
        if wanted and metrics.get(name, wanted) != wanted:
            by_metric.setdefault((metrics[name], wanted), []).append(name)
    for (metric, wanted), names in by_metric.items():
        where = f", which is scored here under {elsewhere[wanted]} only" if wanted in elsewhere else ""
        yield f"{', '.join(names)} enter by {metric}; the paper's averages take {wanted}{where}"
