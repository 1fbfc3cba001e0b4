"""Predictions are read once: usable lines are held by their places, others are counted by reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from mmlongbench.errors import ScoringError
from mmlongbench.io import safe_read as bounded
from mmlongbench.scoring.predictions import key_of, read_predictions
from mmlongbench.scoring.problems import REASONS, Problems

FILE = "NIAH/vh_single_test_2_K8_dep6.jsonl"
LINE = {"file": FILE, "id": "vh-1", "depth": 0.2, "prediction": "Yes"}


def read(path: Path, *lines: object) -> tuple[dict[str, Any], Problems]:
    """(by file: by key: what was said, what was wrong) of lines: JSON's values, or bytes as they are."""
    made = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.write_bytes(b"\n".join(made))
    problems = Problems()
    with read_predictions([path], problems) as found:
        said = {
            file: {key: [found.text(each) for each in queue] for key, queue in keys.items()}
            for file, keys in found.by_file.items()
        }
    return said, problems


def test_a_line_is_told_by_file_id_and_placement(tmp_path: Path) -> None:
    by_permutation = {**LINE, "file": f"./mmlb_data/{FILE}", "permutation": 1, "depth": None, "prediction": "No\n"}
    alone = {"file": FILE, "id": 7, "prediction": ""}
    said, problems = read(tmp_path / "a.jsonl", LINE, b"", by_permutation, alone)
    assert said == {
        FILE: {("vh-1", "depth", 0.2): ["Yes"], ("vh-1", "permutation", 1.0): ["No\n"], ("7", "", 0.0): [""]}
    }
    assert not problems


@pytest.mark.parametrize(
    ("line", "reason", "place"),
    [
        (b"{not json", "unreadable-line", "a.jsonl, line 2"),
        (b'{"id": "\xff"}', "unreadable-line", "a.jsonl, line 2"),
        (b"[" * 100_000, "unreadable-line", "a.jsonl, line 2"),
        ([1], "unreadable-line", "a.jsonl, line 2"),
        ({"id": "vh-1", "prediction": "Yes"}, "missing-field", "a.jsonl, line 2: file"),
        ({**LINE, "id": ["vh-1"]}, "mistyped-field", "a.jsonl, line 2: id is ['vh-1'], expected a text"),
        ({**LINE, "depth": "0.2"}, "mistyped-field", "a.jsonl, line 2: depth is '0.2', expected a number"),
        (
            b'{"file": "a", "id": "b", "depth": NaN, "prediction": ""}',
            "mistyped-field",
            "a.jsonl, line 2: depth is nan",
        ),
        (
            b'{"file": "a", "id": "b", "depth": ' + b"9" * 400 + b', "prediction": ""}',
            "mistyped-field",
            f"a.jsonl, line 2: depth is {'9' * 80}, expected a number",
        ),
        ({**LINE, "file": 3}, "mistyped-field", "a.jsonl, line 2: file is 3, expected a path below mmlb_data/"),
        ({**LINE, "prediction": 3}, "not-a-text", "a.jsonl, line 2: int"),
        ({**LINE, "prediction": ["Yes"]}, "not-a-text", "a.jsonl, line 2: list"),
        ({**LINE, "prediction": None}, "not-a-text", "a.jsonl, line 2: NoneType"),
    ],
)
def test_what_cannot_be_used_is_named_and_the_rest_is_read(
    line: object, reason: str, place: str, tmp_path: Path
) -> None:
    said, problems = read(tmp_path / "a.jsonl", LINE, line)
    assert said == {FILE: {("vh-1", "depth", 0.2): ["Yes"]}}
    (found,) = problems.summary().items()
    assert (found[0], found[1]["count"]) == (reason, 1)
    assert found[1]["first"][0].startswith(place)
    assert reason in REASONS


def test_a_line_beyond_the_bound_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_BYTES", 200)
    said, problems = read(tmp_path / "a.jsonl", {**LINE, "prediction": "x" * 500}, LINE)
    assert said == {FILE: {("vh-1", "depth", 0.2): ["Yes"]}}
    assert problems.summary() == {"line-too-long": {"count": 1, "first": ["a.jsonl, line 1"]}}


