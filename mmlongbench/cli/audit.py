"""The commands `audit` and `stats`: count the tokens of a release, by the benchmark's counter and on models."""

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from mmlongbench.cli.console import print_table, say, screen_width
from mmlongbench.cli.options import (
    FOLDER,
    NEW_FILE,
    PATH,
    bars,
    html_option,
    json_option,
    quiet_option,
    tokenizers_option,
    with_tasks,
    workers_option,
)
from mmlongbench.corpus.retrieval.pages import said_recall
from mmlongbench.errors import ReleaseError
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.audit import Target, Visit, is_download
from mmlongbench.release.audit import audit as audit_files
from mmlongbench.release.cost_tables import example_row, unit_rows, writing
from mmlongbench.release.example_cost import Measured, Model, ModelOptions, ask
from mmlongbench.release.file_audit import (
    FileAudit,
    Histogram,
    ModelTally,
    Spread,
    Table3Row,
    short_tokens,
    table3,
    tokens_text,
)
from mmlongbench.release.fitting import fit
from mmlongbench.release.items import Item, ItemReader
from mmlongbench.release.layout import DATA, LOCK
from mmlongbench.release.record_checks import UNREADABLE
from mmlongbench.release.release import PublicFile
from mmlongbench.table import Table, Value

_PATHS = click.argument("paths", nargs=-1, required=True, type=PATH)
_IMAGES = click.option(
    "--images",
    type=FOLDER,
    help="The folder that image paths of public files are relative to; mmlb_image/ beside mmlb_data/ by default.",
)
_NAMED = 4
"""How many models a note names; of more models, it says the number."""


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
@click.option("--models", default="", metavar="A,B|all", help="Count on these models too.")
@click.option(
    "--window", "windows", multiple=True, metavar="MODEL=TOKENS", help="The context window of a model, such as 128K."
)
@tokenizers_option
@click.option("--per-example", type=NEW_FILE, help="Write a row for each example: .csv, .jsonl or .parquet.")
@click.option(
    "--items", type=NEW_FILE, help="Write a row for each unit, with its start token and role: .csv, .jsonl or .parquet."
)
@html_option
@click.option("--histogram", is_flag=True, help="Show how full the examples of each file are, and what they cost.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the table as CSV.")
@click.option("--check", is_flag=True, help="Exit with 1 if an example does not fit a model.")
@click.option("--fit", "fits", metavar="MODEL", help="Print by how much images must shrink to fit a model's window.")
@workers_option
@json_option("Print one JSON object for each file.")
@quiet_option("Print only problems.")
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
    tasks: TaskFiles,
) -> None:
    """Count every example of PATHS again: a release, or public files of other origin, such as a download.

    Only the records and the headers of the images are used. Exits with 1 if an example is over its length or differs
    from what the build recorded, or if a file is missing, extra or changed.
    """
    asked = ask(models or fits or "", windows, tokenizers)
    if check:
        _require_bounds(asked)
    target = Target(paths, images, tokenizer, variant, builder, tasks)
    if is_download(paths[0]) and not quiet:
        say(f"{paths[0]}: no {LOCK}: its {DATA}/ is audited as public files of other origin", err=True)
    is_silent = quiet or as_json or as_csv
    with ExitStack() as stack:
        visit = _writing(stack, target, asked, per_example, items)
        found = audit_files(target, bars(is_quiet=is_silent), workers, asked, visit)
    opened = [each.open() for each in asked]
    notes = _notes(opened, sorted({each.tokenizer for each in found} - {""}))
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(_values(found, opened))
    elif as_json:
        for each in found:
            click.echo(json.dumps(each.line().model_dump(mode="json", exclude_unset=True)))
    elif not quiet:
        show_audit(found)
        _show_models(found, opened)
        _show_remarks(found)
        if histogram:
            _show_histograms(found)
    if not (as_csv or as_json):
        _show_problems(found)
    for note in notes:
        say(note, err=is_silent)
    if not found:
        say(f"{paths[0]}: holds no public file", err=True)
    if html:
        from mmlongbench.web.audit_page import audit_page
        from mmlongbench.web.kit import write_page

        write_page(
            html, audit_page(f"Audit of {', '.join(each.resolve().name for each in paths)}", found, opened, notes)
        )
    if fits:
        _say_fit(target, asked, fits, is_aside=as_json or as_csv)
    unfit = list(_unfit(found)) if check else []
    for said in unfit:
        say(said, err=True)
    if not found or unfit or any(each.problems for each in found):
        sys.exit(1)


def _unfit(found: Sequence[FileAudit]) -> Iterator[str]:
    """Yield a line for each file and model that some examples do not fit: how many, and the costliest example."""
    for each in found:
        for name, tally in each.models.items():
            if tally.figures(each.examples).fits < 1:
                counts = {"over the window": tally.over_window, "with too many images": tally.over_images}
                counts["refused"] = tally.refused
                said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
                places = []
                if tally.worst:
                    places.append(f"the costliest is {tally.worst[0][0]} ({tally.worst[0][1]:,} tokens)")
                if tally.first_refused:
                    places.append(f"first refused {tally.first_refused}")
                yield f"{each.file}: {name}: {each.examples} examples, {said}; {'; '.join(places)}"


