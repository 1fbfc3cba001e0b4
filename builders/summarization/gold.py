"""The reference summary of a record as one text, joined as in the public code."""

from collections.abc import Sequence
from typing import TypedDict


class SectionOfRecord(TypedDict):
    """A section of a report's summary, as a record has it."""

    section_title: str
    paragraphs: Sequence[str]


def joined_summary(summary: str | Sequence[SectionOfRecord]) -> str:
    r"""Return the summary of a case, which is a text, or of a report, whose sections have titles and paragraphs.

    >>> joined_summary([{"section_title": "Findings", "paragraphs": ["One.", "Two."]}])
    'Findings:\nOne.\nTwo.'
    """
    if isinstance(summary, str):
        return summary
    return "\n\n".join("\n".join((f"{section['section_title']}:", *section["paragraphs"])) for section in summary)
