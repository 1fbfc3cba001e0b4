"""Prints a report: tables that compare the scores of several models and metrics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from mmlongbench.cli.console import print_table, say
from mmlongbench.scoring.report.averages import SAMPLES
from mmlongbench.scoring.report.breakdowns import EVERY, MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.correlations import Correlations
from mmlongbench.scoring.report.grids import ALL, Counts, Estimate, Grid, Row, length_name
from mmlongbench.scoring.report.report import Report
from mmlongbench.scoring.scores import UNKNOWN
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, RESAMPLES
from mmlongbench.table import Table, Value

_WIDTH = 100  # the width of tables in characters, if there is no terminal
_LABEL = 20  # the maximum characters of a model's name
_MAX_BESIDE = 6
"""The maximum number of columns in a table of correlations. It applies only if there is a single category, because then
each dataset has a column."""
_HEAD = 9  # the maximum characters of the name of a dataset or category at the head of a column
_MARK = "*"  # the mark after a mean over only some of the lengths
Labels: TypeAlias = Mapping[str, str]
"""The names of models in tables."""


def show_report(report: Report) -> None:
    """Print the tables that fit a terminal. Only the page and the JSON have the ends of intervals and the facets of
    each dataset.
    """
    models = {
        model: model if len(model) <= _LABEL else f"{number} {model[: _LABEL - 3]}…"
        for number, model in enumerate(report.models, 1)
    }
    counts = f"{len(models)} models, {len(report.metrics)} metrics, {len(report.datasets)} datasets"
    say(f"{report.lines:,} scores: {counts}")
    say(f"from 0 to 100, ± half of the {LEVEL:.0%} interval ({RESAMPLES:,} resamples of clusters of questions)")
    say(f"±–: no interval, since a score, or a part of an average, has fewer than {MIN_CLUSTERS} clusters")
    for model, label in models.items():
        if label != model:
            say(f"{label}: {model}")
    _show_profiles(report)
    for warning in report.differing.warnings():
        say(f"warning: {warning}")
    for title, grid in (
        ("averages", report.averages),
        ("datasets", report.scores),
        ("several samples", report.samples),
    ):
        for part in grid.by_profile():
            _show_ladder(f"{title}, {part.profile}", part, models)
    for grid in report.depths:
        _show_depths(grid, models)
    for grid in report.facets:
        if grid.metric in report.own_metrics:
            _show_facet(grid, models)
    of_files, beside = (
        "figures of whole files, mean over lengths",
        "what metrics say beside the score, mean over lengths",
    )
    for title, grid in ((of_files, report.totals), (beside, report.details)):
        for part in grid.by_profile():
            last = part.columns[-1]
            figures = ((row, [part.cells.get((model, row, last)) for model in models]) for row in part.rows)
            rows = [(f"{row.of} {row.metric}: {row.name}", *map(_figure, cells)) for row, cells in figures]
            _print(f"{title}, {part.profile}", models.values(), rows)
    _show_correlations(report.correlations)
    _show_missing(report)
    for note in (*report.averages.notes, *report.notes):
        say(note)


def _show_profiles(report: Report) -> None:
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for metric in report.provenance:
        together.setdefault((metric.profile, metric.follows, metric.choices), []).append(metric.metric)
    for (profile, follows, choices), metrics in together.items():
        rules = "; ".join([*([f"follows {', '.join(follows)}"] if follows else []), *choices])
        name = f"{UNKNOWN} (made before scores had profiles)" if profile == UNKNOWN else profile
        say(f"{name}: {', '.join(metrics)}{f' ({rules})' if rules else ''}")
    for model, counts in report.reasoning.items():
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
        say(f"reasoning in predictions of {model}: {kinds}")


def _show_ladder(title: str, grid: Grid, models: Labels) -> None:
    rows: list[tuple[str, ...]] = []
    for row in grid.rows:
        rows.append((f"{f'{row.of} ' if grid.title == SAMPLES else ''}{row.name} {row.metric}",))
        for model, label in models.items():
            cells = [grid.cells.get((model, row, column)) for column in grid.columns]
            if any(cells):
                rows.append((f"  {label}", *map(_score, cells)))
    _print(title, grid.columns, rows)


def _show_depths(grid: Grid, models: Labels) -> None:
    rows: list[tuple[str, ...]] = []
    for model, label in models.items():
        if any(grid.cells.get((model, row, ALL)) for row in grid.rows):
            cells = (_over_lengths(grid, model, row, has_interval=row == MIDDLE_LESS_ENDS) for row in grid.rows)
            rows.append((label, *cells))
    _print(f"depth: {grid.title}, {grid.label}", [row.name for row in grid.rows], rows)
    _explain_mark(rows)


def _show_facet(grid: Grid, models: Labels) -> None:
    """Print a facet over all lengths: the rows about all datasets together or, if there are none, the rows about single
    datasets. Each model has a column; if there are several models, their ranks are shown, too.
    """
    rows: list[tuple[str, ...]] = []
    for row in [row for row in grid.rows if row.of == EVERY] or grid.rows:
        ranks = {model: grid.ranks.get((model, row, ALL)) for model in models}
        cells = (_over_lengths(grid, model, row) + (f" #{rank:g}" if rank else "") for model, rank in ranks.items())
        rows.append((row.name if row.of == EVERY else f"{row.of}: {row.name}", *cells))
    _print(f"{grid.title}, {grid.label}{' (# place)' if grid.ranks else ''}", models.values(), rows)
    _explain_mark(rows)


def _over_lengths(grid: Grid, model: str, row: Row, *, has_interval: bool = True) -> str:
    """Return a score over all lengths together; if that is N/A, the score over the lengths that the model can take."""
    score = grid.cells.get((model, row, ALL))
    is_held = score is not None and score.is_inapplicable and row != MIDDLE_LESS_ENDS
    held = grid.over_held_lengths(model, row) if is_held else None
    return _score(score, has_interval=has_interval) if held is None else f"{100 * held:.1f}{_MARK}"


def _explain_mark(rows: Sequence[Sequence[str]]) -> None:
    if any(_MARK in cell for _, *cells in rows for cell in cells):
        say(f"{_MARK} over the lengths that the model can hold; over all of them it is N/A")


def _show_correlations(correlations: Correlations) -> None:
    if correlations.reason:
        say(f"between datasets: {correlations.reason}")
        return
    for matrix in correlations.longest():
        columns = matrix.categories if len(matrix.categories) > 1 else matrix.names[:_MAX_BESIDE]
        heads = [name if len(name) <= _HEAD else f"{name[: _HEAD - 1]}…" for name in columns]
        rows: list[tuple[str, ...]] = []
        for name in matrix.names:
            cells = []
            for correlation in (matrix.at(name, column) for column in columns):  # None: a dataset with itself
                few = f" ({correlation.models})" if correlation and correlation.models < matrix.models else ""
                rho = "–" if correlation is None or correlation.rho is None else f"{correlation.rho:.2f}"
                cells.append(f"{rho}{few}" if correlation else "")
            others = matrix.with_others(name) if name in matrix.categories and name != matrix.overall else None
            rows.append((name, *cells, f"{others[0]:.2f} ± {others[1]:.2f}" if others else ""))
        where = f"{matrix.profile}, {length_name(matrix.length)}, {matrix.models:,} models"
        _print(f"between datasets: Spearman's ρ, {where}", [*heads, "others"], rows)


def _show_missing(report: Report) -> None:
    if not report.missing:
        return
    rows: list[tuple[Value, ...]] = []
    for series in dict.fromkeys(each.series for each in report.missing):
        counts = [each.found.counts for each in report.missing if each.series == series]
        missed = sum(counts, Counts())
        rows.append((f"{series.model}, {series.label}", len(counts), missed.absent, missed.failed, missed.skipped))
    title = "absent (0 in the means), failed (not in the means), skipped (N/A)"
    _print(title, ["files", "absent", "failed", "skipped"], rows)
    for series, reason, times in report.failures:
        say(f"  {times:,} × {series.label} of {series.model}: {reason}")


def _score(estimate: Estimate | None, *, has_interval: bool = True) -> str:
    """Return a score and half the width of its interval; N/A if the model cannot be given all examples, a dash if there
    is no score for another reason.
    """
    if estimate is None or estimate.mean is None:
        return _figure(estimate)
    mean = f"{100 * estimate.mean:.1f}"
    if not has_interval:
        return mean
    if estimate.low is None or estimate.high is None:
        return f"{mean}{' ±–' if estimate.has_few_clusters else ''}"
    return f"{mean} ±{50 * (estimate.high - estimate.low):.1f}"


def _figure(estimate: Estimate | None) -> str:
    if estimate is None or estimate.mean is None:
        return "N/A" if estimate and estimate.is_inapplicable else "–"
    return f"{estimate.mean:.3f}"


def _print(title: str, columns: Iterable[str], rows: Sequence[Sequence[Value]]) -> None:
    say("")
    print_table(Table(("", *columns), rows, title), usual=_WIDTH, folds_numbers=True)
