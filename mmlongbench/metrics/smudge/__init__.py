"""SMuDGE, a metric of groundedness for answers taken from documents (see `metric`), and its parts."""

from mmlongbench.metrics.smudge.metric import SMuDGE

__all__ = ["SMuDGE"]
