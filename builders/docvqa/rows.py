"""The row that every reader of document questions gives to the builder."""

from typing import Literal, TypeAlias

from mmlongbench import Row

AnswerFormat: TypeAlias = Literal["Integer", "Float", "String", "List", "None"]


class DocumentQuestion(Row):
    """One question about one document."""

    doc: str
    """The document's id."""
    doc_type: str
    question: str
    answer: tuple[str, ...]
    """One string; for a List its elements."""
    answer_format: AnswerFormat
    pages: tuple[int, ...]
    """The answer pages, from 0, ascending; none where the question is not answerable."""
    sources: tuple[str, ...]
    """Where the answer stands, in the source's words: text, table, chart …"""
