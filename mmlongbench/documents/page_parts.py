"""Splits the pages of a PDF into texts and crops of tables and figures, in reading order, and draws the crops.

Tables are those of PyMuPDF's layout network, which ships with PyMuPDF and runs without a download. Figures are its
pictures, and pictures and drawings of the page that touch or nearly touch. A page with fewer letters than useful text
has, such as a scan, is one crop of the whole page; so is a page that is a picture with little text on it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mmlongbench.documents.confined import confined
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import load_layout, rows_of
from mmlongbench.documents.pdf import POINTS_PER_INCH, at_page, blank_unseen, has_words, jpeg, open_pdf, readable

if TYPE_CHECKING:
    import numpy as np

    from mmlongbench.documents.mupdf import Document, Page

    Pixels: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.uint8]]

Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in points, from the top left corner of the page as it is shown."""

WHOLE_PAGE = "page"
"""The kind of a crop that shows a whole page, because the page has no text, or is a picture with little text."""
MAX_PAINTED = 20_000  # so many painted things of a page are looked at; further ones are left out
MAX_WORDS = 8_000  # the network does not see a page with more words; it would take minutes
MAX_CROPS = 20  # the most crops of a page; the largest are kept
_INK_DPI = 72
_REPEATED = 0.15
"""A thing that is painted at the same place on this share of the pages, and on three at least, is an ornament."""
_LITTLE_TEXT = 0.15  # the lines of a page with little text cover at most this share of it
_MAX_COUNTED = 2_000  # so many things of a page are compared with those of other pages
_PROSE = 0.15  # a region of which running text covers a larger share is a box around text
_LEAST_LINES = 3  # a table has at least so many pieces of text
_FRAME = 3  # a frame or a coloured bar is made of at most so many painted things
_WHOLE_LINE = 0.95
"""A figure shows a line of text if it holds this share of the line's height; the rest is blank."""
_CUT_OFF = 1.0
"""A figure shows a line of text if at most so many points of its width are cut off; a narrow letter is wider."""
_TEXT = 1 + 2 + 64
"""Keep ligatures and white space, and leave out words outside of the page, as the text of a page does."""

_CELL = 3.0  # the side of a cell of the grid on which painted things are joined, in points
_REACH = 2  # things that are at most so many cells apart belong together
LEAST_SIDE = 30.0  # a figure with a shorter side is a bullet, a rule, an icon or a logo
LEAST_SHARE = 0.008  # the least area of a figure, as a share of the page
LEAST_TABLE = 14.0  # a table with a shorter side is a line of text
_EDGE = 0.12  # so much of the height of a page, above and below, may hold logos
_LOGO = 0.03  # the most area of a logo, as a share of the page
_ROW_GAP = 14.0  # figures beside each other with a smaller gap are panels of one figure
BACKGROUND = 0.8
"""A thing that covers this share of a page is its background; a region that does is no part of the page, but all of
it."""
_LABEL_GAP = 9.0  # a label is at most so many points from what it names
_LABEL_ROUNDS = 4  # labels are added so many times: the names of bars, then the name of the axis
_PROSE_WORDS = 9  # a block of text with at least so many words a line is prose
_LONG_LINE = 5  # a line of at least so many words is seldom a label
_FREE = 0.35  # of a box around text and a figure, the figure is kept if it has this share of the height
_LISTED = 5  # the least number of lines that end in rising numbers of pages in a table of contents
_INK = 250  # a darker pixel of a rendering is ink
MARGIN = 2.0  # the blank around the ink of a region, in points
CAPTION = re.compile(r"(figure|fig\.|table|chart|exhibit|map|graph|diagram|box|plate)\s*[\dIVX]+\b", re.IGNORECASE)
_APART = ("section-header", "title", "page-header", "page-footer", "footnote")
"""The kinds of text that belong to no figure or table. The network calls labels below a chart captions, too, so a
caption is known by its words."""
_LISTING = re.compile(r"[^\W\d_]{3}[^\d$%]*\(?p?\.?\s?(\d{1,3})\)?\s*$")
"""Matches a line of a table of contents: words, and then a number that nothing but blanks or dots is between."""

_Picture: TypeAlias = tuple[Box, int, int, int]
"""The box of a picture, its width and height in pixels, and its bytes: the same for the same picture on other pages."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    box: Box
    text: str
    block: int
    """The number of its block, in the order of the page's content."""
    kind: str = ""
    """What the block that it is in is for, such as `text` or `caption`; empty if that is not known."""


