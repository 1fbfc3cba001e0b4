"""The subcommand `report`: compares the scores of several models and metrics."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeAlias

import click
from rich.text import Text

from mmlongbench.cli.console import Table, plain, print_narrow_table, say
from mmlongbench.io.printable import shown
from mmlongbench.scoring.report.agreement import Agreement
from mmlongbench.scoring.report.averages import SAMPLES
from mmlongbench.scoring.report.breakdowns import EVERY, MIDDLE_LESS_ENDS
from mmlongbench.scoring.report.calibration import AtAlpha, Calibration, calibration
from mmlongbench.scoring.report.correlations import Correlation, Correlations
from mmlongbench.scoring.report.estimates import MIN_CLUSTERS, Counts, Estimate
from mmlongbench.scoring.report.grids import ALL, Grid, Row, length_name
from mmlongbench.scoring.report.report import Report
from mmlongbench.scoring.report.resampling import LEVEL, RESAMPLES
from mmlongbench.scoring.report.volatility import Volatility
from mmlongbench.scoring.scores import UNKNOWN

_WIDTH = 100
"""The width of tables in characters, if there is no terminal."""
_NAME = 22
"""The minimum width of the first column in characters; longer names are folded if there is no room."""
_LABEL = 20
"""The maximum characters of a model's name."""
_MAX_BESIDE = 6
"""The maximum number of columns in a table of correlations. It applies only if there is a single category, because then
each dataset has a column."""
_HEAD = 9
"""The maximum characters of the name of a dataset or category at the head of a column."""
_NUMBER = 13
"""The width in characters of a column of scores with intervals, including the space beside it."""
_MARK = "*"
"""The mark after a mean over only some of the lengths."""
Labels: TypeAlias = Mapping[str, str]
"""The names of models in tables."""


def show_report(report: Report) -> None:
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
        table = _table(f"{title}, {part.profile}", part.columns)
        for row in part.rows:
            of = f"{row.of} " if part.title == SAMPLES else ""
            table.add_row(Text.assemble((shown(f"{of}{row.name}"), "bold"), " ", shown(row.metric)))
            for model, label in models.items():
                cells = [part.cells.get((model, row, column)) for column in part.columns]
                if any(cells):
                    table.add_row(f"  {label}", *map(_said, cells))
        _print(table)


def _show_depths(grid: Grid, models: Labels) -> None:
    """Print the scores at each depth over all lengths together, with a line for each model."""
    table = _table(f"depth: {grid.title}, {grid.label}", [row.name for row in grid.rows])
    for model, label in models.items():
        cells = [grid.cells.get((model, row, ALL)) for row in grid.rows]
        if any(cells):
            table.add_row(
                label,
                *(_said_of_all(grid, model, row, has_interval=row == MIDDLE_LESS_ENDS) for row in grid.rows),
            )
    _print(table)
    _show_held(grid, models)


def _show_facet(grid: Grid, models: Labels) -> None:
    """Print a facet over all lengths: the rows about all datasets together or, if there are none, the rows about single
    datasets. Each model has a column; if there are several models, their ranks are shown, too.
    """
    pooled = [row for row in grid.rows if row.of == EVERY] or grid.rows
    table = _table(f"{grid.title}, {grid.label}{' (# place)' if grid.ranks else ''}", models.values())
    for row in pooled:
        name = row.name if row.of == EVERY else f"{row.of}: {row.name}"
        cells = []
        for model in models:
            place = grid.ranks.get((model, row, ALL))
            cells.append(_said_of_all(grid, model, row) + (f" #{place:g}" if place else ""))
        table.add_row(name, *cells)
    _print(table)
    _show_held(replace(grid, rows=tuple(pooled)), models)


def _said_of_all(grid: Grid, model: str, row: Row, *, has_interval: bool = True) -> str:
    """Return a score over all lengths together; if that is N/A, the score over the lengths that the model can take."""
    found, held = grid.cells.get((model, row, ALL)), _held(grid, model, row)
    return _said(found, has_interval) if held is None else f"{100 * held:.1f}{_MARK}"


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
        names = {row: f"{row.of} {row.metric}: {row.name}" for row in part.rows}
        table = _table(f"{title}, {part.profile}", models.values())
        for row, name in names.items():
            cells = (part.cells.get((model, row, part.columns[-1])) for model in models)
            table.add_row(name, *map(_number_report_tables, cells))
        _print(table)


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
        table = _table(f"between datasets: Spearman's ρ, {where}", [*heads, "others"])
        for row in matrix.names:
            others = matrix.with_others(row) if row in matrix.categories and row != matrix.overall else None
            said = f"{others[0]:.2f} ± {others[1]:.2f}" if others else ""
            table.add_row(row, *(_rho(matrix.at(row, column), matrix.models) for column in columns), said)
        _print(table)


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
    table = _table("between metrics: Kendall's τ of the models' ranking", ["examples", "τ"])
    for pair in found.pairs:
        tau = pair.reason if pair.tau is None else f"{pair.tau:.2f}"
        table.add_row(" and ".join(pair.metrics), f"{pair.examples:,}", tau)
    _print(table)
    table = _table("shift: how far a model moves between two metrics", ["points", "places", "pairs"])
    for model, each in (found.shifts or {}).items():
        table.add_row(models[model], f"{100 * each.score:.1f}", f"{each.rank:.2f}", f"{each.pairs}")
    _print(table)


