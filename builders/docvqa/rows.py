"""The row that every reader of document questions makes for the builder."""

from typing import Literal, TypeAlias

from mmlongbench.task import Row

AnswerFormat: TypeAlias = Literal["Integer", "Float", "String", "List", "None"]


class DocumentQuestion(Row):
    """One question about one document."""

    doc: str
    """The document's id."""
    doc_type: str = ""
    question_type: str = ""
    """The type of the question in the source's words, if it has any."""
    question: str
    answer: tuple[str, ...]
    """One string; for a List, its elements."""
    answer_format: AnswerFormat
    pages: tuple[int, ...]
    """The answer pages, from 0, ascending; empty if the question is not answerable."""
    pages_field: str = "evidence_pages"
    """The source's name of the pages, for rejects."""
    window: tuple[int, int] | None = None
    """The first and last page that the question is about, from 0; None: the whole document."""
    sources: tuple[str, ...] = ()
    """Where the answer is found, in the source's words: text, table, chart …"""
