"""The subcommand `check`: holds the tasks of a manifest to the rules that every task keeps."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap

import click

from mmlongbench.building.suspects import ERRATA_HEAD, examine
from mmlongbench.checking.check import check as check_tasks
from mmlongbench.checking.check import small
from mmlongbench.checking.findings import Checked, Finding
from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import (
    COUNT,
    NEW_FILE,
    bars,
    json_option,
    lengths_option,
    quiet_option,
    say_code,
    with_manifest,
)
from mmlongbench.lengths import format_length
from mmlongbench.manifest.errata import errata_text
from mmlongbench.manifest.loading import narrowed
from mmlongbench.manifest.model import Manifest
from mmlongbench.table import Table


@click.command()
@with_manifest
@click.option("--out", type=NEW_FILE, help="Write a draft of errata to this file.")
@json_option("Print one JSON object for each suspect, with its row.")
def doctor(given: Manifest, out: Path | None, as_json: bool) -> None:
    """List annotations of MANIFEST's sources that may be wrong; nothing is changed.

    It finds answer pages that a document does not have, answers whose text is only on another page, and documents with
    other page numbers, and says how many answers it could not look for and why. Check each finding before you use it.
    """
    if out and out.exists():
        raise click.UsageError(
            f"--out {out}: already exists, and manual changes in it would be lost; give another file"
        )
    errata: dict[str, Mapping[str, object]] = {}
    say_code(given)
    for found in examine(given, bars(is_quiet=as_json)):
        errata.update(found.errata)
        for suspect in found.suspects:
            if as_json:
                fields = found.fields.get(suspect.id, {})
                click.echo(json.dumps({"dataset": found.dataset, **asdict(suspect), "fields": fields}, default=str))
            else:
                proposal = f" → {dict(suspect.correction)}" if suspect.correction else ""
                say(f"{suspect.id}  {suspect.kind}: {suspect.evidence}{proposal}")
        if not as_json:
            say(
                f"{found.dataset}: {len(found.suspects)} suspects among {found.rows} rows, {len(found.errata)} with a "
                "correction to look at"
            )
            if unknown := sum(found.not_judged.values()):
                say(f"  nothing is known about the answer pages of {unknown} more rows:")
            for reason, number in sorted(found.not_judged.items(), key=lambda each: -each[1]):
                say(f"  {number:>5,}  {reason}")
    if out:
        out.write_text(errata_text(errata, ERRATA_HEAD), encoding="utf-8")
        if not as_json:
            say(f"{out}: check each correction, then name this file in the manifest (errata: {out.name})")


_WIDTH = 80
"""The width in characters of what is printed."""


@click.command()
@with_manifest
@lengths_option(
    "8K,16K",
    "Build these lengths; by default the two shortest of the manifest, or its only one and the double of it.",
)
@click.option(
    "--limit",
    type=COUNT,
    default=5,
    show_default=True,
    help="The maximum number of questions of each dataset.",
)
@json_option()
@quiet_option("Print only what fails, and which task files run.")
def check(given: Manifest, lengths: str | None, limit: int, as_json: bool, quiet: bool) -> None:
    """Check that the tasks of MANIFEST keep the rules of every task; it runs the code of their plug-ins.

    A small release of each dataset is built in a temporary folder, and looked at; then another process audits it and
    builds it again. For every rule that fails, the row and the method to correct are named. Exits with 1 if a rule
    fails.
    """
    loaded = narrowed(given, lengths, limit)
    say_code(loaded)
    checked = check_tasks(small(loaded, lengths is not None), bars(is_quiet=quiet or as_json))
    if as_json:
        click.echo(json.dumps({"holds": not checked.failures, **asdict(checked)}))
    else:
        _show(checked, is_quiet=quiet)
    if checked.failures:
        sys.exit(1)


def _show(checked: Checked, *, is_quiet: bool) -> None:
    """Print the datasets, a table of the rules, and every failure."""
    if not is_quiet:
        for dataset in checked.datasets:
            lengths = ", ".join(map(format_length, dataset.lengths))
            about = f"{dataset.name}: {dataset.questions} questions at {lengths}; runs {', '.join(dataset.code)}"
            for line in wrap(about, _WIDTH, subsequent_indent="  ", break_on_hyphens=False):
                say(line)
        say("")
        rules = dict.fromkeys(found.rule for found in checked.findings)
        rows = [(rule, _result([found for found in checked.findings if found.rule == rule])) for rule in rules]
        print_table(Table(("rule", "result"), rows, align="Ll"), usual=_WIDTH)
    for found in checked.failures:
        say("")
        for line in _explained(found):
            say(line)
    if not is_quiet:
        say("")
        for line in wrap(_summary(checked), _WIDTH, break_on_hyphens=False):
            say(line)


def _result(findings: list[Finding]) -> str:
    """Return the result of a rule for all datasets in a few words.

    A rule that holds for some datasets and was skipped for others holds.
    """
    for status in ("fails", "not run", "holds"):
        those = [found for found in findings if found.status == status]
        if those:
            named = f" for {', '.join(found.dataset for found in those)}" if len(those) < len(findings) else ""
            reason = _reason(those)
            return f"{status}{named if status != 'holds' else ''}{reason}"
    return f"skipped{_reason(findings)}"


def _reason(findings: list[Finding]) -> str:
    """Return why rules were skipped or not run, or the note about a rule that holds."""
    details = Counter(found.detail for found in findings if found.status != "fails" and found.detail)
    said = [
        detail if count == len(findings) else f"{detail} ({count} of {len(findings)} datasets)"
        for detail, count in details.items()
    ]
    return f": {'; '.join(said)}" if said else ""


def _explained(found: Finding) -> Iterator[str]:
    """Yield the lines about a failure."""
    where = ", ".join(part for part in (found.method, f"row {found.row!r}" if found.row else "") if part)
    yield f"{found.dataset}: {found.rule}: fails"
    if where:
        yield f"  in {where}"
    yield from wrap(found.detail, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    if found.more:
        yield f"  {found.more} more {'case' if found.more == 1 else 'cases'}"


def _summary(checked: Checked) -> str:
    counts = {status: sum(f.status == status for f in checked.findings) for status in ("fails", "not run", "skipped")}
    if counts["fails"]:
        return f"{counts['fails']} of {len(checked.findings)} rules fail, {counts['not run']} could not be run"
    asked = ", ".join(f"{dataset.name} ({dataset.questions} questions)" for dataset in checked.datasets)
    return f"all holds for {asked}; {counts['skipped']} of {len(checked.findings)} rules do not apply"
