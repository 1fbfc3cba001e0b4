"""The subcommands `audit` and `stats`: count the tokens of a release, by the benchmark's counter and on models."""

import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmlongbench.cli.console import say
from mmlongbench.cli.options import with_tasks

if TYPE_CHECKING:
    from mmlongbench.manifest.task_files import TaskFiles
    from mmlongbench.release.audit import Target, Visit
    from mmlongbench.release.figures import FileAudit
    from mmlongbench.release.items import Item
    from mmlongbench.release.measuring import Measured, Model, ModelOptions
    from mmlongbench.release.release import PublicFile

_PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
_IMAGES = click.option(
    "--images",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder that image paths of public files are relative to; mmlb_image/ beside mmlb_data/ by default.",
)
_NAMED = 4
"""How many models a note names; of more models, it says the number."""
_OUT = click.Path(path_type=Path, dir_okay=False)


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--text-tokenizer",
            "tokenizers",
            multiple=True,
            metavar="MODEL=PATH|ID",
            help="The tokenizer for a model's text.",
        ),
        click.option(
            "--window",
            "windows",
            multiple=True,
            metavar="MODEL=TOKENS",
            help="The context window of a model, such as 128K.",
        ),
        click.option("--models", default="", metavar="A,B|all", help="Count on these models too."),
    ):
        command = option(command)
    return command


@click.command()
@_PATHS
@_IMAGES
@click.option("--tokenizer", help="The tokenizer that the release was counted with, if it is a file of yours.")
@click.option(
    "--variant", default="", help="Count another form of the prompts: with_name, occluded or oracle (visual RAG)."
)
@click.option(
    "--builder",
    default="",
    metavar="NAME",
    help="The builder of public files with names of your own, such as docvqa; its default options are used.",
)
@_model_options
@click.option("--per-example", type=_OUT, help="Write a row for each example: .csv, .jsonl or .parquet.")
@click.option(
    "--items", type=_OUT, help="Write a row for each unit, with its start token and role: .csv, .jsonl or .parquet."
)
@click.option("--html", type=_OUT, help="Write an HTML page.")
@click.option("--histogram", is_flag=True, help="Show how full the examples of each file are, and what they cost.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the table as CSV.")
@click.option("--check", is_flag=True, help="Exit with 1 if an example does not fit a model.")
@click.option("--fit", "fits", metavar="MODEL", help="Print by how much images must shrink to fit a model's window.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The number of processes; it does not change the result.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each file.")
@click.option("-q", "--quiet", is_flag=True, help="Print only problems.")
@with_tasks
def audit(
    paths: tuple[Path, ...],
    images: Path | None,
    tokenizer: str | None,
    variant: str,
    builder: str,
    models: str,
    windows: tuple[str, ...],
    tokenizers: tuple[str, ...],
    per_example: Path | None,
    items: Path | None,
    html: Path | None,
    histogram: bool,
    as_csv: bool,
    check: bool,
    fits: str | None,
    workers: int,
    as_json: bool,
    quiet: bool,
    tasks: "TaskFiles",
) -> None:
    """Count every example of PATHS again: a release, or public files of other origin, such as a download.

    Only the records and the headers of the images are used. Exits with 1 if an example is over its length or differs
    from what the build recorded, or if a file is missing, extra or changed.
    """
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.audit import Target, is_download
    from mmlongbench.release.audit import audit as run
    from mmlongbench.release.layout import DATA, LOCK
    from mmlongbench.release.measuring import ask

    asked = ask(models or fits or "", windows, tokenizers)
    if check:
        _require_bounds(asked)
    target = Target(paths, images, tokenizer, variant, builder, tasks)
    if is_download(paths[0]) and not quiet:
        say(f"{paths[0]}: no {LOCK}: its {DATA}/ is audited as public files of other origin", err=True)
    is_silent = quiet or as_json or as_csv
    with ExitStack() as stack:
        visit = _visit(stack, target, asked, per_example, items)
        found = run(target, Progress(False if is_silent else None), workers, asked, visit)
    opened = [each.open() for each in asked]
    counters = sorted({each.tokenizer for each in found} - {""})
    if as_json or as_csv:
        _print_data(found, opened, as_csv=as_csv)
    else:
        _show(found, opened, is_quiet=quiet, histogram=histogram)
    for note in _notes(opened, counters):
        say(note, err=is_silent)
    if not found:
        say(f"{paths[0]}: holds no public file", err=True)
    if html:
        _write_page(html, paths, found, opened, _notes(opened, counters))
    if fits:
        _say_fit(target, asked, fits, is_aside=as_json or as_csv)
    unfit = list(_unfit(found)) if check else []
    for said in unfit:
        say(said, err=True)
    if not found or unfit or any(each.problems for each in found):
        sys.exit(1)


