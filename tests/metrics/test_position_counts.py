"""Counts position by position, as MM-NIAH scores them; beside the benchmark's sum, over answers with zeros."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import command

from builders.mm_niah import MMNIAH
from builders.mm_niah.builder import MMNIAHOptions
from mmlongbench.errors import ScoringError
from mmlongbench.manifest.registry import metric_type
from mmlongbench.metrics.position_counts import PositionCount, listed_values, position_accuracy
from mmlongbench.task.metric import ScoringInput, Settings

GOLD = [0, 2, 0, 1]
SAID: dict[str, tuple[str, float]] = {
    "all right": ("[0, 2, 0, 1]", 1.0),
    "no blanks": ("[0,2,0,1]", 1.0),
    "a period behind it": ("[0, 2, 0, 1].", 1.0),
    "a code fence": ("```json\n[0, 2, 0, 1]\n```", 1.0),
    "the same total elsewhere": ("[2, 0, 1, 0]", 0.0),
    "half": ("[0, 2, 1, 0]", 0.5),
    "too few": ("[0, 2]", 0.5),
    "too many": ("[0, 2, 0, 1, 1, 1]", 1.0),
    "an object of lists": ('{"first": [0, 2], "second": [0, 1]}', 1.0),
    "an object of numbers": ('{"1": 0, "2": 2}', 0.0),
    "fractions that are whole": ("[0.0, 2.0, 0.0, 1.0]", 1.0),
    "texts": ('["0", "2", "0", "1"]', 0.0),
    "a total": ("3", 0.0),
    "a sentence around it": ("The counts are [0, 2, 0, 1]", 0.0),
    "nothing": ("", 0.0),
    "brackets too deep": ("[" * 100_000, 0.0),
    "a number too long": (f"[{'9' * 5_000}]", 0.0),
}
"""What a model says to GOLD, and what the public code's rule gives."""


@pytest.mark.parametrize("said", SAID)
def test_the_rule_of_the_public_code(said: str) -> None:
    prediction, expected = SAID[said]
    assert position_accuracy(prediction, GOLD) == expected


def score(prediction: str, gold: Any = GOLD, settings: Settings | None = None) -> Any:
    asked = ScoringInput("NIAH/x.jsonl", "counting-image", "x", gold, prediction)
    return metric_type("mm-niah-count")(settings or Settings()).score(asked)


@pytest.mark.parametrize("lead", ["", "Answer: ", "I count.\nanswer: "], ids=["bare", "as asked", "after words"])
def test_the_list_stands_behind_the_words_that_the_prompt_asks_for(lead: str) -> None:
    found = score(f"{lead}[0, 2, 1, 0]")
    assert (found.score, found.details) == (0.5, {"is_list": True})


def test_a_reply_without_a_list_is_wrong_and_flagged() -> None:
    found = score("Answer: three")
    assert (found.score, found.details) == (0.0, {"is_list": False})
    assert listed_values("three") is None


@pytest.mark.parametrize("gold", ["[1]", [], [True], ["1"], 1, None], ids=str)
def test_an_answer_of_another_type_is_not_scored(gold: object) -> None:
    found = score("[1]", gold)
    assert found.score is None
    assert "expected a list of whole numbers" in found.failure


def test_it_says_whose_rule_it_follows() -> None:
    followed = {profile: PositionCount(Settings(profile=profile)) for profile in ("official", "paper")}
    assert PositionCount(Settings()).profile == "official"
    assert [metric.profile for metric in followed.values()] == ["official", "paper"]
    assert [metric.follows for metric in followed.values()] == ["OpenGVLab/MM-NIAH@7bca1e7", "arXiv:2406.07230"]
    assert PositionCount(Settings()).choices == ('read behind "Answer:"',)
    with pytest.raises(ScoringError, match="does not offer it; it offers official, paper"):
        _ = PositionCount(Settings(profile="ours")).profile


def test_counting_declares_it_and_the_other_tasks_do_not() -> None:
    for task in ("counting", "retrieval", "reasoning"):
        for needle in ("text", "image"):
            spec = MMNIAH("x", MMNIAHOptions(task=task, needle=needle)).spec
            assert ("mm-niah-count" in spec.further_metrics) == (task == "counting")


def test_both_metrics_score_a_file_whose_answers_have_zeros(tmp_path: Path) -> None:
    file = tmp_path / "mmlb_data" / "NIAH" / "counting-image_test_K8_dep3.jsonl"
    file.parent.mkdir(parents=True)
    record = {"id": "mm-niah-1", "question": "How many?", "answer": GOLD, "ctxs": [], "image_list": []}
    file.write_text("".join(json.dumps({**record, "permutation": n}) + "\n" for n in range(2)), "utf-8")
    said = tmp_path / "model.jsonl"
    about = {"file": "NIAH/counting-image_test_K8_dep3.jsonl", "id": "mm-niah-1"}
    replies = ("Answer: [2, 1]", "Answer: [0, 2, 0, 0]")
    lines = [{**about, "permutation": n, "prediction": reply} for n, reply in enumerate(replies)]
    said.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    ran = command("score", file, said, "--metrics", "default,mm-niah-count", "--out", tmp_path / "scores")
    assert ran.code == 0, ran.err
    (out,) = (tmp_path / "scores").glob("*.jsonl")
    scores = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    found = {(line["metric"], line["permutation"]): line["score"] for line in scores}
    assert found == {("soft_acc", 0): 1.0, ("mm-niah-count", 0): 0.0, ("soft_acc", 1): 0.0, ("mm-niah-count", 1): 0.75}
