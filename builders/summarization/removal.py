"""Decides which pages of a report are removed, and why a report is refused."""

from collections.abc import Sequence

import mmlongbench.task as mt
from builders.summarization.highlights import find_highlights
from builders.summarization.rows import Section

UNCHECKED = "no text to check"


def removed_pages(
    texts: Sequence[str], sections: Sequence[Section], share: float, first_pages: int, *, must_be_found: bool
) -> dict[int, str]:
    """Return the pages to remove from a report: its summary pages (see `find_highlights`), each with the reason.

    A page without text among the first ones could be the summary, so it is removed. It does not count as a summary page
    that was found.

    Raises:
        Rejected: the report has hardly any text, no page outside the summary, or a later page that repeats too much of
            the summary; or no summary page is found and `must_be_found`.

    """
    without = [number for number, text in enumerate(texts) if not mt.has_words(text)]
    unchecked = dict.fromkeys((number for number in without if number < first_pages), UNCHECKED)
    if len(unchecked) == len(texts[:first_pages]) or len(without) * 2 > len(texts):
        found_none, todo = f"none on {len(without)} of {len(texts)} pages", "set pages.ocr, or take the report out"
        raise _refused("document-without-text", "text to find the summary in", found_none, todo)
    found = find_highlights(texts, sections, share, first_pages)
    if must_be_found and not found.removed:
        expected = f"a page with the summary among the first {first_pages}"
        raise _refused("no-summary-page", expected, "none", "set options.without_summary_page to keep")
    if found.leaks:
        page, cover = max(found.leaks.items(), key=lambda item: (item[1], -item[0]))
        expected = f"at most {share:.0%} of the summary on a page"
        raise _refused("summary-in-the-body", expected, f"{cover:.0%} on page {page}")
    removed = {**unchecked, **found.removed}
    if len(removed) == len(texts):
        raise _refused("document-without-pages", "pages beside the summary", "none")
    return dict(sorted(removed.items()))


def _refused(reason: str, expected: str, found: str, todo: str = "take the document out of the source") -> mt.Rejected:
    return mt.Rejected(mt.Fault(reason, expected, found, field="doc", todo=todo))
