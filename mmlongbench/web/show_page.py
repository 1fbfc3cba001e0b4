"""One example as an HTML page: its tokens to scale, its prompt in reading order with every image in its place, and the
answer. The page asks no network for anything; it holds the images, or refers to the files of the release.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from mmlongbench.lengths import format_length
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.release.shown_example import Block, ShownExample, ShownImage, ShownText
from mmlongbench.web.kit import Section, render

MAX_EMBEDDED = 64 * 1024**2
"""The maximum bytes of image files that a page holds; beyond it, the page refers to the files of the release."""
_FOLDED = 280
"""A text with more characters is folded, unless it is marked, or belongs to the instruction or the question."""
_BESIDE = 80
"""The characters that a unit with an image may have to stand beside others."""
_BEGINNING = 160
"""The characters of a folded text that are shown."""
_ROLES = ("own", "padding", "negative", "exemplar", "gold", "needle")
"""The roles that have a colour of their own."""


class Segment(NamedTuple):
    """A part of the bar of tokens, in percent of the length."""

    left: float
    width: float
    look: str
    """The role as a class of the stylesheet."""
    title: str
    """What it is, with its tokens."""
    anchor: str = ""
    """The block of the prompt that this part of the bar stands for; empty if there is none."""
    marks: tuple[str, ...] = ()


def show_page(release: Release, example: ShownExample, most_embedded: int = MAX_EMBEDDED) -> Iterator[str]:
    """Yield the page of an example in pieces; it holds at most `most_embedded` bytes of image files."""
    is_embedded = embedded_bytes(release, example, most_embedded) is not None
    answer = example.answer
    looks = {look(block): block.unit.role for block in example.blocks if block.unit}
    return render(
        "show.html",
        title=f"{example.id}, {example.placement}" if example.placement else example.id,
        sections=[Section("tokens", "Tokens"), Section("prompt", "Prompt"), Section("answer", "Answer")],
        example=example,
        length=format_length(example.length),
        is_embedded=is_embedded,
        most_embedded=most_embedded,
        url=release.image_urls("data-uri" if is_embedded else "file-url"),
        segments=list(segments(example)),
        looks=[("frame", "instruction and question"), *looks.items(), ("reserve", "kept free for the answer")],
        look=look,
        is_picture=_is_picture,
        id_of=_id_of,
        beginning=_beginning,
        spans=_spans,
        answer=answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str),
    )


def embedded_bytes(release: Release, example: ShownExample, most: int = MAX_EMBEDDED) -> int | None:
    """Return the bytes of the image files of an example; None if a page does not hold them, because there are too many
    bytes.
    """
    size = sum((release.path / IMAGES / image.path).stat().st_size for image in example.images)
    return size if size <= most else None


def segments(example: ShownExample) -> Iterator[Segment]:
    """Yield the bar of tokens: each block of the prompt, then the tokens kept free; nothing if places are not known."""
    if any(block.start is None for block in example.blocks):
        return
    total, length = example.tokens.total, max(example.length, example.tokens.total + example.reserve)
    starts = [block.start or 0 for block in example.blocks]
    for number, (block, start, after) in enumerate(zip(example.blocks, starts, [*starts[1:], total], strict=True)):
        share = block.unit.tokens if block.unit else max(0, after - start)
        name = f"{block.unit.role} {block.label or block.unit.id}" if block.unit else block.name
        left, width = round(100 * start / length, 4), round(100 * share / length, 4)
        title = f"{name}: {share:,} tokens from {start:,}"
        yield Segment(left, width, look(block), title, f"block-{number}", block.marks)
    if kept := example.reserve:
        title = f"kept free for the answer: {kept:,} tokens from {total:,}"
        yield Segment(round(100 * total / length, 4), round(100 * kept / length, 4), "reserve", title)


def look(block: Block) -> str:
    """Return the class of a block in the stylesheet."""
    if block.unit is None:
        return "frame" if block.name != "unit" else "other"
    return block.unit.role if block.unit.role in _ROLES else "other"


def _is_picture(block: Block) -> bool:
    """Return whether a block is a unit with one image and little text, and no turns; such blocks stand side by side."""
    if any(piece.speaker for piece in block.pieces):
        return False
    texts = sum(len(piece.text) for piece in block.pieces if isinstance(piece, ShownText))
    return block.name == "unit" and texts <= _BESIDE and any(isinstance(piece, ShownImage) for piece in block.pieces)


def _id_of(block: Block) -> str:
    """Return the id of a unit; empty if the path of its image shows it."""
    paths = [piece.path for piece in block.pieces if isinstance(piece, ShownImage)]
    return block.unit.id if block.unit and not any(block.unit.id in path for path in paths) else ""


def _beginning(block: Block, piece: ShownText) -> str:
    """Return the beginning of a text that is folded, in one line; empty if it is not folded."""
    if len(piece.text) <= _FOLDED or block.marks or block.name in ("instruction", "question"):
        return ""
    return " ".join(piece.text[: 4 * _BEGINNING].split())[:_BEGINNING] or "…"


def _spans(piece: ShownText) -> list[tuple[str, bool]]:
    """Return the parts of a text without the newlines at its ends: (text, whether it is a needle)."""
    parts = list(piece.parts())
    if parts:
        parts[0] = (parts[0][0].lstrip("\n"), parts[0][1])
        parts[-1] = (parts[-1][0].rstrip("\n"), parts[-1][1])
    return [(text, is_needle) for text, is_needle in parts if text]
