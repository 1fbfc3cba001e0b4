"""The subcommand `shortcuts`: what tells an answer without looking."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.console import Table, plain, print_table, say
from mmlongbench.cli.options import with_tasks
from mmlongbench.lengths import format_length
from mmlongbench.release.lock import Lock
from mmlongbench.scoring.report.estimates import MIN_CLUSTERS
from mmlongbench.scoring.report.resampling import LEVEL, RESAMPLES
from mmlongbench.shortcuts.audit import ShortcutAudit
from mmlongbench.shortcuts.contexts.blind import MAX_LUCK
from mmlongbench.shortcuts.contexts.needs import FEW, MARGIN, POWER, UNSOLVED
from mmlongbench.shortcuts.contexts.results import BlindQuestion, ContextAudit, ContextMean, ContextRow, Need
from mmlongbench.shortcuts.difficulty import Difficulty
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.pruning.choosing import MAX_SHARE
from mmlongbench.shortcuts.pruning.naming import options, write_errata
from mmlongbench.shortcuts.pruning.results import Effect, Pruned

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.release.release import Release


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


def write_pruned(pruned: Sequence[Pruned], lock: Lock | None, files: Mapping[str, Path], *, as_json: bool) -> None:
    """Write a file of errata for each dataset with drops; print what they do, or an object for each dataset."""
    for each in pruned:
        if each.drops:
            write_errata(each, lock, files[each.dataset])
    if as_json:
        for each in pruned:
            click.echo(json.dumps({"pruned": each.model_dump(mode="json")}))
        return
    _print_effects(pruned)
    for each in pruned:
        for note in each.notes:
            say(f"note: {each.dataset}: {note}")
        if each.drops:
            number = "1 question" if len(each.drops) == 1 else f"{len(each.drops):,} questions"
            say(f"{files[each.dataset]}: drops {number} of {each.questions:,}; the set that is left is {each.name}:")
            say(f"  mmlongbench build MANIFEST {options(each, files[each.dataset])}")
    if not any(each.drops for each in pruned):
        say("nothing to drop; no file is written")


def _print_effects(pruned: Sequence[Pruned]) -> None:
    shown = [(each.dataset, effect) for each in pruned for effect in each.effects]
    if not shown:
        return
    table = Table(title="points above chance, before and after the drops", title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for name in ("dataset", "what tells"):
        table.add_column(name, no_wrap=True)
    for name in ("before", "after", "other learner before", "after", "drops"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for dataset, effect in shown:
        excesses = (effect.before, effect.after, effect.other_before, effect.other_after)
        numbers = ("–" if each is None else f"{100 * each:+.1f}" for each in excesses)
        table.add_row(dataset, effect.kind, *numbers, f"{effect.drops:,}", effect.verdict)
    print_table(table)
    for dataset, effect in shown:
        if effect.advice:
            say(f"{dataset}, {effect.kind}: {_why(effect)}; instead: {effect.advice}")


def _why(effect: Effect) -> str:
    if effect.verdict == "reduced":
        return "drops reduce it, but do not mend it"
    return f"drops of at most {MAX_SHARE:.0%} of the questions do not mend it"


_REASONS = {FEW: FEW, UNSOLVED: "full is not above chance"}
"""The reasons of undecided verdicts, as short as a column needs."""
_SHOWN = 10
"""The maximum number of questions of a dataset that are listed; the JSON has all."""


def show_contexts(audit: ContextAudit) -> None:
    """Print a table of means and a table of differences for each model, the questions to prune, and the notes."""
    say(f"scores from 0 to 100; [low, high]: {LEVEL:.0%} intervals over {RESAMPLES:,} resamples of clusters")
    for model in audit.models:
        own = [row for row in audit.rows if row.model == model]
        shown = [row for row in own if not row.facet or any(each.low is not None for each in row.means)]
        _show_means(model, audit.contexts, shown)
        _show_differences(model, shown)
        if left_out := len(own) - len(shown):
            say(f"{left_out:,} groups of fewer than {MIN_CLUSTERS} clusters are not shown; the JSON has them")
    _show_blind(audit)
    for note in audit.notes:
        say(note)


def _show_means(model: str, contexts: Sequence[str], rows: Sequence[ContextRow]) -> None:
    shown = [context for context in contexts if any(each.context == context for row in rows for each in row.means)]
    table = _table(f"{model}: mean score in each context", ("dataset", "length", "group"))
    for head in ("chance", *map(_name, shown)):
        table.add_column(plain(head), justify="right", no_wrap=True)
    for row in rows:
        means = {each.context: each for each in row.means}
        cells = (_mean(means[context]) if context in means else "" for context in shown)
        table.add_row(*_group(row), _percent(row.chance), *cells)
    print_table(table)


def _show_differences(model: str, rows: Iterable[ContextRow]) -> None:
    heads = ("dataset", "length", "group", "full −")
    table = _table(f"{model}: paired differences; survival = (context − chance) / (full − chance)", heads)
    for head in ("questions", "difference", "survival"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in rows:
        for each in row.differences:
            table.add_row(
                *_group(row),
                each.context,
                f"{each.questions:,}",
                _percent(each.mean) + _ends(each.low, each.high),
                "–" if each.survival is None else f"{each.survival:.0%}" + _ends(each.survival_low, each.survival_high),
                _verdict(each.need) if each.need else "",
            )
    if table.row_count:
        print_table(table)
        say(
            f"needs: the score falls by more than {100 * MARGIN:g} points; does not need: by less; both with "
            f"{LEVEL:.0%} confidence; shows: with a probability of {POWER:.0%}"
        )


def _verdict(need: Need) -> str:
    """Return a verdict in words; for an undecided one, what the questions could show and how many would decide."""
    if need.verdict != "undecided":
        return f"{need.verdict} the {need.part}"
    shown = "" if need.smallest is None else f", shows falls from {100 * need.smallest:.0f}"
    more = f", about {need.needed:,} would decide" if need.needed else ""
    return f"undecided (the {need.part}): {_REASONS[need.reason]}{shown}{more}"


def _show_blind(audit: ContextAudit) -> None:
    if not audit.blind_counts:
        return
    table = _table("questions that are answered without the context", ("dataset",))
    for head in ("asked", "all answers right", "two answers offered", "listed", "expected by luck"):
        table.add_column(head, justify="right", no_wrap=True)
    for each in audit.blind_counts:
        numbers = (each.questions, each.right, each.binary, each.listed)
        table.add_row(each.dataset, *(f"{number:,}" for number in numbers), f"{each.by_luck:.1f}")
    print_table(table)
    say(f"listed: guesses do as well with a probability of at most {MAX_LUCK:.0%}; none with two answers or fewer")
    for line in _listed(audit):
        say(line)


def _listed(audit: ContextAudit) -> Iterator[str]:
    for counts in audit.blind_counts:
        found = [each for each in audit.blind if each.dataset == counts.dataset]
        if found:
            more = f", and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            yield f"  {counts.dataset}: {', '.join(map(_question, found[:_SHOWN]))}{more}"


def _question(found: BlindQuestion) -> str:
    return f"{found.id} ({found.right} of {found.answers}, luck {found.luck:.2g})"


def _table(title: str, heads: Iterable[str]) -> Table:
    table = Table(title=plain(title), title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for head in heads:
        table.add_column(head, no_wrap=True)
    return table


def _group(row: ContextRow) -> tuple[str, str, str]:
    length = "all" if row.length is None else format_length(row.length)
    return row.dataset, length, f"{row.facet}: {row.value}" if row.facet else "all"


def _name(context: str) -> str:
    return context or "full"


def _mean(mean: ContextMean) -> str:
    return _percent(mean.mean) + _ends(mean.low, mean.high)


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{_percent(low)}, {_percent(high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


@click.command()
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Try only this dataset; repeatable.")
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Find what the release shares with another release or a folder of pictures and texts.",
)
@click.option(
    "--predictions",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="Compare what models answer in several contexts (files or folders of `run --context …`) instead; repeatable.",
)
@click.option(
    "--dense",
    metavar="MODEL",
    help="Search for gold also by meaning, with this sentence-transformers model: a folder, or an id on the hub.",
)
@click.option(
    "--prune",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write errata that drop questions, so that what was found is reduced.",
)
@click.option("--all", "show_all", is_flag=True, help="Show also what is clean or undecided.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each finding and difficulty.")
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
    tasks: "TaskFiles",
) -> None:
    """Try to tell the answers of RELEASE without looking: from questions, options, files, places.

    No model is used. Each probe learns from some documents or subjects and guesses in others, and is compared with 999
    repetitions in which nothing can tell.
    """
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.release import open_release
    from mmlongbench.shortcuts.audit import audit_shortcuts
    from mmlongbench.shortcuts.difficulty import searches_of
    from mmlongbench.shortcuts.pruning.naming import errata_files
    from mmlongbench.shortcuts.pruning.release import prune_shortcuts

    if predictions:
        unused = {"--dataset": datasets, "--against": against, "--dense": dense, "--all": show_all, "--check": check}
        if given := [name for name, value in unused.items() if value]:
            raise click.UsageError(f"{given[0]} has no effect with --predictions: leave one of them out")
        _compare(release, predictions, prune, tasks, html, as_json=as_json)
        return
    opened, progress = open_release(release, tasks), Progress(False if as_json else None)
    files = errata_files(prune, datasets or opened.datasets) if prune else {}
    with searches_of(dense) as searches:
        found = audit_shortcuts(opened, progress, datasets, against, searches)
    if html:
        _write_page(html, opened, found)
    if as_json:
        for line in (*found.findings, *found.difficulties):
            click.echo(json.dumps(line.model_dump()))
    else:
        show_findings(release, found, show_all=show_all)
    if prune:
        write_pruned(prune_shortcuts(opened, found, progress, against), opened.lock, files, as_json=as_json)
    if check and found.leaks:
        sys.exit(1)


def _write_page(html: Path, release: "Release", found: "ShortcutAudit") -> None:
    from mmlongbench.shortcuts.to_look_at import questions_to_look_at
    from mmlongbench.web.kit import write_page
    from mmlongbench.web.shortcuts_page import MAX_PIXELS, shortcuts_page

    seen = questions_to_look_at(release, found.leaks)
    urls = release.image_urls("data-uri", MAX_PIXELS)
    write_page(html, shortcuts_page(f"Shortcuts of {release.path.name}", found, seen, urls))


def _compare(
    release: Path,
    predictions: Sequence[Path],
    prune: Path | None,
    tasks: "TaskFiles",
    html: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print what models answer without the context, or with a part of it, beside what they answer with all of it."""
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.layout import LOCK
    from mmlongbench.release.lock import read_lock
    from mmlongbench.shortcuts.contexts.audit import audit_contexts
    from mmlongbench.shortcuts.pruning.blind import prune_blind
    from mmlongbench.shortcuts.pruning.naming import errata_files

    lock = read_lock(release) if (release / LOCK).is_file() else None
    if prune:
        errata_files(prune, list(lock.datasets) if lock else ())
    compared = audit_contexts(release, predictions, Progress(False if as_json else None), tasks)
    if html:
        from mmlongbench.web.contexts_page import contexts_page
        from mmlongbench.web.kit import write_page

        write_page(html, contexts_page(f"Contexts of {release.resolve().name}", compared))
    if as_json:
        click.echo(json.dumps(compared.model_dump(mode="json")))
    else:
        show_contexts(compared)
    if prune:
        pruned = prune_blind(compared, lock)
        write_pruned(pruned, lock, errata_files(prune, [each.dataset for each in pruned]), as_json=as_json)
