"""Drawn reports: a cover, a summary like GAO's in one of many layouts, and a body that repeats a little of it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from builders.summarization.readers import Section
from mmlongbench.task import Draws
from tests.drawing.docvqa.prose import write_paragraphs
from tests.drawing.summarization.letters import MARGIN, WIDTH, Block, Look, Manner, Sheet

SUBJECTS = (
    ("coastal radar", "the tide office", "harbour dues", "the pilot service", "sea marks", "the buoy yard"),
    ("grain inspections", "the milling board", "storage silos", "export licences", "the weighing stations"),
    ("rural bridges", "the roads agency", "load limits", "inspection teams", "the paving programme"),
    ("school meals", "the catering fund", "kitchen repairs", "the supply depots", "menu standards"),
    ("forest fire watch", "the lookout towers", "patrol aircraft", "the radio network", "volunteer crews"),
)
TITLES = ("Why GAO Did This Study", "What GAO Found", "What GAO Recommends")


@dataclass(frozen=True, slots=True)
class Layout:
    """The way in which a report shows its summary."""

    look: Look = field(default_factory=Look)
    pages: tuple[int, ...] = (1,)
    """The pages of the summary, from 0. If there are two, the findings continue on the second. If it is empty, there is
    no summary page."""


WHY = (
    "In {year} the Congress set aside {n} million dollars for {a} and asked for a review of {b}.",
    "Since {year} some {n} accidents near {a} have been laid to the state of {b}.",
    "The act of {year} requires {b} to report on {a} every {k} years, and asked GAO to look into it.",
)
FOUND = (
    "GAO found that {a} cost {n} million dollars more than planned in {k} of {m} districts.",
    "Of {m} records of {b} that GAO examined, {k} lacked a date and {n} a signature.",
    "Officials in {k} of the {m} offices told GAO that {a} had no written procedure until {year}.",
    "Between {year} and 2016 the share of {b} that met the standard fell from {m} to {k} per cent.",
    "GAO could not confirm {n} of the payments for {a}, since {b} had kept no receipts after {year}.",
    "Where {b} used the new checklist, delays fell by {k} days; elsewhere they rose by {m} days.",
    "The {year} estimate for {a} left out {n} vehicles, {m} buildings and the upkeep of both.",
)
ASKED = (
    "GAO recommends that {a} publish a plan by {year} and that {b} review it within {k} months.",
    "GAO is making {k} recommendations, among them that {b} count all {a} anew. The agency agreed with each.",
)


def summary_of(subject: tuple[str, ...], draws: Draws) -> tuple[Section, ...]:
    """Return the reference summary in three sections: why the study was made, what it found, what it recommends."""

    def told(shape: str) -> str:
        here = draws.at(shape)
        a, b = here.order("nouns", subject)[:2]
        bounds = {"year": (1988, 2015), "n": (21, 480), "k": (3, 19), "m": (22, 97)}
        return shape.format(a=a, b=b, **{name: here.integer(name, *bound) for name, bound in bounds.items()})

    found = draws.order("found", FOUND)
    paragraphs = ((WHY[:2], WHY[2:]), (found[:3], found[3:5], found[5:]), (ASKED,))
    return tuple(
        Section(section_title=title, paragraphs=tuple(" ".join(map(told, shapes)) for shapes in parts))
        for title, parts in zip(TITLES, paragraphs, strict=True)
    )


def reworded(summary: Sequence[Section]) -> tuple[Section, ...]:
    """Return a summary in other words: the first twelve words of each section stay; of the rest, no five consecutive
    words stay.
    """

    def told(paragraph: str, kept: int) -> str:
        words = paragraph.split()
        return " ".join(word if n < kept or n % 4 else "otherwise" for n, word in enumerate(words))

    return tuple(
        Section(
            section_title=section.section_title,
            paragraphs=tuple(told(text, 0 if number else 12) for number, text in enumerate(section.paragraphs)),
        )
        for section in summary
    )


def broken_over_lines(text: str) -> str:
    """Return a text in which each long word is split by a hyphen and the end of a line."""
    return re.sub(r"\b([a-z]{3})([a-z]{2,})", r"\1-\n\2", text)


def draw_report(
    name: str, subject: tuple[str, ...], pages: int, layout: Layout, draws: Draws, *, is_scanned: bool = False
) -> tuple[bytes, tuple[Section, ...]]:
    """Return (PDF, reference summary) of a report with `pages` pages.

    The body of the report repeats the recommendations, and one sentence of the findings.
    """
    summary = summary_of(subject, draws.at("summary"))
    sheet = Sheet()
    parts = _summary_pages(summary, layout)
    again = summary[1].paragraphs[0].split(". ")[0] + "."
    for number in range(pages):
        sheet.begin(f"{name.upper()}  Page {number}")
        if is_scanned:
            continue
        if number in parts:
            _draw_summary(sheet, parts[number], layout.look)
        elif number == 0:
            sheet.column(
                [Block(f"Report on {subject[0]}", (f"{name.upper()}, to the committee",))],
                MARGIN,
                240,
                400,
                Look(size=18),
            )
        else:
            prose = write_paragraphs(subject, None, draws.at("body", number))
            paragraphs = [" ".join(next(prose)) for _ in range(14)]
            if number == pages - 2:
                paragraphs[0] = again
            heading = (
                "Recommendations for Executive Action" if number == pages - 1 else f"{number}. The course of events"
            )
            blocks = [Block(heading, tuple(summary[2].paragraphs) if number == pages - 1 else tuple(paragraphs))]
            sheet.column(blocks, MARGIN, 72, WIDTH - 2 * MARGIN, Look())
    return sheet.data(), summary


def _summary_pages(summary: tuple[Section, ...], layout: Layout) -> dict[int, list[Block]]:
    blocks = [Block(section.section_title, section.paragraphs) for section in summary]
    if len(layout.pages) < 2:
        return dict.fromkeys(layout.pages, blocks)
    told = blocks[1]
    first = [blocks[0], Block(told.heading, told.paragraphs[:1])]
    return {layout.pages[0]: first, layout.pages[1]: [Block("", told.paragraphs[1:]), blocks[2]]}


def _draw_summary(sheet: Sheet, blocks: list[Block], look: Look) -> None:
    if look.columns == 1:
        sheet.column(blocks, MARGIN, 96, WIDTH - 2 * MARGIN, look)
        return
    half = (WIDTH - 2 * MARGIN - 20) / 2
    why = [block for block in blocks if block.heading in (TITLES[0], TITLES[2])]
    sheet.column(why, MARGIN, 96, half, look)
    sheet.column([block for block in blocks if block not in why], MARGIN + half + 20, 96, half, look)


def layouts() -> Iterator[tuple[str, Layout]]:
    """Yield (name, layout) for every combination of columns, style of headings, hyphens and pages of the summary."""
    manner: Manner
    for columns in (1, 2):
        for manner in ("plain", "capitals", "small capitals", "broken", "none"):
            for hyphens in (False, True):
                for pages in ((0,), (1,), (2,), (1, 2), ()):
                    where = " and ".join(map(str, pages)) or "nowhere"
                    look = Look(columns, manner, hyphens)
                    yield f"{columns} columns, {manner}, {'hyphens, ' if hyphens else ''}{where}", Layout(look, pages)


def draw_case_document(name: str, subject: tuple[str, ...], pages: int, draws: Draws) -> bytes:
    """Return a court file with `pages` pages, as PDF bytes."""
    sheet = Sheet()
    for number in range(pages):
        sheet.begin(f"Case document {name}, {number + 1} of {pages}")
        prose = write_paragraphs(subject, None, draws.at(name, number))
        heading = f"{'ORDER' if number == 0 else 'DISCUSSION'}"
        sheet.column(
            [Block(heading, tuple(" ".join(next(prose)) for _ in range(14)))], MARGIN, 72, WIDTH - 2 * MARGIN, Look()
        )
    return sheet.data()
