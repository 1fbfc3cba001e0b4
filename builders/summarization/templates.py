"""The prompts of summarization, as public loaders write them (`mmlb_data/summ`; paper, appendix B)."""

import mmlongbench.task as mt
from builders.common import pages

INSTRUCTIONS = {
    "report": (
        "You are given a government report from U.S. Government Accountability Office (GAO), and you are tasked to "
        "summarize the report. Write a concise summary (around 550 words) organized in multiple paragraphs. Where "
        "applicable, the summary should contain a short description of why GAO did this study, what GAO found, and "
        "what GAO recommends.\n\nGovernment Report:\n"
    ),
    "case": (
        "You are given the legal documents in a civil rights lawsuit, and you are tasked to summarize the case. Write "
        "a concise summary of one paragraph (200 to 250 words). The summary should contain a short description of the "
        "background, the parties involved, and the outcomes of the case.\n\nLegal documents:\n"
    ),
}


def ask(kind: str) -> tuple[mt.Part, ...]:
    """Return the text after the pages of a `report` or a `case`."""
    return (f"\n\nNow please summarize the {kind}.\nSummary:",)


def page_unit(path: str, index: int, document: int = 0) -> mt.Unit:
    """Return a page as an image, after a line that names its document and has the page's number, from 0."""
    return pages.page_unit(path, index, "own", (document, index), f" (page {index})")
