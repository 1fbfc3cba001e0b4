"""The subcommands `verify` (whether a release is complete) and `diff` (what differs between two releases)."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import mmlongbench as mm
from mmlongbench.cli.console import say
from mmlongbench.cli.options import FOLDER, json_option, quiet_option, with_tasks, workers_option
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.diff import FileDifference, Named, ReleaseDifference


@click.command()
@click.argument("release", type=FOLDER)
@workers_option
@json_option()
@quiet_option("Print only problems.")
@with_tasks
def verify(release: Path, workers: int, as_json: bool, quiet: bool, tasks: TaskFiles) -> None:
    """Check that RELEASE is complete: every file as in the lock, every image decodable, no extra files.

    For a changed public file, the differing examples are named if possible. Exits with 1 if anything is wrong.
    """
    verified = mm.verify(release, tasks=tasks, workers=workers, progress=False if quiet or as_json else None)
    if as_json:
        click.echo(json.dumps(verified.summary()))
    else:
        for problem in verified.problems:
            say(str(problem), err=True)
        if verified.note:
            say(f"note: {verified.note}", err=True)
        if not quiet:
            result = f"{len(verified.problems):,} problems" if verified.problems else "whole"
            say(f"{release}: {result}; {verified.files:,} files in the lock, {verified.images:,} of them images")
    if verified.problems:
        sys.exit(1)


@click.command()
@click.argument("a", type=FOLDER)
@click.argument("b", type=FOLDER)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="How many examples of a file, and images, are named; the others are only counted.",
)
@json_option()
def diff(a: Path, b: Path, limit: int, as_json: bool) -> None:
    """Print what differs between the releases A and B: manifest, sources, files, examples, units of contexts, images.

    Exits with 1 if anything differs.
    """
    difference = mm.diff(a, b, limit=limit, progress=False if as_json else None)
    if as_json:
        click.echo(json.dumps({"a": str(a), "b": str(b), **difference.summary()}))
    else:
        for line in _lines(difference):
            say(line)
        files = "1 file is" if difference.same == 1 else f"{difference.same:,} files are"
        say(f"A is {a}, B is {b}: {files} the same{', nothing differs' if difference.is_same else ''}")
    if not difference.is_same:
        sys.exit(1)


def _lines(difference: ReleaseDifference) -> Iterator[str]:
    for where, words in difference.lock:
        yield f"{where}: {words}"
    for which, only in (("A", difference.only_in_a), ("B", difference.only_in_b)):
        for folder, files in only.items():
            yield from (f"{name}: only in {which}" for name in files.first)
            yield from _more(files, f"{folder}: only in {which}: ")
    for file in difference.files:
        yield from _file_lines(file)
    if difference.images.count:
        yield f"images with other bytes: {difference.images.count:,}"
        yield from (f"  {words}" for words in difference.images.first)
        yield from _more(difference.images, "  ")


def _file_lines(file: FileDifference) -> Iterator[str]:
    only_in = (("A", file.only_in_a), ("B", file.only_in_b))
    both = f"{file.differ:,} of {file.in_both:,} examples in both differ" if file.in_both else "no example is in both"
    counts = [both, *(f"{only.count:,} only in {which}" for which, only in only_in if only.count)]
    yield f"{file.file}: {file.what or ', '.join(counts)}"
    for name, differences in file.first.items():
        yield from (f"  {name}: {words}" for words in differences)
    if file.differ > len(file.first):
        yield f"  and {file.differ - len(file.first):,} more that differ"
    for which, only in only_in:
        yield from (f"  {name}: only in {which}" for name in only.first)
        yield from _more(only, f"  only in {which}: ")


def _more(named: Named, before: str) -> Iterator[str]:
    if named.count > len(named.first):
        yield f"{before}and {named.count - len(named.first):,} more"
