"""Says what the layer of a PDF tells about each page: its key, its text, its rows of cells, how much of it is drawn.

Nothing is decided here; `mmlongbench.questions.writing.kinds` has the rules.
"""

import importlib.metadata
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
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

VERSION = 1
"""Changes when the same page gives other lines."""
MAX_WORDS = 8_000
"""A page with more words is not looked at: its tables would take minutes."""
MAX_DRAWINGS = 1_000
"""A page with more lines and shapes is not looked at: the network of the layout takes milliseconds for each."""
MAX_TABLES = 20
"""At most so many boxes of tables of a page are looked at."""
INK_DPI = 100
"""The resolution at which ink is looked for."""
CROP_DPI = 300
"""The resolution of the pictures that OCR reads."""
CROP_MARGIN = 2.0
"""The points left and right of a box that its picture shows too."""
_INK = 48
"""The least difference between the lightest and the darkest pixel of a box that holds ink."""
_INVISIBLE = 3
"""The type of text that is not painted, as PyMuPDF's trace of texts numbers it."""
_BOLD = 1 << 4
"""The bit of a span's flags that says that its font is bold."""


@confined()
def page_layers(path: Path, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield what the layer of each page has, as plain values (`questions.layer.page.PageLayer` names them).

    Raises:
        SourceError: the document or a page cannot be read.

    """
    load_layout()
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with at_page(path, number, "a page whose layer can be read"):
                found = _layer(document.load_page(number))
            yield found


def crop_makers() -> dict[str, str]:
    """Return the versions of the packages that find the tables and figures of a page, beside PyMuPDF."""
    return {name: importlib.metadata.version(name) for name in ("pymupdf_layout", "onnxruntime")}


def load_layout() -> None:
    """Import the networks, which PyMuPDF would import at its start if `mupdf` let it."""
    import pymupdf.layout  # noqa: F401  (registers itself)


def _layer(page: "Page") -> dict[str, Any]:
    import pymupdf

    flags = pymupdf.TEXTFLAGS_WORDS & ~pymupdf.TEXT_PRESERVE_LIGATURES  # a question and its answer have letters
    words = [] if page.rotation else page.get_text("words", flags=flags)
    is_crowded = len(words) > MAX_WORDS or len(page.get_cdrawings()) > MAX_DRAWINGS
    found: dict[str, Any] = {
        "size": [round(float(page.rect.width), 2), round(float(page.rect.height), 2)],
        "rotation": int(page.rotation),
        "word_count": len(words),
        "is_crowded": is_crowded,
        "words": [],
        "lines": [],
        "boxes": [],
        "grids": [],
        "rules": [],
    }
    if not words or is_crowded:
        return found
    page.get_layout()
    boxes = page.layout_information or []
    found["words"] = _words(page, words)
    found["lines"] = _text_lines(page)
    found["boxes"] = [[*_rounded(box[:4]), str(box[4])] for box in boxes]
    found["grids"] = _grids(page, boxes)
    found["rules"] = _rules(page)
    return found


def _words(page: "Page", words: Sequence[Any]) -> list[list[Any]]:
    """Return each word as x0, y0, x1, y1, text, and whether its box holds ink in the rendered page."""
    import numpy as np

    pixels = page.get_pixmap(dpi=INK_DPI, colorspace="GRAY", alpha=False)
    grey = np.frombuffer(pixels.samples, np.uint8).reshape(pixels.height, pixels.stride)[:, : pixels.width]
    zoom = INK_DPI / 72
    hidden = [span["bbox"] for span in page.get_texttrace() if span["type"] == _INVISIBLE or span["opacity"] == 0]
    found = []
    for word in words:
        x0, y0, x1, y1 = (
            float(value) - at for value, at in zip(word[:4], (page.rect.x0, page.rect.y0) * 2, strict=True)
        )
        area = grey[max(0, int(y0 * zoom)) : int(y1 * zoom) + 1, max(0, int(x0 * zoom)) : int(x1 * zoom) + 1]
        is_seen = area.size > 0 and int(area.max()) - int(area.min()) >= _INK
        if is_seen and hidden:
            x, y = (word[0] + word[2]) / 2, (word[1] + word[3]) / 2
            is_seen = not any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for box in hidden)
        found.append([*_rounded((x0, y0, x1, y1)), str(word[4]), bool(is_seen)])
    return found


def _text_lines(page: "Page") -> list[list[Any]]:
    """Return each line as x0, y0, x1, y1, text, size of its largest font, and whether all of it is bold."""
    import pymupdf

    found = []
    # no picture is decoded for its text
    flags = pymupdf.TEXTFLAGS_DICT & ~pymupdf.TEXT_PRESERVE_IMAGES & ~pymupdf.TEXT_PRESERVE_LIGATURES
    for block in page.get_text("dict", flags=flags)["blocks"]:
        for line in block.get("lines", ()):
            spans = [span for span in line["spans"] if span["text"].strip()]
            text = "".join(span["text"] for span in line["spans"]).strip()
            if spans and text and tuple(line["dir"]) == (1.0, 0.0):
                is_bold = all(span["flags"] & _BOLD or "bold" in span["font"].lower() for span in spans)
                size = max(span["size"] for span in spans)
                found.append([*_rounded(line["bbox"]), text, round(float(size), 1), bool(is_bold)])
    return found


def _grids(page: "Page", boxes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the grids of tables: for each, how it was found, and the box of each cell of each row (or null)."""
    tables = [box for box in boxes if box[4] == "table"][:MAX_TABLES]
    if not tables:
        return []
    found = [("network", table) for table in page.find_tables(refine=True).tables]
    for box in tables:
        for strategy in ("lines", "text"):
            finder = page.find_tables(clip=box[:4], strategy=strategy, use_layout=False)
            found += [(strategy, table) for table in finder.tables]
    return [
        {"how": how, "rows": [[_rounded(cell) if cell else None for cell in row.cells] for row in table.rows]}
        for how, table in found
    ]


def _rules(page: "Page") -> list[list[float]]:
    """Return the horizontal rules that are drawn: x0, x1 and y of each."""
    found = set()
    for drawing in page.get_drawings():
        x0, y0, x1, y1 = _rounded(drawing["rect"])
        if y1 - y0 <= 2 and x1 - x0 >= 8:
            found.add((x0, x1, round((y0 + y1) / 2, 2)))
    return [list(each) for each in sorted(found)][:2000]


def _rounded(box: Sequence[float]) -> list[float]:
    return [round(float(value), 2) for value in box]


@confined()
def page_crops(
    path: Path, crops: Sequence[tuple[int, Sequence[Sequence[float]]]], limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (page, (number of pictures, 0), TIFF bytes) for each of `crops`: (page from 1, boxes in points).

    The TIFF has a picture for each box, grey, with a white margin, as OCR reads it best.

    Raises:
        SourceError: the document or a page cannot be read.

    """
    with open_pdf(path, limits) as document:
        for number, boxes in crops:
            with at_page(path, number - 1, "a page that can be drawn"):
                data = _tiff(document.load_page(number - 1), boxes)
            yield number, (len(boxes), 0), data


def _tiff(page: "Page", boxes: Sequence[Sequence[float]]) -> bytes:
    import pymupdf
    from PIL import Image, ImageOps

    pictures = []
    for x0, y0, x1, y1 in boxes:
        x, y = page.rect.x0, page.rect.y0
        clip = pymupdf.Rect(x0 + x - CROP_MARGIN, y0 + y - 1, x1 + x + CROP_MARGIN, y1 + y + 1) & page.rect
        pixels = page.get_pixmap(dpi=CROP_DPI, clip=clip, colorspace="GRAY", alpha=False)
        picture = Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)
        pictures.append(ImageOps.expand(picture, 20, fill=255))
    buffer = io.BytesIO()
    pictures[0].save(buffer, "TIFF", save_all=True, append_images=pictures[1:])
    return buffer.getvalue()


_GAP = 0.8
"""The smallest blank between two cells of a row, in heights of its words."""
_SAME_LINE = 0.5
"""How far the middles of words of one line may be apart, in heights of the words."""
MAX_ROWS = 200
"""The maximum number of rows of a page that are kept."""
_NUMBER = re.compile(r"[-+(]*[$€£]?[-+(]?[\d.,]*\d[\d.,]*\s?(?:%|[kKmMbB]|bn)?\)?")


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
    """How many lines and shapes are drawn."""
    rows: list[list[str]]
    """The lines of the page with several cells, from the top: the texts of their cells. A line with one cell is there
    if it stands directly before such a line, because it may be a heading of a part of a table."""
    lost: str
    """Why the page is not drawn whole; empty if it is."""


@confined()
def page_facts(path: Path, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield the facts of each page, as plain values.

    Raises:
        SourceError: the document or a page cannot be read.

    """
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with at_page(path, number, "a page that can be read"):
                page, read = read_page(document, number)
                rows = rows_of(page.get_text("words"))
                width, height, drawings = page.rect.width, page.rect.height, len(page.get_cdrawings())
                size = round(width, 2), round(height, 2)
                facts = PageFacts(read.key, read.text, *size, _raster(page), drawings, rows, read.lost)
            yield asdict(facts)


def _raster(page: "Page") -> float:
    """Return the share of a page under pictures; each is clipped to the page, and overlaps count twice, up to 1."""
    whole = page.rect
    area = max(whole.width * whole.height, 1.0)
    covered = 0.0
    for each in page.get_image_info():
        x0, y0, x1, y1 = each["bbox"]
        width = min(x1, whole.x1) - max(x0, whole.x0)
        height = min(y1, whole.y1) - max(y0, whole.y0)
        covered += max(width, 0.0) * max(height, 0.0)
    return round(float(min(covered / area, 1.0)), 4)


def rows_of(words: Sequence[Word]) -> list[list[str]]:
    """Return the rows of cells among the words of a page."""
    lines = [_cells(line) for line in _lines(words)]
    kept = [line for at, line in enumerate(lines) if len(line) > 1 or (at + 1 < len(lines) and len(lines[at + 1]) > 1)]
    return kept[:MAX_ROWS]


def _lines(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield the words of each line of a page, from the top and from the left; columns of text are not told apart."""
    line: list[Word] = []
    middle = 0.0
    for word in sorted(words, key=lambda each: (each[1] + each[3], each[0], each[4])):
        own, height = (word[1] + word[3]) / 2, max(word[3] - word[1], 1.0)
        if line and own - middle > _SAME_LINE * height:
            yield sorted(line, key=lambda each: (each[0], each[4]))
            line = []
        middle = own if not line else middle
        line.append(word)
    if line:
        yield sorted(line, key=lambda each: (each[0], each[4]))


def _cells(line: Sequence[Word]) -> list[str]:
    """Return the texts of a line's cells: a wide blank ends a cell."""
    gap = _GAP * median(word[3] - word[1] for word in line)
    cells: list[list[str]] = []
    end = float("-inf")
    for word in line:
        if not cells or word[0] - end > gap:
            cells.append([])
        cells[-1].append(word[4])
        end = word[2]
    return [" ".join(cell) for cell in cells]


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is a number.

    >>> [is_number(each) for each in ("1,066", "$ 12.5", "(3.1)%", "2019", "12 of 40", "Total")]
    [True, True, True, True, False, False]
    """
    return bool(_NUMBER.fullmatch(cell.replace(" ", "").rstrip("%)")))
