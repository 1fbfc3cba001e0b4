"""The table of what the shortcut audit finds."""

from collections.abc import Sequence
from pathlib import Path

from mmlongbench.cli.console import say
from mmlongbench.cli.drawing import Table, print_table
from mmlongbench.lengths import format_length
from mmlongbench.shortcuts.audit import ShortcutAudit
from mmlongbench.shortcuts.difficulty import Difficulty
from mmlongbench.shortcuts.findings import Finding


def show_findings(release: Path, found: ShortcutAudit, *, show_all: bool) -> None:
    """Print the leaks, or all findings, then the notes and a summary."""
    numbers = {verdict: sum(each.verdict == verdict for each in found.findings) for verdict in ("clean", "undecided")}
    shown = found.findings if show_all else found.leaks
    if shown:
        _print_findings(shown)
    if found.difficulties:
        _print_difficulties(found.difficulties)
    for note in found.notes:
        say(f"note: {note}")
    leaks = len(found.leaks)
    p = "" if found.p is None else f"; p of the release {found.p:.3f}"
    say(
        f"{release.name}: {leaks} {'leak' if leaks == 1 else 'leaks'}, {numbers['clean']} clean, "
        f"{numbers['undecided']} undecided{p}"
    )
    if not show_all and (numbers["undecided"] or numbers["clean"]):
        say("--all shows all, with the smallest leak that would show, and the number of questions that would decide")


def _print_findings(findings: Sequence[Finding]) -> None:
    table = Table(title="shares of 100, with the 95 % interval of the excess", title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for name in ("dataset", "at", "what tells", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("n", "found", "chance", "excess", "shows", "needed"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in findings:
        excess = f"{100 * each.low:+.0f} … {100 * each.high:+.0f}"
        is_open = each.verdict == "undecided"
        shows = f"{100 * each.smallest:+.0f}" if is_open and each.smallest is not None else ""
        needed = f"{each.needed:,}" if is_open and each.needed else ""
        numbers = (f"{each.questions:,}", f"{100 * each.found:.1f}", f"{100 * each.chance:.1f}", excess)
        at = format_length(each.length) if each.length else ""
        table.add_row(each.dataset, at, each.kind, each.verdict, *numbers, shows, needed)
    print_table(table)
    for each in findings:
        if each.verdict == "leak":
            say(f"{each.dataset}, {each.kind}: {each.evidence}; such as {', '.join(each.examples[:3])}")


def _print_difficulties(lines: Sequence[Difficulty]) -> None:
    title = "difficulty: units to read to have half, or 90 %, of golds"
    table = Table(title=title, title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for name in ("dataset", "length", "search"):
        table.add_column(name, no_wrap=True)
    for name in ("n", "units", "found", "median rank", "half", "90 %"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in lines:
        share = f"{100 * each.found:.1f}"
        numbers = (f"{each.questions:,}", f"{each.units:g}", share, f"{each.median_rank:g}")
        row = (each.dataset, format_length(each.length), each.search)
        table.add_row(*row, *numbers, f"{each.k_50:,}", f"{each.k_90:,}")
    print_table(table)
