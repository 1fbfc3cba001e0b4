"""Says what a table or figure is called: by its numbered caption, by the heading above it, or by its page alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mmlongbench.questions.layer.page import Box, Page, Region

Called: TypeAlias = Literal["number", "heading", "page"]
"""What a table is called by."""
NEAR = 70.0
"""A caption or heading is at most so many points away."""
CAPTION = re.compile(
    r"(?P<kind>Table|Figure|Fig\.|Exhibit|Chart|Map|Box)\s+(?P<number>[A-Z]?\d{1,3}(\.\d{1,2})?|[IVX]{1,5})"
    r"\s*(?P<mark>[.:|–—-]|(?=\s[A-Z“\"]))\s*(?P<text>\S.*)"
)
_PART = re.compile(
    r"\W*(?i:continued from |continuation of )?(?P<kind>(?i:table|figure|fig\.|exhibit|chart|map|box))\s+"
    r"(?P<number>[A-Z]?\d{1,3}(?:\.\d{1,2})?|[IVX]{1,5})"
    r"(?:(?P<continued>[\s(\[,:;.–—-]*(?i:cont(?:inued|['’]?d)?\b|concluded))|\s*(?:[.:|–—-]|$)|(?=\s+[A-Z“\"]))"
)
"""Matches a line that begins as the caption of a table or figure does, or as that of a part of it on another page."""
_UNIT = re.compile(
    r"\(?\b((?:dollars |amounts |shares |u\.s\. dollars |\$ )*in (?:us\$ |u\.s\. dollars |\$ |€ )?"
    r"(?:thousands|millions|billions|percent|percentages)(?: of [a-z.$€ ]{2,20}|,? except [a-z ,/-]{4,60})?)\)?",
    re.IGNORECASE,
)
_CONTINUED = re.compile(r"[\s(–—-]*\bcont(inued|['’]?d)\b\.?\)?", re.IGNORECASE)
_CONTENTS = re.compile(r"(table of )?contents|index|page", re.IGNORECASE)
_BROKEN = re.compile(r"[a-z] [b-z]\b|[a-z] a\W*$")
"""Matches a word whose last letter stands alone, as some files have it; it is not printed so."""
_COMPANY = re.compile(r",? (inc|corp|ltd|llc|plc|co)\b\.?( and subsidiaries)?$", re.IGNORECASE)
MAX_TITLE_WORDS = 16
"""A longer heading is not quoted."""


@dataclass(frozen=True)
class Title:
    """What a table is called."""

    by: Called
    """What the words are."""
    words: str
    """`Table 3`, or the heading; empty if it is called by its page."""
    text: str
    """The text of the caption or heading; empty if there is none."""
    box: Box | None
    """Where the caption or heading is."""
    unit: str
    """The unit of the values as it is printed near the table, such as `in millions`; empty if there is none."""


@dataclass(frozen=True)
class Caption:
    """A numbered caption."""

    page: int
    """The number of the page, from 1."""
    kind: str
    """`Table`, `Figure` or another word in its usual form."""
    number: str
    """The number as it is printed."""
    text: str
    """The words after the number."""
    box: Box
    """Where it is."""


def parts_on(page: Page) -> Iterator[tuple[str, bool]]:
    """Yield the name of each table or figure of which a line of the page begins a part, such as `Table 3`, and whether
    the line says that the part continues another one.
    """
    for line in page.lines:
        text = " ".join(line.text.split())
        if found := _PART.match(text):
            kind = found["kind"].capitalize().replace("Fig.", "Figure")
            is_continued = bool(found["continued"]) or text.casefold().startswith("contin")
            yield f"{kind} {found['number']}", is_continued


def captions_of(page: Page) -> Iterator[Caption]:
    """Yield the numbered captions of a page: boxes of the layout that begin like one, or lines that stand alone."""
    for region in page.regions:
        if region.kind not in ("caption", "text", "section-header", "title"):
            continue
        text = page.text_in(region.box)
        found = CAPTION.match(text)
        if found and (region.kind == "caption" or found["mark"].strip()):
            kind = "Figure" if found["kind"] == "Fig." else found["kind"]
            yield Caption(page.number, kind, found["number"], found["text"].strip(), region.box)


def title_of(page: Page, table: Region, corner: str) -> Title:
    """Return what a table is called."""
    near = [region for region in page.regions if region.kind != "table" and _is_beside(region.box, table.box)]
    between = " ".join(page.text_in(each.box) for each in near if each.kind in ("text", "caption", "section-header"))
    unit = _unit(corner) or _unit(between[-300:])
    own = [caption for caption in captions_of(page) if caption.kind in ("Table", "Exhibit")]
    closest = sorted((c for c in own if _is_beside(c.box, table.box)), key=lambda c: _distance(c.box, table.box))
    if closest and _is_nearest_table(page, closest[0].box, table):
        caption = closest[0]
        name, unit = f"{caption.kind} {caption.number}", unit or _unit(caption.text)
        return Title("number", name, caption.text, caption.box, unit)
    above = [each for each in near if each.kind in ("section-header", "title") and each.box.y1 <= table.box.y0 + 4]
    for region in sorted(above, key=lambda each: -each.box.y1):
        text = clean_title(page.text_in(region.box))
        if _is_unit(text):
            continue
        if _can_be_title(text) and not _has_between(page, region, table):
            return Title("heading", text, text, region.box, unit)
        break
    return Title("page", "", "", None, unit)


def _is_unit(text: str) -> bool:
    """Return whether a heading says the unit of a table and nothing else."""
    return bool(_UNIT.fullmatch(text.strip("() "))) or (text.startswith("(") and text.endswith(")"))


def _can_be_title(text: str) -> bool:
    return (
        len(text.split()) <= MAX_TITLE_WORDS
        and sum(map(str.isalpha, text)) >= 6
        and not _CONTENTS.fullmatch(text)
        and not _BROKEN.search(text)
        and not _COMPANY.search(text)
    )


def _has_between(page: Page, region: Region, table: Region) -> bool:
    """Return whether a table or a picture is between a heading and a table."""
    others = [each for each in page.regions if each.kind == "picture"] + list(page.tables)
    return any(region.box.y1 <= other.box.y0 + 2 and other.box.y1 <= table.box.y0 + 2 for other in others)


def clean_title(text: str) -> str:
    """Return a heading without `continued` and signs at its end.

    >>> clean_title("Balance Sheets (Continued):")
    'Balance Sheets'
    """
    return _CONTINUED.sub("", " ".join(text.split())).strip(" :–—-")


def _unit(text: str) -> str:
    found = _UNIT.search(text)
    return " ".join(found[1].split()).rstrip(" ,").lower() if found else ""


def _is_beside(box: Box, table: Box) -> bool:
    """Return whether a box is above or below a table, near it, and over a part of it."""
    is_over = box.x0 < table.x1 and box.x1 > table.x0
    return is_over and _distance(box, table) <= NEAR


def _distance(box: Box, table: Box) -> float:
    return max(table.y0 - box.y1, box.y0 - table.y1, 0.0)


def _is_nearest_table(page: Page, caption: Box, table: Region) -> bool:
    """Return whether no other table is as near to a caption."""
    tables = [region for region in page.tables if _is_beside(caption, region.box)]
    return min(tables, key=lambda each: (_distance(caption, each.box), each.box)) == table
