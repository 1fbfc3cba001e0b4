"""The command `collect`: results of batch requests become predictions; errors never become answers."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from exported import every_example
from tiny import command

import mmlongbench as mm
from mmlongbench.models.prediction_lines import PredictionLine
from mmlongbench.release.custom_ids import custom_id

pytestmark = pytest.mark.slow


def gold(example: mm.Example) -> str:
    """A prediction that gives the answer."""
    answer = example.answer
    return str(answer[0] if isinstance(answer, list) and example.dataset == "viquae" else answer)


def result(name: str, text: str | None, **message: object) -> dict[str, Any]:
    """A line of results with an answer, as both services write it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9, "prompt_tokens_details": None}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage, "model": "m"}
    return {
        "id": "b",
        "custom_id": name,
        "response": {"status_code": 200, "request_id": "r", "body": body},
        "error": None,
    }


def failed(name: str, status: int = 400, message: str = "At most 5 image(s)") -> dict[str, Any]:
    """A line of vLLM with an error."""
    response = {"status_code": status, "request_id": "r", "body": {"error": {"message": message, "code": status}}}
    return {"id": "b", "custom_id": name, "response": response, "error": {"message": message}}


def written(path: Path, lines: Iterable[Mapping[str, object] | str]) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


def counts(collected: mm.Collected) -> dict[str, int]:
    return {problem.reason: problem.count for problem in collected.problems}


def test_golds_that_come_back_in_any_order_score_full(mixed: Path, tmp_path: Path) -> None:
    examples = list(every_example(mixed))
    lines = [result(custom_id(example), gold(example)) for example in reversed(examples)]
    half = len(lines) // 2
    files = [written(tmp_path / "a.jsonl", lines[:half]), written(tmp_path / "b.jsonl", lines[half:])]
    found = mm.collect(mixed, files, model="org/model", out=tmp_path / "model.jsonl")
    assert (found.answered, found.examples, found.problems) == (len(examples), len(examples), ())
    said = [json.loads(line) for line in (tmp_path / "model.jsonl").read_bytes().splitlines()]
    assert [{key: line[key] for key in example.key} for line, example in zip(said, examples, strict=True)] == [
        example.key for example in examples
    ]
    scores = mm.score(mixed, tmp_path / "model.jsonl")
    assert scores.problems == ()
    assert {cell.dataset: cell.score for cell in scores.cells} == dict.fromkeys(mm.open_release(mixed).datasets, 1.0)


def test_a_line_says_what_was_answered_by_whom_and_to_what(finished: Path, tmp_path: Path) -> None:
    example = next(every_example(finished))
    line = result(custom_id(example), "Answer: hard", reasoning_content="It is ash.", refusal=None)
    mm.collect(finished, written(tmp_path / "r.jsonl", [line]), model="org/m", out=tmp_path / "p.jsonl")
    lock = hashlib.sha256((finished / "build.lock.json").read_bytes()).hexdigest()[:16]
    assert json.loads((tmp_path / "p.jsonl").read_text()) == {
        **example.key,
        "prediction": "Answer: hard",
        "digest": example.digest,
        "lock": lock,
        "model": "org/m",
        "reasoning": "It is ash.",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    }
    assert mm.open_release(finished).lock_id == lock
    assert PredictionLine.model_validate_json((tmp_path / "p.jsonl").read_text()).prediction == "Answer: hard"


