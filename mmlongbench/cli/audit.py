"""The commands `audit` and `stats`: count the tokens of a release, by the benchmark's counter and on models."""

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from mmlongbench.cli.console import print_table, say, say_wrapped, screen_width
from mmlongbench.cli.options import (
    FOLDER,
    NEW_FILE,
    NEW_PATH,
    PATH,
    bars,
    fits_option,
    html_option,
    json_option,
    quiet_option,
    tokenizers_option,
    with_tasks,
    workers_option,
)
from mmlongbench.corpus.retrieval.pages import said_recall
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.export import checked_folder
from mmlongbench.lengths import STANDARD_LENGTHS, format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.audit import Target, Visit, fit, is_download
from mmlongbench.release.audit import audit as audit_files
from mmlongbench.release.cost_tables import example_row, unit_rows, writing
from mmlongbench.release.example_cost import ExampleCost, Model, models_of
from mmlongbench.release.file_audit import UNREADABLE, FileAudit, ModelTally, RemarkTally, short_tokens, tokens_text
from mmlongbench.release.items import Item, ItemReader
from mmlongbench.release.layout import DATA, LOCK
from mmlongbench.release.release import PublicFile
from mmlongbench.table import Table, Value

_PATHS = click.argument("paths", nargs=-1, required=True, type=PATH)
_IMAGES = click.option(
    "--images",
    type=FOLDER,
    help="The folder that image paths of public files are relative to; mmlb_image/ beside mmlb_data/ by default.",
)
_NAMED = 4  # how many models a note names; of more models, it says the number
_LINES = 10  # how many lines say what does not fit


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
@click.option("--count-as", "models", default="", metavar="A,B|all", help="Count on these models too.")
@fits_option
@tokenizers_option
@click.option("--per-example", type=NEW_FILE, help="Write a row for each example: .csv, .jsonl or .parquet.")
@click.option(
    "--items", type=NEW_FILE, help="Write a row for each unit, with its start token and role: .csv, .jsonl or .parquet."
)
@html_option
@click.option("--histogram", is_flag=True, help="Show how full the examples of each file are, and what they cost.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the table as CSV.")
@click.option("--check", is_flag=True, help="Exit with 1 if an example does not fit a model.")
@click.option("--shrink", is_flag=True, help="Print by how much images must shrink so that all fit.")
@click.option(
    "--cut", type=NEW_PATH, metavar="DIR", help="Write a release of the questions that fit all of these models."
)
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
    fits: tuple[str, ...],
    tokenizers: tuple[str, ...],
    per_example: Path | None,
    items: Path | None,
    html: Path | None,
    histogram: bool,
    as_csv: bool,
    check: bool,
    shrink: bool,
    cut: Path | None,
    workers: int,
    as_json: bool,
    quiet: bool,
    tasks: TaskFiles,
) -> None:
    """Count every example of PATHS again: a release, or public files of other origin, such as a download.

    Only the records and the headers of the images are used. Exits with 1 if an example is over its length or differs
    from what the build recorded, or if a file is missing, extra or changed.
    """
    counted = models_of(models, fits, tokenizers)
    _check_options(counted, {"--check": check, "--shrink": shrink, "--cut": cut}, paths[0])
    target = Target(paths, images, tokenizer, variant, builder, tasks)
    if is_download(paths[0]) and not quiet:
        say(f"{paths[0]}: no {LOCK}: its {DATA}/ is audited as public files of other origin", err=True)
    is_silent = quiet or as_json or as_csv
    with ExitStack() as stack:
        visit = _writing(stack, paths[0], counted, per_example, items)
        audits = audit_files(target, bars(is_quiet=is_silent), workers, counted, visit)
    notes = _notes(audits, counted)
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(_values(audits, counted))
    elif as_json:
        for audit in audits:
            click.echo(json.dumps(audit.line().model_dump(mode="json", exclude_unset=True)))
    elif not quiet:
        show_audit(audits)
        _show_models(audits, counted)
        _show_remarks(audits)
        if histogram:
            _show_histograms(audits)
    if not (as_csv or as_json):
        _show_problems(audits)
    for note in notes:
        say_wrapped(note, err=is_silent)
    if not audits:
        say(f"{paths[0]}: holds no public file", err=True)
    if html:
        from mmlongbench.web.audit_page import audit_page
        from mmlongbench.web.kit import write_page

        title = f"Audit of {', '.join(path.resolve().name for path in paths)}"
        write_page(html, audit_page(title, audits, counted, [*_counted(audits), *notes]))
    for model in counted if shrink else ():
        _show_shrinking(target, model, is_aside=as_json or as_csv)
    if cut:
        _cut(target, cut, audits, counted, is_silent=is_silent)
    over = list(_unfit(audits)) if check else []
    for line in over:
        say(line, err=True)
    if not audits or over or any(audit.problems for audit in audits):
        sys.exit(1)


