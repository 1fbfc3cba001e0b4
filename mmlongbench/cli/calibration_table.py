"""The table that `report --calibrate-alpha` prints."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from mmlongbench.cli.console import say
from mmlongbench.scoring.report.calibration import AtAlpha, Calibration, calibration


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
