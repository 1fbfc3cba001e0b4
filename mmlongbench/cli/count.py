"""The subcommand `count`: the tokens of pictures, PDFs and texts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mmlongbench.release.models import Model


@click.command()
@click.argument("things", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--models", default="all", show_default=True, metavar="A,B|all", help="Count on these models too.")
@click.option(
    "--dpi", type=click.IntRange(10, 1200), default=144, show_default=True, help="The resolution of PDF pages."
)
@click.option(
    "--text-tokenizer", "tokenizers", multiple=True, metavar="MODEL=PATH|ID", help="The tokenizer for a model's text."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each thing.")
def count(things: tuple[Path, ...], models: str, dpi: int, tokenizers: tuple[str, ...], as_json: bool) -> None:
    """Count the tokens of THINGS: pictures (from their headers alone), PDFs (their pages as images), or texts."""
    from mmlongbench.cli.tables import show_counts
    from mmlongbench.release.models import ask

    opened = [each.open() for each in ask(models, (), tokenizers)]
    rows = [{"thing": thing.name, **_described(thing, dpi, opened)} for thing in things]
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
    what, text, sizes = _opened(thing, dpi)
    tokens: dict[str, int | str] = {"mmlongbench": counter.count(text, sizes).total}
    for model in models:
        try:
            of_text = model.text.count(text) if model.text and text else counter.text.count(text) if text else 0
            tokens[model.name] = of_text + (model.rule.total(sizes) if sizes else 0)
        except TokenizationError as error:
            tokens[model.name] = str(error)
    return {"what": what, "tokens": tokens}


def _opened(thing: Path, dpi: int) -> tuple[str, str, list[tuple[int, int]]]:
    """Return (description, text, sizes of images) of a thing."""
    from mmlongbench.documents.limits import Limits
    from mmlongbench.documents.pdf_reader import page_sizes
    from mmlongbench.documents.pixels import header_size, unreadable
    from mmlongbench.errors import Fault, SourceError

    with thing.open("rb") as file:
        head = file.read(64)
    if head.startswith(b"%PDF-") or thing.suffix.lower() == ".pdf":
        sizes = page_sizes(thing, dpi, Limits())
        return f"{len(sizes)} pages at {dpi} DPI", "", sizes
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
            raise SourceError(
                Fault(
                    "unknown-file",
                    expected,
                    f"neither, at byte {error.start}",
                    thing.name,
                    todo="give a picture or a text in UTF-8",
                )
            ) from error
        return f"{len(text):,} characters", text, []
    return f"{size[0]} × {size[1]}", "", [size]


_PICTURES = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*", b"MM\0")
_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic")
