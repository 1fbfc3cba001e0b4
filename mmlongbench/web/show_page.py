"""One example as an HTML page: its tokens to scale, its prompt in reading order with every image in its place, and the
answer. The page asks no network for anything; it holds the images, or refers to the files of the release.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from mmlongbench.lengths import format_length
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.release.shown_example import Block, Piece, ShownExample, ShownImage, ShownText
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


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the bar of tokens, in percent of the length."""

    left: float
    width: float
    look: str
    """The role as a class of the stylesheet."""
    title: str
    """What it is, with its tokens."""
    anchor: str
    """The block of the prompt that this part of the bar stands for; empty if there is none."""
    marks: tuple[str, ...] = ()


def show_page(release: Release, example: ShownExample, most_embedded: int = MAX_EMBEDDED) -> Iterator[str]:
    """Yield the page of an example in pieces.

    Args:
        release: the release of the example.
        example: the example.
        most_embedded: the maximum bytes of image files that the page holds.

    Raises:
        ReleaseError: an image is missing or broken.

    """
    is_embedded = embedded_bytes(release, example, most_embedded) is not None
    placed = f", {example.placement}" if example.placement else ""
    answer = example.answer
    return render(
        "show.html",
        title=f"{example.id}{placed}",
        sections=[Section("tokens", "Tokens"), Section("prompt", "Prompt"), Section("answer", "Answer")],
        example=example,
        length=format_length(example.length),
        is_embedded=is_embedded,
        most_embedded=most_embedded,
        url=release.image_urls("data-uri" if is_embedded else "file-url"),
        segments=list(segments(example)),
        looks=_looks(example),
        look=look,
        is_image=is_image,
        is_picture=is_picture,
        names_image=names_image,
        is_folded=is_folded,
        beginning=beginning,
        spans=spans,
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

    def segment(start: int, end: int, look: str, title: str, anchor: str, marks: tuple[str, ...] = ()) -> Segment:
        share = max(0, end - start)
        left, width = (round(100 * part / length, 4) for part in (start, share))
        return Segment(left, width, look, f"{title}: {share:,} tokens from {start:,}", anchor, marks)

    starts = [block.start or 0 for block in example.blocks]
    for number, (block, start, after) in enumerate(zip(example.blocks, starts, [*starts[1:], total], strict=True)):
        end = start + block.unit.tokens if block.unit else after
        title = f"{block.unit.role} {block.unit.id}" if block.unit else block.name
        yield segment(start, end, look(block), title, f"block-{number}", block.marks)
    if example.reserve:
        yield segment(total, total + example.reserve, "reserve", "kept free for the answer", "")


def look(block: Block) -> str:
    """Return the class of a block in the stylesheet."""
    if block.unit is None:
        return "frame" if block.name != "unit" else "other"
    return block.unit.role if block.unit.role in _ROLES else "other"


def _looks(example: ShownExample) -> list[tuple[str, str]]:
    """Return (class, name) of each colour in the bar, in order."""
    found = {look(block): block.unit.role for block in example.blocks if block.unit}
    return [("frame", "instruction and question"), *found.items(), ("reserve", "kept free for the answer")]


def is_image(piece: Piece) -> bool:
    """Return whether a piece is an image."""
    return isinstance(piece, ShownImage)


def is_picture(block: Block) -> bool:
    """Return whether a block is a unit with one image and little text; such blocks stand side by side."""
    texts = sum(len(piece.text) for piece in block.pieces if isinstance(piece, ShownText))
    return block.name == "unit" and texts <= _BESIDE and any(map(is_image, block.pieces))


def names_image(block: Block) -> bool:
    """Return whether the id of a unit is a part of the path of its image, so that it need not be shown."""
    paths = [piece.path for piece in block.pieces if isinstance(piece, ShownImage)]
    return block.unit is not None and any(block.unit.id in path for path in paths)


def is_folded(block: Block, piece: ShownText) -> bool:
    """Return whether a text is folded."""
    return len(piece.text) > _FOLDED and not block.marks and block.name not in ("instruction", "question")


def beginning(text: str) -> str:
    """Return the beginning of a text in one line.

    >>> beginning("one  two")
    'one two'
    """
    return " ".join(text[: 4 * _BEGINNING].split())[:_BEGINNING]


def spans(piece: ShownText) -> list[tuple[str, bool]]:
    """Return the parts of a text without the newlines at its ends: (text, whether it is a needle).

    >>> spans(ShownText("a needle here", ((2, 8),)))
    [('a ', False), ('needle', True), (' here', False)]
    """
    parts = list(piece.parts())
    if parts:
        parts[0] = (parts[0][0].lstrip("\n"), parts[0][1])
        parts[-1] = (parts[-1][0].rstrip("\n"), parts[-1][1])
    return [(text, is_needle) for text, is_needle in parts if text]
