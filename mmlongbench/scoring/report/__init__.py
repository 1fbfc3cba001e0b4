"""Makes a report of a folder of scores. It is computed once, and shown as tables, as a page or as JSON."""

from mmlongbench.scoring.report.report import Report, report

__all__ = ["Report", "report"]
