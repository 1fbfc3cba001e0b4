"""What is printed of the contexts that models were given."""

from pathlib import Path

import pytest
from context_answers import DEPTHS, FOUR, TWO, four, predictions, public_files, two
from tiny import command

from mmlongbench.cli.shortcut_contexts import show_contexts
from mmlongbench.io.progress import Progress
from mmlongbench.shortcuts.contexts.audit import audit_contexts

RECORDS = [four(number, depth) for number in range(80) for depth in DEPTHS]


def shown(folder: Path, capsys: pytest.CaptureFixture[str], blind: int, models: int = 1) -> str:
    """What is printed of models that answer the first `blind` questions without context."""
    public = public_files(folder, {FOUR: RECORDS})
    for number in range(models):
        model = f"m{number}"
        path = folder / "predictions" / f"{model}.jsonl"
        predictions(path, FOUR, RECORDS, lambda number, depth: True, model=model)
        predictions(path.with_suffix(".none.jsonl"), FOUR, RECORDS, lambda at, depth: at < blind, "none", model)
    show_contexts(audit_contexts(public, [folder / "predictions"], Progress(False)))
    return capsys.readouterr().out


def test_means_differences_and_verdicts_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(tmp_path, capsys, blind=20).splitlines()
    means = next(line for line in lines if line.startswith("retrieval-image") and "100.0" in line)
    assert means.split()[:4] == ["retrieval-image", "all", "all", "25.0"]
    difference = next(line for line in lines if "75.0 [" in line)
    assert difference.split()[3:5] == ["none", "80"]
    assert difference.rstrip().endswith("needs the context")


def test_questions_are_listed_with_the_luck_they_would_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capsys, blind=20, models=4)
    assert "mm-niah-0 (4 of 4, luck 0.0039)" in text
    assert "and 10 more" in text
    numbers = next(line for line in text.splitlines() if line.split()[1:4] == ["80", "20", "0"])
    assert numbers.split()[4:] == ["20", "0.3"]


def test_one_model_that_is_right_by_chance_has_nothing_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "luck 0" not in shown(tmp_path, capsys, blind=20)


def test_an_undecided_verdict_says_how_many_questions_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(tmp_path, capsys, blind=74)
    assert "undecided (the context): too few questions, shows falls from" in text
    assert "would decide" in text


def test_small_groups_are_counted_and_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [two(number, depth) for number in range(8) for depth in DEPTHS]
    public = public_files(tmp_path, {TWO: records})
    predictions(tmp_path / "p" / "m.jsonl", TWO, records, lambda number, depth: True)
    show_contexts(audit_contexts(public, [tmp_path / "p"], Progress(False)))
    text = capsys.readouterr().out
    assert "2 groups of fewer than 5 clusters are not shown; the JSON has them" in text
    assert "answer: Yes" not in text
    assert "m: only predictions of the released prompt; `mmlongbench run --context none` makes others" in text


@pytest.mark.parametrize("option", [("--check",), ("--dataset", "retrieval-image"), ("--all",)])
def test_options_that_predictions_would_ignore_are_refused(tmp_path: Path, option: tuple[str, ...]) -> None:
    public = public_files(tmp_path, {FOUR: RECORDS})
    path = predictions(tmp_path / "p" / "m.jsonl", FOUR, RECORDS, lambda number, depth: True)
    ran = command("shortcuts", public, "--predictions", path, *option)
    assert ran.code == 2
    assert f"{option[0]} has no effect with --predictions" in ran.err
