"""The subcommand `report`: compares the scores of several models and metrics."""

import json
from pathlib import Path

import click

from mmlongbench.cli.options import PATH, html_option, json_option, quiet_option


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
    help="Show only the scores under one profile; by default each profile has its own tables.",
)
@html_option
@json_option()
@quiet_option()
def report(
    scores: Path,
    preferred: tuple[str, ...],
    profile: str | None,
    html: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare models by SCORES, a folder that `score` has written to.

    Shows scores by dataset and length, averages as in the paper, scores by depth and by every facet of the questions,
    and correlations between datasets, with intervals. Absent, failed and skipped
    examples are counted.
    """
    from mmlongbench.cli.report_tables import show_report  # needs pandas, which takes half a second to import
    from mmlongbench.scoring.report.report import report as report_of

    found = report_of(scores, preferred, profile or "")
    if html:
        from mmlongbench.web.kit import write_page
        from mmlongbench.web.report_page import report_page

        write_page(html, report_page(f"Report of {scores.resolve().name}", found))
    if as_json:
        click.echo(json.dumps(found.summary()))
    elif not quiet:
        show_report(found)
