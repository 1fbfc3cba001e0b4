"""Grids as HTML tables: each number in its cell, coloured by it, with its interval and what is missing of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import groupby
from typing import TypeAlias

from mmlongbench.scoring.report.correlations import Correlation, Matrix
from mmlongbench.scoring.report.estimates import Counts, Estimate
from mmlongbench.scoring.report.grids import Grid, Row

_NARROWEST = 0.2
"""The least span of scores that a ramp has, lest noise looks like a pattern."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """The span of scores that the colours go through."""

    low: float = 0.0
    high: float = 1.0

    def at(self, mean: float) -> float:
        """Where a score stands on it, from 0 to 1."""
        return min(1.0, max(0.0, (mean - self.low) / (self.high - self.low)))

    def key(self) -> str:
        """What the colours mean, for the head of a table."""
        return f'<p>{points(self.low)}<span class="ramp"></span>{points(self.high)}</p>'


WHOLE = Ramp()
Show: TypeAlias = Callable[[float, Estimate], tuple[str, str]]


def ramp_of(grid: Grid, rows: Iterable[Row]) -> Ramp:
    """One ramp for all models of a grid, over the scores that some rows have."""
    wanted = set(rows)
    means = [found.mean for (_, row, _), found in grid.cells.items() if found.mean is not None and row in wanted]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    low = max(0.0, min(low, high - _NARROWEST))
    return Ramp(low, max(high, low + _NARROWEST))


def points(score: float) -> str:
    """A score from 0 to 100, as the paper's tables have it.

    >>> points(0.62491)
    '62.5'
    """
    return f"{100 * score:.1f}"


def whole(difference: float) -> str:
    """A difference of scores in whole points, with a sign that is as wide as a digit.

    >>> whole(-0.173), whole(-0.001)
    ('−17', '0')
    """
    return f"{round(100 * difference)}".replace("-", "−")


def beside(grid: Grid, models: Sequence[str], *, are_scores: bool = True) -> str:
    """Models below each other within each row of a grid, which holds scores or other numbers."""
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in grid.columns)
    body = "".join(_models(grid, row, models, _score if are_scores else _number) for row in grid.rows)
    return f'<div class="wide"><table><thead><tr><th></th><th></th>{heads}</tr></thead>{body}</table></div>'


def _models(grid: Grid, row: Row, models: Sequence[str], show: Show) -> str:
    """A row of a grid: one line a model that has any number in it."""
    there = [model for model in models if any((model, row, column) in grid.cells for column in grid.columns)] or models
    head = f'<th scope="rowgroup" rowspan="{len(there)}">{_name(row)}</th>'
    lines = (f'<th scope="row">{escape(model)}</th>{_cells(grid, model, row, show)}' for model in there)
    return f"<tbody><tr>{head}{'</tr><tr>'.join(lines)}</tr></tbody>"


def _name(row: Row) -> str:
    """What stands before a row: its name, what it belongs to, its metric."""
    small = _belongs_to(row)
    return f"<b>{escape(row.name)}</b>{f'<small>{escape(small)}</small>' if small else ''}"


def _belongs_to(row: Row) -> str:
    return ", ".join(part for part in (row.of, row.metric) if part)


def _cells(grid: Grid, model: str, row: Row, show: Show) -> str:
    last = (model, row, grid.columns[-1])
    place = f"<small>#{grid.ranks[last]:g}</small>" if last in grid.ranks else ""
    cells = [_cell(grid.cells.get((model, row, column)), show) for column in grid.columns]
    return "".join([*cells[:-1], cells[-1].replace("</td>", f"{place}</td>")])


def multiples(grid: Grid, models: Sequence[str], ramp: Ramp | None = None, differences: Row | None = None) -> str:
    """A small table a model, side by side, all on one ramp; without one the numbers are no scores."""
    there = {model for model, _, _ in grid.cells}
    tables = (_small(grid, model, ramp, differences) for model in models if model in there)
    return f'<div class="many">{"".join(tables)}</div>'


def _small(grid: Grid, model: str, ramp: Ramp | None, differences: Row | None) -> str:
    show = partial(_score, ramp=ramp) if ramp else _number
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in (*grid.columns, "n"))
    body = ""
    for of, rows in groupby(grid.rows, key=_belongs_to):
        if of:
            body += f'<tr class="sub"><th colspan="{len(grid.columns) + 2}">{escape(of)}</th></tr>'
        for row in rows:
            cells = _cells(grid, model, row, _difference if row == differences else show)
            body += f'<tr><th scope="row">{escape(row.name)}</th>{cells}{_examples(grid, model, row)}</tr>'
    head = f"<caption>{escape(model)}</caption><thead><tr><th></th>{heads}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _examples(grid: Grid, model: str, row: Row) -> str:
    """How many examples the last column of a row rests on."""
    found = grid.cells.get((model, row, grid.columns[-1]))
    return f'<td class="n">{found.counts.examples:,}</td>' if found else "<td></td>"


def listing(heads: Sequence[str], rows: Iterable[tuple[str | int | float, ...]]) -> str:
    """A plain table: texts to the left, numbers to the right."""
    head = "".join(f'<th scope="col" class="t">{escape(text)}</th>' for text in heads)
    body = "".join(f"<tr>{''.join(map(_plain, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def correlation_table(matrix: Matrix) -> str:
    """Every dataset and category against every other one, coloured from −1 to 1."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in matrix.names)
    body = ""
    for row in matrix.names:
        cells = "".join(_correlation(matrix.at(row, column)) for column in matrix.names)
        others = matrix.with_others(row) if row in matrix.categories and row != matrix.overall else None
        said = f"{others[0]:.2f}<small>± {others[1]:.2f}</small>" if others else ""
        body += f'<tr><th scope="row">{escape(row)}</th>{cells}<td>{said}</td></tr>'
    head = f'<tr><th></th>{heads}<th scope="col">other categories</th></tr>'
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _correlation(found: Correlation | None) -> str:
    if found is None:
        return "<td></td>"
    if found.rho is None:
        return f'<td class="na" title="{escape(found.reason, quote=True)}">–</td>'
    return f'<td class="v" style="--v:{(found.rho + 1) / 2:.3f}" title="{found.models:,} models">{found.rho:.2f}</td>'


