"""Summarization of page images: government reports, and the documents of lawsuits."""

from builders.summarization.builder import Summary
from builders.summarization.govreport import GovReport
from builders.summarization.lexsum import MultiLexSum
from builders.summarization.options import SummaryOptions

__all__ = ["GovReport", "MultiLexSum", "Summary", "SummaryOptions"]
