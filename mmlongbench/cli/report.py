"""The subcommand `report`: compares the scores of several models and metrics."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeAlias

import click

from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import FILE, PATH, html_option, json_option, quiet_option
from mmlongbench.scoring.report.agreement import Agreement
from mmlongbench.scoring.report.averages import SAMPLES
from mmlongbench.scoring.report.breakdowns import EVERY, MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.calibration import calibration
from mmlongbench.scoring.report.correlations import Correlation, Correlations
from mmlongbench.scoring.report.estimates import MIN_CLUSTERS, Counts, Estimate
from mmlongbench.scoring.report.grids import ALL, Grid, Row, length_name
from mmlongbench.scoring.report.report import Report
from mmlongbench.scoring.report.report import report as report_of
from mmlongbench.scoring.report.resampling import LEVEL, RESAMPLES
from mmlongbench.scoring.report.volatility import Volatility
from mmlongbench.scoring.scores import UNKNOWN
from mmlongbench.table import Table, Value

_WIDTH = 100
"""The width of tables in characters, if there is no terminal."""
_LABEL = 20
"""The maximum characters of a model's name."""
_MAX_BESIDE = 6
"""The maximum number of columns in a table of correlations. It applies only if there is a single category, because then
each dataset has a column."""
_HEAD = 9
"""The maximum characters of the name of a dataset or category at the head of a column."""
_MARK = "*"
"""The mark after a mean over only some of the lengths."""
Labels: TypeAlias = Mapping[str, str]
"""The names of models in tables."""


def _show_report(report: Report) -> None:
    """Print the tables that fit a terminal. Only the page and the JSON have the ends of intervals and the facets of
    each dataset.
    """
    models = _labels(report.models)
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
    _show_ladders("averages", report.averages, models)
    _show_ladders("datasets", report.scores, models)
    _show_ladders("several samples", report.samples, models)
    for grid in report.depths:
        _show_depths(grid, models)
    for grid in report.facets:
        if grid.metric in report.own_metrics:
            _show_facet(grid, models)
    _show_numbers("figures of whole files, mean over lengths", report.totals, models)
    _show_numbers("what metrics say beside the score, mean over lengths", report.details, models)
    _show_correlations(report.correlations)
    _show_agreement(report.agreement, models)
    _show_volatilities(report.volatilities, models)
    _show_missing(report)
    for note in (*report.averages.notes, *report.notes):
        say(note)


def _show_profiles(report: Report) -> None:
    """Print whose rules each metric follows, with one line for all metrics of the same profile, origin and choices.
    Then print how many predictions had reasoning.
    """
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in report.provenance:
        together.setdefault((each.profile, each.follows, each.choices), []).append(each.metric)
    for (profile, follows, choices), metrics in together.items():
        said = "; ".join([*([f"follows {', '.join(follows)}"] if follows else []), *choices])
        name = f"{UNKNOWN} (made before scores had profiles)" if profile == UNKNOWN else profile
        say(f"{name}: {', '.join(metrics)}{f' ({said})' if said else ''}")
    for model, counts in report.reasoning.items():
        said = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
        say(f"reasoning in predictions of {model}: {said}")


def _labels(models: Sequence[str]) -> dict[str, str]:
    """Return the label of each model: a short name unchanged, or a number and as much of a longer name as fits."""
    return {
        model: model if len(model) <= _LABEL else f"{number} {model[: _LABEL - 3]}…"
        for number, model in enumerate(models, 1)
    }


def _show_ladders(title: str, grid: Grid, models: Labels) -> None:
    """Print a table for each profile. Each row of the grid has a line with its name, and below it a line for every
    model.
    """
    for part in grid.by_profile():
        rows: list[tuple[str, ...]] = []
        for row in part.rows:
            rows.append((f"{f'{row.of} ' if part.title == SAMPLES else ''}{row.name} {row.metric}",))
            for model, label in models.items():
                cells = [part.cells.get((model, row, column)) for column in part.columns]
                if any(cells):
                    rows.append((f"  {label}", *map(_score, cells)))
        _print(f"{title}, {part.profile}", part.columns, rows)


def _show_depths(grid: Grid, models: Labels) -> None:
    """Print the scores at each depth over all lengths together, with a line for each model."""
    rows: list[tuple[str, ...]] = []
    for model, label in models.items():
        if any(grid.cells.get((model, row, ALL)) for row in grid.rows):
            cells = (_score_of_all(grid, model, row, has_interval=row == MIDDLE_LESS_ENDS) for row in grid.rows)
            rows.append((label, *cells))
    _print(f"depth: {grid.title}, {grid.label}", [row.name for row in grid.rows], rows)
    _show_held(grid, models)