def _check_options(models: Sequence[Model], options: Mapping[str, object], release: Path) -> None:
    option = next((name for name, given in options.items() if given), "")
    if option and not models:
        raise click.UsageError(f"{option} needs --count-as, and --fits")
    for model in models if option else ():
        if model.window is None and model.rule.max_images is None:
            raise click.UsageError(
                f"{option}: the window of {model.name} is not known; give it with --fits {model.name}=TOKENS"
            )
    if isinstance(cut := options["--cut"], Path):
        checked_folder(cut, release, "--cut")


def _counted(audits: Sequence[FileAudit]) -> list[str]:
    """Return sentences that say for which models the files were counted."""
    said = {f"counted as {audit.counted_as}": audit.counted_as for audit in audits}
    said |= {f"counted too, in `tokens.as`, as {audit.also_counted_as}": audit.also_counted_as for audit in audits}
    return [words for words, counter in said.items() if counter]


def _notes(audits: Sequence[FileAudit], models: Sequence[Model]) -> list[str]:
    """Return sentences that name the models whose tokens are not those of the model itself, and say why."""
    tallies = {model.name: [audit.models[model.name] for audit in audits if audit.models] for model in models}
    counters = " and ".join(sorted({audit.tokenizer for audit in audits} - {""}))
    inexact = [name for name, counted in tallies.items() if not all(tally.is_exact for tally in counted)]
    lacking = [model.name for model in models if model.text is None]
    doubt = ", so these are estimates" if {*inexact} & {*lacking} else ""
    by = f"by the release's tokenizer, {counters}{doubt}"
    notes = {
        f"text of % is counted {by}; give the model's with --text-tokenizer MODEL=PATH|ID": lacking,
        "tokens of % are estimates: its own tokenizer, or what it counts for an image, is not known": [
            model.name for model in models if model.name in inexact and (model.text or not model.rule.exact)
        ],
        "tokens of % are without a chat template: that of the release is another model's": [
            name for name, counted in tallies.items() if any(tally.without_template for tally in counted)
        ],
    }
    few = {said: ", ".join(names) if len(names) <= _NAMED else f"{len(names)} models" for said, names in notes.items()}
    return [said.replace("%", names) for said, names in few.items() if names]


def _unfit(audits: Sequence[FileAudit]) -> Iterator[str]:
    """Yield a line for each file and model that some examples do not fit: how many, and the costliest example."""
    for audit in audits:
        for name, tally in audit.models.items():
            if tally.figures(audit.examples).fits == 1:
                continue
            counts = {"over the window": tally.over_window, "with too many images": tally.over_images}
            counts["refused"] = tally.refused
            places = []
            if tally.worst:
                id, tokens = (tally.most_over or tally.worst)[0]
                places.append(f"the costliest is {id} ({tokens:,} tokens{' with the reserve' if tally.over else ''})")
            if tally.first_refused:
                places.append(f"first refused {tally.first_refused}")
            unfit = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
            yield f"{audit.file}: {name}: {audit.examples} examples, {unfit}; {'; '.join(places)}"


