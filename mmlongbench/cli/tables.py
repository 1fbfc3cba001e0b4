"""Prints tables of what was built, counted and installed."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmlongbench.building.build import Built
from mmlongbench.cli.console import Table, can_print, plain, print_table, say, screen_width
from mmlongbench.corpus.retrieval.pages import said_recall
from mmlongbench.exports.registry import InstalledTarget
from mmlongbench.lengths import format_length
from mmlongbench.manifest.plugins import GROUPS, Plugin
from mmlongbench.release.figures import FileAudit, Histogram, ModelTally, Spread, Table3Row, short_tokens, tokens_text
from mmlongbench.release.layout import REJECTS
from mmlongbench.release.lock import CellCounts, QuestionCounts, RetrievalCounts
from mmlongbench.release.measuring import Model

_FILE = 8
"""The minimum width in characters of the name of a file; a longer name is folded if there is no room."""


def show_build(built: Built, tasks: Iterable[Path] = ()) -> None:
    """Print the questions read, kept and rejected by reason, and the examples of each length.

    An audit of the release needs the task files in `tasks`.
    """
    for name, data in built.lock.readable.items():
        counts = data.questions
        table = Table(
            "length",
            "examples",
            "rejected at this length",
            "ran out of units",
            title=plain(name),
            title_justify="left",
        )
        for length, cell in data.cells.items():
            table.add_row(length, f"{cell.examples:,}", f"{cell.rejected:,}", f"{cell.ran_dry:,}")
        print_table(table)
        say(f"questions: {counts.read} read, {counts.kept} kept, {counts.not_sampled} not sampled")
        _say_cells(data.cells)
        for length in (length for length, cell in data.cells.items() if not cell.examples and counts.kept):
            say(f"  no file at {length}: no question fits it")
        _say_reasons(counts)
        if data.corpus and data.corpus.wikidata_ids is None:
            say("  warning: the corpus was built before Wikidata ids were kept: articles are joined by title alone;")
            say("  to join by the ids, build the corpus again into a new folder (`mmlongbench corpus build`)")
        for dpi, number in data.documents.images_by_dpi.items():
            say(f"  warning: {number} documents are images rendered at {dpi} DPI by their source, not at the usual 144")
        for document, pages in data.documents.damaged.items():
            (page, why), more = next(iter(pages.items())), f" and {len(pages) - 1:,} more" if len(pages) > 1 else ""
            say(f"  warning: {document}, page {page}{more}: not drawn whole ({why}); no padding, no evidence")
        if hidden := data.documents.hidden_text:
            say(f"  text that cannot be seen is left out: {said_notes(hidden)} (pages by document)")
        for document, fault in data.documents.refused.items():
            say(f"  document {document} refused: {fault}")
    if not any(cell.examples for data in built.lock.readable.values() for cell in data.cells.values()):
        say(f"{built.out} has no example: no question was kept; {REJECTS} there says why")
        return
    state = "was complete already" if built.was_complete else "is complete"
    given = "".join(f" --task {shlex.quote(str(_near(task)))}" for task in dict.fromkeys(tasks))
    say(f"{built.out} {state}; `mmlongbench audit {shlex.quote(str(built.out))}{given}` counts it again")


def _near(path: Path) -> Path:
    """Return a path relative to the current folder, if it lies there."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def show_shortfalls(built: Built) -> None:
    """Print on standard error which datasets lost many questions, why, and the first of these questions."""
    for lost in built.shortfalls:
        say(f"warning: {lost.dataset}: kept {lost.kept:,} of {lost.of:,} questions", err=True)
        for reason, number in lost.rejected.items():
            say(f"  rejected {number:,}: {reason}", err=True)
        for each in lost.first:
            say(f"  {each}", err=True)
        say(f"  {built.out}/{REJECTS} lists all with what to do; --min-kept SHARE stops such a build", err=True)


def said_notes(noted: Mapping[str, int]) -> str:
    """Return counted notes as one line; what several notes begin with is said once.

    >>> said_notes({"joined by title": 2, "not joined": 1, "answer read as List": 3, "answer read as Float": 4})
    'joined by title: 2, not joined: 1, answer read as List: 3, Float: 4'
    """
    said, before = list[str](), ""
    for note, number in noted.items():
        start, _, last = note.rpartition(" ")
        said.append(f"{last if start == before and start else note}: {number:,}")
        before = start
    return ", ".join(said)


def said_retrieval(found: RetrievalCounts) -> str:
    """Return what a retriever of pages found, as one line."""
    missing = found.gold_pages - found.ranked_gold_pages
    left = f"; {missing:,} of {found.gold_pages:,} not ranked" if missing else ""
    said = f"{said_recall(found.recall)} over {found.questions:,} questions"
    return f"pages with the answer, ranked by {found.by}: {said}{left}"


