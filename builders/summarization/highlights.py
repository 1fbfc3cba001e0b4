"""Finds the pages that show a report's own summary (GAO's highlights), by their headings and by overlapping text;
decides which pages of a report are removed, and why a report is refused.

Texts are compared as words in lower case. Hyphens are removed, at the end of a line and elsewhere, and ligatures are
split. Headings are compared as letters alone, because PDFs split small capitals into single letters.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby

from builders.summarization.readers import Section
from mmlongbench.task import Fault, Rejected
from mmlongbench.task.advanced import has_words

HEADINGS = ("Why GAO Did This Study", "What GAO Found", "What GAO Recommends")
SIZE = 5
"""The number of words of an n-gram."""
_TRACE = 0.02
"""A summary page with a heading has at least this share of the summary; a table of contents does not."""
_BESIDE = 0.05
"""A page beside a summary page is a summary page, too, if it has at least this share of the summary. The same then
applies to the pages beside this page."""
_LINES = 3
"""The maximum number of lines over which a heading may be split."""
_HYPHEN = re.compile(r"[\u00ad\u2010-\u2015\u2212-]\s*\n?\s*")


def removed_pages(
    texts: Sequence[str], sections: Sequence[Section], share: float, first_pages: int, must_be_found: bool
) -> dict[int, str]:
    """Return the pages to remove from a report: its summary pages (see `find_highlights`), each with the reason.

    A page without text among the first ones could be the summary, so it is removed. It does not count as a summary page
    that was found.

    Raises:
        Rejected: the report has hardly any text, no page outside the summary, or a later page that repeats too much of
            the summary; or no summary page is found and `must_be_found`.

    """

    def refused(reason: str, expected: str, found: str, todo: str = "take the document out of the source") -> Rejected:
        return Rejected(Fault(reason, expected, found, field="doc", todo=todo))

    without = [number for number, text in enumerate(texts) if not has_words(text)]
    unchecked = dict.fromkeys((number for number in without if number < first_pages), "no text to check")
    if len(unchecked) == len(texts[:first_pages]) or len(without) * 2 > len(texts):
        found, todo = f"none on {len(without)} of {len(texts)} pages", "set pages.ocr, or take the report out"
        raise refused("document-without-text", "text to find the summary in", found, todo)
    summary_pages, leaks = find_highlights(texts, sections, share, first_pages)
    if must_be_found and not summary_pages:
        expected = f"a page with the summary among the first {first_pages}"
        raise refused("no-summary-page", expected, "none", "set options.without_summary_page to keep")
    if leaks:
        page, cover = max(leaks.items(), key=lambda item: (item[1], -item[0]))
        expected = f"at most {share:.0%} of the summary on a page"
        raise refused("summary-in-the-body", expected, f"{cover:.0%} on page {page}")
    removed = {**unchecked, **summary_pages}
    if len(removed) == len(texts):
        raise refused("document-without-pages", "pages beside the summary", "none")
    return dict(sorted(removed.items()))


def find_highlights(
    texts: Sequence[str], sections: Sequence[Section], share: float = 0.2, first_pages: int = 6
) -> tuple[dict[int, str], dict[int, float]]:
    """Return (why each summary page counts as one, the share of the summary that each later page repeats, if it is too
    much), both by the number of the page, from 0.

    Among the first pages, a page is a summary page if it has one of GAO's headings and a little of the summary
    (`_TRACE`), or if it covers more than `share` of the summary, alone or together with pages beside it. Pages that
    continue a summary page are summary pages, too.

    Args:
        texts: the text of each page.
        sections: the reference summary. Sections about recommendations are not compared with `share`, because reports
            repeat their recommendations.
        share: a page with more than this share of the summary's word 5-grams is a summary page; a later page is a leak.
        first_pages: how many pages at the beginning may be summary pages.

    """
    pages = [grams(text) for text in texts]
    titled = [(section.section_title.casefold(), grams("\n".join(section.paragraphs))) for section in sections]
    whole = frozenset[str]().union(*(runs for _, runs in titled))
    told = frozenset[str]().union(*(runs for title, runs in titled if "recommend" not in title)) or whole
    covers, holds = [_share(page, told) for page in pages], [_share(page, whole) for page in pages]
    removed: dict[int, str] = {}
    for number, text in enumerate(texts[:first_pages]):
        if (heading := heading_in(text)) and holds[number] >= _TRACE:
            removed[number] = f"heading {heading!r}"
        elif covers[number] > share:
            removed[number] = f"{covers[number]:.0%} of the summary"
    # first pages beside each other that cover the summary together
    for is_part, run in groupby(range(len(texts[:first_pages])), key=lambda number: covers[number] >= _BESIDE):
        numbers = list(run)
        together = _share(frozenset[str]().union(*(pages[number] for number in numbers)), told)
        for number in numbers if is_part and together > share else ():
            removed.setdefault(number, f"{covers[number]:.0%} of the summary, {together:.0%} with those beside it")
    # pages that continue a summary page, then pages that continue these
    waiting = sorted(removed)
    while waiting:
        number = waiting.pop(0)
        for beside in (number - 1, number + 1):
            if 0 <= beside < len(pages) and beside not in removed and holds[beside] >= _BESIDE:
                removed[beside] = f"{holds[beside]:.0%} of the summary, beside page {number}"
                waiting.append(beside)
    leaks = {number: cover for number, cover in enumerate(covers) if cover > share and number not in removed}
    return dict(sorted(removed.items())), leaks


def heading_in(text: str) -> str:
    r"""Return the first of GAO's headings in a text; empty if there is none.

    A heading is alone on its lines; or it begins a line with text after it, in GAO's spelling or in capitals.

    >>> heading_in("Highlights\nW HAT  GAO F OUND\nThe agency"), heading_in("what GAO found in 2009")
    ('What GAO Found', '')
    """
    lines = [line for line in text.splitlines() if line.strip()]
    plain_lines, plain_headings = [*map(letters, lines)], [(heading, letters(heading)) for heading in HEADINGS]
    for start, line in enumerate(lines):
        for heading, plain in plain_headings:
            if any("".join(plain_lines[start:end]) == plain for end in range(start + 1, start + 1 + _LINES)):
                return heading
            if re.match(rf"\s*(?:{heading}|{heading.upper()})\b(?![\s.]*\d*\s*$)", line):
                return heading
    return ""


def letters(text: str) -> str:
    """Return letters and digits alone, in lower case, with ligatures split."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def grams(text: str) -> frozenset[str]:
    """Return the runs of five words of a text. A text of fewer words gives one run of all its words."""
    joined = _HYPHEN.sub("", unicodedata.normalize("NFKC", text).casefold())
    words = re.findall(r"\w+", joined)
    count = max(1, len(words) - SIZE + 1) if words else 0
    return frozenset(" ".join(words[start : start + SIZE]) for start in range(count))


def _share(page: frozenset[str], summary: frozenset[str]) -> float:
    return len(page & summary) / len(summary) if summary else 0.0