def _show_facet(grid: Grid, models: Labels) -> None:
    """Print a facet over all lengths: the rows about all datasets together or, if there are none, the rows about single
    datasets. Each model has a column; if there are several models, their ranks are shown, too.
    """
    pooled = [row for row in grid.rows if row.of == EVERY] or grid.rows
    rows: list[tuple[str, ...]] = []
    for row in pooled:
        cells = []
        for model in models:
            place = grid.ranks.get((model, row, ALL))
            cells.append(_score_of_all(grid, model, row) + (f" #{place:g}" if place else ""))
        rows.append((row.name if row.of == EVERY else f"{row.of}: {row.name}", *cells))
    _print(f"{grid.title}, {grid.label}{' (# place)' if grid.ranks else ''}", models.values(), rows)
    _show_held(replace(grid, rows=tuple(pooled)), models)


def _score_of_all(grid: Grid, model: str, row: Row, *, has_interval: bool = True) -> str:
    """Return a score over all lengths together; if that is N/A, the score over the lengths that the model can take."""
    found, held = grid.cells.get((model, row, ALL)), _held(grid, model, row)
    return _score(found, has_interval) if held is None else f"{100 * held:.1f}{_MARK}"


def _held(grid: Grid, model: str, row: Row) -> float | None:
    """Return the mean over the lengths that a model can take. Return None if the model can take all lengths of a row
    or none of them, or if the row is `MIDDLE_LESS_ENDS`.
    """
    found = grid.cells.get((model, row, ALL))
    is_shown = found is not None and found.is_inapplicable and row != MIDDLE_LESS_ENDS
    return grid.over_held_lengths(model, row) if is_shown else None


def _show_held(grid: Grid, models: Labels) -> None:
    if any(_held(grid, model, row) is not None for model in models for row in grid.rows):
        say(f"{_MARK} over the lengths that the model can hold; over all of them it is N/A")


def _show_numbers(title: str, grid: Grid, models: Labels) -> None:
    """Print a table for each profile, with a column for each model."""
    for part in grid.by_profile():
        rows: list[tuple[str, ...]] = []
        for row in part.rows:
            cells = (part.cells.get((model, row, part.columns[-1])) for model in models)
            rows.append((f"{row.of} {row.metric}: {row.name}", *map(_figure, cells)))
        _print(f"{title}, {part.profile}", models.values(), rows)


def _show_correlations(found: Correlations) -> None:
    """Print the correlations at the longest length. Each category has a column; if there is only one, the first
    datasets have columns. The page and the JSON have all correlations.
    """
    if found.reason:
        say(f"between datasets: {found.reason}")
        return
    for matrix in found.longest():
        where = f"{matrix.profile}, {length_name(matrix.length)}, {matrix.models:,} models"
        columns = matrix.categories if len(matrix.categories) > 1 else matrix.names[:_MAX_BESIDE]
        heads = [name if len(name) <= _HEAD else f"{name[: _HEAD - 1]}…" for name in columns]
        rows: list[tuple[str, ...]] = []
        for row in matrix.names:
            others = matrix.with_others(row) if row in matrix.categories and row != matrix.overall else None
            mean = f"{others[0]:.2f} ± {others[1]:.2f}" if others else ""
            rows.append((row, *(_rho(matrix.at(row, column), matrix.models) for column in columns), mean))
        _print(f"between datasets: Spearman's ρ, {where}", [*heads, "others"], rows)


def _rho(found: Correlation | None, models: int) -> str:
    """Return a correlation, with the number of models if some are missing; empty for a dataset with itself."""
    if found is None:
        return ""
    few = f" ({found.models})" if found.models < models else ""
    return f"–{few}" if found.rho is None else f"{found.rho:.2f}{few}"


def _show_agreement(found: Agreement, models: Labels) -> None:
    if found.reason:
        say(f"between metrics: {found.reason}")
        return
    pairs: list[tuple[Value, ...]] = []
    for pair in found.pairs:
        tau = pair.reason if pair.tau is None else f"{pair.tau:.2f}"
        pairs.append((" and ".join(pair.metrics), pair.examples, tau))
    _print("between metrics: Kendall's τ of the models' ranking", ["examples", "τ"], pairs)
    shifts: list[tuple[Value, ...]] = []
    for model, each in (found.shifts or {}).items():
        shifts.append((models[model], f"{100 * each.score:.1f}", each.rank, each.pairs))
    _print("shift: how far a model moves between two metrics", ["points", "places", "pairs"], shifts)


def _show_volatilities(found: Sequence[Volatility], models: Labels) -> None:
    rows: list[tuple[str, ...]] = []
    for key in dict.fromkeys((each.dataset, each.metric) for each in found):
        rows.append((" ".join(key),))
        for each in (each for each in found if (each.dataset, each.metric) == key):
            figures = (f"{100 * each.score:.1f}", f"{each.rank:.2f}", f"{each.median_rank:g}", f"{each.robustness:.2f}")
            rows.append((f"  {models[each.model]}", f"{each.subsets}", *figures))
    title = "volatility over T groups of the questions, and robustness of the rank (smaller: steadier, better)"
    if found:
        _print(title, ["T", "points", "places", "median rank", "robustness"], rows)


