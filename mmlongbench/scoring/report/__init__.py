"""Reports: what a folder of scores says, computed once and shown as tables, as a page or as JSON."""

from mmlongbench.scoring.report.page import page
from mmlongbench.scoring.report.report import Report, report

__all__ = ["Report", "page", "report"]
