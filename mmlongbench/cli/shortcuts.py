"""The subcommand `shortcuts`: what tells an answer without looking."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import FOLDER, NEW_FILE, PATH, bars, html_option, json_option, with_tasks
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.layout import LOCK
from mmlongbench.release.lock import Lock, read_lock
from mmlongbench.release.release import open_release
from mmlongbench.scoring.report.estimates import MIN_CLUSTERS
from mmlongbench.scoring.report.resampling import LEVEL, RESAMPLES
from mmlongbench.shortcuts.audit import ShortcutAudit, audit_shortcuts
from mmlongbench.shortcuts.contexts.audit import audit_contexts
from mmlongbench.shortcuts.contexts.blind import MAX_LUCK
from mmlongbench.shortcuts.contexts.needs import FEW, MARGIN, POWER, UNSOLVED
from mmlongbench.shortcuts.contexts.results import ContextAudit, ContextMean, ContextRow, Need
from mmlongbench.shortcuts.difficulty import difficulty_table, searches_of
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.pruning.blind import prune_blind
from mmlongbench.shortcuts.pruning.choosing import MAX_SHARE
from mmlongbench.shortcuts.pruning.naming import errata_files, options, write_errata
from mmlongbench.shortcuts.pruning.release import prune_shortcuts
from mmlongbench.shortcuts.pruning.results import Effect, Pruned
from mmlongbench.shortcuts.to_look_at import questions_to_look_at
from mmlongbench.table import Table, Value


def _show_findings(release: Path, found: ShortcutAudit, *, show_all: bool) -> None:
    """Print the leaks, or all findings, then the notes and a summary."""
    numbers = {verdict: sum(each.verdict == verdict for each in found.findings) for verdict in ("clean", "undecided")}
    shown = found.findings if show_all else found.leaks
    if shown:
        print_table(_findings_table(shown))
    if found.difficulties:
        print_table(difficulty_table(found.difficulties))
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


def _findings_table(findings: Sequence[Finding]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for each in findings:
        is_open = each.verdict == "undecided"
        shows = f"{100 * each.smallest:+.0f}" if is_open and each.smallest is not None else ""
        needed = f"{each.needed:,}" if is_open and each.needed else ""
        excess = f"{100 * each.low:+.0f} … {100 * each.high:+.0f}"
        at = format_length(each.length) if each.length else ""
        found = (each.questions, f"{100 * each.found:.1f}", f"{100 * each.chance:.1f}", excess, shows, needed)
        rows.append((each.dataset, at, each.kind, each.verdict, *found))
    notes = [
        f"{each.dataset}, {each.kind}: {each.evidence}; such as {', '.join(each.examples[:3])}"
        for each in findings
        if each.verdict == "leak"
    ]
    columns = ("dataset", "at", "what tells", "verdict", "n", "found", "chance", "excess", "shows", "needed")
    return Table(columns, rows, "shares of 100, with the 95 % interval of the excess", notes, align="llll")


def _write_pruned(pruned: Sequence[Pruned], lock: Lock | None, files: Mapping[str, Path], *, as_json: bool) -> None:
    """Write a file of errata for each dataset with drops; print what they do, or an object for each dataset."""
    for each in pruned:
        if each.drops:
            write_errata(each, lock, files[each.dataset])
    if as_json:
        for each in pruned:
            click.echo(json.dumps({"pruned": each.model_dump(mode="json")}))
        return
    effects = [(each.dataset, effect) for each in pruned for effect in each.effects]
    if effects:
        print_table(_effects_table(effects))
    for each in pruned:
        for note in each.notes:
            say(f"note: {each.dataset}: {note}")
        if each.drops:
            number = "1 question" if len(each.drops) == 1 else f"{len(each.drops):,} questions"
            say(f"{files[each.dataset]}: drops {number} of {each.questions:,}; the set that is left is {each.name}:")
            say(f"  mmlongbench build MANIFEST {options(each, files[each.dataset])}")
    if not any(each.drops for each in pruned):
        say("nothing to drop; no file is written")


def _effects_table(effects: Sequence[tuple[str, Effect]]) -> Table:
    rows: list[tuple[Value, ...]] = []
    notes = []
    for dataset, effect in effects:
        excesses = (effect.before, effect.after, effect.other_before, effect.other_after)
        numbers = ("–" if each is None else f"{100 * each:+.1f}" for each in excesses)
        rows.append((dataset, effect.kind, *numbers, effect.drops, effect.verdict))
        if effect.advice:
            why = f"drops of at most {MAX_SHARE:.0%} of the questions do not mend it"
            if effect.verdict == "reduced":
                why = "drops reduce it, but do not mend it"
            notes.append(f"{dataset}, {effect.kind}: {why}; instead: {effect.advice}")
    columns = ("dataset", "what tells", "before", "after", "other learner before", "after", "drops", "verdict")
    return Table(columns, rows, "points above chance, before and after the drops", notes, align="llrrrrrl")


_REASONS = {FEW: FEW, UNSOLVED: "full is not above chance"}
"""The reasons of undecided verdicts, as short as a column needs."""
_SHOWN = 10
"""The maximum number of questions of a dataset that are listed; the JSON has all."""


def _show_contexts(audit: ContextAudit) -> None:
    """Print a table of means and a table of differences for each model, the questions to prune, and the notes."""
    say(f"scores from 0 to 100; [low, high]: {LEVEL:.0%} intervals over {RESAMPLES:,} resamples of clusters")
    for model in audit.models:
        own = [row for row in audit.rows if row.model == model]
        shown = [row for row in own if not row.facet or any(each.low is not None for each in row.means)]
        print_table(_means_table(model, audit.contexts, shown))
        if any(row.differences for row in shown):
            print_table(_differences_table(model, shown))
        if left_out := len(own) - len(shown):
            say(f"{left_out:,} groups of fewer than {MIN_CLUSTERS} clusters are not shown; the JSON has them")
    if audit.blind_counts:
        print_table(_blind_table(audit))
    for note in audit.notes:
        say(note)


def _means_table(model: str, contexts: Sequence[str], rows: Sequence[ContextRow]) -> Table:
    shown = [context for context in contexts if any(each.context == context for row in rows for each in row.means)]
    lines: list[tuple[str, ...]] = []
    for row in rows:
        means = {each.context: each for each in row.means}
        cells = ("" if (mean := means.get(context)) is None else _mean(mean) for context in shown)
        lines.append((*_group(row), _percent(row.chance), *cells))
    columns = ("dataset", "length", "group", "chance", *(context or "full" for context in shown))
    return Table(columns, lines, f"{model}: mean score in each context", align="lll")


def _differences_table(model: str, rows: Iterable[ContextRow]) -> Table:
    lines: list[tuple[Value, ...]] = []
    for row in rows:
        for each in row.differences:
            survival = "–" if each.survival is None else f"{each.survival:.0%}"
            if each.survival is not None:
                survival += _ends(each.survival_low, each.survival_high)
            difference = _percent(each.mean) + _ends(each.low, each.high)
            verdict = _verdict(each.need) if each.need else ""
            lines.append((*_group(row), each.context, each.questions, difference, survival, verdict))
    note = (
        f"needs: the score falls by more than {100 * MARGIN:g} points; does not need: by less; both with "
        f"{LEVEL:.0%} confidence; shows: with a probability of {POWER:.0%}"
    )
    columns = ("dataset", "length", "group", "full −", "questions", "difference", "survival", "verdict")
    title = f"{model}: paired differences; survival = (context − chance) / (full − chance)"
    return Table(columns, lines, title, [note], align="llllrrrl")


def _verdict(need: Need) -> str:
    """Return a verdict in words; for an undecided one, what the questions could show and how many would decide."""
    if need.verdict != "undecided":
        return f"{need.verdict} the {need.part}"
    shown = "" if need.smallest is None else f", shows falls from {100 * need.smallest:.0f}"
    more = f", about {need.needed:,} would decide" if need.needed else ""
    return f"undecided (the {need.part}): {_REASONS[need.reason]}{shown}{more}"


def _blind_table(audit: ContextAudit) -> Table:
    rows: list[tuple[Value, ...]] = []
    for each in audit.blind_counts:
        rows.append((each.dataset, each.questions, each.right, each.binary, each.listed, f"{each.by_luck:.1f}"))
    note = f"listed: guesses do as well with a probability of at most {MAX_LUCK:.0%}; none with two answers or fewer"
    columns = ("dataset", "asked", "all answers right", "two answers offered", "listed", "expected by luck")
    return Table(columns, rows, "questions that are answered without the context", [note, *_listed(audit)])


def _listed(audit: ContextAudit) -> Iterator[str]:
    for counts in audit.blind_counts:
        found = [each for each in audit.blind if each.dataset == counts.dataset]
        if found:
            more = f", and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            named = (f"{each.id} ({each.right} of {each.answers}, luck {each.luck:.2g})" for each in found[:_SHOWN])
            yield f"  {counts.dataset}: {', '.join(named)}{more}"


def _group(row: ContextRow) -> tuple[str, str, str]:
    length = "all" if row.length is None else format_length(row.length)
    return row.dataset, length, f"{row.facet}: {row.value}" if row.facet else "all"


def _mean(mean: ContextMean) -> str:
    return _percent(mean.mean) + _ends(mean.low, mean.high)


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{_percent(low)}, {_percent(high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


@click.command()
@click.argument("release", type=FOLDER)
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Try only this dataset; repeatable.")
@click.option(
    "--against",
    type=FOLDER,
    help="Find what the release shares with another release or a folder of pictures and texts.",
)
@click.option(
    "--predictions",
    multiple=True,
    type=PATH,
    help="Compare what models answer in several contexts (files or folders of `run --context …`) instead; repeatable.",
)
@click.option(
    "--dense",
    metavar="MODEL",
    help="Search for gold also by meaning, with this sentence-transformers model: a folder, or an id on the hub.",
)
@click.option(
    "--prune",
    type=NEW_FILE,
    metavar="FILE",
    help="Write errata that drop questions, so that what was found is reduced.",
)
@click.option("--all", "show_all", is_flag=True, help="Show also what is clean or undecided.")
@html_option
@json_option("Print one JSON object for each finding and difficulty.")
@click.option("--check", is_flag=True, help="Exit with 1 if there is a leak.")
@with_tasks
def shortcuts(
    release: Path,
    datasets: Sequence[str],
    against: Path | None,
    predictions: Sequence[Path],
    dense: str | None,
    prune: Path | None,
    show_all: bool,
    html: Path | None,
    as_json: bool,
    check: bool,
    tasks: TaskFiles,
) -> None:
    """Try to tell the answers of RELEASE without looking: from questions, options, files, places.

    No model is used. Each probe learns from some documents or subjects and guesses in others, and is compared with 999
    repetitions in which nothing can tell.
    """
    if predictions:
        unused = {"--dataset": datasets, "--against": against, "--dense": dense, "--all": show_all, "--check": check}
        if given := [name for name, value in unused.items() if value]:
            raise click.UsageError(f"{given[0]} has no effect with --predictions: leave one of them out")
        _compare(release, predictions, prune, tasks, html, as_json=as_json)
        return
    opened, progress = open_release(release, tasks), bars(is_quiet=as_json)
    files = errata_files(prune, datasets or opened.datasets) if prune else {}
    with searches_of(dense) as searches:
        found = audit_shortcuts(opened, progress, datasets, against, searches)
    if html:
        from mmlongbench.web.kit import write_page
        from mmlongbench.web.shortcuts_page import MAX_PIXELS, shortcuts_page

        seen = questions_to_look_at(opened, found.leaks)
        urls = opened.image_urls("data-uri", MAX_PIXELS)
        write_page(html, shortcuts_page(f"Shortcuts of {opened.path.name}", found, seen, urls))
    if as_json:
        for line in (*found.findings, *found.difficulties):
            click.echo(json.dumps(line.model_dump()))
    else:
        _show_findings(release, found, show_all=show_all)
    if prune:
        _write_pruned(prune_shortcuts(opened, found, progress, against), opened.lock, files, as_json=as_json)
    if check and found.leaks:
        sys.exit(1)


def _compare(
    release: Path,
    predictions: Sequence[Path],
    prune: Path | None,
    tasks: TaskFiles,
    html: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print what models answer without the context, or with a part of it, beside what they answer with all of it."""
    lock = read_lock(release) if (release / LOCK).is_file() else None
    if prune:
        errata_files(prune, list(lock.datasets) if lock else ())
    compared = audit_contexts(release, predictions, bars(is_quiet=as_json), tasks)
    if html:
        from mmlongbench.web.contexts_page import contexts_page
        from mmlongbench.web.kit import write_page

        write_page(html, contexts_page(f"Contexts of {release.resolve().name}", compared))
    if as_json:
        click.echo(json.dumps(compared.model_dump(mode="json")))
    else:
        _show_contexts(compared)
    if prune:
        pruned = prune_blind(compared, lock)
        _write_pruned(pruned, lock, errata_files(prune, [each.dataset for each in pruned]), as_json=as_json)
