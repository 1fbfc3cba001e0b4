"""The row that every reader of document questions gives to the builder."""

from typing import Literal, TypeAlias

from mmlongbench import Row

AnswerFormat: TypeAlias = Literal["Integer", "Float", "String", "List", "None"]


class DocumentQuestion(Row):
    """One question about one document."""

    doc: str
    """The document's id."""
    doc_type: str = ""
    question_type: str = ""
    """In the source's words, where it has any."""
    question: str
    answer: tuple[str, ...]
    """One string; for a List its elements."""
    answer_format: AnswerFormat
    pages: tuple[int, ...]
    """The answer pages, from 0, ascending; none where the question is not answerable."""
    pages_field: str = "evidence_pages"
    """What the source calls them, for rejects."""
    window: tuple[int, int] | None = None
    """The first and last page that the question is about, from 0, where that is not the whole document."""
    sources: tuple[str, ...] = ()
    """Where the answer stands, in the source's words: text, table, chart …"""
