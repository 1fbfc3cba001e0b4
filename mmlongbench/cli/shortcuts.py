"""The subcommand `shortcuts`: what tells an answer without looking."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmlongbench.cli.task_option import with_tasks

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.release.opened import Release
    from mmlongbench.shortcuts.audit import ShortcutAudit


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
    from mmlongbench.cli.shortcut_pruning import write_pruned
    from mmlongbench.cli.shortcut_tables import show_findings
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.opened import open_release
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
    from mmlongbench.cli.shortcut_contexts import show_contexts
    from mmlongbench.cli.shortcut_pruning import write_pruned
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
