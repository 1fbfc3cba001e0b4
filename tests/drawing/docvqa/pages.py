"""Draws the pages of one report of the sample: the title, the contents, running text with exhibits, slides.

This module decides where things are on a page; the module `prose` decides what the texts say. The bytes are the same
every time.
"""

from collections.abc import Iterator

import pymupdf

from mmlongbench.task import Draws
from tests.drawing.docvqa.exhibits import EXHIBITS, GREY, LEADING, WHITE, Box, Pen, line_width
from tests.drawing.docvqa.prose import Leaf, Report, first_body_page, plan_leaves, write_paragraphs

SIZES = {"letter": (612.0, 792.0), "a4": (595.0, 842.0), "slide": (720.0, 540.0)}
MARGIN = 64.0


def draw_exhibit(pen: Pen, leaf: Leaf, box: Box) -> float:
    """Draw the leaf's exhibit under its caption, and return the y below both."""
    if leaf.exhibit is None:
        return box.y0
    y = box.y0 + 4
    if leaf.exhibit.form != "box":
        caption = pen.wrap(leaf.label + leaf.exhibit.text, box.width, pen.size * 0.94, True)
        y = pen.write(box.x0, y, caption, pen.size * 0.94, True, pen.accent) + 5
    y += 12 if leaf.exhibit.form in ("bars", "line") else 0
    return EXHIBITS[leaf.exhibit.form](pen, leaf.exhibit, Box(box.x0, y, box.x1, box.y1)) + 14


def fill_text(pen: Pen, box: Box, paragraphs: Iterator[list[str]], most: int) -> float:
    """Write up to `most` paragraphs, and return the y below them. A paragraph that does not fit loses its last
    sentences until it fits. If it then has only its first sentence, neither it nor a later paragraph is written.
    """
    y = box.y0
    for _, sentences in zip(range(most), paragraphs, strict=False):
        room = int((box.y1 - y) / (pen.size * LEADING))
        whole = len(sentences)
        while len(lines := pen.wrap(" ".join(sentences), box.width)) > room and len(sentences) > 1:
            sentences = sentences[:-1]
        if len(lines) > room or (len(sentences) == 1 and whole > 1):
            return y
        y = pen.write(box.x0, y, lines) + pen.size * 0.6
    return y


def draw_body(pen: Pen, report: Report, leaf: Leaf, box: Box, draws: Draws) -> None:
    """Draw a page of running text in one or two columns, with its exhibit after the first paragraph (one column) or
    above both columns.
    """
    paragraphs = write_paragraphs(report.nouns, leaf.sentence, draws)
    if report.columns == 2:
        top = draw_exhibit(pen, leaf, box)
        wide = (box.width - 22) / 2
        fill_text(pen, Box(box.x0, top, box.x0 + wide, box.y1), paragraphs, 99)
        fill_text(pen, Box(box.x1 - wide, top, box.x1, box.y1), paragraphs, 99)
        return
    y = fill_text(pen, box, paragraphs, 1)
    y = draw_exhibit(pen, leaf, Box(box.x0, y, box.x1, box.y1))
    fill_text(pen, Box(box.x0, y, box.x1, box.y1), paragraphs, 2 if leaf.number == report.pages else 99)


def draw_bullets(pen: Pen, report: Report, leaf: Leaf, box: Box, draws: Draws) -> None:
    """Draw a slide: a few sentences as points, then the exhibit."""
    sentences = next(write_paragraphs(report.nouns, leaf.sentence, draws))[: 2 if leaf.exhibit else 5]
    y = box.y0
    for sentence in sentences:
        pen.rectangle(Box(box.x0, y + pen.size * 0.45, box.x0 + 6, y + pen.size * 0.45 + 6), pen.accent)
        y = pen.write(box.x0 + 20, y, pen.wrap(sentence, box.width - 20)) + pen.size * 0.7
    draw_exhibit(pen, leaf, Box(box.x0 + 20, y, box.x1 - 20, box.y1))


