"""Which pages a report goes without, and why a report cannot be asked about."""

from collections.abc import Sequence

import mmlongbench as mm
from builders.summ.highlights import find_highlights
from builders.summ.rows import Section

_LETTERS = 40
"""A page with fewer has no text to speak of."""


def removed_pages(
    texts: Sequence[str], sections: Sequence[Section], share: float, first_pages: int, *, must_be_found: bool
) -> dict[int, str]:
    """The pages that hold a report's summary, each with what tells it (see `find_highlights`).

    Raises:
        Rejected: it has no text, no such page, or another page that gives the summary away.

    """
    if _unread(texts[:first_pages]) == len(texts[:first_pages]) or _unread(texts) * 2 > len(texts):
        without = f"none on {_unread(texts)} of {len(texts)} pages"
        todo = "set pages.ocr, with tesseract installed"
        raise _refused("document-without-text", "text to find the summary in", without, todo)
    found = find_highlights(texts, sections, share, first_pages)
    if must_be_found and not found.removed:
        expected = f"a page with the summary among the first {first_pages}"
        raise _refused("no-summary-page", expected, "none", "set options.without_summary_page to keep")
    if found.leaks:
        page, cover = max(found.leaks.items(), key=lambda item: (item[1], -item[0]))
        expected = f"at most {share:.0%} of the summary on a page"
        raise _refused("summary-in-the-body", expected, f"{cover:.0%} on page {page}")
    if len(found.removed) == len(texts):
        raise _refused("document-without-pages", "pages beside the summary", "none")
    return dict(found.removed)


def _refused(reason: str, expected: str, found: str, todo: str = "") -> mm.Rejected:
    return mm.Rejected(mm.Fault(reason, expected, found, field="doc", todo=todo))


def _unread(texts: Sequence[str]) -> int:
    """How many pages have no text to speak of."""
    return sum(sum(map(str.isalpha, text)) < _LETTERS for text in texts)
