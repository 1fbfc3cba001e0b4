"""The subcommands `export` (a release in the form of other tools) and `collect` (results as predictions)."""

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import click

import mmlongbench as mm
from mmlongbench.cli.console import print_table, say, say_notes
from mmlongbench.cli.options import (
    FILE,
    FOLDER,
    NEW_FILE,
    NEW_PATH,
    json_option,
    options_of,
    variant_option,
    with_tasks,
)
from mmlongbench.exports.export import Choices
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.selection import Selection
from mmlongbench.table import Table

_NAMED = 20  # how many left-out examples are named


@click.command()
@click.argument("release", type=FOLDER)
@click.option(
    "--to", "target", required=True, metavar="TARGET", help="The form, such as openai or hf; `list` shows all."
)
@click.option("--out", required=True, type=NEW_PATH, help="The folder to write, which is new or empty.")
@options_of(Selection, "selection", subset={"metavar": "NAME"})
@options_of(Choices, "choices", form={"option": "--format"})
@variant_option("Write another form of the prompts that tasks offer, such as oracle (visual RAG).")
@click.option(
    "--mix", type=FILE, metavar="FILE", help="Write a training mix: a file with the key `mix`, which may be a manifest."
)
@click.option("--drop-overlap", is_flag=True, help="With --mix: leave out examples that an evaluation release has.")
@json_option()
@with_tasks
def export(
    release: Path,
    target: str,
    out: Path,
    selection: Selection,
    choices: Choices,
    variant: str,
    mix: Path | None,
    drop_overlap: bool,
    as_json: bool,
    tasks: TaskFiles,
) -> None:
    """Write examples of RELEASE in the form of another tool; a README.md in the folder says how to run them.

    The folder appears complete or not at all. Examples that the form cannot hold are named.
    """
    receipt = None
    if mix:
        chosen = {**asdict(selection), "model": choices.model, "max_tokens": choices.max_tokens, "variant": variant}
        names = {"datasets": "--dataset", "lengths": "--length", "max_tokens": "--max-tokens"}
        if given := [names.get(name, f"--{name}") for name, value in chosen.items() if value]:
            raise click.UsageError(f"{', '.join(given)} cannot be given with --mix, which chooses the examples")
        mixed = mm.export_mix(
            release,
            mix,
            target,
            out,
            images=choices.images,
            form=choices.form,
            drop_overlap=drop_overlap,
            tasks=tasks,
            progress=False if as_json else None,
        )
        done, receipt = mixed.exported, mixed.receipt
    elif drop_overlap:
        raise click.UsageError("--drop-overlap needs --mix, whose key disjoint_from names evaluation releases")
    else:
        chosen = {**asdict(selection), **asdict(choices)}
        progress = False if as_json else None
        done = mm.export(release, target, out, **chosen, variant=variant, tasks=tasks, progress=progress)
    if as_json:
        more = {"mix": receipt.model_dump(mode="json")} if receipt else {}
        click.echo(json.dumps({"out": str(out), **asdict(done), **more}))
        return
    if receipt:
        _show_mix(receipt)
    say_notes(done.notes)
    for reason in done.left_out[:_NAMED]:
        say(f"left out: {reason}", err=True)
    if len(done.left_out) > _NAMED:
        say(f"left out: {len(done.left_out) - _NAMED:,} more; see {out}/README.md", err=True)
    left_out = f", {len(done.left_out):,} left out" if done.left_out else ""
    copied = f"{done.bytes_copied:,} bytes of images copied" if done.bytes_copied else "no image copied"
    say(f"{out}: {done.examples:,} examples{left_out}; {done.files:,} files, {done.bytes:,} bytes; {copied}")
    say(f"{out}/README.md says how to run them")


def _show_mix(receipt: mm.MixReceipt) -> None:
    rows = [
        (
            f"{share.kind} {share.name}",
            share.measure,
            f"{share.asked:.2%}",
            f"{share.reached:.2%}",
            share.examples,
            share.tokens,
        )
        for share in receipt.shares
    ]
    if rows:
        print_table(Table(("share", "of", "asked", "reached", "examples", "tokens"), rows, align="ll"))
    asked = receipt.mix.tokens
    off = (receipt.tokens - asked) / asked
    say(f"tokens: {receipt.tokens:,} of {asked:,} ({off:+.2%}) in {receipt.examples:,} examples")
    if receipt.unanswered:
        say(f"  {receipt.unanswered:,} examples have no answer in the release, so they cannot be taken")
    if disjoint := receipt.disjoint:
        for other in disjoint.evaluations:
            shows = other.shows
            counts = f"{shows.documents:,} documents, {shows.questions:,} questions, {shows.pictures:,} pictures"
            say(f"nothing is shared with {other.release}: its {counts} and {shows.passages:,} passages were compared")
        if disjoint.examples_left_out:
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in disjoint.left_out_by_kind.items())
            say(f"  {disjoint.examples_left_out:,} examples were left out because they share something ({kinds})")


@click.command()
@click.argument("release", type=FOLDER)
@click.argument("results", nargs=-1, required=True, type=FILE)
@click.option("--model", required=True, metavar="NAME", help="The name of the model, for the file of predictions.")
@click.option("--out", type=NEW_FILE, help="The file of predictions.  [default: predictions/<model>.jsonl]")
@variant_option("The form of the prompts that `export --variant` wrote.")
@json_option()
@with_tasks
def collect(
    release: Path,
    results: tuple[Path, ...],
    model: str,
    out: Path | None,
    variant: str,
    as_json: bool,
    tasks: TaskFiles,
) -> None:
    """Write the predictions in RESULTS: output and error files of OpenAI's Batch API, or output of vllm run-batch.

    The requests were written by `export RELEASE --to openai-batch` or `vllm-batch`. Exits with 1 if a result is an
    error or could not be used; an error never becomes an answer.
    """
    progress = False if as_json else None
    found = mm.collect(release, results, model=model, out=out, variant=variant, tasks=tasks, progress=progress)
    if as_json:
        click.echo(json.dumps(found.summary()))
    else:
        for problem in found.problems:
            say(f"{problem.count:,} {problem.words}: {'; '.join(problem.first)}", err=True)
        say(
            f"{found.out}: {found.answered:,} of {found.examples:,} examples of the release have an answer; "
            f"`mmlongbench score {shlex.quote(str(release))} {shlex.quote(str(found.out))}` scores them"
        )
    if found.problems:
        sys.exit(1)