@click.command()
@_PATHS
@_IMAGES
@click.option("--table3", "with_paper", is_flag=True, help="Print the numbers of the paper's Table 3 too.")
@json_option("Print one JSON object for each dataset.")
@with_tasks
def stats(paths: tuple[Path, ...], images: Path | None, with_paper: bool, as_json: bool, tasks: TaskFiles) -> None:
    """Count images per example in PATHS (mean ± sd), by dataset and length, and how full the examples are."""
    target = Target(paths, images, tasks=tasks)
    audits = audit_files(target, bars(is_quiet=as_json))
    specs = {file.dataset.name: file.dataset.builder.spec for file in target.open().files if file.dataset}
    # (mean, standard deviation) of the images of each dataset, by length; a `.json` file has the records of another
    # file, so it is counted only if there is no other
    counted: dict[str, dict[int, tuple[float, float]]] = {}
    for audit in sorted(audits, key=lambda audit: not audit.file.endswith(".json")):
        if audit.images.n:
            counted.setdefault(audit.dataset, {})[audit.length] = (audit.images.mean, audit.images.deviation)
    papers = {
        name: dict(zip(STANDARD_LENGTHS, specs[name].paper_images if name in specs else (), strict=False))
        for name in counted
    }
    if as_json:
        for name, by_length in counted.items():
            figures = {str(length): {"mean": mean, "sd": sd} for length, (mean, sd) in by_length.items()}
            paper = {str(length): mean for length, mean in papers[name].items()}
            click.echo(json.dumps({"dataset": name, "images": figures, "paper": paper}))
    else:
        lengths = sorted({length for by_length in counted.values() for length in by_length})
        rows: list[tuple[str, ...]] = []
        for name, by_length in counted.items():
            cells = ("{:.1f} ± {:.1f}".format(*by_length[at]) if at in by_length else "" for at in lengths)
            rows.append((name, *cells))
            if with_paper:
                cells = (f"{papers[name][at]:.1f}" if at in papers[name] else "–" for at in lengths)
                rows.append(("  paper", *cells))
        print_table(Table(("dataset", *map(format_length, lengths)), rows, "images per example: mean ± sd"))
        _show_histograms(audits)
    _show_problems(audits)
    if any(audit.problems for audit in audits):
        sys.exit(1)


def _writing(
    stack: ExitStack, release: Path, models: Sequence[Model], per_example: Path | None, items: Path | None
) -> Visit | None:
    if not (per_example or items):
        return None
    add_example = stack.enter_context(writing(per_example)) if per_example else None
    add_unit = stack.enter_context(writing(items)) if items else None
    name, reader = "", None  # files come one after the other
    stack.callback(lambda: reader and reader.close())

    def visit(file: PublicFile, cost: ExampleCost) -> None:
        nonlocal name, reader
        if add_example:
            add_example(example_row(file, cost, models))
        if add_unit:
            units: Sequence[Item] = ()
            if reader is None or file.name != name:
                if reader:
                    reader.close()
                name, reader = file.name, ItemReader(release, file.name, file.length)
            with suppress(*UNREADABLE):  # the audit reports this example or file
                units = reader.of(cost.id, cost.placement)
            for row in unit_rows(file, cost, units, models):
                add_unit(row)

    return visit


def _cut(target: Target, out: Path, audits: Sequence[FileAudit], models: Sequence[Model], *, is_silent: bool) -> None:
    from mmlongbench.publishing.cutting import cut_release

    if target.variant or any(audit.problems for audit in audits):
        why = "--variant counts another form of the prompts" if target.variant else "the release has problems"
        raise ReleaseError(f"--cut {out}: nothing is written, because {why}")
    unfit = {audit.file: audit.unfit for audit in audits}
    release = target.open()
    left, before, emptied = cut_release(release, out, unfit, models, bars(is_quiet=is_silent))
    say(f"{out}: {left:,} of {before:,} examples, of the questions that fit", err=is_silent)
    names = {file.dataset.name for file in release.files if file.dataset and file not in emptied}
    gone = {file.dataset.name for file in emptied if file.dataset} - names
    if emptied:
        whole = f"{len(gone):,} of {len(gone | names):,} datasets and " if gone else ""
        whole += f"{len(emptied):,} of {len(release.files):,} files"
        say(f"{out}: nothing fits of {whole}, which are left out", err=is_silent)


