"""Scores equal those of the public code, over the vectors that were computed with it."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import needs
import pytest

from mmlongbench.answers import after_prefix
from mmlongbench.metrics.benchmark import (
    ClassLabel,
    DocumentAnswer,
    OptionLetter,
    RougeL,
    SubstringExactMatch,
    TotalCount,
    YesNo,
    binary_acc,
    cls_acc,
    doc_qa,
    mc_acc,
    rouge,
    rouge_scorer,
    soft_acc,
    sub_em,
)
from mmlongbench.metrics.benchmark.metrics import DEFAULTS, BenchmarkMetric
from mmlongbench.metrics.mmlongbench_doc import accuracy_and_f1, score_extracted
from mmlongbench.task.metrics import ScoringInput, Settings

NA = "Not answerable"
Row = dict[str, Any]
scorer = cache(rouge_scorer)


def figures(row: Row) -> dict[str, float]:
    rows = [(each["score"], each["answer"] != NA, each["pred"] != NA) for each in row["rows"]]
    found = accuracy_and_f1(rows)
    return {"acc": found["accuracy"], "f1": found["f1"]}


SCORES: dict[str, Callable[[Row], object]] = {
    "sub_em": lambda row: max(sub_em(row[key], row["answer"]) for key in ("prediction", "parsed")),
    "binary_acc": lambda row: binary_acc(row["prediction"], row["answer"], row["default"]),
    "count_acc": lambda row: soft_acc(row["prediction"], row["answer"]),
    "mc_acc": lambda row: mc_acc(row["prediction"], row["answer"]),
    "cls_acc": lambda row: cls_acc(row["prediction"], row["answer"]),
    "doc_qa": lambda row: doc_qa(row["prediction"], row["answer"], row["answer_format"]),
    "rouge": lambda row: rouge(scorer(), row["prediction"], [row["answer"]]),
    "mmlongbench_doc": lambda row: score_extracted(row["answer"], row["answer_format"], row["prediction"]),
    "mmlongbench_doc_acc_f1": figures,
}
METRICS: dict[str, tuple[type[BenchmarkMetric], set[str]]] = {
    "sub_em": (SubstringExactMatch, set()),
    "binary_acc": (YesNo, {"1", "0"}),  # the digit is no longer the whole prediction
    "count_acc": (TotalCount, set()),
    "mc_acc": (OptionLetter, {"Answer: C", "C or D"}),  # behind "Answer:" its letter or the first letter counts, too
    "cls_acc": (ClassLabel, {"label: 3\nlabel: 0"}),  # behind the prompt's "label:" the second label is read, too
    "rouge": (RougeL, set()),
}
"""Metrics, and the predictions whose `official` scores are not those of the functions.

The vectors were made without the prompt's last words, which `eval.py` and `official` put before each prediction.
"""


@pytest.fixture(scope="module")
def vectors() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = json.loads(needs.shared("reference", "scoring_vectors.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("kind", SCORES)
def test_every_vector_is_equal(kind: str, vectors: dict[str, list[Row]]) -> None:
    assert set(vectors) == set(SCORES)
    wanted = [row["score"] if "score" in row else {name: row[name] for name in ("acc", "f1")} for row in vectors[kind]]
    assert wanted
    for row, score in zip(vectors[kind], wanted, strict=True):
        assert SCORES[kind](row) == pytest.approx(score, abs=1e-6), row
        if "parsed" in row:
            assert after_prefix(row["prediction"], "Answer:") == row["parsed"]


def differing(metric: BenchmarkMetric, rows: list[Row]) -> list[Row]:
    """The vectors whose score under `official` is not that of the functions."""
    found = []
    for row in rows:
        place = DEFAULTS.index(row["default"]) if "default" in row else 0
        scored = metric.score(replace(asked(row), place=place))
        made = scored.details if isinstance(row["score"], dict) else scored.score
        if made != pytest.approx(row["score"], abs=1e-6):
            found.append(row)
    return found


def asked(row: Row) -> ScoringInput:
    return ScoringInput("f", "d", "x", row["answer"], row["prediction"], answer_format=row.get("answer_format", ""))


@pytest.mark.parametrize("kind", METRICS)
def test_official_differs_from_the_functions_only_by_the_prompts_last_words(
    kind: str, vectors: dict[str, list[Row]]
) -> None:
    metric, expected = METRICS[kind]
    found = [row["prediction"] for row in differing(metric(Settings(profile="official")), vectors[kind])]
    assert (set(found), len(found)) == (expected, len(expected))


def test_official_differs_on_document_answers_only_where_they_repeat_answer(vectors: dict[str, list[Row]]) -> None:
    """The functions compare "Answer:" with the rest; `official` removes it."""
    official = DocumentAnswer(Settings(profile="official"))
    rows = differing(official, vectors["doc_qa"])
    assert len(rows) == 50
    for row in rows:
        assert row["prediction"].lower().startswith("answer:")
        without = row["prediction"][len("answer:") :].strip()
        assert official.score(asked(row)).score == doc_qa(without, row["answer"], row["answer_format"])