def _unfit(found: Sequence["FileAudit"]) -> Iterator[str]:
    """Yield a line for each file and model if some examples of the file do not fit the model. The line says how many do
    not fit, and names the costliest example.
    """
    for each in found:
        for name, tally in each.models.items():
            if tally.figures(each.examples).fits < 1:
                counts = {"over the window": tally.over_window, "with too many images": tally.over_images}
                counts["refused"] = tally.refused
                said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
                worst = f"the costliest is {tally.worst[0][0]} ({tally.worst[0][1]:,} tokens)" if tally.worst else ""
                refused = f"first refused {tally.first_refused}" if tally.first_refused else ""
                places = "; ".join(filter(None, (worst, refused)))
                yield f"{each.file}: {name}: {each.examples} examples, {said}; {places}"


@click.command()
@_PATHS
@_IMAGES
@click.option("--table3", is_flag=True, help="Print the numbers of the paper's Table 3 too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each dataset.")
@with_tasks
def stats(paths: tuple[Path, ...], images: Path | None, table3: bool, as_json: bool, tasks: "TaskFiles") -> None:
    """Count images per example in PATHS (mean ± sd), by dataset and length, and how full the examples are."""
    from mmlongbench.cli import tables
    from mmlongbench.io.progress import Progress
    from mmlongbench.release.audit import Target
    from mmlongbench.release.audit import audit as run
    from mmlongbench.release.figures import table3 as table_of

    target = Target(paths, images, tasks=tasks)
    found = run(target, Progress(False if as_json else None))
    builders = [file.dataset.builder for file in target.open().files if file.dataset]
    rows = table_of(found, {builder.dataset: builder.spec.paper_images for builder in builders})
    if as_json:
        for row in rows:
            images_by_length = {str(length): {"mean": m, "sd": sd} for length, (m, sd) in row.images.items()}
            paper = {str(length): mean for length, mean in row.paper.items()}
            click.echo(json.dumps({"dataset": row.dataset, "images": images_by_length, "paper": paper}))
        _end(found)
        return
    tables.show_table3(rows, beside_paper=table3)
    tables.show_histograms(found)
    _end(found)


def _end(found: list["FileAudit"]) -> None:
    """Print the problems, and exit with 1 if there are any."""
    from mmlongbench.cli.tables import show_problems

    show_problems(found)
    if any(each.problems for each in found):
        sys.exit(1)


def _print_data(found: list["FileAudit"], models: Sequence["Model"], *, as_csv: bool) -> None:
    from mmlongbench.cli.tables import audit_rows

    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(audit_rows(found, models))
    else:
        for each in found:
            click.echo(json.dumps(each.line().model_dump(mode="json", exclude_unset=True)))


def _show(found: list["FileAudit"], models: Sequence["Model"], *, is_quiet: bool, histogram: bool) -> None:
    from mmlongbench.cli import tables

    if not is_quiet:
        tables.show_audit(found)
        tables.show_models(found, models)
        tables.show_remarks(found)
        if histogram:
            tables.show_histograms(found)
    tables.show_problems(found)


