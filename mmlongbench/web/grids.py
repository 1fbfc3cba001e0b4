"""The grids of a report as tables: each number in its cell, with colour, interval and missing examples."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TypeAlias

from mmlongbench.scoring.report.breakdowns import MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.correlations import Correlation, Matrix
from mmlongbench.scoring.report.grids import Counts, Estimate, Grid, Row
from mmlongbench.web.numbers import points, whole_points
from mmlongbench.web.tables import DASH, EMPTY, Cell, Group, HeatMaps, Line, Ramp, Table

_MIN_SPAN = 0.2
"""The minimum difference between the two ends of a colour ramp of scores, so that noise does not look like a
pattern."""
WHOLE = Ramp()
_RHO = Ramp(-1, 1)
Shown: TypeAlias = tuple[str, str, str]
"""The first fields of a cell: text, ramp and interval."""
Show: TypeAlias = Callable[[float, Estimate], Shown]


def beside(grid: Grid, models: Sequence[str], *, are_scores: bool = True) -> Table:
    """Return a table in which each row of a grid has a line for each model; `are_scores` says whether the numbers are
    scores.
    """
    show = show_score if are_scores else show_number
    return Table(grid.columns, (_models(grid, row, models, show) for row in grid.rows))


def _models(grid: Grid, row: Row, models: Sequence[str], show: Show) -> Group:
    """Return a row of a grid: a line for each model that has a number in the row, or for each model if no model has
    one.
    """
    there = [model for model in models if any((model, row, column) in grid.cells for column in grid.columns)] or models
    return Group(row.name, _belongs_to(row), [Line(model, _cells(grid, model, row, show)) for model in there])


def _belongs_to(row: Row) -> str:
    return ", ".join(part for part in (row.of, row.metric) if part)


def _cells(grid: Grid, model: str, row: Row, show: Show) -> list[Cell]:
    """Return the cells of a row for one model; the last cell has the model's rank if models are ranked."""
    cells = [_cell(grid.cells.get((model, row, column)), show) for column in grid.columns]
    if rank := grid.ranks.get((model, row, grid.columns[-1])):
        cells[-1] = cells[-1]._replace(rank=f"{rank:g}")
    return cells


def heat_maps(grid: Grid, models: Sequence[str]) -> HeatMaps:
    """Return a small table for each model; all tables share one colour ramp, which covers the scores of all models."""
    rows = {row for row in grid.rows if row != MIDDLE_LESS_ENDS}
    means = [found.mean for (_, row, _), found in grid.cells.items() if found.mean is not None and row in rows]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    low = max(0.0, min(low, high - _MIN_SPAN))
    ramp = Ramp(low, max(high, low + _MIN_SPAN))
    return HeatMaps(ramp, small_tables(grid, models, partial(show_score, ramp=ramp)))


def small_tables(grid: Grid, models: Sequence[str], show: Show | None = None) -> list[Table]:
    """Return a table for each model that has a number. `show` formats the numbers; by default, as in `show_number`."""
    there = {model for model, _, _ in grid.cells}
    columns = (*grid.columns, "n")
    return [Table(columns, _bands(grid, model, show or show_number), model) for model in models if model in there]


def _bands(grid: Grid, model: str, show: Show) -> Iterator[Group]:
    """Yield the rows of one model, grouped by what the rows belong to (see `Row.of`) and the metric."""
    for about, rows in groupby(grid.rows, key=_belongs_to):
        yield Group("", about, [_small_line(grid, model, row, show) for row in rows])


def _small_line(grid: Grid, model: str, row: Row, show: Show) -> Line:
    """Return a row; one more cell has the number of examples from which the last column is computed."""
    cells = _cells(grid, model, row, show_difference if row == MIDDLE_LESS_ENDS else show)
    found = grid.cells.get((model, row, grid.columns[-1]))
    return Line(row.name, [*cells, Cell(f"{found.counts.examples:,}", look="n") if found else EMPTY])


def _cell(found: Estimate | None, show: Show) -> Cell:
    """Return the cell of a number: N/A if examples were skipped, a dash if no example has a score."""
    if found is None:
        return DASH
    counts = found.counts
    missing = _missing(counts) if counts.absent or counts.failed or counts.skipped else ()
    if found.mean is None:
        return Cell("N/A" if found.is_inapplicable else "–", missing=missing, look="na m")
    of_clusters = f" of {found.clusters:,} clusters" if found.clusters else ""
    title = f"{counts.examples:,} examples{of_clusters}, {counts.absent:,} absent, {counts.failed:,} failed"
    return Cell(*show(found.mean, found), title, missing)


def _missing(found: Counts) -> list[str]:
    parts = ((found.absent, "absent"), (found.failed, "failed"), (found.skipped, "skipped"))
    return [f"{number:,} {word}" for number, word in parts if number]


def show_score(mean: float, found: Estimate, ramp: Ramp = WHOLE) -> Shown:
    """Return a score as points from 0 to 100, with its colour; the interval is a dash if there are too few clusters."""
    return points(mean), ramp.at(mean), _interval(found, points, "–")


def show_difference(mean: float, found: Estimate) -> Shown:
    """Return a difference of scores in whole points."""
    return whole_points(mean), "", _interval(found, whole_points, " to ")


def _interval(found: Estimate, write: Callable[[float], str], to: str) -> str:
    if found.low is None or found.high is None:
        return "–" if found.has_few_clusters else ""
    return f"{write(found.low)}{to}{write(found.high)}"


def show_number(mean: float, _: Estimate) -> Shown:
    """Return a number that is not a score."""
    return f"{mean:.3f}" if abs(mean) < 100 else f"{mean:,.0f}", "", ""


def correlation_table(matrix: Matrix) -> Table:
    """Return a table of the correlations between all datasets and categories, coloured from −1 to 1."""
    return Table((*matrix.names, "other categories"), [Group("", "", [_rhos(matrix, name) for name in matrix.names])])


def _rhos(matrix: Matrix, row: str) -> Line:
    cells = [_rho(matrix.at(row, column)) for column in matrix.names]
    others = matrix.with_others(row) if row in matrix.categories and row != matrix.overall else None
    return Line(row, [*cells, Cell(f"{others[0]:.2f}", interval=f"± {others[1]:.2f}") if others else EMPTY])


def _rho(found: Correlation | None) -> Cell:
    if found is None:
        return EMPTY
    if found.rho is None:
        return Cell("–", title=found.reason, look="na")
    return Cell(f"{found.rho:.2f}", _RHO.at(found.rho), title=f"{found.models:,} models")


def by_title(grids: Iterable[Grid]) -> dict[str, list[Grid]]:
    """Return, for each title, the list of its grids; titles and grids keep their order."""
    found: dict[str, list[Grid]] = {}
    for grid in grids:
        found.setdefault(grid.title, []).append(grid)
    return found