def _say_reasons(counts: QuestionCounts) -> None:
    """Print why rows were rejected, skipped or repaired, and the notes of drafts."""
    for reason, number in counts.rejected.items():
        say(f"  rejected {number}: {reason}")
    for reason, number in counts.skipped.items():
        say(f"  skipped {number}: {reason} (nothing is wrong: the benchmark leaves these rows out)")
    for repair, number in counts.repaired.items():
        say(f"  repaired {number}: {repair}")
    if counts.noted:
        say(f"  {said_notes(counts.noted)}")
    if counts.retrieval:
        say(f"  {said_retrieval(counts.retrieval)}")


def _say_cells(cells: Mapping[str, CellCounts]) -> None:
    """Print for each length what was missing or left out, and how often values occur that should be equally common."""
    for length, cell in cells.items():
        if cell.missing_units:
            said = f"up to {cell.missing_units:,} units are missing"
            say(f"  {length}: the sources were exhausted before the length was full: {said}; no unit is repeated")
        if cell.missing_classes:
            said = f"{cell.missing_classes:,} classes fewer than the table has"
            say(f"  {length}: {said}; the sources hold no more in both splits")
        for reason, number in cell.left_out.items():
            say(f"  {length}: excluded, with the next unit taken instead: {number:,} × {reason}")
        for field, counts in cell.balances.items():
            said = ", ".join(f"{value} {number:,}" for value, number in counts.items())
            say(f"  {length}: {field}: {said}")


def show_audit(audits: list[FileAudit]) -> None:
    """Print one line for each file."""
    columns = ("n", "fill", "min", "max", "text", "image", "images ± sd", "bad")
    table = Table(
        title="audit: n examples; fill = (prompt + reserve) / L; text and image tokens are means; bad = problems",
        title_justify="left",
        box=None,
    )
    table.padding, table.pad_edge = (0, 1, 0, 0), False
    table.add_column("file", overflow="fold", min_width=_FILE)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for found in audits:
        fill = found.fill.figures()
        table.add_row(
            found.file,
            f"{found.examples:,}",
            *(f"{share:.4f}" for share in (fill.mean, fill.min, fill.max)),
            f"{found.text.mean:,.0f}",
            f"{found.image.mean:,.0f}",
            f"{found.images.mean:.1f} ± {found.images.deviation:.1f}",
            str(found.problems.total()),
        )
    print_table(table, max((len(found.file) - _FILE for found in audits), default=0))


_HEADS = ("file", "length", "examples", "fill_mean", "fill_min", "fill_max", "text", "image", "images", "problems")


def audit_rows(audits: list[FileAudit], models: Sequence[Model]) -> Iterator[list[object]]:
    """Yield the table of an audit as rows of values; the first row has the names of the columns."""
    kinds = ("mean", "max", "over_window", "over_images", "refused")
    yield [*_HEADS, *(f"{model.name}_{kind}" for model in models for kind in kinds)]
    for found in audits:
        fill = found.fill.figures()
        costs = [found.models.get(model.name, ModelTally()) for model in models]
        yield [
            found.file,
            found.length,
            found.examples,
            *(round(share, 6) for share in (fill.mean, fill.min, fill.max)),
            *(round(part.mean, 3) for part in (found.text, found.image, found.images)),
            found.problems.total(),
            *(
                value
                for cost in costs
                for value in (
                    round(cost.tokens.mean, 1),
                    cost.tokens.figures().max,
                    cost.over_window,
                    cost.over_images,
                    cost.refused,
                )
            ),
        ]


def show_models(audits: list[FileAudit], models: Sequence[Model]) -> None:
    """Print mean and maximum tokens of each file on each model, what does not fit, and the costliest examples."""
    if not models:
        return
    title = "tokens per example on models: mean / max; share over the window"
    counted = [found for found in audits if found.examples and found.models]
    files = max((len(found.file) for found in counted), default=0)
    for part in _parts(counted, models, screen_width() - files):
        table = Table(title=title, title_justify="left", box=None)
        table.padding, table.pad_edge = (0, 2, 0, 0), False
        table.add_column("file", overflow="fold", min_width=_FILE)
        for model in part:
            table.add_column(plain(model.name), justify="right", no_wrap=True)
        for found in counted:
            table.add_row(found.file, *(_cost(found.models[model.name]) for model in part))
        print_table(table, max((len(found.file) - _FILE for found in audits), default=0))
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


