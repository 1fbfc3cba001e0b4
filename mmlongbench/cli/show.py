"""The subcommand `show`: one example of a release as a model gets it."""

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from mmlongbench.cli.console import grid, print_grids, say, screen_width
from mmlongbench.cli.options import COUNT, FOLDER, NEW_FILE, number_of, variant_option, with_tasks
from mmlongbench.io.printable import printable
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.release import open_release
from mmlongbench.release.selection import Place, find_example
from mmlongbench.release.shown_example import Block, ShownExample, ShownImage, ShownText, shown_example
from mmlongbench.web.kit import write_page
from mmlongbench.web.show_page import embedded_bytes, show_page

_RUN = 4  # runs of more similar units than this are folded
_IN_RUNS = ("unit", "user", "assistant")
_FIRST, _LAST = 2, 1  # the units of a folded run that are shown before and after the fold
_NAME = 11  # the width of the names of blocks and roles
_LABEL = 20  # the maximum width of labels, which stand below the roles
_NUMBER = 7  # the width of start tokens
_LEAST = 24  # the minimum width of texts, also on a very narrow screen
_LINES = {"instruction": 2, "unit": 1, "user": 4, "assistant": 4}
"""The lines of a folded text, by the name of its block; a question is not folded."""
_MARKED_LINES = 3
_WIDE = 80  # the width of texts below which a folded text has at least two lines
_ANSWER_LINES = 5
_AROUND = 60  # the characters that are shown before and after a needle in a folded text
_STRONG, _DIM = "bold green", "dim"


def _head(example: ShownExample) -> RenderableType:
    tokens = example.tokens
    kept = f"; {example.reserve:,} kept for the answer" if example.reserve else ""
    context = number_of(len(example.images), "image")
    if example.units:
        between = f", {json.dumps(example.separator)} between them" if example.separator.strip() else ""
        context = f"{number_of(len(example.units), 'unit')}{between}, {context}"
    if example.turns > 1:
        context += f", {example.turns_said}"
    places = []
    for needle in example.needles:
        achieved = "" if needle.achieved is None else f"depth {needle.achieved:.4f}"
        requested = "" if needle.requested is None else f"({needle.requested:.4g} requested)"
        start = "" if needle.start is None else f"at token {needle.start:,}"
        places.append(" ".join(part for part in (achieved, requested, start) if part))
    evidence = ""
    if example.evidence:
        pages, hidden = example.evidence_pages, example.hidden_pages
        evidence = f"page{'' if len(pages) == 1 else 's'} {', '.join(map(str, pages))}" if pages else "none"
        evidence += f" of {example.evidence.document}" if example.evidence.document and example.evidence.pages else ""
        evidence += f"; not shown: {', '.join(map(str, hidden))}" if hidden else ""
    lines = {
        "example": f"{example.id}, {example.placement}" if example.placement else example.id,
        "file": f"{example.file} ({example.dataset}, {format_length(example.length)})",
        "tokens": f"{tokens.total:,} = {tokens.text:,} text + {tokens.image:,} images{kept}; fill {example.fill:.4f}",
        "context": context,
        "needles" if len(places) > 1 else "needle": "\n".join(places),
        "evidence": evidence,
        "counted": f"as {example.counted_as}" if example.counted_as else "",
        "variant": example.variant,
        "note": "; ".join(example.notes),
    }
    head = grid(2)
    for name, line in lines.items():
        if line:
            head.add_row(Text(name, _DIM), Text(safe(line)))
    return head


def _prompt(example: ShownExample, *, is_full: bool) -> RenderableType:
    prompt = grid(1)
    name_width = min(_LABEL, max([_NAME, *(Text(printable(block.label)).cell_len for block in example.blocks)]))
    width = max(_LEAST, screen_width() - 2 - _NUMBER - name_width - 4)
    prompt.add_column(width=2)
    prompt.add_column(width=_NUMBER, justify="right")
    prompt.add_column(width=name_width)
    prompt.add_column(width=width)

    def kind(numbered: tuple[int, Block]) -> tuple[str | int, ...]:
        # neighbouring units, or parts of a turn, that have one role and no mark are a run; another block is its own
        number, block = numbered
        return ("run", _role(block)) if block.name in _IN_RUNS and not block.marks else ("block", number)

    for _, numbered in groupby(enumerate(example.blocks), key=kind):
        run = [block for _, block in numbered]
        folded = [] if is_full or len(run) <= _RUN else run[_FIRST:-_LAST]
        for number, block in enumerate(run):
            if number == _FIRST and folded:
                images = sum(isinstance(piece, ShownImage) for block in folded for piece in block.pieces)
                tokens = sum(block.unit.tokens for block in folded if block.unit)
                line = f"{len(folded):,} more {'units' if block.name == 'unit' else 'parts'}"
                line += f", {tokens:,} tokens" if tokens else ""
                line += f", {images:,} images" if images else ""
                prompt.add_row(Text(), Text(), Text(_role(block), _DIM), Text(f"… {line} …", _DIM))
            if not _FIRST <= number < _FIRST + len(folded):
                prompt.add_row(*_row(block, width, is_full=is_full))
    return prompt


def _role(block: Block) -> str:
    return block.unit.role if block.unit else block.name


