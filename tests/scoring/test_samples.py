"""Several answers of a model to one example: an example counts once, with the mean, the best and the majority."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from score_lines import (
    Line,
    absent,
    cells,
    counts,
    first,
    is_inapplicable,
    known,
    line,
    mean,
    page,
    printed,
    problems,
    reported,
    score,
    scored,
    skipped,
    told,
)

import mmlongbench as mm
from mmlongbench.metrics.benchmark import (
    ClassLabel,
    DocumentAnswer,
    OptionLetter,
    SubstringExactMatch,
    TotalCount,
    YesNo,
)
from mmlongbench.metrics.mmlongbench_doc import ANLS, Rules
from mmlongbench.metrics.position_counts import PositionCount
from mmlongbench.metrics.smudge import SMuDGE
from mmlongbench.task import Score
from mmlongbench.task.metrics import Metric, ScoringInput, Settings

VH = "NIAH/vh_multi_test_2_K8_dep3.jsonl"
DOCS = "documentQA/mmlongdoc_K8.jsonl"
COUNTS = "NIAH/counting-text_test_K8_dep3.jsonl"
WRONG = "no such thing"
OF_DOCS = ("doc_qa", "mmlongdoc", "8192")
SKIP = {"prediction": None, "skipped": "context-length"}
FEWER = "examples have fewer samples than others of their file"


def sampled(of: Line, *said: str | None) -> list[Line]:
    """Lines with several answers to an example; None: the gold answer."""
    return [
        {**of, "sample": n, "prediction": of["prediction"] if each is None else each} for n, each in enumerate(said)
    ]


def test_each_sample_has_a_line_and_an_example_counts_once(public: Path, docs: list[Line], tmp_path: Path) -> None:
    lines = sampled(docs[0], None, WRONG, WRONG, None) + sampled(docs[1], WRONG, None, None, None)
    lines += [each for other in docs[2:] for each in sampled(other, None, None, None, None)]
    found = score(public, lines, tmp_path, "--partial", "--json")
    assert (found.code, set(problems(found))) == (1, {"no-predictions"})
    made = scored(tmp_path / "scores")
    assert [(each.id, each.sample, each.score) for each in made[:8]] == [
        *(("mmlongdoc_0", n, points) for n, points in enumerate((1.0, 0.0, 0.0, 1.0))),
        *(("mmlongdoc_1", n, points) for n, points in enumerate((0.0, 1.0, 1.0, 1.0))),
    ]
    assert len({each.answer for each in made[:4]}) == 2
    assert cells(found)[OF_DOCS] == {
        **{"score": pytest.approx((0.5 + 0.75 + 3) / 5), "examples": 5, "absent": 0, "failed": 0, "skipped": 0},
        **{"samples": 4, "best": 1.0, "majority": 1.0, "failed_samples": 0},
    }
    text = score(public, lines, tmp_path, "--partial").out
    rows = [row.split() for row in text.splitlines()]
    for row in (["mmlongdoc", "doc_qa", "85.0", "(5)"], ["best", "of", "4", "100.0"], ["majority", "of", "4", "100.0"]):
        assert row in rows
    assert "fewer samples" not in text
    (of_python,) = mm.score(public, tmp_path / "m.jsonl", partial=True).cells
    assert (of_python.score, of_python.samples, of_python.best, of_python.majority) == (0.85, 4, 1.0, 1.0)


def test_score_and_report_agree_on_every_figure(public: Path, docs: list[Line], tmp_path: Path) -> None:
    lines = sampled(docs[0], WRONG, "other", "other", None) + sampled(docs[1], None, None, WRONG)
    lines += [*sampled(docs[2], WRONG), *docs[3:]]
    options = ("--partial", "--metrics", "doc_qa,mmlongbench-doc", "--json")
    found = score(public, lines, tmp_path, *options)
    whole = told(tmp_path / "scores")
    for metric in ("doc_qa", "mmlongbench-doc"):
        made = cells(found)[metric, "mmlongdoc", "8192"]
        assert made["score"] == pytest.approx((1 / 4 + 2 / 3 + 0 + 1 + 1) / 5)
        assert made["score"] == pytest.approx(mean(whole["scores"], "mmlongdoc", "8K", of=metric))
        assert (made["best"], made["majority"]) == pytest.approx((4 / 5, 3 / 5))
        of_samples = {each["row"]: each["mean"] for each in whole["samples"]["cells"] if each["metric"] == metric}
        assert of_samples == pytest.approx({"best of 4": made["best"], "majority of 4": made["majority"]})
    totals = {each["row"]: each["mean"] for each in whole["totals"]["cells"]}
    assert {name: made[name] for name in totals} == pytest.approx(totals)
    assert made["accuracy"] == pytest.approx(made["score"])
    assert f"4 of 5 {FEWER}; first {DOCS}: mmlongdoc_1 has 3 of 4" in json.loads(found.out)["notes"]
    assert f"m, doc_qa: 4 of 5 {FEWER}" in whole["notes"]


def test_samples_may_be_in_any_order_begin_anywhere_and_be_there_once(
    public: Path, docs: list[Line], tmp_path: Path
) -> None:
    one = [*docs[1:], docs[0] | {"sample": 7}, docs[0] | {"sample": 2, "prediction": WRONG}]
    score(public, one, tmp_path, "--partial")
    assert [(each.sample, each.score) for each in scored(tmp_path / "scores")[:2]] == [(2, 0.0), (7, 1.0)]
    lines = [docs[0], *sampled(docs[0], WRONG, None), *docs[1:], docs[0] | {"sample": 1, "prediction": WRONG}]
    found = score(public, lines, tmp_path, "--partial", "--json")
    assert problems(found)["duplicate"] == 2
    assert first(found, "duplicate") == [
        f"m.jsonl, line 2: {DOCS}: mmlongdoc_0",
        f"m.jsonl, line {len(lines)}: {DOCS}: mmlongdoc_0, sample 1",
    ]
    assert [each.score for each in scored(tmp_path / "scores")[:2]] == [1.0, 1.0]


def test_a_line_without_a_sample_is_sample_0_and_gives_the_lines_of_before(
    public: Path, docs: list[Line], tmp_path: Path
) -> None:
    plain = score(public, docs, tmp_path, "--partial").out
    written = (tmp_path / "scores/m.default.jsonl").read_bytes()
    assert (b"sample" in written, b'answer":' in written) == (False, False)
    assert score(public, [each | {"sample": 0} for each in docs], tmp_path, "--partial").out == plain
    assert (tmp_path / "scores/m.default.jsonl").read_bytes() == written


def test_an_example_is_skipped_only_if_it_has_no_answer(public: Path, docs: list[Line], tmp_path: Path) -> None:
    rest = [*sampled(docs[1], None, None), *docs[2:]]
    partly = [*sampled(docs[0], None, WRONG), docs[0] | SKIP | {"sample": 2}, *rest]
    found = score(public, partly, tmp_path, "--partial", "--json")
    assert (cells(found)[OF_DOCS]["score"], cells(found)[OF_DOCS]["skipped"]) == (pytest.approx(0.9), 0)
    assert json.loads(found.out)["skipped"] == {}
    whole = [*(docs[0] | SKIP | {"sample": n} for n in range(3)), *rest]
    found = score(public, whole, tmp_path, "--partial", "--json")
    made = cells(found)[OF_DOCS]
    figures = ("score", "best", "majority", "skipped", "score_of_others")
    assert [made[name] for name in figures] == [None, None, None, 1, 1.0]
    assert json.loads(found.out)["skipped"] == {"context-length": 1}
    assert [each.status for each in scored(tmp_path / "scores") if each.id == "mmlongdoc_0"] == ["skipped"]


def test_an_absent_example_scores_0_once(public: Path, docs: list[Line], tmp_path: Path) -> None:
    found = score(public, [*sampled(docs[1], None, WRONG, WRONG), *docs[2:]], tmp_path, "--partial", "--json")
    made = cells(found)[OF_DOCS]
    assert (made["absent"], made["examples"]) == (1, 5)
    assert (made["score"], made["best"]) == pytest.approx(((1 / 3 + 3) / 5, 4 / 5))
    assert f"m, doc_qa: 3 of 4 {FEWER}" in told(tmp_path / "scores")["notes"]


def test_samples_of_rows_that_only_their_order_tells_apart_and_of_refusals_keep_their_turns(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    of: Line = {"file": COUNTS, "id": "mm-niah-1"}
    lines = [of | {"sample": n, "prediction": said} for said in ("3", "4", "5") for n in (0, 1)]
    lines[1]["prediction"] = "0"
    score(public, lines, tmp_path, "--partial")
    assert [(each.permutation, each.sample, each.score) for each in scored(tmp_path / "scores")] == [
        *((0, 0, 1.0), (0, 1, 0.0), (1, 0, 1.0), (1, 1, 1.0), (2, 0, 1.0), (2, 1, 1.0))
    ]
    refused = [each | {"prediction": "I cannot tell"} for each in golds if each["file"] == VH]
    score(public, [each | {"sample": n} for each in refused for n in (0, 1)], tmp_path, "--partial", "-q")
    in_turn = [a == b for a, b in zip((0, 1, 1, 0, 0, 1), (1, 1, 1, 0, 0, 0), strict=True)]
    assert [each.score for each in scored(tmp_path / "scores")] == [turn for turn in in_turn for _ in (0, 1)]


def test_failed_samples_are_left_out_of_their_example_and_counted(
    public: Path, docs: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flaky(metric: DocumentAnswer, asked: ScoringInput) -> Score:
        if asked.prediction == "fail":
            return Score(None, failure="the judge was away")
        return Score(float(asked.prediction == "yes"), {"said": len(asked.prediction)})

    monkeypatch.setattr(DocumentAnswer, "score", flaky)
    lines = sampled(docs[0], "fail", "yes", "no") + sampled(docs[1], "fail", "fail", "fail")
    lines += [each for other in docs[2:] for each in sampled(other, "yes", "yes", "yes")]
    found = score(public, lines, tmp_path, "--partial", "--json")
    made = cells(found)[OF_DOCS]
    assert (found.code, made["failed"], made["failed_samples"]) == (1, 1, 1)
    assert made["score"] == pytest.approx(3.5 / 4)
    said = score(public, lines, tmp_path, "--partial").err
    assert f"failed: doc_qa: 1 examples have no score, first {DOCS}: mmlongdoc_0: the judge was away\n" in said
    assert "failed: doc_qa: 1 samples of examples with other samples have no score, first" in said
    whole = told(tmp_path / "scores")
    of = known(whole["scores"], "mmlongdoc", "8K")
    assert (of["mean"], counts(of)) == (pytest.approx(3.5 / 4), (5, 0, 1, 0))
    assert "1 samples of examples with other samples have failed" in " ".join(whole["notes"])
    assert mean(whole["details"], "said", "8K") == pytest.approx((2.5 + 3 * 3) / 4)


@pytest.mark.parametrize(
    ("metric", "fields", "same", "other"),
    [
        (SubstringExactMatch, {}, ("The Peru.", "answer: peru"), "Chile"),
        (YesNo, {}, ("Yes, there is", "I say yes"), "No"),
        (OptionLetter, {}, ("Answer: (C)", "C"), "D"),
        (ClassLabel, {}, ("label: 3", "I think 3"), "label: 4"),
        (TotalCount, {}, ("[1, 2]", "3"), "[1, 1]"),
        (TotalCount, {}, ("x", "0"), "9" * 4300 + " " + "9" * 4300),
        (DocumentAnswer, {"answer_format": "String"}, ("Tern  Rock", "the tern rock"), "Rock"),
        (ANLS, {}, ("Tern  Rock", "so. Answer: tern rock"), "Rock"),
        (Rules, {"answer_format": "Integer"}, ("The answer is 12.", "12"), "13"),
        (PositionCount, {}, ("[0, 2]", "Answer: [0,2]"), "[2, 0]"),
        (SMuDGE, {}, ("Tern  Rock", " tern rock"), "Rock"),
    ],
)
def test_answers_are_compared_as_the_metric_reads_them(
    metric: type[Metric], fields: Line, same: tuple[str, str], other: str, tmp_path: Path
) -> None:
    made = metric(Settings(documents=tmp_path))
    one, two, three = (
        made.compared_answer(ScoringInput("f", "d", "1", "x", said, **fields)) for said in (*same, other)
    )
    assert one == two != three


def example(id: object, *scores: float | None, answers: str = "abcdefgh", **fields: Any) -> list[Line]:
    """The score lines of the samples of an example."""
    return [line(id, points, sample=n, answer=answers[n], **fields) for n, points in enumerate(scores)]


MAJORITY = {"ab": 0, "abb": 1, "aabb": 0, "baab": 1, "abcb": 1, "aab": 0}
"""Answers, of which `b` is right, and the score of the most frequent one; of equally frequent ones the first counts."""


def test_the_majority_is_the_most_frequent_answer_and_of_several_the_first(tmp_path: Path) -> None:
    for n, (answers, right) in enumerate(MAJORITY.items()):
        lines = example(1, *(float(answer == "b") for answer in answers), answers=answers)
        found = reported(tmp_path / f"{n}", lines)["samples"]
        assert mean(found, f"majority of {len(answers)}", "8K") == right, answers
        assert mean(found, f"best of {len(answers)}", "8K") == 1.0


def test_an_interval_over_samples_is_that_of_the_means_of_the_examples(tmp_path: Path) -> None:
    scores = [(0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.25)] * 5
    many = [each for n, both in enumerate(scores) for each in example(n, *both * 4)]
    means = [line(n, math.fsum(both) / 2) for n, both in enumerate(scores)]
    found, wanted = (known(reported(tmp_path, lines)["scores"], "docs", "8K") for lines in (many, means))
    assert found == wanted
    assert (found["clusters"], found["examples"]) == (30, 30)
    few = known(reported(tmp_path, many[: 4 * 8])["scores"], "docs", "8K")
    assert (few["interval"], few["clusters"]) == (None, 4)


def test_the_order_of_files_and_lines_changes_nothing(tmp_path: Path) -> None:
    about: dict[str, Any] = {"facets": {"kind": ["x"]}, "depth": 0.5}
    lines = [each for n in range(7) for each in example(n, 0.1, 0.7, 0.2 * (n % 5), None, **about)]
    for number, each in enumerate(lines):
        each["details"] = {"recall": number / 7}
    assert reported(tmp_path / "a", lines) == reported(tmp_path / "b", lines[::-1])


def test_models_with_and_without_samples_are_compared_over_examples(tmp_path: Path) -> None:
    lines = [each for n in range(6) for each in example(n, 0.0, 1.0, 1.0, answers="abb", model="many")]
    folder = tmp_path / "scores"
    found = reported(folder, lines + [line(n, 0.5, model="one") for n in range(6)])
    assert found["lines"] == 12
    assert mean(found["scores"], "docs", "8K", "many") == pytest.approx(2 / 3)
    assert {(each["model"], each["row"], each["of"]) for each in found["samples"]["cells"]} == {
        ("many", "best of 3", "docs"),
        ("many", "majority of 3", "docs"),
    }
    best = known(found["samples"], "best of 3", "8K", "many")
    assert (best["mean"], best["interval"], best["examples"]) == (1.0, [1.0, 1.0], 6)
    assert mean(found["samples"], "majority of 3", "8K", "many") == 1.0
    html, text = page(folder), printed(folder)
    assert [said for said in ("Several samples", "majority of 3") if said not in html] == []
    assert [said for said in ("several samples, unknown", "docs majority of 3") if said not in text] == []


def test_without_several_samples_a_report_does_not_speak_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "scores"
    assert reported(folder, [line(1, 1.0), line(2, 0.0)])["samples"]["cells"] == []
    for text in (page(folder), printed(folder)):
        assert "samples" not in text.replace("resamples", "")


def test_samples_of_skipped_and_absent_examples_in_a_report(tmp_path: Path) -> None:
    lines = [*example(1, 1.0, 0.0), absent(2), *example(3, 1.0, 1.0)]
    found = known(reported(tmp_path, lines)["scores"], "docs", "8K")
    assert (found["mean"], counts(found)) == (0.5, (3, 1, 0, 0))
    held = reported(tmp_path, [*lines, skipped(4)])["samples"]
    assert is_inapplicable(known(held, "best of 2", "8K"))
