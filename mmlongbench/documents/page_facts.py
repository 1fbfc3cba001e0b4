"""Says what the layer of a PDF tells about each page: its key, its text, its rows of cells, how much of it is drawn.

Nothing is decided here: what a page may be asked about is decided where questions are made.
"""

import importlib.metadata
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

from mmlongbench.documents.confined import confined
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import at_page, open_pdf, read_page

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf import Page

Word: TypeAlias = tuple[float, float, float, float, str, int, int, int]
"""A word of a page in PyMuPDF's form: x0, y0, x1, y1, the text, and three numbers: of its block, of its line, and of
the word in the line."""

VERSION = 1  # changes when the same page gives other lines
MAX_WORDS = 8_000  # a page with more words is not looked at: its tables would take minutes
MAX_DRAWINGS = 1_000
"""A page with more lines and shapes is not looked at: the network of the layout takes milliseconds for each."""
MAX_TABLES = 20  # the boxes of tables of a page that are looked at
INK_DPI = 100
CROP_DPI = 300  # the resolution of the pictures that OCR reads
CROP_MARGIN = 2.0  # the points left and right of a box that its picture shows too
_INK = 48  # the least difference between the lightest and the darkest pixel of a box that holds ink
_GAP = 0.8  # the smallest blank between two cells of a row, in heights of its words
_SAME_LINE = 0.5  # how far the middles of words of one line may be apart, in heights of the words
MAX_ROWS = 200  # maximum number of rows of a page that are kept
_NUMBER = re.compile(r"[-+(]*[$€£]?[-+(]?[\d.,]*\d[\d.,]*\s?(?:%|[kKmMbB]|bn)?\)?")
_INVISIBLE = 3  # the type of text that is not painted, as PyMuPDF's trace of texts numbers it
_BOLD = 1 << 4  # the bit of a span's flags that says that its font is bold


