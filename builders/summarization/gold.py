"""The reference summary of a record as one text, as the public code joins it."""

from collections.abc import Sequence
from typing import Any


def joined_summary(summary: str | Sequence[dict[str, Any]]) -> str:
    r"""A case's summary is a text; a report's has sections, each with its title before its paragraphs.

    >>> joined_summary([{"section_title": "Findings", "paragraphs": ["One.", "Two."]}])
    'Findings:\nOne.\nTwo.'
    """
    if isinstance(summary, str):
        return summary
    return "\n\n".join("\n".join((f"{section['section_title']}:", *section["paragraphs"])) for section in summary)
