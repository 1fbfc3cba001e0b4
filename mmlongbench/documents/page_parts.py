"""Splits the pages of a PDF into texts and crops of tables and figures, in reading order, and draws the crops.

Tables are those of PyMuPDF's layout network, which ships with PyMuPDF and runs without a download. Figures are its
pictures, and pictures and drawings of the page that touch or nearly touch. A page with fewer letters than useful text
has, such as a scan, is one crop of the whole page; so is a page that is a picture with little text on it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mmlongbench.documents import regions
from mmlongbench.documents.confined import confined
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import load_layout, rows_of
from mmlongbench.documents.pdf import POINTS_PER_INCH, at_page, blank_unseen, has_words, jpeg, open_pdf, readable
from mmlongbench.documents.regions import Box, Line

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf import Document, Page

WHOLE_PAGE = "page"
"""The kind of a crop that shows a whole page, because the page has no text, or is a picture with little text."""
MAX_PAINTED = 20_000
"""So many painted things of a page are looked at; further ones are left out."""
MAX_WORDS = 8_000
"""The network does not see a page with more words; it would take minutes."""
MAX_CROPS = 20
"""The most crops of a page; the largest are kept."""
_INK_DPI = 72
_REPEATED = 0.15
"""A thing that is painted at the same place on this share of the pages, and on three at least, is an ornament."""
_LITTLE_TEXT = 0.15
"""The lines of a page with little text cover at most this share of it."""
_MAX_COUNTED = 2_000
"""So many things of a page are compared with those of other pages."""
_PROSE = 0.15
"""A region of which running text covers a larger share is a box around text."""
_LEAST_LINES = 3
"""A table has at least so many pieces of text."""
_FRAME = 3
"""A frame or a coloured bar is made of at most so many painted things."""
_WHOLE_LINE = 0.95
"""A figure shows a line of text if it holds this share of the line's height; the rest is blank."""
_CUT_OFF = 1.0
"""A figure shows a line of text if at most so many points of its width are cut off; a narrow letter is wider."""
_TEXT = 1 + 2 + 64
"""Keep ligatures and white space, and leave out words outside of the page, as the text of a page does."""

_Picture: TypeAlias = tuple[Box, int, int, int]
"""The box of a picture, its width and height in pixels, and its bytes: the same for the same picture on other pages."""


@dataclass(frozen=True, slots=True)
class _Region:
    """A table or a figure of a page."""

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

    Raises:
        SourceError: the document or a page cannot be read.

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
                found = _parts(_upright(document, number), dpi, ornaments, repeated)
            yield found


