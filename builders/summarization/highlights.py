"""Finding the pages of a report that hold its own summary (GAO's highlights), by their headings and by overlap.

Texts are compared as words in lower case, without hyphens (those that end a line and those that do not), with
ligatures apart; headings as letters alone, because small capitals come apart into single letters.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from builders.summarization.rows import Section

HEADINGS = ("Why GAO Did This Study", "What GAO Found", "What GAO Recommends")
SIZE = 5
"""Words of a gram."""
_TRACE = 0.02
"""A page with a heading holds at least this share of the summary; a table of contents does not."""
_BESIDE = 0.05
"""A page beside a summary page that holds this share goes on with it; so do pages in a row without any other sign."""
_LINES = 3
"""A heading is broken over at most so many lines."""
_HYPHEN = re.compile(r"[\u00ad\u2010-\u2015\u2212-]\s*\n?\s*")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a report."""

    removed: Mapping[int, str]
    """Why each page that holds the summary, from 0, is one."""
    leaks: Mapping[int, float]
    """The share of the summary that other pages repeat, where it is over the bound."""


def find_highlights(
    texts: Sequence[str], sections: Sequence[Section], share: float = 0.2, first_pages: int = 6
) -> Found:
    """The pages of a report that hold its summary, and later ones that repeat too much of it.

    Among the first pages: one with a heading; one, or several in a row, that cover more than the share. Then all that
    go on with it.

    Args:
        texts: the text of each page.
        sections: the reference summary; sections of recommendations, which reports repeat, count as no leak.
        share: a page that covers more of the summary's word 5-grams than this holds it.
        first_pages: where a summary page may be.

    """
    every = [grams(_text(section)) for section in sections]
    body = [grams(_text(section)) for section in sections if "recommend" not in section.section_title.casefold()]
    whole, told = frozenset[str]().union(*every), frozenset[str]().union(*body) or frozenset[str]().union(*every)
    pages = [grams(text) for text in texts]
    covers, holds = [_share(page, told) for page in pages], [_share(page, whole) for page in pages]
    removed: dict[int, str] = {}
    for number, text in enumerate(texts[:first_pages]):
        if (heading := heading_in(text)) and holds[number] >= _TRACE:
            removed[number] = f"heading {heading!r}"
        elif covers[number] > share:
            removed[number] = f"{covers[number]:.0%} of the summary"
    for run in _runs([cover >= _BESIDE for cover in covers[:first_pages]]):
        together = _share(frozenset[str]().union(*(pages[number] for number in run)), told)
        for number in run if together > share else ():
            removed.setdefault(number, f"{covers[number]:.0%} of the summary, {together:.0%} with those beside it")
    removed |= _beside(removed, holds)
    leaks = {number: cover for number, cover in enumerate(covers) if cover > share and number not in removed}
    return Found(dict(sorted(removed.items())), leaks)


def _runs(is_in: Sequence[bool]) -> list[list[int]]:
    """The numbers that are in, those that follow each other together."""
    return [[n for n, _ in run] for key, run in groupby(enumerate(is_in), key=lambda pair: pair[1]) if key]


def _beside(removed: Mapping[int, str], holds: Sequence[float]) -> dict[int, str]:
    """The pages that go on with the summary, beside a removed page or beside one of these."""
    found: dict[int, str] = {}
    waiting = sorted(removed)
    while waiting:
        number = waiting.pop(0)
        for beside in (number - 1, number + 1):
            is_known = beside in removed or beside in found
            if 0 <= beside < len(holds) and not is_known and holds[beside] >= _BESIDE:
                found[beside] = f"{holds[beside]:.0%} of the summary, beside page {number}"
                waiting.append(beside)
    return found


def heading_in(text: str) -> str:
    r"""The first of GAO's headings that stands on lines of its own, or runs into its paragraph with capitals; or none.

    >>> heading_in("Highlights\nW HAT  GAO F OUND\nThe agency"), heading_in("what GAO found in 2009")
    ('What GAO Found', '')
    """
    lines = [line for line in text.splitlines() if line.strip()]
    for start in range(len(lines)):
        for heading in HEADINGS:
            for end in range(start + 1, start + 1 + _LINES):
                if letters(" ".join(lines[start:end])) == letters(heading):
                    return heading
            if re.match(rf"\s*(?:{heading}|{heading.upper()})\b(?![\s.]*\d*\s*$)", lines[start]):
                return heading
    return ""


def letters(text: str) -> str:
    """Letters and digits alone, in lower case, ligatures apart."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def grams(text: str) -> frozenset[str]:
    """The word 5-grams of a text; of a shorter one, all its words."""
    joined = _HYPHEN.sub("", unicodedata.normalize("NFKC", text).casefold())
    words = re.findall(r"\w+", joined)
    count = max(1, len(words) - SIZE + 1) if words else 0
    return frozenset(" ".join(words[start : start + SIZE]) for start in range(count))


def _share(page: frozenset[str], summary: frozenset[str]) -> float:
    return len(page & summary) / len(summary) if summary else 0.0


def _text(section: Section) -> str:
    return "\n".join(section.paragraphs)
