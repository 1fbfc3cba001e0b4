"""Reasoning in predictions, from the command line to the report: it is not scored, and a cut-off one is no answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from score_lines import Line
from tiny import Ran, command

from mmlongbench.scoring.report import report
from mmlongbench.scoring.scores import ScoreLine, read_scores

pytestmark = pytest.mark.slow
DOCS = "documentQA/mmlongdoc_K8.jsonl"
GOLD = {"file": DOCS, "id": "mmlongdoc_0", "prediction": "12"}
"""A line with the gold answer of a document question."""
CUT = {"prediction": "", "reasoning": "It says 12, so", "finish_reason": "length"}


def run(public: Path, folder: Path, *options: str, **fields: object) -> tuple[Ran, ScoreLine, dict[str, Any]]:
    """(what was printed, the score line, the counts of reasoning) of one prediction."""
    path = folder / "m.jsonl"
    path.write_text(json.dumps({**GOLD, **fields}), "utf-8")
    found = command("score", public / DOCS, path, "--json", "--out", folder / "scores", *options)
    line = next(each for each in read_scores(folder / "scores") if each.id == GOLD["id"])
    return found, line, json.loads(found.out)["reasoning"]


@pytest.mark.parametrize(
    ("said", "kind", "score"),
    [
        ("<think>It is 13.</think>12", "stripped", 1.0),
        ("It is 13.</think>12", "stripped", 1.0),
        ("<think>It is 12.</think>13", "stripped", 0.0),
        ("<think>It is 12, I th", "unclosed", 0.0),
        ("<|channel|>analysis<|message|>13<|end|><|start|>assistant<|channel|>final<|message|>12", "stripped", 1.0),
        ("<|channel|>analysis<|message|>It is 12", "unclosed", 0.0),
    ],
    ids=["tags", "orphan", "wrong answer", "unclosed", "channels", "unclosed channel"],
)
def test_reasoning_in_the_text_is_not_scored(said: str, kind: str, score: float, public: Path, tmp_path: Path) -> None:
    _, line, counts = run(public, tmp_path, prediction=said, finish_reason="stop")
    assert (line.score, line.reasoning, counts) == (score, kind, {kind: 1})


def test_reasoning_that_a_server_returned_apart_is_not_scored(public: Path, tmp_path: Path) -> None:
    for said, score in (("13", 0.0), ("12", 1.0)):
        _, line, counts = run(public, tmp_path, prediction=said, reasoning="Answer: 12", finish_reason="stop")
        assert (line.score, line.reasoning, counts) == (score, "", {})


@pytest.mark.parametrize("options", [(), ("--reasoning", "keep")])
def test_an_empty_answer_cut_off_while_reasoning_is_counted_like_an_unclosed_tag(
    options: tuple[str, ...], public: Path, tmp_path: Path
) -> None:
    _, line, counts = run(public, tmp_path, *options, **CUT)
    assert (line.status, line.score, line.reasoning, counts) == ("scored", 0.0, "unclosed", {"unclosed": 1})
    assert report(tmp_path / "scores").reasoning == {"m": {"unclosed": 1}}


def test_it_is_said_in_words(public: Path, tmp_path: Path) -> None:
    run(public, tmp_path, **CUT)
    printed = command("score", public / DOCS, tmp_path / "m.jsonl", "--out", tmp_path / "scores").out
    assert "reasoning: 1 prediction has reasoning that was cut off; only the text before it is scored\n" in printed


@pytest.mark.parametrize(
    "fields",
    [
        {"finish_reason": "stop"},
        {"finish_reason": None},
        {"finish_reason": ["length"]},
        {"reasoning": ""},
        {"reasoning": " \n"},
        {"reasoning": None},
        {"reasoning": ["It says"]},
        {"prediction": "12"},
    ],
)
def test_what_is_not_cut_off_while_reasoning_is_not_counted(fields: Line, public: Path, tmp_path: Path) -> None:
    _, line, counts = run(public, tmp_path, **{**CUT, **fields})
    assert (line.reasoning, counts) == ("", {})


def test_each_sample_is_counted(public: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    lines = [{**GOLD, "sample": 0}, {**GOLD, **CUT, "sample": 1}, {**GOLD, **CUT, "sample": 2}]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    found = json.loads(command("score", public / DOCS, path, "--json", "--out", tmp_path / "scores").out)
    assert found["reasoning"] == {"unclosed": 2}
    assert [each.score for each in read_scores(tmp_path / "scores")][:3] == [1.0, 0.0, 0.0]