def draw_frame(pen: Pen, report: Report, leaf: Leaf) -> Box:
    """Draw header and footer, the printed page number and the heading; return the box between them for the content."""
    width, height = SIZES[report.paper]
    slide = report.paper == "slide"
    left, right = (48.0, width - 48) if slide else (MARGIN, width - MARGIN)
    if slide:
        pen.rectangle(Box(0, 0, width, 66), pen.accent)
        pen.write(left, 18, leaf.heading.split("  ")[1], 24, True, WHITE)
    else:
        pen.write(left, 34, report.title, 8.5, colour=GREY)
        pen.write(right, 34, report.publisher, 8.5, colour=GREY, align=1)
        pen.line((left, 49), (right, 49))
    pen.line((left, height - 44), (right, height - 44))
    pen.write(right, height - 39, str(leaf.number), 9, True, GREY, 1)
    pen.write(left, height - 39, report.publisher if slide else report.subtitle, 8.5, colour=GREY)
    if slide:
        return Box(left, 92, right, height - 56)
    size = 18.0 if leaf.opens else 13.0
    top = pen.write(left, 66, leaf.heading, size, True, pen.accent)
    return Box(left, top + 8, right, height - 60)


def draw_title(pen: Pen, report: Report, style: int) -> None:
    """Draw the first page in one of three styles: a band, a column at the left, a framed block."""
    width, height = SIZES[report.paper]
    blocks = (
        Box(0, height * 0.22, width, height * 0.56),
        Box(0, 0, width * 0.3, height),
        Box(MARGIN, height * 0.16, width - MARGIN, height * 0.60),
    )
    pen.rectangle(blocks[style], pen.pale if style == 2 else pen.accent, pen.accent)
    left = width * 0.3 + 34 if style == 1 else MARGIN + 26
    y = height * 0.29
    colour = WHITE if style == 0 else pen.accent
    y = pen.write(left, y, pen.wrap(report.title, width - left - 70, 32, True), 32, True, colour)
    pen.write(left, y + 10, report.subtitle, 14, colour=colour if style == 0 else GREY)
    pen.write(left, height * 0.80, report.publisher, 15, True)
    pen.line((left, height * 0.80 - 8), (left + 120, height * 0.80 - 8), colour=pen.accent, width=2)


def draw_contents(pen: Pen, report: Report, leaves: list[Leaf]) -> None:
    """Draw the chapters with the pages on which they begin."""
    y = draw_frame(pen, report, Leaf(2, "Contents", True, None, "", None)).y0 + 6
    right = SIZES[report.paper][0] - MARGIN
    for leaf in leaves:
        if leaf.opens:
            pen.write(right, y, str(leaf.number), align=1)
            end = pen.write(MARGIN, y, leaf.heading)
            pen.line((MARGIN + line_width(leaf.heading, pen.regular, pen.size) + 8, end - 5), (right - 22, end - 5))
            y = end + 6


def draw_report(report: Report, draws: Draws) -> bytes:
    """Return the whole document as PDF bytes, without dates and without a random id."""
    document = pymupdf.open()
    leaves = plan_leaves(report, draws)
    regular, bold = ("tiro", "tibo") if report.serif else ("helv", "hebo")
    size = 16.0 if report.paper == "slide" else 10.5 if report.serif else 10.0
    for number in range(1, report.pages + 1):
        width, height = SIZES[report.paper]
        shape = document.new_page(width=width, height=height).new_shape()
        pen = Pen(shape, regular, bold, report.accent, size)
        if number == 1:
            draw_title(pen, report, draws.integer("title style", 0, 2))
        elif number < first_body_page(report):
            draw_contents(pen, report, leaves)
        else:
            leaf = leaves[number - first_body_page(report)]
            draw = draw_bullets if report.paper == "slide" else draw_body
            draw(pen, report, leaf, draw_frame(pen, report, leaf), draws.at("text", number))
        shape.commit()
    return bytes(document.tobytes(garbage=3, deflate=True, no_new_id=True))