def _show_missing(report: Report) -> None:
    """Print how many examples are absent, failed or skipped in all files; the page and the JSON have each file."""
    if not report.missing:
        return
    title = "absent (0 in the means), failed (not in the means), skipped (N/A)"
    rows: list[tuple[Value, ...]] = []
    for series in dict.fromkeys(each.series for each in report.missing):
        found = [each for each in report.missing if each.series == series]
        missed = sum((each.found.counts for each in found), Counts())
        rows.append((f"{series.model}, {series.label}", len(found), missed.absent, missed.failed, missed.skipped))
    _print(title, ["files", "absent", "failed", "skipped"], rows)
    for series, reason, times in report.failures:
        say(f"  {times:,} × {series.label} of {series.model}: {reason}")


def _score(found: Estimate | None, has_interval: bool = True) -> str:
    """Return a score and half the width of its interval; N/A if the model cannot be given all examples, a dash if there
    is no score for another reason.
    """
    if found is None or found.mean is None:
        return "N/A" if found and found.is_inapplicable else "–"
    mean = f"{100 * found.mean:.1f}"
    if not has_interval:
        return mean
    if found.low is None or found.high is None:
        return f"{mean}{' ±–' if found.has_few_clusters else ''}"
    return f"{mean} ±{50 * (found.high - found.low):.1f}"


def _figure(found: Estimate | None) -> str:
    if found is None or found.mean is None:
        return "N/A" if found and found.is_inapplicable else "–"
    return f"{found.mean:.3f}"


def _print(title: str, columns: Iterable[str], rows: Sequence[Sequence[Value]]) -> None:
    """Print a table whose first column has names."""
    say("")
    print_table(Table(("", *columns), rows, title), usual=_WIDTH, folds_numbers=True)


def _calibrate(scores: Path, given: Path, profile: str, *, as_json: bool, is_quiet: bool) -> None:
    """Print how well the scores at each α agree with given scores, and the best α (the match's weight in SMuDGE)."""
    found = calibration(scores, given, profile)
    bests = {"ece": found.best_by_ece, "pearson": found.best_by_pearson}
    if as_json:
        best = {name: row.alpha if row else None for name, row in bests.items()}
        rows = [asdict(row) for row in found.rows]
        click.echo(json.dumps({"given": found.given, "count": found.count, "best": best, "rows": rows}))
    elif not is_quiet:
        is_of_examples = found.given == "examples"
        ending = "the scores of examples" if is_of_examples else "the calibration errors of models"
        say(f"α against {ending}: {found.count:,} in both")
        say(f"{'α':>6}{'ECE':>8}{'Pearson':>10}")
        for row in found.rows:
            ece, pearson = ("n/a" if value is None else f"{value:.3f}" for value in (row.ece, row.pearson))
            say(f"{row.alpha:>6.2f}{ece:>8}{pearson:>10}")
        words = {"ece": "least ECE", "pearson": f"{'highest' if is_of_examples else 'lowest'} Pearson"}
        for name, best_row in bests.items():
            if best_row is not None:
                say(f"best α by the {words[name]}: {best_row.alpha:g}")


@click.command()
@click.argument("scores", type=PATH)
@click.option(
    "--metric",
    "preferred",
    multiple=True,
    metavar="NAME",
    help="The metric for averages of datasets that several metrics scored; by default as builders declare.",
)
@click.option(
    "--profile",
    type=click.Choice(["official", "paper", "ours", "unknown"]),
    help="Show or calibrate only the scores under one profile; by default each profile has its own tables.",
)
@click.option(
    "--calibrate-alpha",
    "given",
    type=FILE,
    metavar="FILE",
    help="Print only the α at which SMuDGE agrees best with FILE (scores of examples, or an ECE of each model).",
)
@html_option
@json_option()
@quiet_option()
def report(
    scores: Path,
    preferred: tuple[str, ...],
    profile: str | None,
    given: Path | None,
    html: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare models by SCORES, a folder that `score` has written to.

    Shows scores by dataset and length, averages as in the paper, scores by depth and by every facet of the questions,
    and comparisons between datasets, metrics and groups of questions, with intervals. Absent, failed and skipped
    examples are counted.
    """
    if given:
        if html or preferred:
            raise click.UsageError("--calibrate-alpha prints a table of its own: leave out --html and --metric")
        _calibrate(scores, given, profile or "", as_json=as_json, is_quiet=quiet)
        return
    found = report_of(scores, preferred, profile or "")
    if html:
        from mmlongbench.web.kit import write_page
        from mmlongbench.web.report_page import report_page

        write_page(html, report_page(f"Report of {scores.resolve().name}", found))
    if as_json:
        click.echo(json.dumps(found.summary()))
    elif not quiet:
        _show_report(found)