@click.command()
@_PATHS
@_IMAGES
@click.option("--table3", "with_paper", is_flag=True, help="Print the numbers of the paper's Table 3 too.")
@json_option("Print one JSON object for each dataset.")
@with_tasks
def stats(paths: tuple[Path, ...], images: Path | None, with_paper: bool, as_json: bool, tasks: TaskFiles) -> None:
    """Count images per example in PATHS (mean ± sd), by dataset and length, and how full the examples are."""
    target = Target(paths, images, tasks=tasks)
    found = audit_files(target, bars(is_quiet=as_json))
    builders = [file.dataset.builder for file in target.open().files if file.dataset]
    rows = table3(found, {builder.dataset: builder.spec.paper_images for builder in builders})
    if as_json:
        for row in rows:
            images_by_length = {str(length): {"mean": m, "sd": sd} for length, (m, sd) in row.images.items()}
            paper = {str(length): mean for length, mean in row.paper.items()}
            click.echo(json.dumps({"dataset": row.dataset, "images": images_by_length, "paper": paper}))
    else:
        _show_images(rows, beside_paper=with_paper)
        _show_histograms(found)
    _show_problems(found)
    if any(each.problems for each in found):
        sys.exit(1)


def _writing(
    stack: ExitStack, target: Target, asked: Sequence[ModelOptions], per_example: Path | None, items: Path | None
) -> Visit | None:
    """Return a function that writes a row for every example or unit; None if nothing is to be written."""
    if not (per_example or items):
        return None
    models = [each.open() for each in asked]
    examples = stack.enter_context(writing(per_example)) if per_example else None
    units = stack.enter_context(writing(items)) if items else None
    readers: dict[str, ItemReader] = {}

    def visit(file: PublicFile, made: Measured) -> None:
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


def _notes(models: Sequence[Model], counters: Sequence[str]) -> list[str]:
    """Return a sentence that names the models whose text another tokenizer counts; empty if there are none."""
    without = [model.name for model in models if model.text is None]
    names = ", ".join(without) if len(without) <= _NAMED else f"{len(without)} models"
    said = f"text of {names} is counted by the release's tokenizer, {' and '.join(counters)}"
    return [f"{said}; give the model's with --text-tokenizer MODEL=PATH|ID"] if without else []


def _require_bounds(asked: Sequence[ModelOptions]) -> None:
    """Refuse a check without a model, or of a model without any known limit; such a check could never find anything."""
    if not asked:
        raise click.UsageError("--check needs --models, and a --window for each")
    for each in asked:
        if each.window is None and each.open().max_images is None:
            raise click.UsageError(
                f"--check: the window of {each.name} is not known; give it with --window {each.name}=TOKENS"
            )


def _say_fit(target: Target, asked: Sequence[ModelOptions], name: str, *, is_aside: bool) -> None:
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


def show_audit(audits: Sequence[FileAudit]) -> None:
    """Print one line for each file."""
    title = "audit: n examples; fill = (prompt + reserve) / L; text and image tokens are means; bad = problems"
    rows: list[tuple[Value, ...]] = []
    for found in audits:
        fill = found.fill.figures()
        rows.append(
            (
                found.file,
                found.examples,
                *(f"{share:.4f}" for share in (fill.mean, fill.min, fill.max)),
                f"{found.text.mean:,.0f}",
                f"{found.image.mean:,.0f}",
                f"{found.images.mean:.1f} ± {found.images.deviation:.1f}",
                str(found.problems.total()),
            )
        )
    columns = ("file", "n", "fill", "min", "max", "text", "image", "images ± sd", "bad")
    print_table(Table(columns, rows, title), gap=1)


def _values(audits: Sequence[FileAudit], models: Sequence[Model]) -> Iterator[list[object]]:
    """Yield the table of an audit as rows of values; the first row has the names of the columns."""
    kinds = ("mean", "max", "over_window", "over_images", "refused")
    heads = ("file", "length", "examples", "fill_mean", "fill_min", "fill_max", "text", "image", "images", "problems")
    yield [*heads, *(f"{model.name}_{kind}" for model in models for kind in kinds)]
    for found in audits:
        fill = found.fill.figures()
        row: list[object] = [found.file, found.length, found.examples]
        row += [round(share, 6) for share in (fill.mean, fill.min, fill.max)]
        row += [round(part.mean, 3) for part in (found.text, found.image, found.images)]
        row.append(found.problems.total())
        for model in models:
            cost = found.models.get(model.name, ModelTally())
            tokens = cost.tokens
            row += [round(tokens.mean, 1), tokens.figures().max, cost.over_window, cost.over_images, cost.refused]
        yield row


