"""Tables for people: what was built, what was counted, what is installed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console, ConsoleDimensions
from rich.markup import escape
from rich.table import Table

from mmlongbench.building.build import Built
from mmlongbench.plugins import Plugin
from mmlongbench.release.findings import FileAudit

_ANY_WIDTH = 10_000
"""Columns that any table fits."""
_FILE = 8
"""Columns that the name of a file may be folded into."""


def show_build(built: Built) -> None:
    """Questions read, kept and rejected by reason, and the examples of each length."""
    for name, data in built.lock["datasets"].items():
        counts = data["questions"]
        table = Table(
            "length",
            "examples",
            "rejected at this length",
            "ran out of units",
            title=escape(name),
            title_justify="left",
        )
        for length, cell in data["cells"].items():
            table.add_row(length, f"{cell['examples']:,}", f"{cell['rejected']:,}", f"{cell['ran_dry']:,}")
        _print(table)
        _say(f"questions: {counts['read']} read, {counts['kept']} kept, {counts['not_sampled']} not sampled")
        _say_cells(data["cells"])
        for length in (length for length, cell in data["cells"].items() if not cell["examples"] and counts["kept"]):
            _say(f"  no file at {length}: no question fits it")
        for reason, number in counts["rejected"].items():
            _say(f"  rejected {number}: {reason}")
        for repair, number in counts["repaired"].items():
            _say(f"  repaired {number}: {repair}")
        for dpi, number in data["documents"].get("images_by_dpi", {}).items():
            _say(
                f"  warning: {number} documents are images rendered at {dpi} DPI by their source, not at the usual 144"
            )
        for document, fault in data["documents"]["refused"].items():
            _say(f"  document {document} refused: {fault}")
    state = "was complete already" if built.was_complete else "is complete"
    _say(f"{built.out} {state}; `mmlongbench audit {built.out}` counts it again")


def _say_cells(cells: dict[str, Any]) -> None:
    """What ran short, was left out, or should balance, at each length."""
    for length, cell in cells.items():
        if short := cell.get("missing_units"):
            _say(f"  {length}: the sources end before the room does, by up to {short:,} units; none is repeated")
        if few := cell.get("missing_classes"):
            _say(f"  {length}: {few:,} classes fewer than the table has; the sources hold no more in both splits")
        for reason, number in cell.get("left_out", {}).items():
            _say(f"  {length}: passed over, the next one in its place: {number:,} × {reason}")
        for field in (key for key in cell if key.startswith("by_")):
            said = ", ".join(f"{value} {number:,}" for value, number in cell[field].items())
            _say(f"  {length}: {field.removeprefix('by_')}: {said}")


def show_audit(audits: list[FileAudit]) -> None:
    """One line a file."""
    columns = ("n", "fill", "min", "max", "text", "image", "images ± sd", "bad")
    table = Table(
        title="audit: n examples; fill = (prompt + reserve) / L; text and image tokens are means; bad = problems",
        title_justify="left",
        box=None,
    )
    table.padding, table.pad_edge = (0, 1, 0, 0), False
    table.add_column("file", overflow="fold", min_width=_FILE)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for found in audits:
        fill = found.fill.summary()
        table.add_row(
            escape(found.file),
            f"{found.examples:,}",
            *(f"{fill[key]:.4f}" for key in ("mean", "min", "max")),
            f"{found.text.mean:,.0f}",
            f"{found.image.mean:,.0f}",
            f"{found.images.mean:.1f} ± {found.images.deviation:.1f}",
            str(found.problems.total()),
        )
    _print(table, max((len(found.file) - _FILE for found in audits), default=0))


def show_problems(audits: list[FileAudit]) -> None:
    """Each kind of problem of each file, how often, and where first."""
    for found in audits:
        for kind, number in found.problems.items():
            click.echo(f"{found.file}: {kind}: {number}×, first {found.first[kind]}", err=True)


def show_list(plugins: list[Plugin], manifests: Mapping[str, Path]) -> None:
    """Builders, readers, manifests."""
    for kind in ("builder", "reader"):
        _say(f"{kind}s")
        for plugin in plugins:
            if plugin.kind == kind:
                said = f"BROKEN: {plugin.problem}" if plugin.problem else plugin.summary
                _say(f"  {plugin.name:<18} {said} ({plugin.origin})")
    _say("manifests")
    for name, path in sorted(manifests.items()):
        first = path.read_text("utf-8").splitlines()[0]
        _say(f"  {name:<18} {first.removeprefix('#').strip()}")


def _say(text: str) -> None:
    click.echo(text)


def _print(table: Table, folds: int = 0) -> None:
    """Print a table as wide as the terminal; wider where a number would be cut, or where there is no terminal.

    Its texts may be folded by so many columns.
    """
    console = Console()
    most = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
    width = max(console.width, most - folds) if console.is_terminal else most
    console.size = ConsoleDimensions(width, console.height)
    console.print(table)
