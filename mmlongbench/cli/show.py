"""The subcommand `show`: one example of a release as a model gets it."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from mmlongbench.cli.console import grid, print_grids, say, screen_width
from mmlongbench.cli.options import COUNT, FOLDER, NEW_FILE, number_of, with_tasks
from mmlongbench.io.printable import printable
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.release import Example, Release, open_release
from mmlongbench.release.selection import Place, find_example
from mmlongbench.release.shown_example import Block, NeedlePlace, ShownExample, ShownImage, ShownText, shown_example
from mmlongbench.web.kit import write_page
from mmlongbench.web.show_page import embedded_bytes, show_page

_RUN = 4
"""Runs of more similar units than this are folded."""
_IN_RUNS = ("unit", "user", "assistant")
_FIRST, _LAST = 2, 1
"""The units of a folded run that are shown before and after the fold."""
_NAME = 11
"""The width of the names of blocks and roles."""
_NUMBER = 7
"""The width of start tokens."""
_LEAST = 24
"""The minimum width of texts, also on a very narrow screen."""
_LINES = {"instruction": 2, "unit": 1, "user": 4, "assistant": 4}
"""The lines of a folded text, by the name of its block; a question is not folded."""
_MARKED_LINES = 3
_WIDE = 80
"""The width of texts below which a folded text has at least two lines."""
_ANSWER_LINES = 5
_AROUND = 60
"""The characters that are shown before and after a needle in a folded text."""
_STRONG, _DIM = "bold green", "dim"
_BLANKS = re.compile(r"\s+")


def _show_example(example: ShownExample, *, is_full: bool) -> None:
    """Print an example: what it is, its prompt in reading order, and the answer."""
    print_grids([_head(example), Text(), _prompt(example, is_full=is_full), Text(), _foot(example, is_full=is_full)])


def _head(example: ShownExample) -> RenderableType:
    made = grid(2)
    tokens = example.tokens
    kept = f"; {example.reserve:,} kept for the answer" if example.reserve else ""
    lines = {
        "example": f"{example.id}, {example.placement}" if example.placement else example.id,
        "file": f"{example.file} ({example.dataset}, {format_length(example.length)})",
        "tokens": f"{tokens.total:,} = {tokens.text:,} text + {tokens.image:,} images{kept}; fill {example.fill:.4f}",
        "context": _context(example),
        "needles" if len(example.needles) > 1 else "needle": "\n".join(map(_place, example.needles)),
        "evidence": _evidence(example),
        "note": "; ".join(example.notes),
    }
    for name, line in lines.items():
        if line:
            made.add_row(Text(name, _DIM), Text(safe(line)))
    return made


def _context(example: ShownExample) -> str:
    pictures = number_of(len(example.images), "image")
    if not example.units:
        return pictures
    between = f", {json.dumps(example.separator)} between them" if example.separator.strip() else ""
    return f"{number_of(len(example.units), 'unit')}{between}, {pictures}"


def _place(needle: NeedlePlace) -> str:
    achieved = "" if needle.achieved is None else f"depth {needle.achieved:.4f}"
    requested = "" if needle.requested is None else f"({needle.requested:.4g} requested)"
    start = "" if needle.start is None else f"at token {needle.start:,}"
    return " ".join(part for part in (achieved, requested, start) if part)


def _evidence(example: ShownExample) -> str:
    found = example.evidence
    if found is None:
        return ""
    numbers = ", ".join(map(str, example.evidence_pages))
    pages = f"page{'' if len(example.evidence_pages) == 1 else 's'} {numbers}" if numbers else "none"
    hidden = f"; not shown: {', '.join(map(str, example.hidden_pages))}" if example.hidden_pages else ""
    return f"{pages}{f' of {found.document}' if found.document and found.pages else ''}{hidden}"


def _prompt(example: ShownExample, *, is_full: bool) -> RenderableType:
    """Return the prompt: a row for each block or folded run, with margin, start token, role and content."""
    made = grid(1)
    width = max(_LEAST, screen_width() - 2 - _NUMBER - _NAME - 4)
    made.add_column(width=2)
    made.add_column(width=_NUMBER, justify="right")
    made.add_column(width=_NAME)
    made.add_column(width=width)
    for run in _runs(example.blocks):
        if is_full or len(run) <= _RUN:
            first, folded, last = run, [], []
        else:
            first, folded, last = run[:_FIRST], run[_FIRST:-_LAST], run[-_LAST:]
        for block in first:
            made.add_row(*_row(block, width, is_full=is_full))
        if folded:
            made.add_row(Text(), Text(), Text(_role(folded[0]), _DIM), Text(_fold_line(folded), _DIM))
        for block in last:
            made.add_row(*_row(block, width, is_full=is_full))
    return made


def _runs(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield runs of neighbouring units, or parts of a turn, that have one role and no mark; any other block is a run of
    its own.
    """
    numbered = enumerate(blocks)

    def kind(pair: tuple[int, Block]) -> tuple[object, ...]:
        number, block = pair
        is_plain = block.name in _IN_RUNS and not block.marks
        return ("run", _role(block)) if is_plain else ("one", number)

    for _, found in groupby(numbered, key=kind):
        yield [block for _, block in found]


