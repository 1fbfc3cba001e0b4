"""Samples of summarization: drawn reports and court files, with their summaries."""

from tests.drawing.summarization.sources import draw_cases, draw_reports

__all__ = ["draw_cases", "draw_reports"]