@dataclass(frozen=True, slots=True)
class _Region:
    kind: str
    box: Box
    """What its crop shows."""
    held: Box
    """The box with the blank around the ink, which the crop leaves out."""


@confined()
def page_parts(path: Path, dpi: int, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield what each page has, as plain values.

    A page has `texts`, one more than crops, and `crops` between them: kind, box in points, and (width, height) in
    pixels at `dpi`.
    """
    things_on, pictures_on = Counter[Box](), Counter[_Picture]()
    with open_pdf(path, limits) as document:
        for number in range(document.page_count):
            with at_page(path, number, "a page whose drawings can be read"):
                page = _upright(document, number)
                pictures = _pictures(page)
                things_on.update(set(_painted(page, pictures)[:_MAX_COUNTED]))
                pictures_on.update(set(pictures[:_MAX_COUNTED]))
        least = max(3, _REPEATED * document.page_count)
        ornaments = frozenset(box for box, pages in things_on.items() if pages >= least)
        repeated = frozenset(picture for picture, pages in pictures_on.items() if pages >= least)
        for number in range(document.page_count):
            with at_page(path, number, "a page whose layer can be read"):
                parts = _parts(_upright(document, number), dpi, ornaments, repeated)
            yield parts


@confined(is_needed=True)
def crop_pages(
    path: Path, crops: Sequence[tuple[int, Sequence[float]]], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (place in `crops`, (width, height), JPEG bytes) of each of `crops`: (page from 0, box in points)."""
    import pymupdf

    with open_pdf(path, limits) as document:
        for place, (number, box) in enumerate(crops):
            with at_page(path, number, "a page that can be drawn"):
                size, data = jpeg(_upright(document, number), dpi, quality, pymupdf.Rect(box))
            yield place, size, data


def _upright(document: "Document", number: int) -> "Page":
    """Return a page on which the boxes of text and drawings are where they are shown, also if it is rotated.

    PyMuPDF turns the page without its crop box, so what a crop box shows becomes the whole page before.
    """
    import pymupdf

    def set_crop_box() -> None:
        sides = " ".join(f"{side:.4f}" for side in page.mediabox)
        document.xref_set_key(page.xref, "CropBox", f"[{sides}]")

    page = document.load_page(number)
    if not page.rotation:
        return page
    seen, media = page.cropbox, page.mediabox
    crop = pymupdf.Rect(seen.x0, media.y1 - seen.y1, seen.x1, media.y1 - seen.y0)
    shown = crop & media  # a crop box may be larger than the page
    is_cropped = not shown.is_empty and crop != media
    if is_cropped:
        page.set_mediabox(shown)
        set_crop_box()  # its own, not that of all pages
    page.remove_rotation()
    if is_cropped:
        set_crop_box()
        page = document.reload_page(page)
    return page


def _parts(page: "Page", dpi: int, ornaments: frozenset[Box], repeated: frozenset[_Picture]) -> dict[str, Any]:
    whole: Box = tuple(page.rect)
    lines, pictures = _lines(page), _pictures(page)
    painted = _painted(page, pictures)
    if not lines and not painted:
        return {"texts": [""], "crops": []}
    # pictures cover the page, and text does not: a slide that was saved as a picture, a photograph
    own = [picture[0] for picture in pictures if picture not in repeated]
    background = BACKGROUND * area(whole)
    is_picture = (
        sum(area(line.box) for line in lines) <= _LITTLE_TEXT * area(whole)
        and sum(map(area, own)) >= background
        and any(area(box) >= background for box in joined(own, whole))
    )
    if is_picture or not has_words(" ".join(line.text for line in lines)):
        return {"texts": ["", ""], "crops": [_crop(WHOLE_PAGE, whole, whole, dpi)]}
    things = [box for box in painted if box not in ornaments and area(box) < background]
    regions = _regions(page, whole, lines, things, [box for box, *_ in pictures])

    # lines that a figure shows whole are in its crop alone; those that it cuts, and those of tables, also in the text
    def is_shown(line: Box, figure: _Region) -> bool:
        held = figure.held
        left, right = max(line[0], held[0] - _CUT_OFF), min(line[2], held[2] + _CUT_OFF)
        height = min(line[3], held[3]) - max(line[1], held[1])
        is_whole = (left, right) == (line[0], line[2]) and height >= _WHOLE_LINE * (line[3] - line[1])
        return is_whole and is_in(line, figure.box)

    figures = [region for region in regions if region.kind == "figure"]
    left = [line for line in lines if not any(is_shown(line.box, figure) for figure in figures)]
    places = sorted(zip(in_order([region.box for region in regions], left), range(len(regions)), strict=True))
    bounds = [0, *(place for place, _ in places), len(left)]
    texts = ["\n".join(line.text for line in left[begin:end]).strip() for begin, end in pairwise(bounds)]
    return {"texts": texts, "crops": [_crop(regions[at].kind, regions[at].box, whole, dpi) for _, at in places]}


def _regions(
    page: "Page", whole: Box, lines: Sequence[Line], things: Sequence[Box], images: Sequence[Box]
) -> list[_Region]:
    """Return the tables and figures of a page, from the top. The network is asked only where there may be any."""
    import numpy as np

    clusters = [box for box in joined(things, whole) if is_large(box, whole)]
    words = page.get_text("words")
    if len(words) > MAX_WORDS or not (clusters or sum(len(row) > 1 for row in rows_of(words)) >= _LEAST_LINES):
        return []
    load_layout()
    page.get_layout()
    layout: list[tuple[str, Box]] = [
        (str(kind), (float(x0), float(y0), float(x1), float(y1)))
        for x0, y0, x1, y1, kind in page.layout_information or ()
    ]
    texts = [(kind, box) for kind, box in layout if kind != "picture"]
    kinds = (next((kind for kind, box in texts if is_in(line.box, box)), "") for line in lines)
    lines = [replace(line, kind=kind) for line, kind in zip(lines, kinds, strict=True)]
    tables = _tables([box for kind, box in layout if kind == "table"], lines, things, whole)
    pictures = [box for kind, box in layout if kind == "picture"]
    photos = [box for box in images if is_large(box, whole) and box in things]
    clusters = [box for box in joined([*things, *pictures], whole) if is_large(box, whole)]
    figures = _figures(clusters, [*pictures, *photos], tables, lines, things, whole)
    drawn = page.get_pixmap(dpi=_INK_DPI, colorspace="GRAY", alpha=False)
    pixels = np.frombuffer(drawn.samples, np.uint8).reshape(drawn.height, drawn.stride)[:, : drawn.width]
    kept = []
    for kind, boxes, least in (("table", tables, LEAST_TABLE), ("figure", figures, LEAST_SIDE)):
        for held in boxes:
            box = trimmed(held, pixels, _INK_DPI / POINTS_PER_INCH)
            if box and is_large(box, whole, least):
                kept.append(_Region(kind, cut(box, whole), held))
    kept.sort(key=lambda region: (-area(region.box), region.kind, region.box))
    return sorted(kept[:MAX_CROPS], key=lambda region: (region.box[1], region.box[0]))


def _tables(boxes: Sequence[Box], lines: Sequence[Line], things: Sequence[Box], whole: Box) -> list[Box]:
    """Return the boxes of tables, made whole: with every line and every painted thing whose middle is inside."""
    whole_tables = []
    for box in apart(boxes):
        inside = [line.box for line in lines if is_in(line.box, box)]
        if len(inside) < _LEAST_LINES or is_contents(box, lines):
            continue
        wider = box[0] - 8, box[1] - 8, box[2] + 8, box[3] + 8  # a rule at the edge is inside
        inside += [thing for thing in things if is_in(thing, box) and share_in(thing, wider) > 0.9]
        whole_tables.append(cut(to_last_rule(around([box, *inside]), things, lines), whole))
    return apart(whole_tables)


def _figures(
    clusters: Sequence[Box],
    pictures: Sequence[Box],
    tables: Sequence[Box],
    lines: Sequence[Line],
    things: Sequence[Box],
    whole: Box,
) -> list[Box]:
    prose, figures = prose_blocks(lines), list[Box]()
    for box in apart(clusters):
        if any(share_in(box, table) > 0.3 or share_in(table, box) > 0.5 for table in tables):
            continue
        if sum(area(cut(box, picture)) for picture in pictures) <= 0.5 * area(box):
            if sum(is_in(thing, box) for thing in things) <= _FRAME and any(is_in(line.box, box) for line in lines):
                continue  # a frame, or some rules or colour, around text
            free = without_text(box, lines, prose)
            if free is None or not is_large(free, whole):
                continue
            box = free
        height = whole[3] - whole[1]
        is_at_edge = box[3] <= whole[1] + _EDGE * height or box[1] >= whole[3] - _EDGE * height
        if not is_at_edge or area(box) > _LOGO * area(whole):
            figures.append(box)
    figures = [with_labels(box, lines, prose, [*tables, *(o for o in figures if o != box)]) for box in figures]
    figures = [box for box in figures if area(box) < BACKGROUND * area(whole)]
    return apart(panels_joined(figures))


def _crop(kind: str, box: Box, whole: Box, dpi: int) -> dict[str, Any]:
    """Return a crop with corners at whole points, so that its name in the release is short. What is outside of the page
    is not drawn, as the last point of a page of 839.6 points.
    """
    import pymupdf

    corners, zoom = tuple(pymupdf.Rect(box).irect), dpi / POINTS_PER_INCH
    pixels = ((pymupdf.Rect(corners) & pymupdf.Rect(whole)) * pymupdf.Matrix(zoom, zoom)).irect
    return {"kind": kind, "box": list(corners), "size": [pixels.width, pixels.height]}


def _lines(page: "Page") -> list[Line]:
    lines, blocks = [], page.get_text("dict", flags=_TEXT)["blocks"]
    blank_unseen(page, blocks)
    for number, block in enumerate(blocks):
        for line in block.get("lines", ()):
            text = readable("".join(span["text"] for span in line["spans"]))
            if text.strip():
                lines.append(Line(tuple(line["bbox"]), text.rstrip(), number))
    return lines


def _painted(page: "Page", pictures: Sequence[_Picture]) -> list[Box]:
    """Return the boxes of the pictures and drawings of a page, cut to the page; those that are nearly white, or have no
    colour, are left out.
    """
    drawn = [
        drawing["rect"]
        for drawing in page.get_cdrawings()
        if any(colour is not None and min(colour) < 0.98 for colour in (drawing.get("fill"), drawing.get("color")))
    ]
    return [*(box for box, *_ in pictures), *_inside(drawn, tuple(page.rect))][:MAX_PAINTED]


def _pictures(page: "Page") -> list[_Picture]:
    whole = tuple(page.rect)
    return [
        (box, picture["width"], picture["height"], picture["size"])
        for picture in page.get_image_info()[:MAX_PAINTED]
        for box in _inside([picture["bbox"]], whole)
    ]


def _inside(boxes: Sequence[Sequence[float]], whole: Box) -> list[Box]:
    """Return boxes cut to the page, rounded; those outside of the page and those that are points are left out."""
    inside = []
    for x0, y0, x1, y1 in boxes[:MAX_PAINTED]:
        x0, y0, x1, y1 = cut((x0, y0, x1, y1), whole)
        if x0 <= x1 and y0 <= y1 and (x1 > x0 or y1 > y0):
            inside.append((round(x0, 1), round(y0, 1), round(x1, 1), round(y1, 1)))
    return inside


# --- boxes ------------------------------------------------------------------------------------------------------------


def area(box: Box) -> float:
    """Return the area of a box; 0 if its corners are in a wrong order."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def cut(box: Box, other: Box) -> Box:
    """Return the part of a box that is in another one; it may be empty (`area`)."""
    return max(box[0], other[0]), max(box[1], other[1]), min(box[2], other[2]), min(box[3], other[3])


def around(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around some boxes."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def share_in(box: Box, other: Box) -> float:
    """Return which share of a box is in another one; a rule counts as if it had a width."""
    if area(box) < 1e-6:
        box = box[0] - 0.01, box[1] - 0.01, box[2] + 0.01, box[3] + 0.01
    return area(cut(box, other)) / area(box)


def is_in(box: Box, other: Box) -> bool:
    """Return whether the middle of a box is in another one."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return other[0] <= x <= other[2] and other[1] <= y <= other[3]


def joined(painted: Sequence[Box], page: Box) -> list[Box]:
    """Return the boxes around things that touch or nearly touch, from the top.

    The things are entered in a grid, so the time does not depend on how many pairs of them there are.
    """
    columns, rows = int(page[2] / _CELL) + 2, int(page[3] / _CELL) + 2
    grid = [bytearray(columns) for _ in range(rows)]
    for box in painted:
        x0, x1 = int(box[0] / _CELL), min(int(box[2] / _CELL) + 1, columns)
        for row in range(int(box[1] / _CELL), min(int(box[3] / _CELL) + 1, rows)):
            grid[row][x0:x1] = b"\1" * (x1 - x0)
    clusters = []
    for row in range(rows):
        column = grid[row].find(1)
        while column >= 0:
            clusters.append(_emptied(grid, row, column))
            column = grid[row].find(1)
    return [cut(box, page) for box in clusters]


def _emptied(grid: list[bytearray], row: int, column: int) -> Box:
    """Return the box around a connected part of a grid, and take this part out."""
    rows, columns = len(grid), len(grid[0])
    grid[row][column] = 0
    ahead, top, bottom, left, right = [(row, column)], row, row, column, column
    while ahead:
        y, x = ahead.pop()
        top, bottom, left, right = min(top, y), max(bottom, y), min(left, x), max(right, x)
        first, last = max(0, x - _REACH), min(columns, x + _REACH + 1)
        for near in range(max(0, y - _REACH), min(rows, y + _REACH + 1)):
            at = grid[near].find(1, first, last)
            while at >= 0:
                grid[near][at] = 0
                ahead.append((near, at))
                at = grid[near].find(1, at + 1, last)
    return left * _CELL, top * _CELL, (right + 1) * _CELL, (bottom + 1) * _CELL


def is_large(box: Box, page: Box, least: float = LEAST_SIDE) -> bool:
    """Return whether a box is large enough for a figure or, with `LEAST_TABLE`, for a table."""
    sides = box[2] - box[0], box[3] - box[1]
    return min(sides) >= least and area(box) >= LEAST_SHARE * area(page) * least / LEAST_SIDE


def prose_blocks(lines: Sequence[Line]) -> frozenset[int]:
    """Return the numbers of the blocks that are running text, captions or headings, and so no labels of a figure."""
    blocks: dict[int, list[Line]] = {}
    for line in lines:
        blocks.setdefault(line.block, []).append(line)
    prose = []
    for number, block in blocks.items():
        words = [len(line.text.split()) for line in block]
        is_long = max(words) >= _PROSE_WORDS or (len(block) >= 3 and sum(words) / len(block) >= 5)
        if is_long or CAPTION.match(block[0].text) or any(line.kind in _APART for line in block):
            prose.append(number)
    return frozenset(prose)


def with_labels(box: Box, lines: Sequence[Line], prose: frozenset[int], limit: Sequence[Box]) -> Box:
    """Return the box of a figure with the labels around it; it does not grow into the boxes of `limit`."""
    labels = [line for line in lines if line.block not in prose]
    for _ in range(_LABEL_ROUNDS):
        grown = box
        for line in labels:
            across = max(line.box[0] - box[2], box[0] - line.box[2])
            along = max(line.box[1] - box[3], box[1] - line.box[3])
            is_beside = max(across, along) <= _LABEL_GAP and min(across, along) < 0
            if is_beside and share_in(line.box, box) < 1:
                grown = around([grown, line.box])
        if grown == box or any(area(cut(grown, other)) > area(cut(box, other)) + 1 for other in limit):
            return box
        box = grown
    return box


def without_text(box: Box, lines: Sequence[Line], prose: frozenset[int]) -> Box | None:
    """Return a box, or the part of it above, below or between running text, if such text covers more than `_PROSE` of
    it; None if no large part is free of text.
    """
    running = [line for line in lines if line.block in prose or len(line.text.split()) >= _LONG_LINE]
    inside = sorted((line.box for line in running if is_in(line.box, box)), key=lambda box: box[1])
    if sum(map(area, inside)) <= _PROSE * area(box):
        return box
    free, top = [], box[1]
    for line in inside:
        free.append((line[1] - top, top, line[1]))
        top = max(top, line[3])
    free.append((box[3] - top, top, box[3]))
    height, first, last = max(free)
    return (box[0], first, box[2], last) if height >= _FREE * (box[3] - box[1]) else None


def panels_joined(boxes: Sequence[Box]) -> list[Box]:
    """Return figures with those joined that stand side by side, at the same height and close together."""
    figures: list[Box] = []
    for box in sorted(boxes):
        for left in figures:
            shared = min(left[3], box[3]) - max(left[1], box[1])
            if box[0] - left[2] <= _ROW_GAP and shared >= 0.8 * max(left[3] - left[1], box[3] - box[1]):
                figures.remove(left)
                figures.append(around([box, left]))
                break
        else:
            figures.append(box)
    return figures


def is_contents(box: Box, lines: Sequence[Line]) -> bool:
    """Return whether a table is a table of contents: its rows end in whole numbers that do not fall, and have no other
    numbers to speak of.
    """
    rows: dict[int, list[Line]] = {}
    for line in lines:
        if is_in(line.box, box):
            rows.setdefault(round((line.box[1] + line.box[3]) / 8), []).append(line)
    texts = [" ".join(line.text for line in sorted(row, key=lambda line: line.box)) for _, row in sorted(rows.items())]
    ends = [found for text in texts if (found := _LISTING.search(text))]
    numbers = [int(found[1]) for found in ends]
    return len(ends) >= max(_LISTED, len(texts) // 3) and numbers == sorted(numbers) and numbers[-1] > numbers[0]


def to_last_rule(table: Box, things: Sequence[Box], lines: Sequence[Line]) -> Box:
    """Return a table with what stands between it and the last rule of its width below, if that is more of its columns:
    its lines do not begin at the left edge of the table.
    """
    width = table[2] - table[0]
    for rule in sorted(things, key=lambda box: -box[3]):
        is_thin = min(rule[2] - rule[0], rule[3] - rule[1]) <= 2.5
        is_as_wide = rule[2] - rule[0] >= 0.8 * width and abs(rule[0] - table[0]) <= 0.1 * width
        if not (is_thin and is_as_wide and rule[1] > table[3]):
            continue
        between = [line for line in lines if table[3] <= (line.box[1] + line.box[3]) / 2 <= rule[3]]
        if between and all(
            line.box[0] >= table[0] + 0.08 * width and line.kind not in (*_APART, "caption") for line in between
        ):
            return around([table, rule])
    return table


def apart(boxes: Iterable[Box]) -> list[Box]:
    """Return boxes that do not overlap: those that do are joined to one, the largest first."""
    separate: list[Box] = []
    for box in sorted(boxes, key=lambda box: (-area(box), box)):
        while overlapping := [b for b in separate if area(cut(box, b)) > 0.1 * min(area(box), area(b))]:
            separate.remove(overlapping[0])
            box = around([box, overlapping[0]])
        separate.append(box)
    return sorted(separate, key=lambda box: (box[1], box[0]))


def trimmed(box: Box, pixels: "Pixels", zoom: float) -> Box | None:
    """Return the part of a box that holds ink, with a margin; None if it holds none.

    Args:
        box: the box, in points.
        pixels: the page in grey.
        zoom: the pixels of `pixels` per point.

    """
    import numpy as np

    x, y = int(box[0] * zoom), int(box[1] * zoom)
    inside = pixels[y : int(box[3] * zoom) + 1, x : int(box[2] * zoom) + 1] < _INK
    rows, columns = (np.flatnonzero(inside.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return None
    pixel_box = (x + int(columns[0]), y + int(rows[0]), x + int(columns[-1]) + 1, y + int(rows[-1]) + 1)
    x0, y0, x1, y1 = (side / zoom for side in pixel_box)
    return max(0.0, x0 - MARGIN), max(0.0, y0 - MARGIN), x1 + MARGIN, y1 + MARGIN


def in_order(crops: Sequence[Box], lines: Sequence[Line]) -> Iterator[int]:
    """Yield the place of each crop among the lines: it stands before the line with this number.

    A crop takes the place of the lines inside it. If there are none, it stands beside the nearest line that is above or
    below it, which is the caption of most figures.
    """
    for box in crops:
        inside = [at for at, line in enumerate(lines) if is_in(line.box, box)]
        nearest, place = float("inf"), inside[-1] + 1 if inside else len(lines)
        for at, line in () if inside else enumerate(lines):
            over, under = box[1] - line.box[3], line.box[1] - box[3]
            gap = max(over, under, 0.0) + 2 * max(0.0, line.box[0] - box[2], box[0] - line.box[2])
            if gap < nearest:
                nearest, place = gap, at if under >= over else at + 1
        yield place