def _plain(value: str | int | float) -> str:
    if isinstance(value, str):
        return f'<td class="t">{escape(value)}</td>'
    return f"<td>{value:,}</td>" if isinstance(value, int) else f"<td>{value:.2f}</td>"


def _cell(found: Estimate | None, show: Show) -> str:
    """A number; N/A where the model cannot be asked all of it; a dash where nothing was asked or has a score."""
    if found is None:
        return '<td class="na">–</td>'
    missing = _missing(found.counts)
    if found.mean is None:
        return f'<td class="na m">{"N/A" if found.is_inapplicable else "–"}{missing}</td>'
    look, words = show(found.mean, found)
    marks = " ".join(mark for mark in ("v" if look else "", "m" if missing else "") if mark)
    counts = found.counts
    rests = f"{counts.examples:,} examples" + (f" of {found.clusters:,} clusters" if found.clusters else "")
    title = f"{rests}, {counts.absent:,} absent, {counts.failed:,} failed"
    return f'<td class="{marks}"{look} title="{title}">{words}{missing}</td>'


def _score(mean: float, found: Estimate, ramp: Ramp = WHOLE) -> tuple[str, str]:
    """How a cell looks, and what stands in it: a score on its ground."""
    return f' style="--v:{ramp.at(mean):.3f}"', f"{points(mean)}{_interval(found)}"


def _difference(mean: float, found: Estimate) -> tuple[str, str]:
    """A difference of scores, in whole points."""
    if found.low is None or found.high is None:
        return "", f"{whole(mean)}{_interval(found)}"
    return "", f"{whole(mean)}<small>{whole(found.low)} to {whole(found.high)}</small>"


def _number(mean: float, found: Estimate) -> tuple[str, str]:
    return "", f"{mean:.3f}" if abs(mean) < 100 else f"{mean:,.0f}"


def _interval(found: Estimate) -> str:
    """The ends of an interval; a dash where there are too few clusters for one."""
    if found.has_few_clusters:
        return "<small>–</small>"
    if found.low is None or found.high is None:
        return ""
    return f"<small>{points(found.low)}–{points(found.high)}</small>"


def _missing(found: Counts) -> str:
    parts = ((found.absent, "absent"), (found.failed, "failed"), (found.skipped, "skipped"))
    return "".join(f'<small class="m">{number:,} {word}</small>' for number, word in parts if number)
