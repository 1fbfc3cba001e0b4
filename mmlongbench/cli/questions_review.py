"""The subcommands `questions export` and `questions import`: review of questions by people."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say

if TYPE_CHECKING:
    from mmlongbench.questions.reviewing.merging import Merged

_NAMED = 10
"""The maximum number of faults that are named."""
_share = click.option(
    "--share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="The share of questions that two annotators see; questions with a flag are seen by two in any case.",
)


@click.command("export")
@click.argument("questions", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--review", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The sheet to write.")
@_share
def export_sheet(questions: Path, review: Path, share: float) -> None:
    """Write a sheet (CSV) of the folder QUESTIONS for annotators, who decide Retain, Revise or Remove.

    Give each annotator a copy. A row has what the question, its answer and pages are, and empty cells to fill.
    """
    from mmlongbench.questions.reviewing.decisions import PROBLEMS
    from mmlongbench.questions.reviewing.merging import read_folder
    from mmlongbench.questions.reviewing.sheet import write_sheet

    if review.exists():
        raise click.UsageError(
            f"--review {review}: already exists, and decisions in it would be lost; give another file"
        )
    count = write_sheet(review, read_folder(questions).values(), share)
    say(f"{review}: {count:,} rows; decision is Retain, Revise or Remove; problem is one of {', '.join(PROBLEMS)}")


@click.command("import")
@click.argument("questions", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("sheets", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_share
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def import_sheets(questions: Path, sheets: Sequence[Path], share: float, as_json: bool) -> None:
    """Merge the filled SHEETS of annotators into QUESTIONS/reviewed: a table, and errata with who and why.

    The first two annotators of a question are compared; where they differ, a later sheet decides. Without one, the
    question stands in third.csv.
    """
    from mmlongbench.questions.reviewing.merging import merge, read_folder, write_review

    merged = merge(read_folder(questions), sheets, share)
    reviewed = write_review(questions, merged, share)
    if as_json:
        click.echo(json.dumps(json.loads((reviewed / "agreement.json").read_bytes())))
        return
    _show(merged, reviewed)


def _show(merged: "Merged", reviewed: Path) -> None:
    found = merged.agreement
    labels = ", ".join(f"{label} {len(merged.labelled(label)):,}" for label in ("Retain", "Revise", "Remove"))
    say(f"{reviewed}: {labels}")
    if found.questions:
        kappa = "not defined (one label only)" if found.kappa is None else f"{found.kappa:.2f}"
        interval = f" ({found.interval[0]:.2f} to {found.interval[1]:.2f} over documents)" if found.interval else ""
        say(
            f"two annotators decided {found.questions:,}: equal {found.equal:.0%}, Cohen's kappa {kappa}{interval}, "
            f"AC1 {found.ac1:.2f} (MMLongBench-Doc: kappa 0.42)"
        )
    for problem, count in merged.problems.items():
        say(f"  {problem}: {count:,}")
    if third := merged.needing("third"):
        say(f"{len(third):,} need a third annotator: {reviewed}/third.csv")
    if more := merged.needing("more"):
        say(f"{len(more):,} need more decisions")
    for fault in merged.faults[:_NAMED]:
        say(f"not used: {fault}")
    if len(merged.faults) > _NAMED:
        say(f"and {len(merged.faults) - _NAMED:,} more, see {reviewed}/faults.jsonl")
    say(f"build them with `mmlongbench build {shlex.quote(f'{reviewed}/manifest.yaml')} --out release`")
