"""The subcommand `shortcuts`: what tells an answer without looking."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.drawing import Table, print_table
from mmlongbench.cli.task_option import with_tasks

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.shortcuts.audit import ShortcutAudit
    from mmlongbench.shortcuts.findings import Finding


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Try only this dataset; repeatable.")
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Find what the release shares with another release or a folder of pictures and texts.",
)
@click.option("--all", "show_all", is_flag=True, help="Show also what is clean or undecided.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each finding.")
@click.option("--check", is_flag=True, help="Exit with 1 if there is a leak.")
@with_tasks
def shortcuts(
    release: Path,
    datasets: Sequence[str],
    against: Path | None,
    show_all: bool,
    as_json: bool,
    check: bool,
    tasks: "TaskFiles",
) -> None:
    """Try to tell the answers of RELEASE without looking: from questions, options, files, places.

    No model is used. Each probe learns from some documents or subjects and guesses in others, and is compared with 999
    repetitions in which nothing can tell.
    """
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.opened import open_release
    from mmlongbench.shortcuts.audit import audit_shortcuts

    found = audit_shortcuts(open_release(release, tasks), Progress(False if as_json else None), datasets, against)
    if as_json:
        for finding in found.findings:
            click.echo(finding.model_dump_json())
    else:
        _show(release, found, show_all=show_all)
    if check and found.leaks:
        sys.exit(1)


def _show(release: Path, found: "ShortcutAudit", *, show_all: bool) -> None:
    numbers = {verdict: sum(each.verdict == verdict for each in found.findings) for verdict in ("clean", "undecided")}
    shown = found.findings if show_all else found.leaks
    if shown:
        _print_findings(shown)
    for note in found.notes:
        say(f"note: {note}")
    leaks = len(found.leaks)
    p = "" if found.p is None else f"; p of the release {found.p:.3f}"
    say(
        f"{release.name}: {leaks} {'leak' if leaks == 1 else 'leaks'}, {numbers['clean']} clean, "
        f"{numbers['undecided']} undecided{p}"
    )
    if not show_all and (numbers["undecided"] or numbers["clean"]):
        say("--all shows all, with the number of questions that would decide")


def _print_findings(findings: Sequence["Finding"]) -> None:
    table = Table(title="shares of 100, with the 95 % interval of the excess", title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for name in ("dataset", "what tells", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("n", "found", "chance", "excess", "needed"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in findings:
        excess = f"{100 * each.low:+.0f} … {100 * each.high:+.0f}"
        needed = f"{each.needed:,}" if each.verdict == "undecided" and each.needed else ""
        numbers = (f"{each.questions:,}", f"{100 * each.found:.1f}", f"{100 * each.chance:.1f}", excess, needed)
        table.add_row(each.dataset, each.kind, each.verdict, *numbers)
    print_table(table)
    for each in findings:
        if each.verdict == "leak":
            say(f"{each.dataset}, {each.kind}: {each.evidence}; such as {', '.join(each.examples[:3])}")
