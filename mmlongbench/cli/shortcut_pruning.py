"""Writes the errata of `shortcuts --prune`, and prints what the drops do."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.drawing import Table, print_table
from mmlongbench.release.lock import Lock
from mmlongbench.shortcuts.pruning.choosing import MAX_SHARE
from mmlongbench.shortcuts.pruning.naming import options, write_errata
from mmlongbench.shortcuts.pruning.results import Effect, Pruned


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
