"""ROUGE-L of summaries, through the package rouge-score: two figures each of the whole text and of its lines."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from mmlongbench.metrics.missing import missing

_TYPES = ("rougeL", "rougeLsum")
MAX_CHARACTERS = 50_000
"""Of a prediction that are looked at: the time grows with the words of both texts multiplied. Public runs generate 384
tokens."""
_STEMS = 50_000
"""That are remembered."""


def rouge_scorer() -> Any:  # noqa: ANN401  (of a package that may be absent)
    """A scorer as the public code has it, that remembers the stems of words.

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
    return RougeScorer(list(_TYPES), tokenizer=SimpleNamespace(tokenize=lambda text: tokenize(text, stemmer)))


def rouge(scorer: Any, prediction: str, answers: Iterable[str]) -> Mapping[str, float]:  # noqa: ANN401  (see above)
    """F1 and recall of both types, each the best over the answers; the public code reports all four."""
    said = prediction[:MAX_CHARACTERS]
    found = [scorer.score(target=answer, prediction=said) for answer in answers]
    best = {f"{kind}_f1": max((float(each[kind].fmeasure) for each in found), default=0.0) for kind in _TYPES}
    recall = {f"{kind}_recall": max((float(each[kind].recall) for each in found), default=0.0) for kind in _TYPES}
    return {**best, **recall}
