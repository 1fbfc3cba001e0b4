"""The prompts of summarization, as public loaders write them (`mmlb_data/summ`; paper, appendix B)."""

from dataclasses import replace

import mmlongbench as mm

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


def ask(kind: str) -> tuple[mm.Part, ...]:
    """What follows the pages of a `report` or a `case`."""
    return (f"\n\nNow please summarize the {kind}.\nSummary:",)


def page_unit(path: str, index: int, document: int = 0) -> mm.Unit:
    """A page as an image, after the line that names its document and its number, from 0."""
    folder = path.split("/")[-2]
    head = f"Document {mm.label(folder)} (page {index}): "
    return mm.Unit(path, "own", mm.Image(path), (document, index), head=head, group=folder)


def text_unit(page: mm.Unit, text: str) -> mm.Unit:
    """The same page as text."""
    return replace(page, body=f"\n{text}", data={**page.data, "text": text})


def page_number(path: str) -> int:
    """The number in a page's name, from 0, as public loaders read it.

    >>> page_number("multi-lexsum/31854/31854_page12.jpg")
    12
    """
    return int(path.split("page")[1].split(".")[0])
