"""The subcommand `count`: the tokens of pictures, PDFs and texts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

if TYPE_CHECKING:
    from mmlongbench.release.models import Model


@click.command()
@click.argument("things", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--models", default="all", show_default=True, metavar="A,B|all", help="Count on these models too.")
@click.option(
    "--dpi", type=click.IntRange(10, 1200), default=144, show_default=True, help="The resolution of PDF pages."
)
@click.option(
    "--text-tokenizer", "tokenizers", multiple=True, metavar="MODEL=PATH|ID", help="The tokenizer for a model's text."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each thing.")
def count(things: tuple[Path, ...], models: str, dpi: int, tokenizers: tuple[str, ...], as_json: bool) -> None:
    """Count the tokens of THINGS: pictures (from their headers alone), PDFs (their pages as images), or texts.

    A folder counts as one thing: everything in it together, also in folders below it, except hidden files.
    """
    from mmlongbench.cli.tables import show_counts
    from mmlongbench.release.models import ask

    opened = [each.open() for each in ask(models, (), tokenizers)]
    rows = [{"thing": thing.name or str(thing), **_described(thing, dpi, opened)} for thing in things]
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    show_counts(rows, [model.name for model in opened], any(model.text is None for model in opened))


def _described(thing: Path, dpi: int, models: Sequence["Model"]) -> dict[str, object]:
    """Return what a thing is (`what`), and its tokens by the benchmark's counter and on each model (`tokens`)."""
    from mmlongbench.manifest.model import CounterSpec
    from tokenization import TokenizationError

    counter = CounterSpec().open()
    what, texts, sizes = _of_folder(thing, dpi) if thing.is_dir() else _of_file(thing, dpi)
    own = sum(counter.count(text, []).total for text in texts) + (counter.count("", sizes).total if sizes else 0)
    tokens: dict[str, int | str] = {"mmlongbench": own}
    for model in models:
        try:
            of_texts = sum(map((model.text or counter.text).count, texts))
            tokens[model.name] = of_texts + (model.rule.total(sizes) if sizes else 0)
        except TokenizationError as error:
            tokens[model.name] = str(error)
    return {"what": what, "tokens": tokens}


_Opened: TypeAlias = tuple[str, list[str], list[tuple[int, int]]]
"""(description, texts, sizes of images) of a thing."""


def _of_folder(folder: Path, dpi: int) -> _Opened:
    """Open everything in a folder.

    Raises:
        SourceError: nothing in the folder can be counted, or a picture or a PDF is broken.

    """
    from mmlongbench.errors import Fault, SourceError
    from mmlongbench.io.folders import visible_files

    texts: list[str] = []
    sizes: list[tuple[int, int]] = []
    others = 0
    for file in visible_files(folder):
        try:
            _, more, images = _of_file(file, dpi)
        except SourceError as error:
            if error.fault.reason != _UNKNOWN:
                raise
            others += 1
            continue
        texts += more
        sizes += images
    if not texts and not sizes:
        found = f"{others} other files" if others else "none"
        raise SourceError(
            Fault("nothing-to-count", "pictures, PDFs or texts in the folder", found, folder.name, todo=_TODO)
        )
    counts = {"image": len(sizes), "text": len(texts), "other file": others}
    said = ", ".join(f"{number:,} {what}{'s' * (number != 1)}" for what, number in counts.items() if number)
    return f"{said}{', not counted' if others else ''}", texts, sizes


def _of_file(thing: Path, dpi: int) -> _Opened:
    from mmlongbench.documents.limits import Limits
    from mmlongbench.documents.pdf_reader import page_sizes
    from mmlongbench.documents.pixels import header_size, unreadable
    from mmlongbench.errors import Fault, SourceError

    with thing.open("rb") as file:
        head = file.read(64)
    if head.startswith(b"%PDF-") or thing.suffix.lower() == ".pdf":
        sizes = page_sizes(thing, dpi, Limits())
        return f"{len(sizes)} pages at {dpi} DPI", [], sizes
    try:
        size = header_size(thing)
    except unreadable() as error:
        if head.startswith(_PICTURES) or thing.suffix.lower() in _ENDINGS:
            raise SourceError(
                Fault(
                    "broken-image",
                    "a picture that can be opened",
                    str(error),
                    thing.name,
                    todo="give a picture that can be opened",
                )
            ) from error
        try:
            text = thing.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            expected = "a picture (JPEG, PNG, WebP, GIF, BMP, TIFF), a PDF or text in UTF-8"
            found, todo = f"neither, at byte {error.start}", "give a picture or a text in UTF-8"
            raise SourceError(Fault(_UNKNOWN, expected, found, thing.name, todo=todo)) from error
        return f"{len(text):,} characters", [text], []
    return f"{size[0]} × {size[1]}", [], [size]


_UNKNOWN = "unknown-file"
_TODO = "give a folder with such files, or one file"
_PICTURES = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*", b"MM\0")
_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic")
