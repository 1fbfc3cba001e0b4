"""The subcommand `report`: scores of several models and metrics side by side."""

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
    help="Of datasets that several metrics scored, the one that averages are made of; by default as builders say.",
)
@click.option(
    "--profile",
    type=click.Choice(["official", "paper", "ours", "unknown"]),
    help="Show, or calibrate, the scores under one profile alone; by default each profile has tables of its own.",
)
@click.option(
    "--calibrate-alpha",
    "given",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Print at which α SMuDGE agrees best with FILE: scores of examples, or an ECE of each model; nothing else.",
)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write one page to look at.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def report(
    scores: Path,
    preferred: tuple[str, ...],
    profile: str | None,
    given: Path | None,
    html: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare models by SCORES, a folder that `score` wrote into.

    Dataset by length, averages as the paper forms them, by depth, by every facet of the questions, between datasets,
    between metrics, and between groups of the questions, with intervals; what is absent, failed or skipped is counted.
    """
    if given:
        if html or preferred:
            refusal = "--calibrate-alpha prints a table of its own: leave out --html and --metric"
            raise click.UsageError(refusal)
        from mmlongbench.cli.calibration_table import calibrate

        return calibrate(scores, given, profile or "", as_json=as_json, is_quiet=quiet)
    from mmlongbench.scoring.report import page
    from mmlongbench.scoring.report import report as run

    found = run(scores, preferred, profile or "")
    if html:
        from mmlongbench.io.atomic import write_whole

        text = page(f"Report of {scores.resolve().name}", found)
        write_whole(html, [text.encode("utf-8", "backslashreplace")])
    if as_json:
        click.echo(json.dumps(found.summary()))
    elif not quiet:
        from mmlongbench.cli.report_tables import show_report

        show_report(found)
