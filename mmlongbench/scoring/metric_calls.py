"""Calls the methods of metrics while a model is scored. An error in a metric becomes a line that names the metric, the
method, the example and the line of code.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from mmlongbench.manifest.binding import broken, calling
from mmlongbench.task.metric import Details, Metric, Score, ScoringInput

_T = TypeVar("_T")


def score_of(metric: Metric, asked: ScoringInput) -> Score:
    """Return the score of an example: the best of the scores for its answer and for each other accepted answer."""
    best = _score(metric, asked)
    for gold in asked.accepted:
        if best.score == 1:
            break
        found = _score(metric, replace(asked, gold=gold))
        if found.score is not None and (best.score is None or found.score > best.score):
            best = found
    return best


def _score(metric: Metric, asked: ScoringInput) -> Score:
    with calling("metric", metric.name, "score()", about=_about(asked)):
        found: object = metric.score(asked)
    return _of_type(found, Score, metric, "score()", _about(asked))


def details_of_absent(metric: Metric, asked: ScoringInput) -> Details:
    """Return the details of an example without a prediction."""
    with calling("metric", metric.name, "absent()", about=_about(asked)):
        found: object = metric.absent(asked)
    return dict(_of_type(found, Mapping, metric, "absent()", _about(asked)))  # type: ignore[type-abstract]


def why_outside(metric: Metric, asked: ScoringInput) -> str:
    """Return why a metric does not apply to an example; empty if it applies."""
    with calling("metric", metric.name, "out_of_scope()", about=_about(asked)):
        found: object = metric.out_of_scope(asked)
    return _of_type(found, str, metric, "out_of_scope()", _about(asked))


def compared_answer(metric: Metric, asked: ScoringInput) -> str:
    """Return an answer in a form in which equal answers are equal texts."""
    with calling("metric", metric.name, "compared_answer()", about=_about(asked)):
        found: object = metric.compared_answer(asked)
    return _of_type(found, str, metric, "compared_answer()", _about(asked))


def usage_of(metric: Metric) -> dict[str, float]:
    """Return what a metric has used so far."""
    with calling("metric", metric.name, "usage()"):
        return dict(metric.usage())


@contextmanager
def closed_at_end(metric: Metric) -> Iterator[Metric]:
    """Close a metric at the end of the block."""
    try:
        yield metric
    finally:
        with calling("metric", metric.name, "close()"):
            metric.close()


def _about(asked: ScoringInput) -> str:
    return f"example {asked.id!r} of {asked.file}"


def _of_type(found: object, kind: type[_T], metric: Metric, method: str, about: str) -> _T:
    if not isinstance(found, kind):
        fault = f"it returned a {type(found).__name__}, expected a {kind.__name__}"
        raise broken("metric", metric.name, method, fault, about=about)
    return found
