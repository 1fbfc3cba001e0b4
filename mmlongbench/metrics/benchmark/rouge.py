"""Computes ROUGE-L of summaries with the package rouge-score: over the whole text (rougeL) and by lines (rougeLsum)."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Protocol

from mmlongbench.answers import missing

_TYPES = ("rougeL", "rougeLsum")
MAX_CHARACTERS = 50_000
"""The maximum characters of a prediction that are compared. The time grows with the product of the lengths of the
prediction and the reference. Public runs generate 384 tokens."""
_STEMS = 50_000
"""How many stems are kept in memory."""


class _Figures(Protocol):
    fmeasure: float
    recall: float


class Scorer(Protocol):
    """A scorer of the package rouge-score, which may not be installed."""

    def score(self, *, target: str, prediction: str) -> Mapping[str, _Figures]:
        """Return the figures by type, such as `rougeL`."""
        ...


def rouge_scorer() -> Scorer:
    """Return a scorer that gives the figures of the public code, and keeps the stems of words in memory.

    Raises:
        ScoringError: rouge-score is not installed.

    """
    try:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenize import tokenize
    except ImportError as error:
        raise missing("rouge-score", "metric rouge") from error
    stemmer = SimpleNamespace(stem=lru_cache(_STEMS)(PorterStemmer().stem))
    scorer: Scorer = RougeScorer(list(_TYPES), tokenizer=SimpleNamespace(tokenize=lambda text: tokenize(text, stemmer)))
    return scorer


def rouge(scorer: Scorer, prediction: str, answers: Iterable[str]) -> Mapping[str, float]:
    """Return F1 and recall of rougeL and rougeLsum, the four figures of the public code.

    Each figure is the best that the prediction reaches with any of the answers.
    """
    said = prediction[:MAX_CHARACTERS]
    found = [scorer.score(target=answer, prediction=said) for answer in answers]
    best = {f"{kind}_f1": max((float(each[kind].fmeasure) for each in found), default=0.0) for kind in _TYPES}
    recall = {f"{kind}_recall": max((float(each[kind].recall) for each in found), default=0.0) for kind in _TYPES}
    return {**best, **recall}
