"""SMuDGE, a metric of groundedness for answers taken from documents (see `metric`), and its parts."""

from mmlongbench.metrics.smudge.matching import Kind, kind_of, match_score
from mmlongbench.metrics.smudge.metric import SMuDGE
from mmlongbench.metrics.smudge.reading import grounding_score
from mmlongbench.metrics.smudge.words import WordLine

__all__ = ["Kind", "SMuDGE", "WordLine", "grounding_score", "kind_of", "match_score"]
