"""Summarization of page images: government reports, and the documents of lawsuits."""

from builders.summ.builder import Summary
from builders.summ.govreport import GovReport
from builders.summ.lexsum import MultiLexSum
from builders.summ.options import SummaryOptions

__all__ = ["GovReport", "MultiLexSum", "Summary", "SummaryOptions"]