def test_of_a_long_prediction_only_the_place_is_held(tmp_path: Path) -> None:
    long = "word " * 2_000_000
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**LINE, "prediction": long}) + "\n", "utf-8")
    with read_predictions([path], Problems()) as found:
        (held,) = found.by_file[FILE]["vh-1", "depth", 0.2]
        assert (held.text, held.offset) == (None, 0)
        assert found.text(held) == long


def test_problems_are_counted_and_the_first_named() -> None:
    problems = Problems()
    for number in range(5):
        problems.add("absent", f"example {number}")
    problems.add("duplicate", "line 3", 0)
    assert problems.summary() == {"absent": {"count": 5, "first": ["example 0", "example 1", "example 2"]}}


def official(path: Path, rows: list[Any], **args: object) -> Path:
    found = {"args": {"test_files": FILE, "max_test_samples": None, **args}, "data": rows, "metrics": {"acc": [1]}}
    path.write_text(json.dumps(found), "utf-8")
    return path


def test_outputs_of_the_public_code_are_read_without_the_prefix_it_put_there(tmp_path: Path) -> None:
    rows = [
        {"id": "vh-1", "depth": 0.2, "output": "Answer: Yes", "question": "Is it?"},
        {"domain": "food101", "example": {"id": "test-1", "answer": 3}, "output": "label:label: 3"},
        {"id": "vh-2", "output": "as it is"},
        {"id": "vh-3", "output": None},
        {"output": "Answer: whose?"},
        "no row",
    ]
    problems = Problems()
    with read_predictions([official(tmp_path / "out.json", rows, max_test_samples=50)], problems) as found:
        held = {key: [(each.lead, found.text(each)) for each in queue] for key, queue in found.by_file[FILE].items()}
    assert held == {
        ("vh-1", "depth", 0.2): [("Answer:", " Yes")],
        ("test-1", "", 0.0): [("label:", "label: 3")],
        ("vh-2", "", 0.0): [("", "as it is")],
    }
    assert found.drawn([FILE]) == 50
    assert {reason: each["count"] for reason, each in problems.summary().items()} == {
        "mistyped-field": 2,
        "not-a-text": 1,
    }


@pytest.mark.parametrize("found", ["{", "[]", '{"data": []}', '{"data": [], "args": {}}', '{"data": {}, "args": {}}'])
def test_another_json_file_is_said_to_be_no_output(found: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(found)
    problems = Problems()
    read_predictions([tmp_path], problems)
    assert problems.summary()["unreadable-file"]["first"][0].startswith("a.json: expected ")


def test_an_output_too_large_to_be_read_whole_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_OF_A_FILE", 10)
    problems = Problems()
    read_predictions([official(tmp_path / "out.json", [])], problems)
    (said,) = problems.summary()["unreadable-file"]["first"]
    assert said.startswith("out.json: ")
    assert "at most 10 bytes" in said


def test_a_folder_is_read_file_after_file_without_judged_copies(tmp_path: Path) -> None:
    official(tmp_path / "b.json", [{"id": "vh-2", "output": "No"}])
    official(tmp_path / "b-gpt4eval_o.json", [{"id": "vh-2", "output": "No"}])
    (tmp_path / "b.json.score").write_text("{}")
    (tmp_path / "a.jsonl").write_text(json.dumps(LINE))
    found = read_predictions([tmp_path], Problems())
    assert [list(key) for key in found.by_file[FILE]] == [["vh-1", "depth", 0.2], ["vh-2", "", 0.0]]
    assert len(found.by_file[FILE]["vh-2", "", 0.0]) == 1


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScoringError, match=r"no predictions there; expected \*\.jsonl, or \*\.json of the public code"):
        read_predictions([tmp_path], Problems())


def test_a_depth_is_the_same_however_it_is_written() -> None:
    assert key_of({"id": "a", "depth": 0.2}) == key_of({"id": "a", "depth": 0.2000000001})
    assert key_of({"id": "a", "depth": 1}) == key_of({"id": "a", "depth": 1.0})
    assert key_of({"id": "a", "permutation": 1}) != key_of({"id": "a", "depth": 1})
