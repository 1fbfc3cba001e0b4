"""Scores equal those of the public code, over the vectors that were computed with it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmlongbench.metrics.benchmark import (
    ClassLabel,
    DocumentAnswer,
    OptionLetter,
    RougeL,
    SubstringExactMatch,
    TotalCount,
    YesNo,
    after_prefix,
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
from mmlongbench.metrics.mmlongbench_doc import Judged, accuracy_and_f1, score_extracted
from mmlongbench.task.metric import ScoringInput, Settings

VECTORS = Path(__file__).parents[3] / "shared/reference/scoring_vectors.json"
NA = "Not answerable"
Row = dict[str, Any]

pytestmark = pytest.mark.skipif(not VECTORS.is_file(), reason="the reference data is not beside the checkout")

SCORES: dict[str, Callable[[Row], float]] = {
    "sub_em": lambda row: max(sub_em(row[key], row["answer"]) for key in ("prediction", "parsed")),
    "binary_acc": lambda row: binary_acc(row["prediction"], row["answer"], row["default"]),
    "count_acc": lambda row: soft_acc(row["prediction"], row["answer"]),
    "mc_acc": lambda row: mc_acc(row["prediction"], row["answer"]),
    "cls_acc": lambda row: cls_acc(row["prediction"], row["answer"]),
    "doc_qa": lambda row: doc_qa(row["prediction"], row["answer"], row["answer_format"]),
    "mmlongbench_doc": lambda row: score_extracted(row["answer"], row["answer_format"], row["prediction"]),
}


def vectors() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = json.loads(VECTORS.read_text("utf-8"))
    return found


@pytest.mark.parametrize("kind", SCORES)
def test_every_vector_is_equal(kind: str) -> None:
    rows = vectors()[kind]
    assert rows
    assert [row for row in rows if SCORES[kind](row) != pytest.approx(row["score"], abs=1e-6)] == []


def asked(row: Row, prediction: str) -> ScoringInput:
    return ScoringInput("f", "d", "x", row["answer"], prediction, answer_format=row.get("answer_format", ""))


METRICS: dict[str, type[BenchmarkMetric]] = {
    "sub_em": SubstringExactMatch,
    "binary_acc": YesNo,
    "count_acc": TotalCount,
    "mc_acc": OptionLetter,
    "cls_acc": ClassLabel,
    "doc_qa": DocumentAnswer,
    "rouge": RougeL,
}
DIFFERING = {
    "binary_acc": {"1", "0"},  # the digit is no longer the whole prediction
    "mc_acc": {"Answer: C", "C or D"},  # behind "Answer:" the letter of "Answer" or the first letter counts, too
    "cls_acc": {"label: 3\nlabel: 0"},  # behind the prompt's "label:" the second label is read, too
}
"""Predictions whose `official` scores differ from those of the functions."""
DIFFERING_DOCUMENT_ANSWERS = 50
"""All repeat "Answer:". The functions compare it with the rest; `official` removes it."""


def differing(kind: str) -> list[Row]:
    """The vectors whose score under `official` is not that of the functions.

    The vectors were made without the prompt's last words, which `eval.py` and `official` put before each prediction.
    """
    metric, found = METRICS[kind](Settings(profile="official")), []
    for row in vectors()[kind]:
        place = DEFAULTS.index(row["default"]) if kind == "binary_acc" else 0
        scored = metric.score(replace(asked(row, row["prediction"]), place=place))
        same = scored.details == pytest.approx(row["score"], abs=1e-6) if kind == "rouge" else False
        if not same and scored.score != pytest.approx(row["score"], abs=1e-6):
            found.append(row)
    return found


def test_every_metric_of_the_benchmark_is_held_against_the_vectors() -> None:
    assert set(METRICS) == set(vectors()) - {"mmlongbench_doc", "mmlongbench_doc_acc_f1"}


@pytest.mark.parametrize("kind", [kind for kind in METRICS if kind != "doc_qa"])
def test_official_differs_from_the_functions_only_by_the_prompts_last_words(kind: str) -> None:
    assert {row["prediction"] for row in differing(kind)} == DIFFERING.get(kind, set())
    assert len(differing(kind)) == len(DIFFERING.get(kind, set()))


def test_official_differs_on_document_answers_only_where_they_repeat_answer() -> None:
    rows = differing("doc_qa")
    assert len(rows) == DIFFERING_DOCUMENT_ANSWERS
    assert [row for row in rows if not row["prediction"].lower().startswith("answer:")] == []
    without = [row["prediction"][len("answer:") :] for row in rows]
    scores = [
        doc_qa(text.strip(), row["answer"], row["answer_format"]) for text, row in zip(without, rows, strict=True)
    ]
    official = DocumentAnswer(Settings(profile="official"))
    assert [official.score(asked(row, row["prediction"])).score for row in rows] == scores


def test_every_kind_of_vector_is_tried() -> None:
    assert set(vectors()) == {*SCORES, "rouge", "mmlongbench_doc_acc_f1"}


def test_outputs_are_parsed_alike() -> None:
    assert all(after_prefix(row["prediction"], "Answer:") == row["parsed"] for row in vectors()["sub_em"])


def test_all_four_figures_of_rouge_are_equal() -> None:
    scorer = rouge_scorer()
    for row in vectors()["rouge"]:
        assert rouge(scorer, row["prediction"], [row["answer"]]) == pytest.approx(row["score"], abs=1e-6)


def test_accuracy_and_f1_are_equal() -> None:
    for vector in vectors()["mmlongbench_doc_acc_f1"]:
        rows = [Judged(row["score"], row["answer"] != NA, row["pred"] != NA) for row in vector["rows"]]
        expected = {"accuracy": vector["acc"], "f1": vector["f1"]}
        assert accuracy_and_f1(rows) == pytest.approx(expected, abs=1e-6)
