"""Samples of long-document QA: drawn reports, and questions about them in the format of each reader."""

from tests.drawing.docvqa.open_questions import draw_m_longdoc
from tests.drawing.docvqa.others import draw_longdocurl, draw_own_documents, draw_slidevqa
from tests.drawing.docvqa.reports import draw_reports

__all__ = ["draw_longdocurl", "draw_m_longdoc", "draw_own_documents", "draw_reports", "draw_slidevqa"]
