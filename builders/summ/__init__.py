"""Summarization of page images: government reports, and the documents of lawsuits."""

from builders.summ.builder import Summary, SummaryOptions
from builders.summ.govreport import GovReport
from builders.summ.lexsum import MultiLexSum

__all__ = ["GovReport", "MultiLexSum", "Summary", "SummaryOptions"]
