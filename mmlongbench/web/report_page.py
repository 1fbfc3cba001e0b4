"""The report as one HTML page. It needs no network and no other files, and has no script."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import groupby

from mmlongbench.scoring.report.breakdowns import EVERY, MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.correlations import Matrix
from mmlongbench.scoring.report.grids import MEAN, Counts, Estimate, Grid, Row, length_name
from mmlongbench.scoring.report.report import Report
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, RESAMPLES
from mmlongbench.table import Cell, Table, Value
from mmlongbench.web.charts import Chart, length_charts, look_of
from mmlongbench.web.kit import Section, points, render, whole_points

_REASONING = ("stripped", "unclosed", "kept")
"""The words for what was done with the reasoning in predictions; each is a column of the page."""
_MIN_SPAN = 0.2
"""The minimum difference between the two ends of a colour ramp of scores, so that noise does not look like a
pattern."""
_DASH = Cell("–", look="na")


@dataclass(frozen=True, slots=True)
class Ramp:
    """The range of numbers that the colours of a table cover."""

    low: float = 0.0
    high: float = 1.0

    def at(self, number: float) -> str:
        """Return the place of a number on the ramp, from 0 to 1, as text.

        >>> Ramp(0.2, 0.7).at(0.3), Ramp(0.2, 0.7).at(9)
        ('0.200', '1.000')
        """
        return f"{min(1.0, max(0.0, (number - self.low) / (self.high - self.low))):.3f}"


WHOLE = Ramp()


def report_page(title: str, report: Report) -> Iterator[str]:
    """Yield the page of a report in pieces. Its tables are made one grid at a time, so that memory stays small."""
    models, longest = report.models, list(report.correlations.longest())
    lengths = [column for column in report.averages.columns if column != MEAN]

    def charts(grid: Grid) -> list[Chart]:
        return length_charts(grid, models, lengths) if len(lengths) > 1 else []

    def matrices() -> list[tuple[Matrix, str, bool]]:
        """The longest lengths come first, and are open."""
        order = sorted(report.correlations.matrices, key=lambda each: (each not in longest, each.profile, -each.length))
        return [(matrix, length_name(matrix.length), matrix in longest) for matrix in order]

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
        looks=[(model, look_of(number)) for number, model in enumerate(models)],
        charts=charts,
        facets=by_title(report.facets),
        has_ranks=any(grid.ranks for grid in report.facets),
        matrices=matrices(),
        scores_of=partial(grid_table, models=models),
        numbers_of=partial(grid_table, models=models, show=_number),
        heat_maps_of=partial(heat_maps, models=models),
        small_tables_of=partial(_of_each_model, models=models, show=_number),
        pooled=partial(_of_datasets, is_pooled=True),
        single=partial(_of_datasets, is_pooled=False),
        correlation_table=_correlations,
        listings=_listings(report),
    )


def _sections(report: Report) -> Iterator[Section]:
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


# Grids as tables.


def grid_table(grid: Grid, models: Sequence[str], show: Callable[[Estimate, float], Cell] | None = None) -> Table:
    """Return a table in which each row of a grid has a line for each model that has a number in it, or for each model
    if none has. `show` formats the numbers; by default, they are scores.
    """
    rows: list[Sequence[Value]] = []
    for row in grid.rows:
        there = [model for model in models if any((model, row, column) in grid.cells for column in grid.columns)]
        rows.append((Cell(row.name, below=_about(row)),))
        rows += [(model, *_cells(grid, model, row, show or _score)) for model in there or models]
    return Table(("model", *grid.columns), rows)


def heat_maps(grid: Grid, models: Sequence[str]) -> tuple[Ramp, list[Table]]:
    """Return a small table for each model; all share one colour ramp, which covers the scores of all models."""
    rows = {row for row in grid.rows if row != MIDDLE_LESS_ENDS}
    means = [found.mean for (_, row, _), found in grid.cells.items() if found.mean is not None and row in rows]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    low = max(0.0, min(low, high - _MIN_SPAN))
    ramp = Ramp(low, max(high, low + _MIN_SPAN))
    return ramp, _of_each_model(grid, models, partial(_score, ramp=ramp))


def _of_each_model(grid: Grid, models: Sequence[str], show: Callable[[Estimate, float], Cell]) -> list[Table]:
    """Return a table for each model that has a number. Its rows are grouped by what they belong to and the metric; one
    more column has the number of examples from which the last one is computed.
    """
    tables = []
    for model in models:
        rows: list[Sequence[Value]] = []
        for about, group in groupby(grid.rows, key=_about):
            rows += [(text,) for text in about]
            for row in group:
                found = grid.cells.get((model, row, grid.columns[-1]))
                count = Cell(f"{found.counts.examples:,}", look="n") if found else ""
                cells = _cells(grid, model, row, _difference if row == MIDDLE_LESS_ENDS else show)
                rows.append((row.name, *cells, count))
        if any(model == other for other, _, _ in grid.cells):
            tables.append(Table(("", *grid.columns, "n"), rows, model))
    return tables


def _about(row: Row) -> list[str]:
    """Return what a row belongs to, and its metric, as one text; nothing if it has neither."""
    text = ", ".join(part for part in (row.of, row.metric) if part)
    return [text] if text else []


def _cells(grid: Grid, model: str, row: Row, show: Callable[[Estimate, float], Cell]) -> list[Cell]:
    """Return the cells of a row: N/A if examples were skipped, a dash if no example has a score."""
    cells = []
    for column in grid.columns:
        found = grid.cells.get((model, row, column))
        if found is None:
            cells.append(_DASH)
            continue
        counts = found.counts
        parts = ((counts.absent, "absent"), (counts.failed, "failed"), (counts.skipped, "skipped"))
        missing = [f"{number:,} {word}" for number, word in parts if number]
        if found.mean is None:
            cells.append(Cell("N/A" if found.is_inapplicable else "–", missing, look="na m"))
            continue
        clusters = f" of {found.clusters:,} clusters" if found.clusters else ""
        title = f"{counts.examples:,} examples{clusters}, {counts.absent:,} absent, {counts.failed:,} failed"
        cell = show(found, found.mean)
        cells.append(cell._replace(below=[*cell.below, *missing], title=title, look="m" if missing else ""))
    if rank := grid.ranks.get((model, row, grid.columns[-1])):
        cells[-1] = cells[-1]._replace(below=[*cells[-1].below, f"#{rank:g}"])
    return cells


def _score(found: Estimate, mean: float, ramp: Ramp = WHOLE) -> Cell:
    """Return a score as points from 0 to 100; the interval is a dash if there are too few clusters."""
    return Cell(points(mean), _interval(found, points, "–"), ramp=ramp.at(mean))


def _difference(found: Estimate, mean: float) -> Cell:
    return Cell(whole_points(mean), _interval(found, whole_points, " to "))


def _number(_: Estimate, mean: float) -> Cell:
    """Return a number that is not a score."""
    return Cell(f"{mean:.3f}" if abs(mean) < 100 else f"{mean:,.0f}")


def _interval(found: Estimate, write: Callable[[float], str], to: str) -> list[str]:
    if found.low is None or found.high is None:
        return ["–"] if found.has_few_clusters else []
    return [f"{write(found.low)}{to}{write(found.high)}"]


def _of_datasets(grid: Grid, *, is_pooled: bool) -> Grid:
    """Return the grid with only the rows about all datasets together (`is_pooled`), or with only the rows about single
    datasets.
    """
    return replace(grid, rows=tuple(row for row in grid.rows if (row.of == EVERY) == is_pooled))


def by_title(grids: Iterable[Grid]) -> dict[str, list[Grid]]:
    """Return, for each title, the list of its grids; titles and grids keep their order."""
    titles: dict[str, list[Grid]] = {}
    for grid in grids:
        titles.setdefault(grid.title, []).append(grid)
    return titles


# Other tables.


def _correlations(matrix: Matrix) -> Table:
    ramp, rows = Ramp(-1, 1), list[Sequence[Value]]()
    for name in matrix.names:
        row: list[Value] = [name]
        for column in matrix.names:
            found = matrix.at(name, column)
            if found is None:
                row.append("")
            elif found.rho is None:
                row.append(Cell("–", title=found.reason, look="na"))
            else:
                row.append(Cell(f"{found.rho:.2f}", title=f"{found.models:,} models", ramp=ramp.at(found.rho)))
        others = matrix.with_others(name) if name in matrix.categories and name != matrix.overall else None
        row.append(Cell(f"{others[0]:.2f}", [f"± {others[1]:.2f}"]) if others else "")
        rows.append(row)
    return Table(("", *matrix.names, "other categories"), rows)


def _listings(report: Report) -> Mapping[str, Table]:
    """Return the tables that are no grids, by name."""
    schemes = [
        (each.metric, each.profile, ", ".join(each.follows), ", ".join(each.choices), each.models)
        for each in report.provenance
    ]
    reasoning: list[Sequence[Value]] = [
        (model, *(counts.get(kind, 0) for kind in _REASONING)) for model, counts in report.reasoning.items()
    ]
    missing: list[Sequence[Value]] = []
    for each in report.missing:
        others = "" if each.found.others is None else points(each.found.others)
        missing.append((each.series.model, each.series.label, each.file, *astuple(each.found.counts), others))
    counts = ("examples", "absent", "failed", "skipped", "mean of what was not skipped")
    return {
        "schemes": Table(("metric", "profile", "follows", "choices", "models"), schemes, align="llll"),
        "reasoning": Table(("model", *_REASONING), reasoning),
        "releases": Table(("model", "releases"), [(m, ", ".join(ids)) for m, ids in report.locks.items()], align="ll"),
        "missing": Table(("model", "metric", "file", *counts), missing, align="lll"),
        "failures": Table(
            ("model", "metric", "reason", "times"),
            [(series.model, series.label, reason, times) for series, reason, times in report.failures],
            align="lll",
        ),
    }
