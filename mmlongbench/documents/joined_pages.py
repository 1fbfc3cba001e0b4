"""Joins consecutive pages of a document to one image: rows of pages on white, read like text.

The layout depends on the sizes of the pages alone, so the size of a joined image is known before any page is drawn.
"""

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

MAX_JOINED_PIXELS = 12_845_056
"""The pixels of a joined image at most, if a manifest sets no other number: the count of the benchmark shrinks larger
images to so many (16,384 tokens), and so do the models it is made for."""
MAX_JOINED_SIDE = 16_384

Size: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class JoinPages:
    """How the pages of each document are joined."""

    images: int
    """Into how many images at most. Each image but the last shows the same number of pages."""
    pixels: int = MAX_JOINED_PIXELS
    """The most pixels of an image. Pages are shrunk until they fit."""

    def groups(self, pages: int) -> list[range]:
        """Return the places of the pages that each image shows.

        >>> JoinPages(5).groups(12)
        [range(0, 3), range(3, 6), range(6, 9), range(9, 12)]
        """
        together = max(1, math.ceil(pages / self.images))
        return [range(first, min(first + together, pages)) for first in range(0, pages, together)]

    def file_name(self, document: str, number: int) -> str:
        """Return the file name of an image in the release; it differs from those of pages and of other joins."""
        return f"{document}_joined{self.images}-{self.pixels}_page{number}.jpg"


def layout(sizes: Sequence[Size], most: int) -> tuple[Size, list[tuple[int, int, int, int]]]:
    """Return the size of a joined image of at most `most` pixels, and the x, y, width and height of each page in it:
    pages stand in rows of equal cells, as near to a square as their number allows.

    A cell is as large as the largest page. A page that is smaller stands in the upper left corner of its cell.

    >>> layout([(100, 140)] * 3, 10_000_000)[0]
    (200, 280)
    """
    width, height = max(size[0] for size in sizes), max(size[1] for size in sizes)

    def elongation(columns: int) -> float:
        """Return how far an image is from a square, with the cells that stay empty."""
        rows = math.ceil(len(sizes) / columns)
        sides = columns * width, rows * height
        return max(sides) / min(sides) * (columns * rows / len(sizes))

    columns = min(range(1, len(sizes) + 1), key=elongation)
    rows = math.ceil(len(sizes) / columns)
    whole = columns * width, rows * height
    scale = min(1.0, math.sqrt(most / (whole[0] * whole[1])), MAX_JOINED_SIDE / max(whole))
    cell = max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
    boxes = []
    for place, (wide, high) in enumerate(sizes):
        x, y = place % columns * cell[0], place // columns * cell[1]
        boxes.append((x, y, max(1, math.floor(wide * scale)), max(1, math.floor(high * scale))))
    return (columns * cell[0], rows * cell[1]), boxes


def join(pages: Iterator[bytes], sizes: Sequence[Size], most: int, quality: int) -> tuple[Size, bytes]:
    """Return the (width, height) and the JPEG bytes of a joined image; one page is in memory at a time."""
    from PIL import Image

    (size, boxes), buffer = layout(sizes, most), io.BytesIO()
    whole = Image.new("RGB", size, "white")
    for data, (x, y, width, height) in zip(pages, boxes, strict=True):
        with Image.open(io.BytesIO(data)) as page:
            shown = page.convert("RGB")
        shown = shown if shown.size == (width, height) else shown.resize((width, height), Image.Resampling.LANCZOS)
        whole.paste(shown, (x, y))
    whole.save(buffer, "JPEG", quality=quality)
    return size, buffer.getvalue()