def test_everything_that_is_no_answer_is_counted_and_named(finished: Path, tmp_path: Path) -> None:
    names = [custom_id(example) for example in every_example(finished)]
    good, twice, late, bad, status, gone, empty, broken, cut = names[:9]
    results = written(
        tmp_path / "results.jsonl",
        [
            result(good, "first"),
            result(twice, "one"),
            result(twice, "two"),
            failed(late, 500, "EngineDead"),
            result("0" * 32, "whose?"),
            "{half",
            "[1]",
            json.dumps({"custom_id": 7, "response": None}),
            '{"custom_id": "x", "response": {"body": "\\ud800"}}',
            "",
            {**result(status, "not an answer"), "response": {**result(status, "x")["response"], "status_code": 429}},
            {**result(gone, "x"), "response": None, "error": {"code": "batch_expired", "message": "expired"}},
            {**result(broken, "x"), "response": {"status_code": 200, "body": {"choices": "none"}}},
            result(empty, None),
            {**result(cut, "x"), "response": {"status_code": 200, "body": {"choices": []}}},
        ],
    )
    errors = written(tmp_path / "errors.jsonl", [failed(bad), failed("1" * 32), result(late, "later")])
    found = mm.collect(finished, [results, errors], model="m", out=tmp_path / "p.jsonl")
    assert counts(found) == {
        "error": 5,
        "error-and-answer": 1,
        "unreadable-line": 4,
        "unknown-request": 2,
        "duplicate": 1,
    }
    said = {line["prediction"] for line in map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())}
    assert said == {"first", "one", "later", ""}
    first = {problem.reason: problem.first for problem in found.problems}
    assert first["unreadable-line"][0].startswith("results.jsonl, line 6: invalid-json")
    assert first["duplicate"] == (f"results.jsonl, line 3: {twice}",)
    assert any("status 429" in place for place in first["error"])
    ran = command("collect", finished, results, errors, "--model", "m", "--out", tmp_path / "p.jsonl")
    assert ran.code == 1
    assert (
        "5 requests with an error instead of an answer; they are not in the predictions: errors.jsonl, line 1: "
        in ran.err
    )
    assert f"{tmp_path}/p.jsonl: 4 of 12 examples of the release have an answer; " in ran.out
    ran = command("collect", finished, results, errors, "--model", "m", "--out", tmp_path / "p.jsonl", "--json")
    assert json.loads(ran.out)["answered"] == 4


def test_a_refusal_and_an_empty_answer_are_answers(finished: Path, tmp_path: Path) -> None:
    one, two, *_ = (custom_id(example) for example in every_example(finished))
    lines = [result(one, None, refusal="I will not."), result(two, "")]
    mm.collect(finished, written(tmp_path / "r.jsonl", lines), model="m", out=tmp_path / "p.jsonl")
    said = [json.loads(line)["prediction"] for line in (tmp_path / "p.jsonl").read_bytes().splitlines()]
    assert said == ["I will not.", ""]


def test_errors_alone_write_nothing(finished: Path, tmp_path: Path) -> None:
    name = custom_id(next(every_example(finished)))
    results = written(tmp_path / "r.jsonl", [failed(name), failed("0" * 32)])
    ran = command("collect", finished, results, "--model", "m", "--out", tmp_path / "p.jsonl")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no answer for release: 1 requests with an error instead of an answer" in ran.err
    assert "status 400: At most 5 image(s)" in ran.err
    assert not (tmp_path / "p.jsonl").exists()
    with pytest.raises(mm.ReleaseError, match="no answer for release: no line"):
        mm.collect(finished, written(tmp_path / "empty.jsonl", []), model="m", out=tmp_path / "p.jsonl")


def test_results_of_a_changed_release_are_not_taken(finished: Path, odd: Path, tmp_path: Path) -> None:
    """The digest has the images' bytes, not their names, so a release with other names has the same requests."""
    lines = [result(custom_id(example), "x") for example in every_example(finished)]
    results = written(tmp_path / "r.jsonl", lines)
    assert mm.collect(odd, results, model="m", out=tmp_path / "p.jsonl").problems == ()
    file = odd.parent / "changed"
    from exported import renamed

    renamed(finished, file, "What is its wood?", "What is its leaf?")
    found = mm.collect(file, results, model="m", out=tmp_path / "q.jsonl")
    assert counts(found) == {"unknown-request": 2}


def test_other_predictions_are_not_overwritten(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = custom_id(next(every_example(finished)))
    results = written(tmp_path / "r.jsonl", [result(name, "x")])
    out = Path("predictions/org_m.jsonl")
    assert mm.collect(finished, results, model="org/m").out == out
    assert mm.collect(finished, results, model="org/m").answered == 1
    written(results, [result(name, "y")])
    with pytest.raises(mm.ReleaseError, match=r"predictions/org_m\.jsonl: already holds other predictions"):
        mm.collect(finished, results, model="org/m")
    assert json.loads(out.read_text())["prediction"] == "x"
    for model in ("", " "):
        with pytest.raises(mm.ReleaseError, match="expected the name of the model"):
            mm.collect(finished, results, model=model)
