"""The subcommand `report`: compares the scores of several models and metrics."""

import json
from pathlib import Path

import click


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
        from mmlongbench.cli.calibration_table import calibrate

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
        from mmlongbench.cli.report_tables import show_report

        show_report(found)