def _show_models(audits: Sequence[FileAudit], models: Sequence[Model]) -> None:
    """Print mean and maximum tokens of each file on each model, what does not fit, and the costliest examples."""
    title = "tokens per example on models: mean / max; share over the window"
    counted = [found for found in audits if found.examples and found.models]
    room = screen_width() - max((len(found.file) for found in counted), default=0)
    for part in _parts(counted, models, room):
        rows = [(found.file, *(_cost(found.models[model.name]) for model in part)) for found in counted]
        print_table(Table(("file", *(model.name for model in part)), rows, title))
        title = ""
    for model in models:
        for found in counted:
            tally = found.models[model.name]
            if tally.over_window:
                worst = ", ".join(f"{id} {tokens:,}" for id, tokens in tally.worst)
                say(f"{model.name}: {found.file}: {tally.over_window:,} over {model.window:,}; the costliest: {worst}")
            if tally.over_images:
                say(
                    f"{model.name}: {found.file}: {tally.over_images:,} have up to {found.images.most:.0f} images, but "
                    f"a request may hold {model.max_images}: not applicable"
                )
            if tally.refused:
                say(f"{model.name}: {found.file}: {tally.refused:,} cannot be counted, first {tally.first_refused}")


def _parts(counted: Sequence[FileAudit], models: Sequence[Model], room: int) -> Iterator[list[Model]]:
    """Yield the models in parts whose columns fit a number of characters; each part has at least one model."""
    part: list[Model] = []
    used = 0
    for model in models:
        cells = (_cost(found.models[model.name]) for found in counted)
        width = 2 + max(map(len, (model.name, *cells)))
        if part and used + width > room:
            yield part
            part, used = [], 0
        part.append(model)
        used += width
    if part:
        yield part


def _cost(tally: ModelTally) -> str:
    if tally.over_images or not tally.tokens.n:
        return tokens_text(tally)
    over = f" {tally.over_window / (tally.tokens.n + tally.refused):.0%}" if tally.over_window else ""
    refused = f" ({tally.refused} refused)" if tally.refused else ""
    return f"{short_tokens(tally.tokens.mean)} / {short_tokens(tally.tokens.most)}{over}{refused}"


def _show_histograms(audits: Sequence[FileAudit]) -> None:
    """Print histograms of how much of their length the examples fill, and how much of each model's window."""
    rows: list[tuple[Value, ...]] = []
    for found in audits:
        if found.examples and found.length:
            scaled = [part * found.length for part in _spread(found.fill)]
            rows.append((found.file, "L", _bars(found.fills), *(f"{number:,.0f}" for number in scaled)))
            for name, tally in found.models.items():
                if any(tally.shares.counts):
                    numbers = (f"{number:,.0f}" for number in _spread(tally.tokens))
                    rows.append((found.file, name, _bars(tally.shares), *numbers))
    title = "share of L, in twentieths, then what is over; by model: share of its window"
    print_table(Table(("file", "of", "0 … 1 >", "tokens", "min", "max"), rows, title, align="lLL"))


def _spread(spread: Spread) -> list[float]:
    found = spread.figures()
    return [found.mean, found.min, found.max]


def _bars(histogram: Histogram) -> str:
    """Return a character for each bin, whose height is the bin's count divided by the largest count."""
    top = max(histogram.counts) or 1
    try:
        blocks = _BLOCKS
        blocks.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        blocks = _LETTERS
    bars = "".join(blocks[-(-count * (len(blocks) - 1) // top)] for count in histogram.counts)
    return f"|{bars[:-1]}|{bars[-1]}"


_BLOCKS, _LETTERS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
"""The characters of a histogram, from the lowest to the highest; the second set is for ASCII terminals."""


def _show_images(rows: Sequence[Table3Row], *, beside_paper: bool) -> None:
    """Print images per example, by dataset and length; with `beside_paper`, the paper's numbers are below them."""
    lengths = sorted({length for row in rows for length in row.images})
    lines: list[tuple[str, ...]] = []
    for row in rows:
        cells = (f"{row.images[at][0]:.1f} ± {row.images[at][1]:.1f}" if at in row.images else "" for at in lengths)
        lines.append((row.dataset, *cells))
        if beside_paper:
            lines.append(("  paper", *(f"{row.paper[at]:.1f}" if at in row.paper else "–" for at in lengths)))
    print_table(Table(("dataset", *map(format_length, lengths)), lines, "images per example: mean ± sd"))


def _show_problems(audits: Sequence[FileAudit]) -> None:
    """Print each kind of problem of each file, how often it occurs, and where it occurs first."""
    for found in audits:
        for kind, number in found.problems.items():
            say(f"{found.file}: {kind}: {number}×, first {found.first[kind]}", err=True)


def _show_remarks(audits: Sequence[FileAudit]) -> None:
    """Print what builders noticed about the records of each file: how many examples each remark is about, and
    how many of these have each fault.
    """
    for found in audits:
        if found.recall:
            say(f"{found.file}: pages with the answer: {said_recall(found.recall)}")
        for subject, tally in found.remarks.items():
            faults = [f"{number:,} {fault} (first {tally.first[fault]})" for fault, number in tally.faults.items()]
            say(f"{found.file}: {subject}: {tally.examples:,}, {'; '.join(faults) if faults else 'all right'}")