def _fold_line(run: Sequence[Block]) -> str:
    images = sum(isinstance(piece, ShownImage) for block in run for piece in block.pieces)
    tokens = sum(block.unit.tokens for block in run if block.unit)
    parts = [f"{len(run):,} more {'units' if run[0].name == 'unit' else 'parts'}"]
    if tokens:
        parts.append(f"{tokens:,} tokens")
    if images:
        parts.append(f"{images:,} images")
    return f"… {', '.join(parts)} …"


def _role(block: Block) -> str:
    return block.unit.role if block.unit else block.name


def _row(block: Block, width: int, *, is_full: bool) -> tuple[RenderableType, ...]:
    """Return the margin, the start token, the role and the content of a block."""
    role = printable(_role(block))[:_NAME]
    style = _STRONG if block.marks else ""
    start = "" if block.start is None else f"{block.start:,}"
    lines = _MARKED_LINES if block.marks else _LINES.get(block.name, 0)
    if width < _WIDE:
        lines = max(2, lines)
    room = lines * width - (4 if lines > 1 else 0)  # lines end at words, so some room is lost
    content: list[Text] = []
    for piece in block.pieces:
        if isinstance(piece, ShownImage):
            content.append(_image_line(piece, width, is_full=is_full))
        elif piece.text.strip():
            content.append(_whole(piece) if is_full or block.name == "question" else _folded(piece, room))
    return (
        Text(">>" if block.marks else "", style),
        Text(start, _DIM),
        Text("\n".join([role, *(mark for mark in block.marks if mark != role)]), style),
        Group(*content),
    )


def _image_line(image: ShownImage, width: int, *, is_full: bool) -> Text:
    facts = f"  {image.size[0]} × {image.size[1]}  {image.tokens:,} tokens"
    path = Text(printable(image.path))
    room = width - len(facts)
    if not is_full and path.cell_len > room:
        path = Text(f"…{_end_of(path.plain, max(8, room - 1))}")
    return Text.assemble(path, (facts, _DIM))


def _end_of(text: str, cells: int) -> str:
    """Return the end of a text that fits some cells of a terminal."""
    text = text[-cells:]
    while Text(text).cell_len > cells:
        text = text[1:]
    return text


def _whole(piece: ShownText) -> Text:
    made = Text()
    for text, is_needle in piece.parts():
        made.append(f">>{safe(text)}<<" if is_needle else safe(text), _STRONG if is_needle else "")
    lines = made.split("\n")
    while lines and not lines[0].plain.strip():
        lines.pop(0)
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return Text("\n").join(lines)