def _show_shrinking(target: Target, model: Model, *, is_aside: bool) -> None:
    """Print by how much images must shrink so that every example fits the window of a model, if it is known."""
    if (tokens := model.window) is None:
        return
    factor, at, whole = fit(target, model, tokens)
    name, window = model.name, f"{tokens:,} tokens"
    if factor is None:
        said = f"no factor makes all fit {window}: with images at 0.01 of their size, {at.where} has {at.tokens:,}"
    elif factor == 1:
        said = f"all examples fit {window} as they are; the costliest ({at.where}) has {at.tokens:,}"
    else:
        said = (
            f"resize images by {factor:.2f}; the costliest example ({at.where}) then has {at.tokens:,} of "
            f"{window}; without resizing, an example has up to {whole.tokens:,}"
        )
    say_wrapped(f"{name}: {said}", err=is_aside)
    if whole.over_images:
        more = "examples have more images than a request may hold, at any size"
        say(f"{name}: {whole.over_images:,} {more}", err=is_aside)
    if refused := max(at.refused, whole.refused):
        say(f"{name}: {refused:,} examples hold an image that the model refuses: not fitted", err=is_aside)


def show_audit(audits: Sequence[FileAudit]) -> None:
    title = "audit: n examples; fill = (prompt + reserve) / L; text and image tokens are means; bad = problems"
    rows: list[tuple[Value, ...]] = []
    for audit in audits:
        fill = audit.fill.figures()
        rows.append(
            (
                audit.file,
                audit.examples,
                *(f"{share:.4f}" for share in (fill.mean, fill.min, fill.max)),
                f"{audit.text.mean:,.0f}",
                f"{audit.image.mean:,.0f}",
                f"{audit.images.mean:.1f} ± {audit.images.deviation:.1f}",
                str(audit.problems.total()),
            )
        )
    columns = ("file", "n", "fill", "min", "max", "text", "image", "images ± sd", "bad")
    print_table(Table(columns, rows, title), gap=1)


def _values(audits: Sequence[FileAudit], models: Sequence[Model]) -> Iterator[list[object]]:
    kinds = ("mean", "max", "over_window", "over_images", "refused")
    heads = ("file", "length", "examples", "fill_mean", "fill_min", "fill_max", "text", "image", "images", "problems")
    yield [*heads, *(f"{model.name}_{kind}" for model in models for kind in kinds)]
    for audit in audits:
        fill = audit.fill.figures()
        row: list[object] = [audit.file, audit.length, audit.examples]
        row += [round(share, 6) for share in (fill.mean, fill.min, fill.max)]
        row += [round(part.mean, 3) for part in (audit.text, audit.image, audit.images)]
        row.append(audit.problems.total())
        for model in models:
            tally = audit.models.get(model.name, ModelTally())
            tokens = tally.tokens.figures()
            row += [round(tokens.mean, 1), tokens.max, tally.over_window, tally.over_images, tally.refused]
        yield row


def _show_models(audits: Sequence[FileAudit], models: Sequence[Model]) -> None:
    counted = [audit for audit in audits if audit.examples and audit.models]
    costs = {model.name: [_cost(audit.models[model.name]) for audit in counted] for model in models}
    _show_beside("tokens on models, with the reserve: mean / max; share over the window", counted, costs)
    if bounded := [model for model in models if model.window is not None]:
        fit = {model.name: [f"{audit.models[model.name].fit:,}" for audit in counted] for model in bounded}
        every = {"n": [f"{audit.examples:,}" for audit in counted], "all": [f"{audit.fit_all:,}" for audit in counted]}
        title = "examples whose prompt and reserve fit the window"
        _show_beside(title, counted, every | fit)
    lines: list[str] = []
    for model in models:
        for audit in counted:
            tally, where = audit.models[model.name], f"{model.name}: {audit.file}"
            if tally.over_window:
                worst = ", ".join(f"{id} {tokens:,}" for id, tokens in tally.most_over)
                lines.append(f"{where}: {tally.over_window:,} over {model.window:,}; the costliest: {worst}")
            if tally.over_images:
                lines.append(
                    f"{where}: {tally.over_images:,} have up to {audit.images.most:.0f} images, but a request may hold "
                    f"{model.rule.max_images}: not applicable"
                )
            if tally.refused:
                lines.append(f"{where}: {tally.refused:,} cannot be counted, first {tally.first_refused}")
    for line in lines[:_LINES]:
        say_wrapped(line)
    if (more := len(lines) - _LINES) > 0:
        say(f"… and {more:,} more lines of what does not fit; --json has them all")


