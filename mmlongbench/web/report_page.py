"""The report as one HTML page. It needs no network and no other files, and has no script."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial

from mmlongbench.scoring.report.breakdowns import EVERY
from mmlongbench.scoring.report.correlations import Correlations, Matrix
from mmlongbench.scoring.report.grids import MEAN, Counts, Grid, length_name
from mmlongbench.scoring.report.report import Report
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, RESAMPLES
from mmlongbench.table import Table
from mmlongbench.web.charts import Chart, length_charts, look_of
from mmlongbench.web.grids import WHOLE, beside, by_title, correlation_table, heat_maps, small_tables
from mmlongbench.web.kit import Section, render
from mmlongbench.web.numbers import points

_REASONING = ("stripped", "unclosed", "kept")
"""The words for what was done with the reasoning in predictions; each is a column of the page."""


def report_page(title: str, report: Report) -> Iterator[str]:
    """Yield the page of a report in pieces."""
    return render(
        "report.html",
        title=title,
        sections=list(_sections(report)),
        report=report,
        level=f"{LEVEL:.0%}",
        resamples=RESAMPLES,
        min_clusters=MIN_CLUSTERS,
        missed=sum((each.found.counts for each in report.missing), Counts()),
        profiles=list(dict.fromkeys(each.profile for each in report.provenance)),
        whole=WHOLE,
        looks=[(model, look_of(number)) for number, model in enumerate(report.models)],
        charts=_charts(report.averages, report.models),
        facets=by_title(report.facets),
        has_ranks=any(grid.ranks for grid in report.facets),
        matrices=_matrices(report.correlations),
        **_functions(report.models),
        **_listings(report),
    )


def _sections(report: Report) -> Iterator[Section]:
    """Yield the sections that have content."""
    yield Section("profiles", "Profiles")
    yield Section("averages", "Averages")
    yield Section("datasets", "Datasets by length")
    if report.samples.rows:
        yield Section("samples", "Several samples")
    if report.depths:
        yield Section("depth", "By depth", [(grid.title, grid.label) for grid in report.depths])
    if report.facets:
        yield Section("facets", "By facet", [(name, "") for name in by_title(report.facets)])
    yield Section("correlations", "Between datasets")
    if report.totals.rows:
        yield Section("totals", "Figures of whole files")
    if report.missing:
        yield Section("missing", "Absent, failed and skipped")
    if report.details.rows:
        yield Section("details", "What metrics say beside the score")


def _functions(models: Sequence[str]) -> dict[str, Callable[..., object]]:
    """Return the functions with which the template makes tables, one grid at a time, so that memory stays small."""
    return {
        "scores_of": partial(beside, models=models),
        "numbers_of": partial(beside, models=models, are_scores=False),
        "heat_maps_of": partial(heat_maps, models=models),
        "small_tables_of": partial(small_tables, models=models),
        "pooled": partial(_of_datasets, is_pooled=True),
        "single": partial(_of_datasets, is_pooled=False),
        "correlation_table": correlation_table,
    }


def _of_datasets(grid: Grid, *, is_pooled: bool) -> Grid:
    """Return the grid with only the rows about all datasets together (`is_pooled`), or with only the rows about single
    datasets.
    """
    return replace(grid, rows=tuple(row for row in grid.rows if (row.of == EVERY) == is_pooled))


def _charts(averages: Grid, models: Sequence[str]) -> Callable[[Grid], list[Chart]]:
    """Return a function that makes the charts of a grid of averages; it makes no charts if there is only one length."""
    lengths = [column for column in averages.columns if column != MEAN]
    return lambda grid: length_charts(grid, models, lengths) if len(lengths) > 1 else []


def _matrices(found: Correlations) -> list[tuple[Matrix, str, bool]]:
    """Return (matrix, heading, whether its length is the longest of its profile) for each matrix; the longest lengths
    come first.
    """
    longest = list(found.longest())
    ordered = sorted(found.matrices, key=lambda each: (each not in longest, each.profile, -each.length))
    return [(each, length_name(each.length), each in longest) for each in ordered]


def _listings(report: Report) -> dict[str, Table]:
    return {
        "schemes": Table(
            ("metric", "profile", "follows", "choices", "models"),
            [
                (each.metric, each.profile, ", ".join(each.follows), ", ".join(each.choices), each.models)
                for each in report.provenance
            ],
        ),
        "reasoning": _reasoning(report.reasoning),
        "releases": Table(("model", "releases"), [(name, ", ".join(found)) for name, found in report.locks.items()]),
        "missing": _missing(report),
        "failures": Table(
            ("model", "metric", "reason", "times"),
            [(series.model, series.label, reason, times) for series, reason, times in report.failures],
        ),
    }


def _reasoning(counts: Mapping[str, Mapping[str, int]]) -> Table:
    rows: list[tuple[str | int, ...]] = [
        (model, *(found.get(kind, 0) for kind in _REASONING)) for model, found in counts.items()
    ]
    return Table(("model", *_REASONING), rows)


def _missing(report: Report) -> Table:
    rows: list[tuple[str | int | float, ...]] = []
    for each in report.missing:
        others = "" if each.found.others is None else points(each.found.others)
        rows.append((each.series.model, each.series.label, each.file, *astuple(each.found.counts), others))
    heads = ("model", "metric", "file", "examples", "absent", "failed", "skipped", "mean of what was not skipped")
    return Table(heads, rows)