def show_histograms(audits: list[FileAudit]) -> None:
    """Print histograms of how much of their length the examples fill, and how much of each model's window."""
    title = "share of L, in twentieths, then what is over; by model: share of its window"
    table = Table(title=title, title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    table.add_column("file", overflow="fold", min_width=_FILE)
    table.add_column("of", no_wrap=True)
    table.add_column("0 … 1 >", no_wrap=True)
    for column in ("tokens", "min", "max"):
        table.add_column(column, justify="right", no_wrap=True)
    for found in (found for found in audits if found.examples and found.length):
        shown = [("L", found.fills, [part * found.length for part in _spread(found.fill)])]
        bounded = ((name, tally) for name, tally in found.models.items() if any(tally.shares.counts))
        shown += [(name, tally.shares, _spread(tally.tokens)) for name, tally in bounded]
        for name, histogram, numbers in shown:
            table.add_row(found.file, name, _bars(histogram), *(f"{number:,.0f}" for number in numbers))
    print_table(table, max((len(found.file) - _FILE for found in audits), default=0))


def _spread(spread: Spread) -> list[float]:
    found = spread.figures()
    return [found.mean, found.min, found.max]


def _bars(histogram: Histogram) -> str:
    """Return a character for each bin, whose height is the bin's count divided by the largest count."""
    top = max(histogram.counts) or 1
    blocks = _BLOCKS if can_print(_BLOCKS) else _LETTERS
    bars = "".join(blocks[-(-count * (len(blocks) - 1) // top)] for count in histogram.counts)
    return f"|{bars[:-1]}|{bars[-1]}"


_BLOCKS, _LETTERS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
"""The characters of a histogram, from the lowest to the highest; the second set is for ASCII terminals."""


def show_table3(rows: Sequence[Table3Row], *, beside_paper: bool) -> None:
    """Print images per example, by dataset and length; with `beside_paper`, the paper's numbers are below them."""
    lengths = sorted({length for row in rows for length in row.images})
    table = Table(title="images per example: mean ± sd", title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    table.add_column("dataset", no_wrap=True)
    for length in lengths:
        table.add_column(format_length(length), justify="right", no_wrap=True)
    for row in rows:
        cells = (f"{row.images[at][0]:.1f} ± {row.images[at][1]:.1f}" if at in row.images else "" for at in lengths)
        table.add_row(row.dataset, *cells)
        if beside_paper:
            table.add_row("  paper", *(f"{row.paper[at]:.1f}" if at in row.paper else "–" for at in lengths))
    print_table(table)


def show_counts(rows: Sequence[Mapping[str, Any]], models: Sequence[str], is_own: bool) -> None:
    """Print the tokens of each thing on each model."""
    table = Table(title="tokens", title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    table.add_column("model", no_wrap=True)
    for row in rows:
        table.add_column(plain(f"{row['thing']} ({row['what']})"), justify="right", no_wrap=True)
    for model in dict.fromkeys(("mmlongbench", *models)):
        cells = [row["tokens"][model] for row in rows]
        table.add_row(model, *(f"{cell:,}" if isinstance(cell, int) else "refused" for cell in cells))
    print_table(table)
    for row in rows:
        for model, cell in row["tokens"].items():
            if isinstance(cell, str):
                say(f"{row['thing']}: {model}: {cell}")
    if is_own and any("characters" in row["what"] or " text" in row["what"] for row in rows):
        say("texts are counted with Llama 2 unless a model's tokenizer is given with --text-tokenizer MODEL=PATH|ID")


def show_problems(audits: list[FileAudit]) -> None:
    """Print each kind of problem of each file, how often it occurs, and where it occurs first."""
    for found in audits:
        for kind, number in found.problems.items():
            say(f"{found.file}: {kind}: {number}×, first {found.first[kind]}", err=True)


def show_remarks(audits: list[FileAudit]) -> None:
    """Print what builders noticed about the records of each file: how many examples each remark is about, and
    how many of these have each fault.
    """
    for found in audits:
        if found.recall:
            say(f"{found.file}: pages with the answer: {said_recall(found.recall)}")
        for subject, tally in found.remarks.items():
            faults = [f"{number:,} {fault} (first {tally.first[fault]})" for fault, number in tally.faults.items()]
            say(f"{found.file}: {subject}: {tally.examples:,}, {'; '.join(faults) if faults else 'all right'}")


def show_list(plugins: list[Plugin], targets: list[InstalledTarget], manifests: Mapping[str, Path]) -> None:
    """Print the builders, readers, samples, metrics, targets of `export` and manifests."""
    for kind in GROUPS:
        say(f"{kind}s")
        for plugin in plugins:
            if plugin.kind == kind:
                profiles = f" [{', '.join(plugin.profiles)}]" if plugin.profiles else ""
                said = f"BROKEN: {plugin.problem}" if plugin.problem else f"{plugin.summary}{profiles}"
                say(f"  {plugin.name:<18} {said} ({plugin.origin})")
    say("targets of export")
    for target in targets:
        said = f"BROKEN: {target.problem}" if target.problem else target.summary
        say(f"  {target.name:<18} {said} ({target.origin})")
    say("manifests")
    for name, path in sorted(manifests.items()):
        first = path.read_text("utf-8").splitlines()[0]
        say(f"  {name:<18} {first.removeprefix('#').strip()}")
