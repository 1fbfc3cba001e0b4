"""Finding the pages of a report that hold its own summary (GAO's highlights), by their headings and by overlap.

Texts are compared as words in lower case, without hyphens (those that end a line and those that do not), with
ligatures apart; headings as letters alone, because small capitals come apart into single letters.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from builders.summ.rows import Section

HEADINGS = ("Why GAO Did This Study", "What GAO Found", "What GAO Recommends")
SIZE = 5
"""Words of a gram."""
_TRACE = 0.02
"""A page with a heading holds at least this share of the summary; a table of contents does not."""
_BESIDE = 0.05
"""A page beside a summary page that holds this share goes on with it."""
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
    covers = [_share(page, told) for page in pages]
    removed: dict[int, str] = {}
    for number, text in enumerate(texts[:first_pages]):
        if (heading := heading_in(text)) and _share(pages[number], whole) >= _TRACE:
            removed[number] = f"heading {heading!r}"
        elif covers[number] > share:
            removed[number] = f"{covers[number]:.0%} of the summary"
    for number in sorted(removed):
        for beside in (number - 1, number + 1):
            if 0 <= beside < len(texts) and beside not in removed and _share(pages[beside], whole) >= _BESIDE:
                removed[beside] = f"{_share(pages[beside], whole):.0%} of the summary, beside page {number}"
    leaks = {number: cover for number, cover in enumerate(covers) if cover > share and number not in removed}
    return Found(dict(sorted(removed.items())), leaks)


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