def _show_beside(title: str, audits: Sequence[FileAudit], columns: Mapping[str, Sequence[str]]) -> None:
    """Print tables with a line for each file, and as many columns side by side as fit the screen, at least one."""
    room = screen_width() - max((len(audit.file) for audit in audits), default=0)
    parts: list[list[str]] = []
    left = 0
    for name, cells in columns.items():
        width = 2 + max(len(name), *map(len, cells), 0)
        if not parts or width > left:
            parts.append([])
            left = room
        parts[-1].append(name)
        left -= width
    for part in parts:
        rows = [(audit.file, *(columns[name][row] for name in part)) for row, audit in enumerate(audits)]
        print_table(Table(("file", *part), rows, title))
        title = ""


def _cost(tally: ModelTally) -> str:
    if tally.over_images or not tally.tokens.n:
        return tokens_text(tally)
    over = f" {tally.over_window / (tally.tokens.n + tally.refused):.0%}" if tally.over_window else ""
    refused = f" ({tally.refused} refused)" if tally.refused else ""
    return f"{short_tokens(tally.totals.mean)} / {short_tokens(tally.totals.most)}{over}{refused}"


def _show_histograms(audits: Sequence[FileAudit]) -> None:
    rows: list[tuple[Value, ...]] = []
    for audit in audits:
        if audit.examples and audit.length:
            fill = audit.fill.figures()
            numbers = (f"{share * audit.length:,.0f}" for share in (fill.mean, fill.min, fill.max))
            rows.append((audit.file, "L", _bars(audit.fills), *numbers))
            for name, tally in audit.models.items():
                if any(tally.shares):
                    tokens = tally.tokens.figures()
                    numbers = (f"{number:,.0f}" for number in (tokens.mean, tokens.min, tokens.max))
                    rows.append((audit.file, name, _bars(tally.shares), *numbers))
    title = "share of L, in twentieths, then what is over; by model: share of its window"
    print_table(Table(("file", "of", "0 … 1 >", "tokens", "min", "max"), rows, title, align="lLL"))


def _bars(counts: Sequence[int]) -> str:
    """Return a character for each bin, whose height is the bin's count divided by the largest count."""
    blocks, top = " ▁▂▃▄▅▆▇█", max(counts) or 1
    try:
        blocks.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        blocks = " .:-=+*#@"
    bars = "".join(blocks[-(-count * (len(blocks) - 1) // top)] for count in counts)
    return f"|{bars[:-1]}|{bars[-1]}"


def _show_problems(audits: Sequence[FileAudit]) -> None:
    for audit in audits:
        for kind, number in audit.problems.items():
            say_wrapped(f"{audit.file}: {kind}: {number}×, first {audit.first[kind]}", err=True)


def _show_remarks(audits: Sequence[FileAudit]) -> None:
    for said in _counted(audits):
        say_wrapped(said)
    # files of which every example has one same fault share a line
    lines: dict[tuple[str, ...], list[tuple[FileAudit, RemarkTally]]] = {}
    for audit in audits:
        if audit.recall:
            say_wrapped(f"{audit.file}: pages with the answer: {said_recall(audit.recall)}")
        for subject, tally in audit.remarks.items():
            is_shared = [*tally.faults.values()] == [tally.examples]
            key = (subject, *tally.faults) if is_shared else (subject, "in", audit.file)
            lines.setdefault(key, []).append((audit, tally))
    for (subject, *_), files in lines.items():
        audit, first = files[0]
        examples, faults = sum(tally.examples for _, tally in files), sum((t.faults for _, t in files), Counter[str]())
        found = [f"{number:,} {fault} (first {first.first[fault]})" for fault, number in faults.items()]
        where = audit.file if len(files) == 1 else f"{len(files)} files"
        say_wrapped(f"{where}: {subject}: {examples:,}, {'; '.join(found) if found else 'all right'}")
