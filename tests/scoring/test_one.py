"""Scores of single examples: they equal those of `mmlongbench score`."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mmlongbench as mm

UNTOLD = "NIAH/counting-text_test_K8_dep3.jsonl"
"""A file of other origin, whose rows differ only by their order."""
SAYINGS = (None, "", "no idea", "Answer: Yes", "<think>It is Yes.</think>Answer: No", "<think>It is 12, I th")
"""Predictions for every example; None: the gold answer."""


def told(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["file"] != UNTOLD]


def by_score(release: Path, lines: list[dict[str, Any]], folder: Path, **choices: Any) -> list[float | None]:
    """The scores of the lines, as `score` writes them, in the order of the lines."""
    file = folder / "a-model.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    scores = mm.score(release, file, out=folder / "scores", partial=True, **choices)
    assert scores.file is not None
    written = [json.loads(line) for line in scores.file.read_text("utf-8").splitlines()]
    found = {key(line): line["score"] for line in written if line.get("status", "scored") == "scored"}
    return [found[key(line)] for line in lines]


def key(line: dict[str, Any]) -> tuple[object, ...]:
    return tuple(line.get(name) for name in ("file", "id", "depth", "permutation"))


@pytest.mark.parametrize("said", SAYINGS)
@pytest.mark.parametrize("keep_reasoning", [False, True])
def test_a_score_is_that_of_all_predictions_together(
    public: Path, golds: list[dict[str, Any]], said: str | None, keep_reasoning: bool, tmp_path: Path
) -> None:
    lines = [line if said is None else {**line, "prediction": said} for line in told(golds)]
    expected = by_score(public, lines, tmp_path, keep_reasoning=keep_reasoning)
    scorer = mm.scorer(public, keep_reasoning=keep_reasoning)
    assert [scorer.score(line, line["prediction"]).score for line in lines] == expected
    if said is None:
        assert set(expected) == {1.0}


def test_a_refused_answer_counts_by_its_place_among_those_that_were_asked(
    public: Path, golds: list[dict[str, Any]], tmp_path: Path
) -> None:
    asked = [line for line in golds if "vh_multi" in line["file"]][2:]
    lines = [{**line, "prediction": "I cannot see the images."} for line in asked]
    expected = by_score(public, lines, tmp_path)
    scorer = mm.scorer(public)
    ours = [scorer.score(line, line["prediction"], place).score for place, line in enumerate(lines)]
    assert ours == expected == [0.0, 0.0, 0.0, 1.0]
    assert [scorer.score(line, line["prediction"]).score for line in lines] == [1.0, 1.0, 1.0, 0.0]


def test_threads_share_a_scorer(public: Path, golds: list[dict[str, Any]]) -> None:
    scorer = mm.scorer(public)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda line: scorer.score(line, line["prediction"]).score, told(golds) * 3))
    assert set(found) == {1.0}
    scorer.close()


def test_what_the_release_does_not_have_is_named(public: Path) -> None:
    scorer = mm.scorer(public)
    with pytest.raises(mm.ScoringError, match=r"no public file 'vrag/viqae_K8_dep6.jsonl'.*did you mean 'vrag/viquae"):
        scorer.score({"file": "vrag/viqae_K8_dep6.jsonl", "id": "viquae-1"}, "x")
    with pytest.raises(mm.ScoringError, match=r"no public file None"):
        scorer.score({"id": "viquae-1"}, "x")
    with pytest.raises(mm.ScoringError, match=r"no example 'viquae-1' at depth 0.3"):
        scorer.score({"file": "vrag/viquae_K8_dep6.jsonl", "id": "viquae-1", "depth": 0.3}, "x")
    with pytest.raises(mm.ScoringError, match=r"id is None, expected a text"):
        scorer.score({"file": "vrag/viquae_K8_dep6.jsonl"}, "x")
    with pytest.raises(mm.ScoringError, match=r"'mm-niah-1' is the id of several examples that nothing tells apart"):
        scorer.score({"file": UNTOLD, "id": "mm-niah-1"}, "x")
    with pytest.raises(mm.ReleaseError):
        mm.scorer(public / "nothing")