@confined()
def page_layers(path: Path, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield what the layer of each page has, as plain values (`questions.layer.page.RawPage` names them)."""
    load_layout()
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with at_page(path, number, "a page whose layer can be read"):
                layer = _layer(document.load_page(number))
            yield layer


def crop_makers() -> dict[str, str]:
    """Return the versions of the packages that find the tables and figures of a page, beside PyMuPDF."""
    return {name: importlib.metadata.version(name) for name in ("pymupdf_layout", "onnxruntime")}


def load_layout() -> None:
    """Import the networks, which PyMuPDF would import at its start if `mupdf` let it."""
    import pymupdf.layout  # noqa: F401  (registers itself)


def _layer(page: "Page") -> dict[str, Any]:
    import pymupdf

    # a question and its answer have letters, not ligatures
    flags = pymupdf.TEXTFLAGS_WORDS & ~pymupdf.TEXT_PRESERVE_LIGATURES
    words = [] if page.rotation else page.get_text("words", flags=flags)
    is_crowded = len(words) > MAX_WORDS or len(page.get_cdrawings()) > MAX_DRAWINGS
    layer: dict[str, Any] = {
        "size": [round(float(page.rect.width), 2), round(float(page.rect.height), 2)],
        "rotation": int(page.rotation),
        "word_count": len(words),
        "is_crowded": is_crowded,
    }
    if not words or is_crowded:
        return layer | {"words": [], "lines": [], "boxes": [], "grids": [], "rules": []}
    page.get_layout()
    boxes = page.layout_information or []
    layer |= {
        "words": _words(page, words),
        "lines": _text_lines(page),
        "boxes": [[*_rounded(box[:4]), str(box[4])] for box in boxes],
        "grids": _grids(page, [box[:4] for box in boxes if box[4] == "table"][:MAX_TABLES]),
    }
    # the horizontal rules that are drawn: x0, x1 and y of each
    drawn = (_rounded(drawing["rect"]) for drawing in page.get_drawings())
    rules = {(x0, x1, round((y0 + y1) / 2, 2)) for x0, y0, x1, y1 in drawn if y1 - y0 <= 2 and x1 - x0 >= 8}
    return layer | {"rules": [list(rule) for rule in sorted(rules)][:2000]}


def _words(page: "Page", words: Sequence[Any]) -> list[list[Any]]:
    """Return each word as x0, y0, x1, y1, text, and whether its box holds ink in the rendered page."""
    import numpy as np

    pixels = page.get_pixmap(dpi=INK_DPI, colorspace="GRAY", alpha=False)
    grey = np.frombuffer(pixels.samples, np.uint8).reshape(pixels.height, pixels.stride)[:, : pixels.width]
    zoom = INK_DPI / 72
    hidden = [span["bbox"] for span in page.get_texttrace() if span["type"] == _INVISIBLE or span["opacity"] == 0]
    marked = []
    for word in words:
        x0, y0, x1, y1 = (
            float(value) - at for value, at in zip(word[:4], (page.rect.x0, page.rect.y0) * 2, strict=True)
        )
        area = grey[max(0, int(y0 * zoom)) : int(y1 * zoom) + 1, max(0, int(x0 * zoom)) : int(x1 * zoom) + 1]
        is_seen = area.size > 0 and int(area.max()) - int(area.min()) >= _INK
        if is_seen and hidden:
            x, y = (word[0] + word[2]) / 2, (word[1] + word[3]) / 2
            is_seen = not any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for box in hidden)
        marked.append([*_rounded((x0, y0, x1, y1)), str(word[4]), bool(is_seen)])
    return marked


def _text_lines(page: "Page") -> list[list[Any]]:
    """Return each line as x0, y0, x1, y1, text, size of its largest font, and whether all of it is bold."""
    import pymupdf

    lines = []
    # no picture is decoded for its text
    flags = pymupdf.TEXTFLAGS_DICT & ~pymupdf.TEXT_PRESERVE_IMAGES & ~pymupdf.TEXT_PRESERVE_LIGATURES
    for block in page.get_text("dict", flags=flags)["blocks"]:
        for line in block.get("lines", ()):
            spans = [span for span in line["spans"] if span["text"].strip()]
            text = "".join(span["text"] for span in line["spans"]).strip()
            if spans and text and tuple(line["dir"]) == (1.0, 0.0):
                is_bold = all(span["flags"] & _BOLD or "bold" in span["font"].lower() for span in spans)
                size = max(span["size"] for span in spans)
                lines.append([*_rounded(line["bbox"]), text, round(float(size), 1), bool(is_bold)])
    return lines


def _grids(page: "Page", boxes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the grids of tables: for each, how it was found, and the box of each cell of each row (or null)."""
    if not boxes:
        return []
    tables = [("network", table) for table in page.find_tables(refine=True).tables]
    for box in boxes:
        for strategy in ("lines", "text"):
            finder = page.find_tables(clip=box, strategy=strategy, use_layout=False)
            tables += [(strategy, table) for table in finder.tables]
    return [
        {"how": how, "rows": [[_rounded(cell) if cell else None for cell in row.cells] for row in table.rows]}
        for how, table in tables
    ]


def _rounded(box: Sequence[float]) -> list[float]:
    return [round(float(value), 2) for value in box]


@confined()
def page_crops(
    path: Path, crops: Sequence[tuple[int, Sequence[Sequence[float]]]], limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (page, (number of pictures, 0), TIFF bytes) for each of `crops`: (page from 1, boxes in points).

    The TIFF has a picture for each box, grey, with a white margin, as OCR reads it best.
    """
    import pymupdf
    from PIL import Image, ImageOps

    with open_pdf(path, limits) as document:
        for number, boxes in crops:
            with at_page(path, number - 1, "a page that can be drawn"):
                page, pictures = document.load_page(number - 1), []
                x, y = page.rect.x0, page.rect.y0
                for x0, y0, x1, y1 in boxes:
                    clip = pymupdf.Rect(x0 + x - CROP_MARGIN, y0 + y - 1, x1 + x + CROP_MARGIN, y1 + y + 1) & page.rect
                    pixels = page.get_pixmap(dpi=CROP_DPI, clip=clip, colorspace="GRAY", alpha=False)
                    picture = Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)
                    pictures.append(ImageOps.expand(picture, 20, fill=255))
                tiff = io.BytesIO()
                pictures[0].save(tiff, "TIFF", save_all=True, append_images=pictures[1:])
            yield number, (len(boxes), 0), tiff.getvalue()


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What the layer of a PDF tells about one page."""

    key: str
    """A hash of the content (see `PageRead.key`); empty for a blank page."""
    text: str
    width: float
    """In points."""
    height: float
    raster: float
    """The share of the page that pictures cover, from 0 to 1."""
    drawings: int
    rows: list[list[str]]
    """The lines of the page with several cells, from the top: the texts of their cells. A line with one cell is there
    if it stands directly before such a line, because it may be a heading of a part of a table."""
    lost: str
    """Why the page is not drawn whole; empty if it is."""


@confined(lambda facts: PageFacts(**facts))
def page_facts(path: Path, limits: Limits) -> Iterator[PageFacts]:
    """Yield the facts of each page."""
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with at_page(path, number, "a page that can be read"):
                page, read = read_page(document, number)
                rows = rows_of(page.get_text("words"))
                width, height, drawings = page.rect.width, page.rect.height, len(page.get_cdrawings())
                size = round(width, 2), round(height, 2)
                whole, covered = page.rect, 0.0  # overlaps of pictures count twice
                for picture in page.get_image_info():
                    x0, y0, x1, y1 = picture["bbox"]
                    across = min(x1, whole.x1) - max(x0, whole.x0)
                    covered += max(across, 0.0) * max(min(y1, whole.y1) - max(y0, whole.y0), 0.0)
                raster = round(float(min(covered / max(width * height, 1.0), 1.0)), 4)
                facts = PageFacts(read.key, read.text, *size, raster, drawings, rows, read.lost)
            yield facts


def rows_of(words: Sequence[Word]) -> list[list[str]]:
    """Return the rows of cells among the words of a page."""
    # lines from the top, words from the left; columns of text are not told apart
    lines, line, middle = list[list[str]](), list[Word](), 0.0
    for word in sorted(words, key=lambda word: (word[1] + word[3], word[0], word[4])):
        own, height = (word[1] + word[3]) / 2, max(word[3] - word[1], 1.0)
        if line and own - middle > _SAME_LINE * height:
            lines.append(_cells(line))
            line = []
        middle = own if not line else middle
        line.append(word)
    lines += [_cells(line)] if line else []
    kept = [line for at, line in enumerate(lines) if len(line) > 1 or (at + 1 < len(lines) and len(lines[at + 1]) > 1)]
    return kept[:MAX_ROWS]


def _cells(line: Sequence[Word]) -> list[str]:
    """Return the texts of a line's cells: a wide blank ends a cell."""
    gap = _GAP * median(word[3] - word[1] for word in line)
    cells: list[list[str]] = []
    end = float("-inf")
    for word in sorted(line, key=lambda word: (word[0], word[4])):
        if not cells or word[0] - end > gap:
            cells.append([])
        cells[-1].append(word[4])
        end = word[2]
    return [" ".join(cell) for cell in cells]


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is a number.

    >>> [is_number(cell) for cell in ("1,066", "$ 12.5", "(3.1)%", "2019", "12 of 40", "Total")]
    [True, True, True, True, False, False]
    """
    return bool(_NUMBER.fullmatch(cell.replace(" ", "").rstrip("%)")))