@confined(is_needed=True)
def crop_pages(
    path: Path, crops: Sequence[tuple[int, Sequence[float]]], dpi: int, quality: int, limits: Limits
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """Yield (place in `crops`, (width, height), JPEG bytes) of each of `crops`: (page from 0, box in points).

    Raises:
        BuildError: a page cannot be drawn.

    """
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

    page = document.load_page(number)
    if not page.rotation:
        return page
    seen, media = page.cropbox, page.mediabox
    crop = pymupdf.Rect(seen.x0, media.y1 - seen.y1, seen.x1, media.y1 - seen.y0)
    shown = crop & media  # a crop box may be larger than the page
    is_cropped = not shown.is_empty and crop != media
    if is_cropped:
        page.set_mediabox(shown)
        document.xref_set_key(page.xref, "CropBox", _pdf_box(page.mediabox))  # not that of all pages
    page.remove_rotation()
    if is_cropped:
        document.xref_set_key(page.xref, "CropBox", _pdf_box(page.mediabox))
        page = document.reload_page(page)
    return page


def _pdf_box(box: Any) -> str:  # noqa: ANN401
    return f"[{' '.join(f'{side:.4f}' for side in box)}]"


def _parts(page: "Page", dpi: int, ornaments: frozenset[Box], repeated: frozenset[_Picture]) -> dict[str, Any]:
    whole: Box = tuple(page.rect)
    lines, pictures = _lines(page), _pictures(page)
    painted = _painted(page, pictures)
    own = [picture[0] for picture in pictures if picture not in repeated]
    if not lines and not painted:
        return {"texts": [""], "crops": []}
    if not has_words(" ".join(line.text for line in lines)) or _is_picture(lines, own, whole):
        return {"texts": ["", ""], "crops": [_crop(WHOLE_PAGE, whole, whole, dpi)]}
    background = regions.BACKGROUND * regions.area(whole)
    things = [box for box in painted if box not in ornaments and regions.area(box) < background]
    return _split(_regions(page, whole, lines, things, [box for box, *_ in pictures]), lines, whole, dpi)


def _is_picture(lines: Sequence[Line], pictures: Sequence[Box], whole: Box) -> bool:
    """Return whether pictures cover a page, and text does not: a slide that was saved as a picture, a photograph."""
    least = regions.BACKGROUND * regions.area(whole)
    return (
        sum(regions.area(line.box) for line in lines) <= _LITTLE_TEXT * regions.area(whole)
        and sum(map(regions.area, pictures)) >= least
        and any(regions.area(box) >= least for box in regions.joined(pictures, whole))
    )


def _regions(
    page: "Page", whole: Box, lines: Sequence[Line], things: Sequence[Box], images: Sequence[Box]
) -> list[_Region]:
    """Return the tables and figures of a page, from the top. The network is asked only where there may be any."""
    import numpy as np

    clusters = [box for box in regions.joined(things, whole) if regions.is_large(box, whole)]
    words = page.get_text("words")
    if len(words) > MAX_WORDS or not (clusters or sum(len(row) > 1 for row in rows_of(words)) >= _LEAST_LINES):
        return []
    layout = _layout(page)
    texts = [(kind, box) for kind, box in layout if kind != "picture"]
    kinds = (next((kind for kind, box in texts if regions.is_in(line.box, box)), "") for line in lines)
    lines = [replace(line, kind=kind) for line, kind in zip(lines, kinds, strict=True)]
    tables = _tables([box for kind, box in layout if kind == "table"], lines, things, whole)
    pictures = [box for kind, box in layout if kind == "picture"]
    photos = [box for box in images if regions.is_large(box, whole) and box in things]
    clusters = [box for box in regions.joined([*things, *pictures], whole) if regions.is_large(box, whole)]
    figures = _figures(clusters, [*pictures, *photos], tables, lines, things, whole)
    drawn = page.get_pixmap(dpi=_INK_DPI, colorspace="GRAY", alpha=False)
    pixels = np.frombuffer(drawn.samples, np.uint8).reshape(drawn.height, drawn.stride)[:, : drawn.width]
    kept = []
    for kind, boxes, least in (("table", tables, regions.LEAST_TABLE), ("figure", figures, regions.LEAST_SIDE)):
        for held in boxes:
            box = regions.trimmed(held, pixels, _INK_DPI / POINTS_PER_INCH)
            if box and regions.is_large(box, whole, least):
                kept.append(_Region(kind, regions.cut(box, whole), held))
    kept.sort(key=lambda each: (-regions.area(each.box), each.kind, each.box))
    return sorted(kept[:MAX_CROPS], key=lambda each: (each.box[1], each.box[0]))


def _tables(boxes: Sequence[Box], lines: Sequence[Line], things: Sequence[Box], whole: Box) -> list[Box]:
    """Return the boxes of tables, made whole: with every line and every painted thing whose middle is inside."""
    found = []
    for box in regions.apart(boxes):
        inside = [line.box for line in lines if regions.is_in(line.box, box)]
        if len(inside) < _LEAST_LINES or regions.is_contents(box, lines):
            continue
        wider = box[0] - 8, box[1] - 8, box[2] + 8, box[3] + 8  # a rule at the edge is inside
        inside += [each for each in things if regions.is_in(each, box) and regions.share_in(each, wider) > 0.9]
        found.append(regions.cut(regions.to_last_rule(regions.around([box, *inside]), things, lines), whole))
    return regions.apart(found)


def _figures(
    clusters: Sequence[Box],
    pictures: Sequence[Box],
    tables: Sequence[Box],
    lines: Sequence[Line],
    things: Sequence[Box],
    whole: Box,
) -> list[Box]:
    prose, found = regions.prose_blocks(lines), list[Box]()
    for box in regions.apart(clusters):
        if any(regions.share_in(box, table) > 0.3 or regions.share_in(table, box) > 0.5 for table in tables):
            continue
        if sum(regions.area(regions.cut(box, picture)) for picture in pictures) <= 0.5 * regions.area(box):
            free = None if _is_text_box(box, lines, things) else regions.without_text(box, lines, prose, _PROSE)
            if free is None or not regions.is_large(free, whole):
                continue
            box = free
        if not regions.is_logo(box, whole):
            found.append(box)
    found = [regions.with_labels(box, lines, prose, [*tables, *(o for o in found if o != box)]) for box in found]
    found = [box for box in found if regions.area(box) < regions.BACKGROUND * regions.area(whole)]
    return regions.apart(regions.panels_joined(found))


def _is_text_box(box: Box, lines: Sequence[Line], things: Sequence[Box]) -> bool:
    """Return whether a box is a frame, or some rules or colour, around text."""
    painted = sum(regions.is_in(each, box) for each in things)
    return painted <= _FRAME and any(regions.is_in(line.box, box) for line in lines)


def _split(found: Sequence[_Region], lines: Sequence[Line], whole: Box, dpi: int) -> dict[str, Any]:
    """Return the texts of a page and the crops between them. The lines that a figure shows whole are in its crop alone;
    those that it cuts and those of a table are also in the text.
    """
    figures = [each for each in found if each.kind == "figure"]
    shown = [line for line in lines if not any(_is_shown(line.box, figure) for figure in figures)]
    places = sorted(zip(regions.in_order([each.box for each in found], shown), range(len(found)), strict=True))
    texts, begun = [], 0
    for place, _ in places:
        texts.append(_text(shown[begun:place]))
        begun = place
    texts.append(_text(shown[begun:]))
    return {"texts": texts, "crops": [_crop(found[at].kind, found[at].box, whole, dpi) for _, at in places]}


def _is_shown(line: Box, figure: _Region) -> bool:
    """Return whether the crop of a figure shows a whole line of text."""
    held = figure.held
    left, right = max(line[0], held[0] - _CUT_OFF), min(line[2], held[2] + _CUT_OFF)
    height = min(line[3], held[3]) - max(line[1], held[1])
    is_whole = (left, right) == (line[0], line[2]) and height >= _WHOLE_LINE * (line[3] - line[1])
    return is_whole and regions.is_in(line, figure.box)


def _text(lines: Sequence[Line]) -> str:
    """Return the text of lines, as PyMuPDF gives the text of a page."""
    return "\n".join(line.text for line in lines).strip()


def _crop(kind: str, box: Box, whole: Box, dpi: int) -> dict[str, Any]:
    """Return a crop with corners at whole points, so that its name in the release is short. What is outside of the page
    is not drawn, as the last point of a page of 839.6 points.
    """
    import pymupdf

    corners, zoom = tuple(pymupdf.Rect(box).irect), dpi / POINTS_PER_INCH
    pixels = ((pymupdf.Rect(corners) & pymupdf.Rect(whole)) * pymupdf.Matrix(zoom, zoom)).irect
    return {"kind": kind, "box": list(corners), "size": [pixels.width, pixels.height]}


def _lines(page: "Page") -> list[Line]:
    found, blocks = [], page.get_text("dict", flags=_TEXT)["blocks"]
    blank_unseen(page, blocks)
    for number, block in enumerate(blocks):
        for line in block.get("lines", ()):
            text = readable("".join(span["text"] for span in line["spans"]))
            if text.strip():
                found.append(Line(tuple(line["bbox"]), text.rstrip(), number))
    return found


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
    whole, found = tuple(page.rect), page.get_image_info()[:MAX_PAINTED]
    boxes = (_inside([each["bbox"]], whole) for each in found)
    return [
        (box, each["width"], each["height"], each["size"])
        for each, inside in zip(found, boxes, strict=True)
        for box in inside
    ]


def _inside(boxes: Sequence[Sequence[float]], whole: Box) -> list[Box]:
    """Return boxes cut to the page, rounded; those outside of the page and those that are points are left out."""
    found = []
    for x0, y0, x1, y1 in boxes[:MAX_PAINTED]:
        x0, y0, x1, y1 = regions.cut((x0, y0, x1, y1), whole)
        if x0 <= x1 and y0 <= y1 and (x1 > x0 or y1 > y0):
            found.append((round(x0, 1), round(y0, 1), round(x1, 1), round(y1, 1)))
    return found


def _layout(page: "Page") -> list[tuple[str, Box]]:
    load_layout()
    page.get_layout()
    return [
        (str(kind), (float(x0), float(y0), float(x1), float(y1)))
        for x0, y0, x1, y1, kind in page.layout_information or ()
    ]