def _row(block: Block, width: int, *, is_full: bool) -> tuple[RenderableType, ...]:
    role = printable(_role(block))[:_NAME]
    style = _STRONG if block.marks else ""
    start = "" if block.start is None else f"{block.start:,}"
    lines = _MARKED_LINES if block.marks else _LINES.get(block.name, 0)
    if width < _WIDE:
        lines = max(2, lines)
    room = lines * width - (4 if lines > 1 else 0)  # lines end at words, so some room is lost
    content: list[Text] = []
    for piece in block.pieces:
        speaker = (f"{piece.speaker}: " if piece.speaker else "", _DIM)
        if isinstance(piece, ShownImage):
            facts = f"  {piece.size[0]} × {piece.size[1]}  {piece.tokens:,} tokens"
            path = Text(printable(piece.path))
            if not is_full and path.cell_len > width - len(facts):  # the end of a path says more than its beginning
                cells = max(8, width - len(facts) - 1)
                path = Text(path.plain[-cells:])
                while path.cell_len > cells:
                    path = path[1:]
                path = Text("…") + path
            content.append(Text.assemble(speaker, path, (facts, _DIM)))
        elif piece.text.strip():
            text = _whole(piece) if is_full or block.name == "question" else _folded(piece, room)
            content.append(Text.assemble(speaker, text))
    names = [Text(name, style) for name in (role, *(mark for mark in block.marks if mark != role))]
    if block.label:
        names.append(Text(printable(block.label), "italic"))
        names[-1].truncate(2 * _LABEL if block.marks else _LABEL, overflow="ellipsis")
    return (
        Text(">>" if block.marks else "", style),
        Text(start, _DIM),
        Text("\n").join(names),
        Group(*content),
    )


def _whole(piece: ShownText) -> Text:
    """Return a text with its needles marked, without blank lines around it."""
    text = Text()
    for part, is_needle in piece.parts():
        text.append(f">>{safe(part)}<<" if is_needle else safe(part), _STRONG if is_needle else "")
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if line.plain.strip()]
    return Text("\n").join(lines[filled[0] : filled[-1] + 1] if filled else ())


def _folded(piece: ShownText, most: int) -> Text:
    """Return a text as one line of about `most` characters. The line counts what is left out, and keeps needles."""
    parts = [(part, is_needle) for part, is_needle in piece.parts() if part.strip()]
    needles = sum(len(part) for part, is_needle in parts if is_needle)
    room = most if len(parts) == 1 else max(_AROUND, (most - needles) // len(parts))
    line = Text()
    for part, is_needle in parts:
        line.append(" " if line else "")
        line.append(f">>{fold(part, most)}<<" if is_needle else fold(part, room), _STRONG if is_needle else "")
    return line


def safe(text: str) -> str:
    """Return a text of several lines that can be printed."""
    return "\n".join(map(printable, text.split("\n")))


def fold(text: str, most: int) -> str:
    """Return a text in one line that can be printed: its beginning and its end, if it has more than `most` characters.

    >>> fold("one two three four five six seven eight nine ten", 40)
    'one two three … 32 characters … ten'
    """
    line = printable(" ".join(text.split()))
    if len(line) <= most:
        return line
    room = max(8, most - len(f" … {len(line):,} characters … "))
    first, last = line[: room * 2 // 3], line[len(line) - room // 3 :]
    first = first.rsplit(" ", 1)[0] if " " in first else first  # whole words, where there are any
    last = last.split(" ", 1)[-1]
    return f"{first} … {len(line) - len(first) - len(last):,} characters … {last}"


def _foot(example: ShownExample, *, is_full: bool) -> RenderableType:
    foot, answer = grid(2), example.answer
    text = ShownText(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str))
    if example.question and not any(block.name == "question" for block in example.blocks):
        foot.add_row(Text("question", _DIM), Text(safe(example.question)))
    room = _ANSWER_LINES * max(_LEAST, screen_width() - 10)
    is_whole = is_full or len(text.text) <= room
    foot.add_row(Text("answer", _DIM), _whole(text) if is_whole else _folded(text, room))
    foot.add_row(Text("metric", _DIM), Text(printable(example.metric)))
    return foot


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
@variant_option("Show another form of the prompt that its task offers, such as oracle (visual RAG).")
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
    variant: str,
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
    opened = open_release(release, tasks, variant)
    example, places = find_example(opened, id, dataset, length, placement)
    if as_messages:
        messages = example.messages(images or "path", max_pixels=max_pixels)
        # the stream shows this character as an escape that JSON does not have; `dumps` leaves it as it is
        click.echo(json.dumps(messages, indent=2).replace("\x7f", "\\u007f"))
        for path, (old, new) in messages.shrunk.items():
            say(f"note: {path}: {old[0]} × {old[1]} made smaller, {new[0]} × {new[1]}", err=True)
        return
    shown = shown_example(opened, example)
    if html:
        is_embedded = embedded_bytes(opened, shown) is not None
        write_page(html, show_page(opened, shown))
        count = number_of(len(shown.images), "image")
        about = f", with {count} inside" if is_embedded else f", refers to {count} of the release"
        say(f"{html}: written{about if shown.images else ''}")
        return
    print_grids([_head(shown), Text(), _prompt(shown, is_full=full), Text(), _foot(shown, is_full=full)])
    if more := _elsewhere(places, is_named=id is not None, is_placed=placement is not None):
        say(f"more of {example.id}: {more}")


def _elsewhere(places: Sequence[Place], *, is_named: bool, is_placed: bool) -> str:
    place, options = places[0], []
    own = [other for other in places if other.dataset == place.dataset]
    datasets = list(dict.fromkeys(other.dataset for other in places if other.dataset != place.dataset))
    if datasets and is_named:
        options.append(f"--dataset {', '.join(datasets)}")
    if lengths := sorted({other.length for other in own} - {place.length}):
        options.append(f"--length {', '.join(map(format_length, lengths))}")
    placements = {other.placement for other in own if other.length == place.length and other.placement is not None}
    if (others := sorted(placements - {place.placement})) and not is_placed:
        options.append(f"--placement {', '.join(f'{placement:g}' for placement in others)}")
    return "; ".join(options)
