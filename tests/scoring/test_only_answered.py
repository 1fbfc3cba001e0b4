"""Scores of a part of a release, and notes on answers whose calls had a fault."""

import json
from pathlib import Path
from typing import Any

import pytest

import mmlongbench as mm

PARTS: tuple[dict[str, str], ...] = ({}, {"receipt": "image-lost"}, {"receipt": "no-such-fault"})


@pytest.fixture
def predictions(finished: Path, tmp_path: Path) -> Path:
    """Gold answers to the first three examples at 2K; the second call lost an image."""
    examples = list(mm.open_release(finished).examples("mmlongdoc", "2K"))[:3]
    lines = [
        {**example.key, "digest": example.digest, "prediction": f"Answer: {example.answer}", **more}
        for example, more in zip(examples, PARTS, strict=True)
    ]
    path = tmp_path / "m.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def scored(release: Path, predictions: Path, **choices: Any) -> mm.Scores:
    return mm.score(release, predictions, **choices)


def test_only_what_was_answered_is_scored(finished: Path, predictions: Path) -> None:
    found = scored(finished, predictions, only_answered=True)
    assert [(cell.length, cell.examples, cell.absent) for cell in found.cells] == [(2048, 3, 0)]
    assert found.problems == ()
    assert "left out by --only-answered: 3 examples of the files, 1 whole files" in found.notes
    whole = scored(finished, predictions)
    assert [(cell.examples, cell.absent) for cell in whole.cells] == [(6, 6), (6, 3)]
    assert [problem.reason for problem in whole.problems] == ["absent"]


def test_answers_to_damaged_prompts_are_counted(finished: Path, predictions: Path) -> None:
    said = "1 of 3 answers were given to prompts whose tokens were not as expected: image-lost 1"
    assert said in scored(finished, predictions, only_answered=True).notes
