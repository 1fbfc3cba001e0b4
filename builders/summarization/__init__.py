"""Summarization of page images: government reports, and the documents of lawsuits."""

from builders.summarization.builder import Summary, SummaryOptions
from builders.summarization.readers import GovReport, MultiLexSum

__all__ = ["GovReport", "MultiLexSum", "Summary", "SummaryOptions"]
