"""The subcommand `shortcuts`: what tells an answer without looking."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import FOLDER, NEW_FILE, PATH, bars, html_option, json_option, number_of, with_tasks
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.layout import LOCK
from mmlongbench.release.lock import Lock, read_lock
from mmlongbench.release.release import open_release
from mmlongbench.shortcuts.audit import (
    ShortcutAudit,
    audit_shortcuts,
    carriers,
    exclude_files,
    leaks_left,
    question_numbers,
    questions_to_look_at,
    smaller_sample,
    write_exclude,
)
from mmlongbench.shortcuts.blind import MAX_LUCK
from mmlongbench.shortcuts.contexts import FEW, MARGIN, POWER, UNSOLVED, ContextAudit, ContextRow, audit_contexts
from mmlongbench.shortcuts.difficulty import difficulty_table, searches_of
from mmlongbench.statistics import LEVEL, MIN_CLUSTERS, RESAMPLES
from mmlongbench.table import Table, Value

_REASONS = {FEW: FEW, UNSOLVED: "full is not above chance"}
"""The reasons of undecided verdicts, as short as a column needs."""
_SHOWN = 10  # the maximum number of questions of a dataset that are listed; the JSON has all


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
    "--write-exclude",
    "exclude",
    type=NEW_FILE,
    metavar="FILE",
    help="Write the questions that carry leaks most, at most a tenth of each dataset, as errata that leave them out of "
    "the next build; and say which leaks are left without them. With --predictions, write all questions that models "
    "solve blind.",
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
    exclude: Path | None,
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
    progress = bars(is_quiet=as_json)
    if predictions:
        unused = {"--dataset": datasets, "--against": against, "--dense": dense, "--all": show_all, "--check": check}
        if given := [name for name, value in unused.items() if value]:
            raise click.UsageError(f"{given[0]} has no effect with --predictions: leave one of them out")
        _compare(release, predictions, exclude, tasks, html, progress, as_json=as_json)
        return
    opened = open_release(release, tasks)
    files = exclude_files(exclude, datasets or opened.datasets) if exclude else {}
    with searches_of(dense) as searches:
        audit = audit_shortcuts(opened, progress, datasets, against, searches)
    if html:
        from mmlongbench.web.kit import write_page
        from mmlongbench.web.shortcuts_page import MAX_PIXELS, shortcuts_page

        seen = questions_to_look_at(opened, audit.leaks)
        urls = opened.image_urls("data-uri", MAX_PIXELS)
        write_page(html, shortcuts_page(f"Shortcuts of {opened.path.name}", audit, seen, urls))
    if as_json:
        for line in (*audit.findings, *audit.difficulties):
            click.echo(json.dumps(line.model_dump()))
    else:
        _show_findings(release, audit, show_all=show_all)
    if exclude:
        numbers = question_numbers(opened, dict.fromkeys(leak.dataset for leak in audit.leaks))
        chosen = carriers(audit.leaks, numbers)
        left = {}
        if not as_json:
            again = audit_shortcuts(opened, progress, datasets, against, (), chosen) if chosen else audit
            left = leaks_left(audit.leaks, again.findings)
        _write_exclude(chosen, numbers, opened.lock, files, left, is_quiet=as_json)
    if check and audit.leaks:
        sys.exit(1)


def _show_findings(release: Path, audit: ShortcutAudit, *, show_all: bool) -> None:
    rows: list[tuple[Value, ...]] = []
    notes = []
    for finding in audit.findings if show_all else audit.leaks:
        is_open = finding.verdict == "undecided"
        shares = (f"{100 * finding.found:.1f}", f"{100 * finding.chance:.1f}")
        excess = f"{100 * finding.low:+.0f} … {100 * finding.high:+.0f}"
        smallest = f"{100 * finding.smallest:+.0f}" if is_open and finding.smallest is not None else ""
        needed = f"{finding.needed:,}" if is_open and finding.needed else ""
        at = format_length(finding.length) if finding.length else ""
        place = (finding.dataset, at, finding.kind, finding.verdict)
        rows.append((*place, finding.questions, *shares, excess, smallest, needed))
        if finding.verdict == "leak":
            examples = ", ".join(finding.examples[:3])
            notes.append(f"{finding.dataset}, {finding.kind}: {finding.evidence}; such as {examples}")
    if rows:
        columns = ("dataset", "at", "what tells", "verdict", "n", "found", "chance", "excess", "shows", "needed")
        title = "shares of 100, with the 95 % interval of the excess"
        print_table(Table(columns, rows, title, notes, align="llll"))
    if audit.difficulties:
        print_table(difficulty_table(audit.difficulties))
    for note in audit.notes:
        say(f"note: {note}")
    of = Counter(finding.verdict for finding in audit.findings)
    p = "" if audit.p is None else f"; p of the release {audit.p:.3f}"
    leaks = number_of(len(audit.leaks), "leak")
    say(f"{release.name}: {leaks}, {of['clean']} clean, {of['undecided']} undecided{p}")
    if not show_all and (of["undecided"] or of["clean"]):
        say("--all shows all, with the smallest leak that would show, and the number of questions that would decide")


def _compare(
    release: Path,
    predictions: Sequence[Path],
    exclude: Path | None,
    tasks: TaskFiles,
    html: Path | None,
    progress: Progress,
    *,
    as_json: bool,
) -> None:
    lock = read_lock(release) if (release / LOCK).is_file() else None
    if exclude:
        exclude_files(exclude, list(lock.datasets) if lock else ())
    audit = audit_contexts(release, predictions, progress, tasks)
    if html:
        from mmlongbench.web.kit import write_page
        from mmlongbench.web.shortcuts_page import contexts_page

        write_page(html, contexts_page(f"Contexts of {release.resolve().name}", audit))
    if as_json:
        click.echo(json.dumps(audit.model_dump(mode="json")))
    else:
        _show_contexts(audit)
    if exclude:
        reasons: dict[str, dict[str, str]] = {}
        for found in audit.blind:
            said = f"{found.right} of {found.answers} answers are right, luck {found.luck:.2g}"
            why = f"answered without the context by {', '.join(found.models)}: {said}"
            reasons.setdefault(found.dataset, {})[found.id] = why
        files = exclude_files(exclude, [counts.dataset for counts in audit.blind_counts])
        numbers = {counts.dataset: counts.questions for counts in audit.blind_counts}
        _write_exclude(reasons, numbers, lock, files, {}, is_quiet=as_json)


def _write_exclude(
    reasons: Mapping[str, Mapping[str, str]],
    questions: Mapping[str, int],
    lock: Lock | None,
    files: Mapping[str, Path],
    left: Mapping[str, str],
    *,
    is_quiet: bool,
) -> None:
    """Write a file for each dataset of which questions are to be excluded, and say how it is used, and what is left."""
    for dataset, of_id in reasons.items():
        write_exclude(files[dataset], lock, dataset, of_id)
        if is_quiet:
            continue
        settings = [f"{dataset}.errata={files[dataset]}"]
        size = smaller_sample(lock, dataset, len(of_id))
        if size is not None:
            settings.append(f"{dataset}.sample.n={size}")
        options = " ".join(f"--set {shlex.quote(setting)}" for setting in settings)
        number = f"{len(of_id):,} of {number_of(questions[dataset], 'question')}"
        say(f"{files[dataset]}: {number} of {dataset}; build without them:")
        say(f"  mmlongbench build MANIFEST {options}")
        if size is not None:
            say("  without sample.n, the sample would be filled again with other questions")
        if dataset in left:
            say(f"  audited without them: {left[dataset]}")
    for dataset, said in left.items():
        if dataset not in reasons:
            say(f"{dataset}: no question is written; {said}")
    if not reasons and not is_quiet:
        say("nothing to exclude; no file is written")


def _show_contexts(audit: ContextAudit) -> None:
    say(f"scores from 0 to 100; [low, high]: {LEVEL:.0%} intervals over {RESAMPLES:,} resamples of clusters")
    for model in audit.models:
        rows = [row for row in audit.rows if row.model == model]
        shown = [row for row in rows if not row.facet or any(mean.low is not None for mean in row.means)]
        _show_means(model, audit.contexts, shown)
        _show_differences(model, shown)
        if left_out := len(rows) - len(shown):
            say(f"{left_out:,} groups of fewer than {MIN_CLUSTERS} clusters are not shown; the JSON has them")
    if audit.blind_counts:
        counts = [
            (each.dataset, each.questions, each.right, each.binary, each.listed, f"{each.by_luck:.1f}")
            for each in audit.blind_counts
        ]
        rule = f"guesses do as well with a probability of at most {MAX_LUCK:.0%}; none with two answers or fewer"
        notes = [f"listed: {rule}", *_listed(audit)]
        columns = ("dataset", "asked", "all answers right", "two answers offered", "listed", "expected by luck")
        print_table(Table(columns, counts, "questions that are answered without the context", notes))
    for note in audit.notes:
        say(note)


def _show_means(model: str, contexts: Sequence[str], rows: Sequence[ContextRow]) -> None:
    shown = [context for context in contexts if any(mean.context == context for row in rows for mean in row.means)]
    lines: list[tuple[str, ...]] = []
    for row in rows:
        means = {each.context: _percent(each.mean) + _ends(each.low, each.high) for each in row.means}
        lines.append((*_group(row), _percent(row.chance), *(means.get(context, "") for context in shown)))
    columns = ("dataset", "length", "group", "chance", *(context or "full" for context in shown))
    print_table(Table(columns, lines, f"{model}: mean score in each context", align="lll"))


def _show_differences(model: str, rows: Iterable[ContextRow]) -> None:
    lines: list[tuple[Value, ...]] = []
    for row in rows:
        for each in row.differences:
            survival, verdict, need = "–", "", each.need
            if each.survival is not None:
                survival = f"{each.survival:.0%}{_ends(each.survival_low, each.survival_high)}"
            if need and need.verdict != "undecided":
                verdict = f"{need.verdict} the {need.part}"
            elif need:
                smallest = "" if need.smallest is None else f", shows falls from {100 * need.smallest:.0f}"
                more = f", about {need.needed:,} would decide" if need.needed else ""
                verdict = f"undecided (the {need.part}): {_REASONS[need.reason]}{smallest}{more}"
            difference = _percent(each.mean) + _ends(each.low, each.high)
            lines.append((*_group(row), each.context, each.questions, difference, survival, verdict))
    note = (
        f"needs: the score falls by more than {100 * MARGIN:g} points; does not need: by less; both with "
        f"{LEVEL:.0%} confidence; shows: with a probability of {POWER:.0%}"
    )
    columns = ("dataset", "length", "group", "full −", "questions", "difference", "survival", "verdict")
    title = f"{model}: paired differences; survival = (context − chance) / (full − chance)"
    if lines:
        print_table(Table(columns, lines, title, [note], align="llllrrrl"))


def _listed(audit: ContextAudit) -> Iterator[str]:
    for counts in audit.blind_counts:
        questions = [each for each in audit.blind if each.dataset == counts.dataset]
        if questions:
            more = f", and {len(questions) - _SHOWN:,} more" if len(questions) > _SHOWN else ""
            names = (f"{each.id} ({each.right} of {each.answers}, luck {each.luck:.2g})" for each in questions[:_SHOWN])
            yield f"  {counts.dataset}: {', '.join(names)}{more}"


def _group(row: ContextRow) -> tuple[str, str, str]:
    length = "all" if row.length is None else format_length(row.length)
    return row.dataset, length, f"{row.facet}: {row.value}" if row.facet else "all"


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{_percent(low)}, {_percent(high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