def _folded(piece: ShownText, most: int) -> Text:
    """Return a text as one line of about `most` characters. The line counts what is left out, and keeps needles."""
    found = [(text, is_needle) for text, is_needle in piece.parts() if text.strip()]
    needles = sum(len(text) for text, is_needle in found if is_needle)
    room = most if len(found) == 1 else max(_AROUND, (most - needles) // len(found))
    made = Text()
    for text, is_needle in found:
        made.append(" " if made else "")
        if is_needle:
            made.append(f">>{fold(text, most)}<<", _STRONG)
        else:
            made.append(fold(text, room))
    return made


def safe(text: str) -> str:
    """Return a text of several lines that can be printed."""
    return "\n".join(map(printable, text.split("\n")))


def fold(text: str, most: int) -> str:
    """Return a text in one line that can be printed: its beginning and its end, if it has more than `most` characters.

    >>> fold("one two three four five six seven eight nine ten", 40)
    'one two three … 32 characters … ten'
    """
    line = printable(_BLANKS.sub(" ", text).strip())
    if len(line) <= most:
        return line
    room = max(8, most - len(f" … {len(line):,} characters … "))
    first, last = line[: room * 2 // 3], line[len(line) - room // 3 :]
    first = first.rsplit(" ", 1)[0] if " " in first else first  # whole words, where there are any
    last = last.split(" ", 1)[-1]
    return f"{first} … {len(line) - len(first) - len(last):,} characters … {last}"


def _foot(example: ShownExample, *, is_full: bool) -> RenderableType:
    made = grid(2)
    answer = (
        example.answer
        if isinstance(example.answer, str)
        else json.dumps(example.answer, ensure_ascii=False, default=str)
    )
    said = ShownText(answer)
    if example.question and not any(block.name == "question" for block in example.blocks):
        made.add_row(Text("question", _DIM), Text(safe(example.question)))
    room = _ANSWER_LINES * max(_LEAST, screen_width() - 10)
    made.add_row(Text("answer", _DIM), _whole(said) if is_full or len(answer) <= room else _folded(said, room))
    made.add_row(Text("metric", _DIM), Text(printable(example.metric)))
    return made


@click.command()
@click.argument("release", type=FOLDER)
@click.argument("id", required=False)
@click.option(
    "--dataset", metavar="NAME", help="The dataset of the example; by default the first dataset that has the example."
)
@click.option("--length", metavar="8K", help="The length of the example; by default the shortest one.")
@click.option(
    "--placement",
    type=float,
    metavar="NUMBER",
    help="Its depth, such as 0.2, or its permutation; by default the first.",
)
@click.option("--full", is_flag=True, help="Show all texts and all units in full.")
@click.option("--html", type=NEW_FILE, help="Write an HTML page with the images.")
@click.option("--messages", "as_messages", is_flag=True, help="Print the messages that a model is sent, as JSON.")
@click.option(
    "--images",
    metavar="FORM|URL",
    help="With --messages, how images are given: path (the default), file-url, data-uri, or the URL that serves "
    "mmlb_image/.",
)
@click.option(
    "--max-pixels",
    type=COUNT,
    help="With --messages --images data-uri, shrink images with more pixels; each is named on standard error.",
)
@with_tasks
def show(
    release: Path,
    id: str | None,
    dataset: str | None,
    length: str | None,
    placement: float | None,
    full: bool,
    html: Path | None,
    as_messages: bool,
    images: str | None,
    max_pixels: int | None,
    tasks: TaskFiles,
) -> None:
    """Show one example of RELEASE as a model gets it: the example ID, or the first one.

    Each unit of the context is shown with the tokens before it and its role. Gold passages, needles and pages with the
    answer are marked with >>. Long texts and long runs of similar units are folded.
    """
    if (images or max_pixels) and not as_messages:
        raise click.UsageError("--images and --max-pixels need --messages")
    if as_messages and (html or full):
        raise click.UsageError("--messages prints JSON alone: leave out --html and --full")
    opened = open_release(release, tasks)
    example, places = find_example(opened, id, dataset, length, placement)
    if as_messages:
        _print_messages(example, images or "path", max_pixels)
    elif html:
        _write_page(opened, example, html)
    else:
        _show_example(shown_example(opened, example), is_full=full)
        if said := _elsewhere(places, is_named=id is not None, is_placed=placement is not None):
            say(f"more of {example.id}: {said}")


def _print_messages(example: Example, images: str, max_pixels: int | None) -> None:
    made = example.messages(images, max_pixels=max_pixels)
    # the stream shows this character as an escape that JSON does not have; `dumps` leaves it as it is
    click.echo(json.dumps(made, indent=2).replace("\x7f", "\\u007f"))
    for path, (old, new) in made.shrunk.items():
        say(f"note: {path}: {old[0]} × {old[1]} made smaller, {new[0]} × {new[1]}", err=True)


def _write_page(release: Release, example: Example, path: Path) -> None:
    found = shown_example(release, example)
    is_embedded = embedded_bytes(release, found) is not None
    write_page(path, show_page(release, found))
    count = number_of(len(found.images), "image")
    said = f"with {count} inside" if is_embedded else f"refers to {count} of the release"
    say(f"{path}: written, {said}" if found.images else f"{path}: written")


def _elsewhere(places: Sequence[Place], *, is_named: bool, is_placed: bool) -> str:
    """Return the options that choose where else the question stands, or an empty text; the first place is that of the
    example.
    """
    place, said = places[0], []
    datasets = list(dict.fromkeys(each.dataset for each in places if each.dataset != place.dataset))
    if datasets and is_named:
        said.append(f"--dataset {', '.join(datasets)}")
    own = [each for each in places if each.dataset == place.dataset]
    if lengths := sorted({each.length for each in own} - {place.length}):
        said.append(f"--length {', '.join(map(format_length, lengths))}")
    same_length = (each.placement for each in own if each.length == place.length)
    others_there = sorted({each for each in same_length if each is not None} - {place.placement})
    if others_there and not is_placed:
        said.append(f"--placement {', '.join(f'{each:g}' for each in others_there)}")
    return "; ".join(said)