def _visit(
    stack: ExitStack, target: "Target", asked: Sequence["ModelOptions"], per_example: Path | None, items: Path | None
) -> "Visit | None":
    """Return a function that writes a row for every example or unit; None if nothing is to be written."""
    from mmlongbench.release.costs import example_row, unit_rows, writing
    from mmlongbench.release.items import ItemReader
    from mmlongbench.release.record_checks import UNREADABLE

    if not (per_example or items):
        return None
    models = [each.open() for each in asked]
    examples = stack.enter_context(writing(per_example)) if per_example else None
    units = stack.enter_context(writing(items)) if items else None
    readers: dict[str, ItemReader] = {}

    def visit(file: "PublicFile", made: "Measured") -> None:
        if examples:
            examples(example_row(file, made, models))
        if units:
            read: Sequence[Item] = ()
            with suppress(*UNREADABLE):  # the audit reports this example or file
                if file.name not in readers:
                    readers[file.name] = ItemReader(target.paths[0], file.name, file.length)
                read = readers[file.name].of(made.id, made.placement)
            for row in unit_rows(file, made, read, models):
                units(row)

    return visit


def _notes(models: Sequence["Model"], counters: Sequence[str]) -> list[str]:
    """Return a sentence that names the models whose text another tokenizer counts; empty if there are none."""
    without = [model.name for model in models if model.text is None]
    names = ", ".join(without) if len(without) <= _NAMED else f"{len(without)} models"
    said = f"text of {names} is counted by the release's tokenizer, {' and '.join(counters)}"
    return [f"{said}; give the model's with --text-tokenizer MODEL=PATH|ID"] if without else []


def _require_bounds(asked: Sequence["ModelOptions"]) -> None:
    """Refuse a check without a model, or of a model without any known limit; such a check could never find anything."""
    if not asked:
        raise click.UsageError("--check needs --models, and a --window for each")
    for each in asked:
        if each.window is None and each.open().max_images is None:
            raise click.UsageError(
                f"--check: the window of {each.name} is not known; give it with --window {each.name}=TOKENS"
            )


def _write_page(
    path: Path,
    paths: Sequence[Path],
    found: Sequence["FileAudit"],
    models: Sequence["Model"],
    notes: Sequence[str],
) -> None:
    from mmlongbench.web.audit_page import audit_page
    from mmlongbench.web.kit import write_page

    title = f"Audit of {', '.join(each.resolve().name for each in paths)}"
    write_page(path, audit_page(title, found, models, notes))


def _say_fit(target: "Target", asked: Sequence["ModelOptions"], name: str, *, is_aside: bool) -> None:
    from mmlongbench.errors import ReleaseError
    from mmlongbench.release.fitting import fit

    one = next((each for each in asked if each.name == name), None)
    if one is None:
        raise ReleaseError(f"--fit {name}: is not among --models")
    found = fit(target, one)
    at, window = found.at, f"{found.window:,} tokens"
    if found.factor is None:
        said = f"no factor makes all fit {window}: with images at 0.01 of their size, {at.where} has {at.tokens:,}"
    elif found.factor == 1:
        said = f"all examples fit {window} as they are; the costliest ({at.where}) has {at.tokens:,}"
    else:
        said = (
            f"resize images by {found.factor:.2f}; the costliest example ({at.where}) then has {at.tokens:,} of "
            f"{window}; without resizing, an example has up to {found.as_it_is.tokens:,}"
        )
    say(f"{name}: {said}", err=is_aside)
    if too_many := found.as_it_is.over_images:
        say(f"{name}: {too_many:,} examples have more images than a request may hold, at any size", err=is_aside)
    if refused := max(at.refused, found.as_it_is.refused):
        say(f"{name}: {refused:,} examples hold an image that the model refuses: not fitted", err=is_aside)
