"""Counts position by position, as MM-NIAH scores them; beside the benchmark's sum, over answers with zeros."""

from pathlib import Path
from typing import Any

import pytest
from score_lines import score, scored, write

from mmlongbench.errors import ScoringError
from mmlongbench.metrics.position_counts import PositionCount, listed_values, position_accuracy
from mmlongbench.task import Score
from mmlongbench.task.metrics import ScoringInput, Settings

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


def made(prediction: str, gold: Any = GOLD) -> Score:
    return PositionCount(Settings()).score(ScoringInput("NIAH/x.jsonl", "counting-image", "x", gold, prediction))


@pytest.mark.parametrize("lead", ["", "Answer: ", "I count.\nanswer: "], ids=["bare", "as asked", "after words"])
def test_the_list_stands_behind_the_words_that_the_prompt_asks_for(lead: str) -> None:
    assert made(f"{lead}[0, 2, 1, 0]") == Score(0.5, {"is_list": True})


def test_a_reply_without_a_list_is_wrong_and_flagged() -> None:
    assert made("Answer: three") == Score(0.0, {"is_list": False})
    assert listed_values("three") is None


@pytest.mark.parametrize("gold", ["[1]", [], [True], ["1"], 1, None], ids=str)
def test_an_answer_of_another_type_is_not_scored(gold: object) -> None:
    found = made("[1]", gold)
    assert (found.score, "expected a list of whole numbers" in found.failure) == (None, True)


def test_it_says_whose_rule_it_follows() -> None:
    for asked, profile, follows in (
        (None, "official", "OpenGVLab/MM-NIAH@7bca1e7"),
        ("official", "official", "OpenGVLab/MM-NIAH@7bca1e7"),
        ("paper", "paper", "arXiv:2406.07230"),
    ):
        metric = PositionCount(Settings(profile=asked))  # type: ignore[arg-type]
        assert (metric.profile, metric.follows, metric.choices) == (profile, follows, ('read behind "Answer:"',))
    with pytest.raises(ScoringError, match="does not offer it; it offers official, paper"):
        PositionCount(Settings(profile="ours"))


def test_both_metrics_score_a_file_of_counts_whose_answers_have_zeros_and_no_other_file(tmp_path: Path) -> None:
    name = "NIAH/counting-image_test_K8_dep3.jsonl"
    record = {"id": "mm-niah-1", "question": "How many?", "answer": GOLD, "ctxs": [], "image_list": []}
    (tmp_path / "mmlb_data/NIAH").mkdir(parents=True)
    folder = write(tmp_path / "mmlb_data/NIAH", [{**record, "permutation": n} for n in range(2)], Path(name).name)
    replies = ("Answer: [2, 1]", "Answer: [0, 2, 0, 0]")
    lines = [{"file": name, "id": "mm-niah-1", "permutation": n, "prediction": said} for n, said in enumerate(replies)]
    ran = score(folder / Path(name).name, lines, tmp_path, "--metrics", "default,mm-niah-count")
    assert ran.code == 0, ran.err
    assert {(line.metric, line.permutation): line.score for line in scored(tmp_path / "scores")} == {
        **{("soft_acc", 0): 1.0, ("mm-niah-count", 0): 0.0},
        **{("soft_acc", 1): 0.0, ("mm-niah-count", 1): 0.75},
    }
    for task in ("counting-text", "retrieval-text", "retrieval-image", "reasoning-text", "reasoning-image"):
        other = f"{task}_test_K8_dep6.jsonl"
        write(folder, [{**record, "answer": 0}], other)
        ran = score(folder / other, [], tmp_path / task, "--metrics", "mm-niah-count", "--dry-run")
        assert ("no dataset here declares it" in ran.err) == (task != "counting-text"), task
