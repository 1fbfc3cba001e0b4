"""The subcommand `count`: the tokens of pictures, PDFs and texts."""

import codecs
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click

from mmlongbench.cli.console import print_table, say
from mmlongbench.cli.options import json_option, number_of, tokenizers_option
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import page_sizes
from mmlongbench.documents.pixels import PICTURE_ENDINGS, header_size, unreadable
from mmlongbench.errors import Fault, MMLongBenchError, SourceError
from mmlongbench.io.files import visible_files
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import CounterSpec
from mmlongbench.release.example_cost import Model, models_of
from mmlongbench.table import Table
from tokenization import TokenizationError

MAX_FILES = 10_000  # the maximum number of files in a folder that is counted
MAX_TEXT = 256 * 1024 * 1024
"""The maximum size in bytes of all texts of a thing together, because they are in memory at once."""
_ALL_TEXT = f"at most {MAX_TEXT // 1024 // 1024} MiB of text"
_UNKNOWN = "unknown-file"
_PICTURES = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*", b"MM\0")
_NOT_OPENED = (".avif", ".heic", ".eps", ".xpm", ".ppm", ".pgm", ".pbm", ".dds", ".qoi")
"""Endings of pictures of other formats, which are named as broken pictures, not counted as texts or unknown files."""
_Content: TypeAlias = tuple[str, list[str], list[tuple[int, int]]]
"""(description, texts, sizes of images) of a thing."""


@click.command()
@click.argument("things", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--count-as", "models", default="all", show_default=True, metavar="A,B|all", help="Count on these models too."
)
@click.option(
    "--dpi", type=click.IntRange(10, 1200), default=144, show_default=True, help="The resolution of PDF pages."
)
@tokenizers_option
@json_option("Print one JSON object for each thing.")
def count(things: tuple[Path, ...], models: str, dpi: int, tokenizers: tuple[str, ...], as_json: bool) -> None:
    """Count the tokens of THINGS: pictures (from their headers alone), PDFs (their pages as images), or texts.

    A folder counts as one thing: everything in it together, also in folders below it, except hidden files. A file that
    cannot be counted is named, the others are counted, and the exit code is 1; it is 2 if nothing could be counted.
    """
    counted, progress = models_of(models, (), tokenizers), Progress()
    is_own = None in [model.text for model in counted]  # a wrong tokenizer is named before anything is counted
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    for thing in things:
        if not thing.exists():
            faults.append(f"{thing}: no such file or folder; correct the path")
            continue
        try:
            what, texts, sizes = _of_folder(thing, dpi, faults) if thing.is_dir() else _of_file(thing, dpi)
            tokens = _tokens(texts, sizes, counted, progress)
            rows.append({"thing": thing.name or str(thing), "what": what, "tokens": tokens})
        except MMLongBenchError as error:
            faults.append(str(error))
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
    elif rows:
        _show(rows, is_own=is_own)
    for fault in faults:
        say(f"not counted: {fault}" if rows else f"error: {fault}", err=True)
    if faults:
        sys.exit(1 if rows else 2)


def _show(rows: Sequence[Mapping[str, Any]], *, is_own: bool) -> None:
    lines: list[tuple[str, ...]] = []
    for model in rows[0]["tokens"]:
        cells = [row["tokens"][model] for row in rows]
        lines.append((model, *(f"{cell:,}" if isinstance(cell, int) else "refused" for cell in cells)))
    columns = ("model", *(f"{row['thing']} ({row['what']})" for row in rows))
    notes = [
        f"{row['thing']}: {model}: {cell}"
        for row in rows
        for model, cell in row["tokens"].items()
        if isinstance(cell, str)
    ]
    if is_own and any("characters" in row["what"] or " text" in row["what"] for row in rows):
        notes.append(
            "texts are counted with Llama 2 unless a model's tokenizer is given with --text-tokenizer MODEL=PATH|ID"
        )
    print_table(Table(columns, lines, "tokens", notes))