def _show_volatilities(found: Sequence[Volatility], models: Labels) -> None:
    title = "volatility over T groups of the questions, and robustness of the rank (smaller: steadier, better)"
    table = _table(title, ["T", "points", "places", "median rank", "robustness"])
    for key in dict.fromkeys((each.dataset, each.metric) for each in found):
        table.add_row(Text.assemble((shown(key[0]), "bold"), " ", shown(key[1])))
        for each in (each for each in found if (each.dataset, each.metric) == key):
            figures = (f"{100 * each.score:.1f}", f"{each.rank:.2f}", f"{each.median_rank:g}", f"{each.robustness:.2f}")
            table.add_row(f"  {models[each.model]}", f"{each.subsets}", *figures)
    if found:
        _print(table)


def _show_missing(report: Report) -> None:
    """Print how many examples are absent, failed or skipped in all files; the page and the JSON have each file."""
    if not report.missing:
        return
    title = "absent (0 in the means), failed (not in the means), skipped (N/A)"
    table = _table(title, ["files", "absent", "failed", "skipped"])
    for series in dict.fromkeys(each.series for each in report.missing):
        found = [each for each in report.missing if each.series == series]
        missed = sum((each.found.counts for each in found), Counts())
        counts = (len(found), missed.absent, missed.failed, missed.skipped)
        table.add_row(f"{series.model}, {series.label}", *(f"{count:,}" for count in counts))
    _print(table)
    for series, reason, times in report.failures:
        say(f"  {times:,} × {series.label} of {series.model}: {reason}")


def _said(found: Estimate | None, has_interval: bool = True) -> str:
    """Return a score and half the width of its interval; N/A if the model cannot be given all examples, a dash if there
    is no score for another reason.
    """
    if found is None or found.mean is None:
        return "N/A" if found and found.is_inapplicable else "–"
    if not has_interval:
        return f"{100 * found.mean:.1f}"
    if found.low is None or found.high is None:
        return f"{100 * found.mean:.1f}{' ±–' if found.has_few_clusters else ''}"
    return f"{100 * found.mean:.1f} ±{50 * (found.high - found.low):.1f}"


def _number_report_tables(found: Estimate | None) -> str:
    if found is None or found.mean is None:
        return "N/A" if found and found.is_inapplicable else "–"
    return f"{found.mean:.3f}"


def _table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=f"\n{plain(title)}", title_justify="left", title_style="bold", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    heads = [plain(column) for column in columns]
    table.add_column(overflow="fold", min_width=_NAME, max_width=max(_NAME, _WIDTH - _NUMBER * len(heads)))
    for head in heads:
        table.add_column(head, justify="right", overflow="fold", min_width=5)
    return table


def _print(table: Table) -> None:
    print_narrow_table(table, _WIDTH)


def calibrate(scores: Path, given: Path, profile: str, *, as_json: bool, is_quiet: bool) -> None:
    """Print how well the scores at each α agree with given scores, and the best α (the match's weight in SMuDGE)."""
    found = calibration(scores, given, profile)
    if as_json:
        best = {"ece": _alpha(found.best_by_ece), "pearson": _alpha(found.best_by_pearson)}
        rows = [asdict(row) for row in found.rows]
        click.echo(json.dumps({"given": found.given, "count": found.count, "best": best, "rows": rows}))
    elif not is_quiet:
        _show(found)


def _show(found: Calibration) -> None:
    ending = "the scores of examples" if found.given == "examples" else "the calibration errors of models"
    say(f"α against {ending}: {found.count:,} in both")
    say(f"{'α':>6}{'ECE':>8}{'Pearson':>10}")
    for row in found.rows:
        say(f"{row.alpha:>6.2f}{_number(row.ece):>8}{_number(row.pearson):>10}")
    side = "highest" if found.given == "examples" else "lowest"
    for best, what in ((found.best_by_ece, "least ECE"), (found.best_by_pearson, f"{side} Pearson")):
        if best is not None:
            say(f"best α by the {what}: {best.alpha:g}")


def _alpha(row: AtAlpha | None) -> float | None:
    return None if row is None else row.alpha


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


@click.command()
@click.argument("scores", type=click.Path(path_type=Path, exists=True))
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
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Print only the α at which SMuDGE agrees best with FILE (scores of examples, or an ECE of each model).",
)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
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
            refusal = "--calibrate-alpha prints a table of its own: leave out --html and --metric"
            raise click.UsageError(refusal)

        return calibrate(scores, given, profile or "", as_json=as_json, is_quiet=quiet)
    from mmlongbench.scoring.report import report as run

    found = run(scores, preferred, profile or "")
    if html:
        from mmlongbench.web.kit import write_page
        from mmlongbench.web.report_page import report_page

        write_page(html, report_page(f"Report of {scores.resolve().name}", found))
    if as_json:
        click.echo(json.dumps(found.summary()))
    elif not quiet:
        show_report(found)
