"""Scores equal those of the public code, over the vectors that were computed with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmlongbench.scoring.benchmark import (
    DocumentAnswer,
    SubstringExactMatch,
    TotalCount,
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
from mmlongbench.scoring.benchmark.metrics import BenchmarkMetric
from mmlongbench.scoring.metric import Asked, Settings
from mmlongbench.scoring.mmlongbench_doc import Judged, accuracy_and_f1, score_extracted

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


def asked(row: Row, prediction: str) -> Asked:
    record = {"id": "x", "answer_format": row.get("answer_format", "")}
    return Asked("f", "d", record, row["answer"], prediction)


def test_the_metrics_under_official_give_the_same_where_they_see_the_same_text() -> None:
    """They put the prompt's last words in front, which these vectors were made without."""
    official = Settings(profile="official")
    compared, differ = 0, list[Row]()
    metrics: dict[str, BenchmarkMetric] = {
        "doc_qa": DocumentAnswer(official),
        "count_acc": TotalCount(official),
        "sub_em": SubstringExactMatch(official),
    }
    for kind, metric in metrics.items():
        for row in vectors()[kind]:
            said: str = row["prediction"]
            if kind == "sub_em" and not said.startswith("Answer:"):
                continue
            said = said.removeprefix("Answer:") if kind == "sub_em" else said
            if kind == "doc_qa" and after_prefix(said, "Answer:") != said:
                continue
            compared += 1
            if metric.score(asked(row, said)).score != pytest.approx(row["score"], abs=1e-6):
                differ.append(row)
    assert (compared > 700, differ) == (True, [])


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