def _tokens(
    texts: Sequence[str], sizes: Sequence[tuple[int, int]], models: Sequence[Model], progress: Progress
) -> dict[str, int | str]:
    """Return the tokens of texts and images by the benchmark's counter and on each model, or why a model cannot count
    them. Equal tokenizers count once.
    """
    counter = CounterSpec().open()
    tokenizers = [counter.text, *(model.text or counter.text for model in models)]
    of_texts = dict.fromkeys(tokenizers, 0)
    with progress.bar("counting texts", len(texts) * len(of_texts)) as advance:
        for tokenizer in of_texts:
            for text in texts:
                of_texts[tokenizer] += tokenizer.count(text)
                advance()
    tokens: dict[str, int | str] = {"mmlongbench": of_texts[counter.text] + counter.count("", sizes).image}
    for model, tokenizer in zip(models, tokenizers[1:], strict=True):
        try:
            tokens[model.name] = of_texts[tokenizer] + model.rule.total(sizes)
        except TokenizationError as error:
            tokens[model.name] = str(error)
    return tokens


def _of_folder(folder: Path, dpi: int, faults: list[str]) -> _Content:
    """Read everything in a folder; what cannot be counted is added to `faults`."""
    files, size = visible_files(folder), 0
    if len(files) > MAX_FILES:
        raise _too_much(folder, f"a folder of at most {MAX_FILES:,} files", f"{len(files):,}")
    texts: list[str] = []
    sizes: list[tuple[int, int]] = []
    others = 0
    for file in files:
        try:
            _, more, images = _of_file(file, dpi)
        except SourceError as error:
            if error.fault.reason == _UNKNOWN:
                others += 1
            else:
                faults.append(str(error))
            continue
        size += file.stat().st_size if more else 0
        if size > MAX_TEXT:
            raise _too_much(folder, _ALL_TEXT, "more")
        texts += more
        sizes += images
    if not texts and not sizes and not faults:
        found, todo = f"{others} other files" if others else "none", "give a folder with such files, or one file"
        raise SourceError(
            Fault("nothing-to-count", "pictures, PDFs or texts in the folder", found, folder.name, todo=todo)
        )
    counts = {"image": len(sizes), "text": len(texts), "other file": others}
    what = ", ".join(number_of(number, kind) for kind, number in counts.items() if number)
    return f"{what}{', not counted' if others else ''}", texts, sizes


def _of_file(thing: Path, dpi: int) -> _Content:
    with thing.open("rb") as file:
        head = file.read(64)
    if head.startswith(b"%PDF-") or thing.suffix.lower() == ".pdf":
        sizes = list(page_sizes(thing, dpi, Limits()))
        return f"{len(sizes)} pages at {dpi} DPI", [], sizes
    try:
        width, height = header_size(thing)
        return f"{width} × {height}", [], [(width, height)]
    except unreadable() as error:
        if head.startswith(_PICTURES) or thing.suffix.lower() in (*PICTURE_ENDINGS, *_NOT_OPENED):
            todo = "give a picture that can be opened"
            fault = Fault("broken-image", "a picture that can be opened", str(error), thing.name, todo=todo)
            raise SourceError(fault) from error
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        if (size := thing.stat().st_size) > MAX_TEXT:
            raise _too_much(thing, _ALL_TEXT, f"{size:,} bytes")
        text = thing.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        expected = "a picture (JPEG, PNG, WebP, GIF, BMP, TIFF), a PDF or text in UTF-8"
        found, todo = f"neither, at byte {error.start}", "give a picture or a text in UTF-8"
        raise SourceError(Fault(_UNKNOWN, expected, found, thing.name, todo=todo)) from error
    return f"{len(text):,} characters", [text], []


def _too_much(thing: Path, expected: str, found: str) -> SourceError:
    todo = "count its parts, such as the folders in it"
    return SourceError(Fault("too-much-to-count", expected, found, thing.name, todo=todo))
