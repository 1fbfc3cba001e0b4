"""The subcommand `check`: holds the tasks of a manifest to the rules that every task keeps."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

import mmlongbench as mm
from mmlongbench.building.suspects import ERRATA_HEAD, examine
from mmlongbench.checking.findings import Checked, Finding
from mmlongbench.cli.console import print_table, say, say_wrapped
from mmlongbench.cli.options import (
    COUNT,
    NEW_FILE,
    bars,
    json_option,
    lengths_option,
    quiet_option,
    with_manifest,
)
from mmlongbench.lengths import format_length
from mmlongbench.manifest.errata import errata_text
from mmlongbench.manifest.model import Manifest
from mmlongbench.table import Table


@click.command()
@with_manifest
@click.option("--out", type=NEW_FILE, help="Write a draft of errata to this file.")
@json_option("Print one JSON object for each suspect, with its row.")
def doctor(manifest: Manifest, out: Path | None, as_json: bool) -> None:
    """List annotations of MANIFEST's sources that may be wrong; nothing is changed.

    It finds answer pages that a document does not have, answers whose text is only on another page, and documents with
    other page numbers, and says how many answers it could not look for and why. Check each finding before you use it.
    """
    if out and out.exists():
        raise click.UsageError(
            f"--out {out}: already exists, and manual changes in it would be lost; give another file"
        )
    errata: dict[str, Mapping[str, object]] = {}
    for found in examine(manifest, bars(is_quiet=as_json)):
        errata.update(found.errata)
        for suspect in found.suspects:
            if as_json:
                line = {"dataset": found.dataset, **asdict(suspect), "place": found.places.get(suspect.id, "")}
                click.echo(json.dumps({**line, "fields": found.fields.get(suspect.id, {})}, default=str))
            else:
                proposal = f" → {dict(suspect.correction)}" if suspect.correction else ""
                # a row that cannot be read says itself where it stands
                place = found.places.get(suspect.id, "") if suspect.id in found.fields else ""
                place = f" ({place})" if place and suspect.kind != "duplicate-id" else ""
                say(f"{suspect.id}{place}  {suspect.kind}: {suspect.evidence}{proposal}")
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


@click.command()
@with_manifest
@lengths_option(
    "8K,16K", "Check these lengths; by default those of the manifest, or its only one and the double of it."
)
@click.option(
    "--limit", type=COUNT, default=5, show_default=True, help="The maximum number of questions of each dataset."
)
@json_option()
@quiet_option("Print only what fails, and which task files run.")
def check(manifest: Manifest, lengths: str | None, limit: int, as_json: bool, quiet: bool) -> None:
    """Check that the tasks of MANIFEST keep the rules of every task; it runs the code of their plug-ins.

    Every row is drafted, and some questions are packed at every length. A small release of each dataset, at the three
    shortest lengths, is built in a temporary folder; then another process audits it and builds it again. For every rule
    that fails, the row, the length and the method to correct are named. Exits with 1 if a rule fails.
    """
    checked = mm.check(manifest, lengths=lengths, limit=limit, progress=False if quiet or as_json else None)
    if as_json:
        found = {"holds": not checked.failures, **asdict(checked)}
        for finding in found["findings"]:
            del finding["traceback"]  # it names files of this machine
        click.echo(json.dumps(found))
    else:
        is_debug = click.get_current_context().find_root().params.get("debug", False)
        _show(checked, is_quiet=quiet, is_debug=is_debug)
    if checked.failures:
        sys.exit(1)


_WIDTH = 80  # the width in characters of what is printed


def _show(checked: Checked, *, is_quiet: bool, is_debug: bool = False) -> None:
    if not is_quiet:
        for dataset in checked.datasets:
            lengths = ", ".join(map(format_length, dataset.lengths))
            code = f"runs {', '.join(dataset.code)}"
            say_wrapped(f"{dataset.name}: {dataset.questions} questions at {lengths}; {code}", width=_WIDTH)
        say("")
        rules = dict.fromkeys(finding.rule for finding in checked.findings)
        rows = [(rule, _result([found for found in checked.findings if found.rule == rule])) for rule in rules]
        print_table(Table(("rule", "result"), rows, align="Ll"), usual=_WIDTH)
        for dataset in filter(lambda dataset: dataset.example, checked.datasets):
            say("")
            say(f"{dataset.name}: read one: does the context give this answer?")
            for name, text in dataset.example:
                say_wrapped(f"{name}: {text}", "  ", "    ", _WIDTH)
    for failure in checked.failures:
        say("")
        say(f"{failure.dataset}: {failure.rule}: fails")
        row = f"row {failure.row!r}{f' ({failure.place})' if failure.place else ''}" if failure.row else ""
        where = (failure.method, row, f"at {format_length(failure.length)}" if failure.length else "")
        if any(where):
            say(f"  in {', '.join(filter(None, where))}")
        say_wrapped(failure.detail, "  ", width=_WIDTH)
        if failure.more:
            say(f"  {failure.more} more {'case' if failure.more == 1 else 'cases'}")
        if is_debug and failure.traceback:
            say(failure.traceback.rstrip())
    if not is_quiet:
        say("")
        of = Counter(finding.status for finding in checked.findings)
        total = len(checked.findings)
        if of["fails"]:
            say_wrapped(f"{of['fails']} of {total} rules fail, {of['not run']} could not be run", "", "", _WIDTH)
        else:
            asked = ", ".join(f"{dataset.name} ({dataset.questions} questions)" for dataset in checked.datasets)
            say_wrapped(f"all holds for {asked}; {of['skipped']} of {total} rules do not apply", "", "", _WIDTH)


def _result(findings: Sequence[Finding]) -> str:
    """Return the result of a rule for all datasets in a few words, with why it was skipped or not run, or its note.

    A rule that holds for some datasets and was skipped for others holds.
    """
    status = next(
        (each for each in ("fails", "not run", "holds") if any(f.status == each for f in findings)), "skipped"
    )
    those = [finding for finding in findings if finding.status == status]
    details = Counter(finding.detail for finding in those if status != "fails" and finding.detail)
    reasons = [
        detail if count == len(those) else f"{detail} ({count} of {len(those)} datasets)"
        for detail, count in details.items()
    ]
    is_of_some = len(those) < len(findings) and status != "holds"
    datasets = f" for {', '.join(finding.dataset for finding in those)}" if is_of_some else ""
    return f"{status}{datasets}{': ' if reasons else ''}{'; '.join(reasons)}"
